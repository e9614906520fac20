// The line that a run says of itself, its address, and who waits for whom.
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/traces/temporary_folder.h"
#include "traces/status/address.h"
#include "traces/status/hang.h"
#include "traces/status/run_status.h"

namespace shardscope::traces::status {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// --- the line --------------------------------------------------------------------------------------------

RunStatus example() {
    RunStatus run;
    run.tool = "shardscope-train 1.2";
    run.run = "gpt \"x\".toml";
    run.trace = "run.sqlite";
    run.host = "node1";
    run.pid = 4711;
    run.number = 17;
    run.time_s = 12.5;
    run.state = RunState::waiting;
    run.reason = "rank 1 has not entered";
    run.steps_done = 3;
    run.steps = 10;
    run.epoch = 1.5;
    run.epochs = 3;
    run.loss = 2.25;
    run.step_s = 0.125;
    run.rate = 8000;
    run.items = "tokens";
    run.left_s = 60;
    run.slowest_rank = 1;
    RankStatus rank;
    rank.rank = 0;
    rank.host = "node1";
    rank.pid = 4711;
    rank.state = RankState::silent;
    rank.silent_s = 2.5;
    rank.steps_done = 4;
    rank.memory_bytes = 1024;
    rank.peak_bytes = 2048;
    rank.waits_percent = 12.5;
    rank.collective = CollectiveStatus{"all_gather", 12, 1, true, 3.25};
    run.ranks.push_back(rank);
    rank = {};
    rank.rank = 1;
    rank.state = RankState::running;
    rank.cores = 1.5;
    rank.resident_bytes = 4096;
    rank.range = RangeStatus{"ncclAllReduce", 0.5};
    run.ranks.push_back(rank);
    return run;
}

TEST(StatusLine, is_one_line_that_reads_back) {
    const std::string line = to_line(example());
    EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
    EXPECT_EQ(line.back(), '\n');
    const RunStatus read = from_line(line);
    EXPECT_EQ(to_line(read), line);
    EXPECT_EQ(read.state, RunState::waiting);
    EXPECT_EQ(read.run, "gpt \"x\".toml");
    ASSERT_EQ(read.ranks.size(), 2u);
    EXPECT_EQ(read.ranks[0].collective->number, 12);
    EXPECT_EQ(read.ranks[0].silent_s, 2.5);
    EXPECT_EQ(read.ranks[1].range->name, "ncclAllReduce");
}

TEST(StatusLine, leaves_out_what_is_unknown_or_not_a_number) {
    RunStatus run;
    run.loss = std::numeric_limits<double>::quiet_NaN();
    run.rate = std::numeric_limits<double>::infinity();
    EXPECT_EQ(to_line(run),
              "{\"shardscope_status\":1,\"number\":0,\"time_s\":0.0,\"state\":\"starting\",\"ranks\":[]}\n");
}

TEST(StatusLine, refuses_other_text_and_other_versions) {
    for (const char* text : {"", "GET / HTTP/1.1", "{}", "[1]", "{\"shardscope_status\":", "\xff\xfe"})
        EXPECT_THROW(from_line(text), StatusError) << text;
    EXPECT_THROW(from_line("{\"shardscope_status\":2}"), StatusError);
}

// Types other than those that are promised, and numbers that fit nowhere, are as if they were missing.
TEST(StatusLine, survives_wrong_types) {
    const RunStatus run = from_line(
        R"({"shardscope_status":1,"tool":5,"steps":"ten","steps_done":18446744073709551615,"loss":[],)"
        R"("state":"flying","slowest_rank":99999999999,"ranks":[1,{"rank":"a","collective":[],"state":7},)"
        R"({"rank":-9e99,"collective":{"open":"yes"},"range":{"for_s":"x"}}]})");
    EXPECT_EQ(run.tool, "");
    EXPECT_FALSE(run.steps || run.steps_done || run.loss);
    EXPECT_EQ(run.state, RunState::running);
    EXPECT_EQ(run.ranks.size(), 2u);
    EXPECT_FALSE(run.ranks[1].collective->open);
}

TEST(StatusLine, a_refusal_is_told_apart) {
    EXPECT_EQ(refusal_of(refusal_line("the token is wrong")), "the token is wrong");
    EXPECT_FALSE(refusal_of(to_line(example())));
    EXPECT_FALSE(refusal_of("nonsense"));
}

// --- addresses -------------------------------------------------------------------------------------------

TEST(StatusAddress, is_a_path_or_a_host_with_its_port) {
    EXPECT_EQ(parse_address("/tmp/x").path, "/tmp/x");
    EXPECT_EQ(parse_address("run.sqlite.status").path, "run.sqlite.status");
    EXPECT_EQ(to_text(parse_address("node1:29600")), "node1:29600");
    EXPECT_EQ(to_text(parse_address(":29600")), "127.0.0.1:29600");
    EXPECT_EQ(parse_address("[::1]:80").host, "::1");
    EXPECT_EQ(to_text(parse_address("[::1]:80")), "[::1]:80");
    for (const char* text : {"", "job.toml", "node1", "node1:", "node1:x", "node1:99999", "::1:80", "a:b:1"})
        EXPECT_THROW(parse_address(text), StatusError) << text;
}

TEST(StatusAddress, a_token_is_long_and_its_file_private) {
    const TemporaryFolder folder;
    const std::string file = folder / "token";
    std::map<std::string, std::string> variables;
    const auto variable = [&](const char* name) {
        return variables.contains(name) ? variables[name].c_str() : nullptr;
    };
    EXPECT_EQ(token_of(variable), "");
    variables[kTokenFileVariable] = file;
    EXPECT_THROW(token_of(variable), StatusError);  // there is no such file
    std::ofstream(file) << "0123456789abcdef\n";
    ::chmod(file.c_str(), 0640);
    EXPECT_THROW(token_of(variable), StatusError);
    ::chmod(file.c_str(), 0600);
    EXPECT_EQ(token_of(variable), "0123456789abcdef");
    for (const std::string& token :
         {std::string("short"), std::string(300, 'x'), std::string("with a blank in it")}) {
        variables[kTokenVariable] = token;
        EXPECT_THROW(token_of(variable), StatusError) << token;
    }
}

TEST(StatusAddress, secrets_are_equal_as_a_whole_only) {
    EXPECT_TRUE(equal_secrets("abc", "abc"));
    for (const char* other : {"", "ab", "abcd", "abd", "abcabc"})
        EXPECT_FALSE(equal_secrets(other, "abc")) << other;
}

TEST(StatusAddress, others_need_a_token_to_reach_it) {
    Address address = parse_address("0.0.0.0:0");
    EXPECT_THROW(listen_at(address, false), StatusError);
    EXPECT_TRUE(listen_at(address, true));
    EXPECT_GT(address.port, 0);
    Address here = parse_address("127.0.0.1:0");
    EXPECT_TRUE(listen_at(here, false));
}

TEST(StatusAddress, a_socket_is_this_users_alone_and_replaces_one_that_nobody_answers) {
    const TemporaryFolder folder;
    Address address = parse_address(folder / "run.sqlite.status");
    {
        const store::FileDescriptor first = listen_at(address, false);
        struct stat facts;
        ASSERT_EQ(::stat(address.path.c_str(), &facts), 0);
        EXPECT_EQ(facts.st_mode & 0777, 0600u);
        EXPECT_THROW(listen_at(address, false), StatusError);  // it is answered
        EXPECT_TRUE(connect_to(address, 1000));
    }
    EXPECT_THROW(connect_to(address, 1000), StatusError);
    EXPECT_TRUE(listen_at(address, false));
    std::ofstream(folder / "file.status") << "mine";
    Address file = parse_address(folder / "file.status");
    EXPECT_THROW(listen_at(file, false), StatusError);
    EXPECT_EQ(std::filesystem::file_size(file.path), 4u);
}

TEST(StatusAddress, a_socket_may_lie_deeper_than_the_systems_107_bytes) {
    const TemporaryFolder folder;
    const std::string deep = folder / std::string(90, 'd') + "/" + std::string(90, 'e');
    std::filesystem::create_directories(deep);
    Address address = parse_address(deep + "/run.sqlite.status");
    const store::FileDescriptor listener = listen_at(address, false);
    EXPECT_TRUE(std::filesystem::is_socket(address.path));
    EXPECT_TRUE(connect_to(address, 1000));
    Address too_long = parse_address(folder / std::string(120, 'n') + ".status");
    EXPECT_THROW(listen_at(too_long, false), StatusError);
}

// --- who waits for whom ----------------------------------------------------------------------------------

// Group 0 is the world, group 1 the even ranks, group 2 the odd ones.
std::vector<int> members_of(int ranks, std::int64_t group) {
    std::vector<int> members;
    for (int rank = 0; rank < ranks; ++rank) {
        if (group == 0 || (group == 1) == (rank % 2 == 0)) members.push_back(rank);
    }
    return members;
}

std::optional<Hang> hang_of(const std::vector<RankProgress>& ranks) {
    const auto count = static_cast<int>(ranks.size());
    return find_hang(
        ranks, [count](std::int64_t group) { return members_of(count, group); }, 1.0, 1.2);
}

GroupProgress in(std::int64_t group, std::int64_t number, double for_s) {
    return {group, number + 1, number, for_s, "all_gather"};
}
GroupProgress after(std::int64_t group, std::int64_t number, double for_s) {
    return {group, number + 1, number + 1, for_s, "all_gather"};
}

TEST(Hang, names_the_one_that_has_not_entered) {
    std::vector<RankProgress> ranks;
    for (int rank = 0; rank < 8; ++rank) ranks.push_back({rank, 0, {in(0, 12, 3.0)}});
    ranks[5] = {5, 2.9, {after(0, 11, 3.1)}};
    const auto hang = hang_of(ranks);
    ASSERT_TRUE(hang);
    EXPECT_EQ(hang->rank, 5);
    EXPECT_THAT(hang->waiting, ElementsAre(0, 1, 2, 3, 4, 6, 7));
    EXPECT_EQ(hang->sentence,
              "rank 5 has not entered all_gather 12 of group 0 for 3.0 s and has not answered for 2.9 s; "
              "ranks 0-4, 6 "
              "and 7 wait for it");
}

TEST(Hang, follows_those_who_wait_themselves) {
    // Rank 0 waits for 1 in the world, 1 waits for 3 among the odd ranks, and 3 computes.
    const auto hang = hang_of({{0, 0, {in(0, 4, 2.0)}},
                               {1, 0, {after(0, 3, 5.0), in(2, 7, 4.0)}},
                               {2, 0, {in(0, 4, 2.5)}},
                               {3, 0, {after(0, 3, 5.0), after(2, 6, 5.0)}}});
    ASSERT_TRUE(hang);
    EXPECT_EQ(hang->rank, 3);
    EXPECT_THAT(hang->waiting, ElementsAre(0, 1, 2));
    EXPECT_THAT(hang->sentence, HasSubstr("rank 3 has not entered all_gather"));
}

TEST(Hang, names_a_cycle) {
    const auto hang = hang_of(
        {{0, 0, {in(1, 4, 2.0), after(0, 1, 3.0)}}, {1, 0, {in(0, 2, 2.0)}}, {2, 0, {in(0, 2, 2.0)}}});
    ASSERT_TRUE(hang);
    EXPECT_EQ(hang->rank, -1);
    EXPECT_THAT(hang->sentence, HasSubstr("wait for each other"));
}

TEST(Hang, names_a_silent_one_where_all_have_entered) {
    const auto hang = hang_of({{0, 0, {in(0, 2, 2.0)}}, {1, 2.0, {in(0, 2, 2.0)}}});
    ASSERT_TRUE(hang);
    EXPECT_EQ(hang->rank, 1);
    EXPECT_EQ(hang->sentence,
              "rank 1 has not finished all_gather 2 of group 0 for 2.0 s and has not answered for 2.0 s; "
              "rank 0 waits "
              "for it");
}

TEST(Hang, is_none_while_ranks_work_or_data_is_on_its_way) {
    EXPECT_FALSE(hang_of({{0, 0, {in(0, 2, 0.5)}}, {1, 0, {after(0, 1, 0.5)}}}));     // not long enough
    EXPECT_FALSE(hang_of({{0, 0, {in(0, 2, 5.0)}}, {1, 0, {in(0, 2, 5.0)}}}));        // all have entered
    EXPECT_FALSE(hang_of({{0, 0, {after(0, 2, 9.0)}}, {1, 0, {after(0, 2, 9.0)}}}));  // both compute
    EXPECT_FALSE(hang_of({}));
}

TEST(Hang, lists_ranks_in_words) {
    EXPECT_EQ(rank_list({}), "");
    EXPECT_EQ(rank_list({3}), "3");
    EXPECT_EQ(rank_list({0, 1}), "0 and 1");
    EXPECT_EQ(rank_list({0, 1, 2, 4, 6, 7, 8}), "0-2, 4 and 6-8");
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::status
