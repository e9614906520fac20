// shardscope-train schedule as a user calls it: pictures, figures, files, and what it refuses.
#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"
#include "trainer/cli/schedule_report.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Words words(std::initializer_list<std::string> more) {
    Words all = {"schedule"};
    all.insert(all.end(), more);
    return all;
}

std::string printed(std::initializer_list<std::string> more) {
    const Outcome outcome = train(words(more));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return outcome.out;
}

void expect_refused(std::initializer_list<std::string> more, const std::string& saying) {
    expect_refusal(train(words(more)), {saying});
}

// Every rank computes in the order that its trace has planned, and half of the ranks have each stage.
TEST(ScheduleOfARun, IsInItsTraceAndIsKept) {
    const TemporaryFolder folder;
    const std::string trace = folder / "run.sqlite";
    const Outcome outcome = train(
        {sample("gpt_3d.toml"), "--run.steps=3", "--trace", trace, "--data.path=" + sample("README.md")});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const Json report = trace_json({"pipeline", trace});
    ASSERT_EQ(report.at("ranks").size(), 8U);
    for (const Json& rank : report.at("ranks")) {
        EXPECT_EQ(rank.at("planned_actions"), 2 * 4);  // a forward and a backward of four micro-batches
        EXPECT_EQ(rank.at("steps_in_other_order"), 0);
    }
    ASSERT_EQ(report.at("stages").size(), 16U);
    const Json one = trace_json({"pipeline", trace, "--rank", "5"});
    ASSERT_EQ(one.at("stages").size(), 2U);
    EXPECT_EQ(one.at("stages").at(0).at("rank"), 5);
}

TEST(ScheduleVerb, DrawsEachRankOverTime) {
    const std::string text = printed({"1f1b", "--pipeline", "2", "--micro-batches", "3"});
    EXPECT_THAT(text, HasSubstr("1F1B (1f1b): 2 ranks, 2 stages (loop placement), 3 micro-batches\n"));
    EXPECT_THAT(
        text, HasSubstr("time    0              5              10\n"
                        "rank 0  F0 F1 .  .  B0--- F2 B1--- .  B2---\n"
                        "rank 1  .  F0 B0--- F1 B1--- F2 B2--- .  .\n"
                        "Action and micro-batch; a cell is 1 unit of time\nF forward, B backward, . idle\n"));
    EXPECT_THAT(text, HasSubstr("Makespan 12 units; bubble 1/4 of ranks x makespan, 25.00 %\n"));
    EXPECT_THAT(
        text,
        HasSubstr("Closed form: idle (p-1)(F+B) if m >= p: 3 units, 25.00 %; peak min(m, p-r) (arXiv "));
}

TEST(ScheduleVerb, DrawsStagesPairsAndPartsOfUnits) {
    EXPECT_THAT(printed({"dualpipe_v", "-p", "2", "-m", "4"}),
                HasSubstr("rank 1  .   1F0 2F0 1F1 2F1 1F2 2B0---- 2F2+1B0---- 1F3+2B1----"));
    const std::string text =
        printed({"zb_h1", "-p", "2", "-m", "2", "--costs", "1,1.5,1/2", "--transfer", "0.25"});
    EXPECT_THAT(
        text,
        HasSubstr("A chunk (a stage, a micro-batch) takes forward 1, backward input 1.5, weight 0.5 units, a "
                  "transfer 0.25\n"));
    EXPECT_THAT(text, HasSubstr("a cell is 0.25 unit of time\n"));
    EXPECT_THAT(text,
                HasSubstr("if m >= p and transfers take no time: not here, so the replay is the answer"));
    const std::string large = printed({"gpipe", "-p", "8", "-m", "2000"});
    EXPECT_THAT(large, HasSubstr("(The picture is omitted: it would have "));
}

// What a published table says of DualPipeV: 4 ranks, 10 micro-batches, F = I = W = 1.
TEST(ScheduleVerb, PrintsExactFiguresAsJson) {
    const Json json = train_json(words({"dualpipe_v", "--pipeline=4", "--micro-batches=10"}));
    EXPECT_EQ(json.at("makespan"), 66);
    EXPECT_EQ(json.at("bubble"), "1/11");
    EXPECT_EQ(json.at("placement"), "V");
    EXPECT_EQ(json.at("closed_form").at("idle_units"), 6);
    ASSERT_EQ(json.at("ranks").size(), 4u);
    for (const Json& rank : json.at("ranks")) {
        EXPECT_EQ(rank.at("idle"), 6);
        EXPECT_EQ(rank.at("in_flight_peak"), 9);
        EXPECT_EQ(rank.at("in_flight_formula"), 9);
        EXPECT_EQ(rank.at("warm_up").get<int>() + rank.at("peer").get<int>() +
                      rank.at("communication").get<int>() + rank.at("drain").get<int>(),
                  6);
    }
    EXPECT_THAT(json.at("ranks").at(1).at("stages"), ElementsAre(1, 6));
    EXPECT_EQ(json.at("actions").at(0).at(0), "0F0");
    EXPECT_EQ(json.at("schedules").size(), 8u);
}

TEST(ScheduleVerb, ComparesAllSchedules) {
    const std::string table = printed({"--pipeline", "4", "--micro-batches", "7"});
    EXPECT_EQ(table, printed({"all", "--pipeline", "4", "--micro-batches", "7"}));
    for (const char* name :
         {"gpipe ", "1f1b ", "interleaved ", "looped_bfs ", "zb_h1 ", "interleaved_zb ", "zb_v "})
        EXPECT_THAT(table, HasSubstr(std::string("\n") + name));
    EXPECT_THAT(
        table,
        HasSubstr(
            "Not possible: dualpipe_v takes 8 micro-batches or more on 4 ranks (m >= 2p), not 7; use 8"));
    const Json json = train_json(words({"all", "-p", "4", "-m", "8"}));
    const Json& zb_v = json.at("schedules").at(6);
    EXPECT_EQ(zb_v.at("schedule"), "zb_v");
    EXPECT_EQ(zb_v.at("makespan"), 25.5);
    EXPECT_EQ(zb_v.at("messages"), 96);
    EXPECT_EQ(zb_v.at("refused"), nullptr);
    EXPECT_THAT(printed({"all", "-p", "4", "-m", "8", "--format", "csv"}),
                StartsWith("schedule,chunks,makespan,idle,bubble_percent,"));
}

TEST(ScheduleVerb, WritesFilesThatItReadsAgain) {
    const TemporaryFolder folder;
    const std::string computes = folder / "zb_v.csv", lowered = folder / "lowered.csv";
    const std::string csv = printed({"zb_v", "-p", "2", "-m", "2", "--format", "csv"});
    EXPECT_THAT(csv, StartsWith("0F0,0F1,3F0,3I0,3W0,"));
    printed({"zb_v", "-p", "2", "-m", "2", "-o", computes});
    EXPECT_EQ(read_file(computes), csv);
    EXPECT_EQ(printed({computes, "--format", "csv"}), csv);
    EXPECT_THAT(printed({computes}), StartsWith(computes + ": ZB-V (zb_v): 2 ranks, 4 stages (V placement)"));
    printed({"zb_v", "-p", "2", "-m", "2", "--comms", "-o", lowered});
    EXPECT_THAT(read_file(lowered), StartsWith("0UNSHARD,3UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,3RECV_F0,"));
    const std::string shown = printed({lowered});
    EXPECT_THAT(shown, AllOf(HasSubstr("ZB-V (zb_v)"), Not(HasSubstr("0SEND_F0"))));
    EXPECT_THAT(printed({computes, "--comms"}), HasSubstr("rank 0: 0UNSHARD 3UNSHARD 0F0 0SEND_F0"));

    expect_refused({"zb_v", "-p", "2", "-m", "2", "-o", computes},
                   "exists; choose another path or use --overwrite");
    printed({"gpipe", "-p", "2", "-m", "2", "-o", computes, "--overwrite"});
    EXPECT_EQ(read_file(computes), "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n");
}

TEST(ScheduleVerb, ShowsASchedulesOfOnesOwn) {
    const TemporaryFolder folder;
    const std::string file = folder / "mine.csv";
    write_file(file, "0F0,0F1,0B1,0B0\n1F0,1F1,1B1,1B0\n");
    const std::string text = printed({file});
    EXPECT_THAT(text, StartsWith(file + ": a schedule that has no name here: 2 ranks"));
    EXPECT_THAT(text, AllOf(HasSubstr("Makespan 9 units"), Not(HasSubstr("Closed form"))));
    write_file(file,
               "0F0,1F0,1B0,0B0\n2F0,2B0\n");  // ranks with different numbers of stages are not compared
    EXPECT_THAT(printed({file}), Not(HasSubstr("The schedules for")));
    EXPECT_EQ(train_json(words({file})).at("schedules").size(), 0u);
    write_file(file, "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n");
    expect_refused(
        {file},
        file +
            ":1: cell 2 (rank 0): deadlock: rank 0 at 0B0 for 1B0 of rank 1, rank 1 at 1F1 for 0F1 of "
            "rank 0 wait");
    expect_refused({folder / "none.csv"}, "none.csv: cannot be read");
    expect_refused({file, "-p", "2"}, "says how many ranks");
}

TEST(ScheduleVerb, RefusesWhatItCannotUse) {
    expect_refused({"1f1b", "-p", "4", "-m", "3"},
                   "command line: 1f1b takes 4 micro-batches or more on 4 ranks (m >= p), not 3; use 4");
    expect_refused({"interleaved", "-p", "4", "-m", "9"}, "use 8 or 10");
    expect_refused({"gpipe", "-p", "4", "-m", "8", "-c", "2"}, "gpipe takes 1 chunk per rank, not 2");
    expect_refused({"zbv", "-p", "4", "-m", "8"}, "zbv is not a schedule; did you mean zb_v?");
    expect_refused({"gpipe", "-m", "8"}, "--pipeline is missing");
    expect_refused({"gpipe", "-p", "8"}, "--micro-batches is missing");
    expect_refused({"gpipe", "-p", "0", "-m", "8"}, "0 ranks: a pipeline has 1 to 4096");
    expect_refused({"gpipe", "-p", "x", "-m", "8"}, "--pipeline");
    expect_refused({"gpipe", "-p", "2", "-m", "8", "--costs", "1,1"},
                   "--costs: \"1,1\" is not three times above 0");
    expect_refused({"gpipe", "-p", "2", "-m", "8", "--transfer", "-1"}, "--transfer");
    expect_refused({"all", "-p", "2", "-m", "8", "--chunks", "1"}, "take 2 to 64");
    expect_refused({"all", "-p", "2", "-m", "8", "--comms"}, "--comms is for the actions of one schedule");
    expect_refused({"gpipe", "-p", "2", "-m", "8", "--run.ranks=2"}, "schedule takes no keys of a job");
    expect_refused({"gpipe", "-p", "2", "-m", "8", "-o", "/nowhere/x.csv"}, "there is no folder");
    EXPECT_THAT(train({"--help"}).out, HasSubstr("shardscope-train schedule --help"));
    EXPECT_THAT(train({"schedule", "--help"}).out,
                AllOf(HasSubstr("in_flight_peak"), HasSubstr("gpipe, 1f1b")));
}

// Parts of docs/pipeline.md are made from the code. To update it: SHARDSCOPE_UPDATE_DOCS=1 and run this test.
TEST(PipelinePage, AgreesWithTheCode) {
    std::string page = read_file(SHARDSCOPE_PIPELINE_PAGE);
    const auto replace = [&](const std::string& name, const std::string& content) {
        const std::string begin = "<!-- begin " + name + " -->\n", end = "<!-- end " + name + " -->\n";
        const auto from = page.find(begin), to = page.find(end);
        ASSERT_TRUE(from != std::string::npos && to != std::string::npos) << name;
        page.replace(from + begin.size(), to - from - begin.size(), content);
    };
    replace("schedules", trainer::cli::schedule_page());
    replace("keys", "```text\n" + trainer::cli::schedule_keys() + "```\n");
    replace("comparison", "```text\n" + printed({"all", "-p", "4", "-m", "8"}) + "```\n");
    if (std::getenv("SHARDSCOPE_UPDATE_DOCS") != nullptr) std::ofstream(SHARDSCOPE_PIPELINE_PAGE) << page;
    EXPECT_EQ(read_file(SHARDSCOPE_PIPELINE_PAGE), page)
        << "docs/pipeline.md is out of date: run this test with SHARDSCOPE_UPDATE_DOCS=1 and commit the page";
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
