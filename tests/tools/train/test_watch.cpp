// Runs that are watched while they last, as a user does: shardscope-train --status, shardscope-trace watch.
#include <csignal>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tools/train/process_run.h"
#include "tests/tools/train/train_tool.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::tools {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Watched : public ::testing::Test {
  protected:
    // An endless run until it is told to end.
    Words endless(const Words& more) const {
        Words words = {train_binary(),    sample("mlp.toml"), "--run.steps=100000000",   "--model.width=64",
                       "--run.workers=1", "--run.ranks=4",    "--train.diverged_above=0"};
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }
    std::string socket() const { return folder_ / "run.sqlite.status"; }
    std::string trace() const { return folder_ / "run.sqlite"; }

    // The first status for which `is_so` holds; it fails the test after a minute.
    template <class Condition>
    Json await(const std::string& where, const Condition& is_so) const {
        Json status;
        const bool seen = within(60, [&] {
            const Outcome outcome = trace_tool({"watch", "--once", "--format", "json", where});
            if (outcome.status != 0) return false;
            status = Json::parse(outcome.out, nullptr, false);
            return status.is_object() && is_so(status);
        });
        EXPECT_TRUE(seen) << status.dump();
        return status;
    }
    static bool runs(const Json& status) { return status["state"] == "running" && status.contains("loss"); }

    const TemporaryFolder folder_;
};

TEST_F(Watched, AllRanksAreSeenWhileTheyTrain) {
    RunningCommand run(endless({"--trace", trace(), "--status"}), "/dev/null", folder_ / "err");
    const Json status = await(trace(), runs);
    EXPECT_THAT(status.at("tool").get<std::string>(), StartsWith("shardscope-train "));
    EXPECT_EQ(status.at("run"), "mlp.toml");
    EXPECT_EQ(status.at("steps"), 100000000);
    EXPECT_GT(status.at("steps_done"), 0);
    EXPECT_GT(status.at("rate"), 0);
    EXPECT_GT(status.at("left_s"), 0);
    ASSERT_EQ(status.at("ranks").size(), 4u);
    for (const Json& rank : status["ranks"]) {
        EXPECT_EQ(rank.at("pid"), run.pid());
        EXPECT_GT(rank.at("memory_bytes"), 0);
        EXPECT_GE(rank.at("peak_bytes"), rank.at("memory_bytes"));
        EXPECT_EQ(rank.at("collective").at("group"), 0);
    }
    // The same for people, and by the socket's name.
    const Outcome shown = trace_tool({"watch", "--once", socket()});
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_THAT(shown.out, AllOf(HasSubstr("mlp.toml on "), HasSubstr("of 100,000,000"),
                                 HasSubstr("samples/s"), ContainsRegex("\n   3  ")));
    EXPECT_EQ(run.end(SIGTERM), 143);
    EXPECT_FALSE(fs::exists(socket()));
    EXPECT_THAT(read_file(folder_ / "err"), HasSubstr("status at " + socket() + "; shardscope-trace watch "));
}

TEST_F(Watched, AWatcherSeesTheEnd) {
    RunningCommand run(endless({"--status", socket()}));
    await(socket(), runs);
    RunningCommand watcher({trace_tool_binary(), "watch", socket()}, folder_ / "out", folder_ / "watch.err");
    within(60, [&] { return !read_file(folder_ / "out").empty(); });
    EXPECT_EQ(run.end(SIGTERM), 143);
    EXPECT_EQ(watcher.wait(), 0) << read_file(folder_ / "watch.err");
    EXPECT_THAT(read_file(folder_ / "out"),
                AllOf(ContainsRegex("running, step [0-9,]+ of 100,000,000"), HasSubstr("stopped by SIGTERM"),
                      ContainsRegex("the run was stopped after step [0-9,]+ of 100,000,000")));
}

TEST_F(Watched, AWatcherOfARunThatIsKilledSaysSo) {
    RunningCommand run(endless({"--status", socket()}));
    await(socket(), runs);
    RunningCommand watcher({trace_tool_binary(), "watch", socket()}, folder_ / "out", folder_ / "watch.err");
    within(60, [&] { return !read_file(folder_ / "out").empty(); });
    run.end(SIGKILL);
    EXPECT_EQ(watcher.wait(), 1);
    EXPECT_THAT(read_file(folder_ / "watch.err"),
                HasSubstr("the run is gone without having said how it ended"));
    // Its socket is left, nobody answers, and a later run takes its place.
    EXPECT_THAT(trace_tool({"watch", socket()}).err, HasSubstr("no run serves its status there"));
    RunningCommand later(endless({"--status", socket()}));
    await(socket(), runs);
    EXPECT_EQ(later.end(SIGTERM), 143);
}

TEST_F(Watched, ATraceIsWatchedWithoutAServer) {
    RunningCommand run(endless({"--trace", trace()}));
    const Json status = await(trace(), runs);
    EXPECT_EQ(status.at("ranks").size(), 4u);
    EXPECT_GT(status.at("steps_done"), 0);
    run.end(SIGKILL);
    const Json killed = await(trace(), [](const Json& now) { return now["state"] == "waiting"; });
    EXPECT_THAT(killed.at("reason").get<std::string>(), HasSubstr("the run was killed, or it hangs"));
}

// Ranks that are processes: the one that is stopped is named, with those that wait for it, and that it goes
// on.
TEST_F(Watched, AProcessThatIsStoppedIsNamedWhileItLasts) {
    Words words = endless({"--status", socket(), "--run.timeout=300"});
    std::erase(words, "--run.ranks=4");
    ProcessRun run(4, words);
    run.start_all();
    const Json before = await(socket(), [](const Json& status) {
        return runs(status) && std::all_of(status["ranks"].begin(), status["ranks"].end(),
                                           [](const Json& rank) { return rank["state"] != "starting"; });
    });
    for (int rank = 0; rank < 4; ++rank)
        EXPECT_EQ(before["ranks"][static_cast<std::size_t>(rank)]["pid"], run.pid(rank));
    run.signal(2, SIGSTOP);
    const Json hanging = await(socket(), [](const Json& status) {
        return status["state"] == "waiting" && status["ranks"][2]["state"] == "silent" &&
               status["reason"].get<std::string>().find("ranks 0, 1 and 3 wait") != std::string::npos;
    });
    EXPECT_THAT(hanging.at("reason").get<std::string>(),
                ContainsRegex(
                    "^rank 2 has not (entered|finished) [a-z_]+ [0-9]+ of group 0 for [0-9.]+ s and has not "
                    "answered for [0-9.]+ s; ranks 0, 1 and 3 wait for it"));
    run.signal(2, SIGCONT);
    await(socket(), runs);
    run.signal(0, SIGTERM);
    for (const auto& [rank, outcome] : run.ends(60)) EXPECT_EQ(outcome.status, 143) << outcome.err;
}

TEST_F(Watched, ATokenIsNeededWhereOthersCanConnect) {
    ::unsetenv("SHARDSCOPE_STATUS_TOKEN");
    ::unsetenv("SHARDSCOPE_STATUS_TOKEN_FILE");
    expect_refusal(train({sample("mlp.toml"), "--status", "0.0.0.0:0"}),
                   {"--status 0.0.0.0:0: others can reach this address, so a token is needed"});
    ::setenv("SHARDSCOPE_STATUS_TOKEN", "short", 1);
    expect_refusal(train({sample("mlp.toml"), "--status", "0.0.0.0:0"}),
                   {"a token has 16 to 256 characters"});
    ::setenv("SHARDSCOPE_STATUS_TOKEN", "0123456789abcdef", 1);
    RunningCommand run(endless({"--status", "0.0.0.0:0"}), "/dev/null", folder_ / "err");
    std::string address;
    ASSERT_TRUE(within(60, [&] {
        const std::string said = read_file(folder_ / "err");
        const std::size_t at = said.find("status at 0.0.0.0:"), end = said.find(';', at);
        if (at == std::string::npos || end == std::string::npos) return false;
        address = "127.0.0.1:" + said.substr(at + 18, end - at - 18);
        return true;
    }));
    await(address, runs);
    ::setenv("SHARDSCOPE_STATUS_TOKEN", "another-token-0123456789", 1);
    const Outcome stranger = trace_tool({"watch", address});
    EXPECT_EQ(stranger.status, 1);
    EXPECT_THAT(stranger.err, HasSubstr("the token is wrong"));
    ::unsetenv("SHARDSCOPE_STATUS_TOKEN");
    EXPECT_EQ(run.end(SIGTERM), 143);
}

// Whoever has made a trace may have noted any address in it.
TEST_F(Watched, ATokenGoesOnlyWhereTheUserSays) {
    const std::string trace = folder_ / "mlp.sqlite";
    train_json({sample("mlp.toml"), "--run.steps=1", "--trace", trace});
    ::setenv("SHARDSCOPE_STATUS_TOKEN", "0123456789abcdef", 1);
    // The second one only looks like this machine.
    for (const std::string address : {"198.51.100.7:9", "127.nowhere.example:9"}) {
        traces::store::Database(trace, traces::store::Database::Mode::read_write)
            .execute(
                "UPDATE SHARD_STATE SET ended = 0; "
                "INSERT OR REPLACE INTO SHARD_RUN VALUES ('status_address', '" +
                address + "')");
        const Outcome refused = trace_tool({"watch", "--once", trace});
        EXPECT_NE(refused.status, 0);
        EXPECT_THAT(refused.err,
                    HasSubstr("says that its run serves at " + address + "; watch that address"));
    }
    ::unsetenv("SHARDSCOPE_STATUS_TOKEN");
}

TEST_F(Watched, WhatCannotBeServedIsRefused) {
    expect_refusal(train({sample("mlp.toml"), "--status", "job.toml"}),
                   {"--status: job.toml is not an address"});
    expect_refusal(train({sample("mlp.toml"), "--status", "/nowhere/x.status"}), {"/nowhere/x.status"});
    expect_refusal(train({sample("mlp.toml"), "--run.device=sim", "--status"}), {"a simulated job"});
    expect_refusal(train({sample("mlp.toml"), "--dry-run", "--status"}), {"--status", "--dry-run"});
}

// The screen of a terminal: drawn in place, and the user's own one comes back after Ctrl-C.
TEST_F(Watched, AScreenIsDrawnAndGivenBack) {
    if (run_command({"script", "--version"}).status != 0) GTEST_SKIP() << "needs script (util-linux)";
    RunningCommand run(endless({"--status", socket()}));
    await(socket(), runs);
    const Outcome screen = run_command(
        {"script", "-qec",
         "stty cols 80 rows 24; TERM=xterm timeout -s INT 2 " + trace_tool_binary() + " watch " + socket(),
         "/dev/null"});
    const std::size_t first = screen.out.find("\x1b[?1049h"), last = screen.out.rfind("\x1b[?1049l");
    ASSERT_NE(first, std::string::npos);
    ASSERT_NE(last, std::string::npos);
    EXPECT_LT(first, last);
    EXPECT_GT(screen.out.rfind("\x1b[?25h"), screen.out.rfind("\x1b[?25l"));  // the cursor is back
    EXPECT_THAT(screen.out.substr(last), HasSubstr("mlp.toml on "));          // what was seen last stays
    EXPECT_EQ(run.end(SIGTERM), 143);
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
