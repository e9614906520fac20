// --status: a recording that is watched while it lasts.
#include <csignal>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "tests/tools/record/record_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class RecordStatus : public RecordTool {
  protected:
    // The first status for which `is_so` holds; it fails the test after a minute.
    template <class Condition>
    Json await(const Condition& is_so) const {
        Json status;
        for (int tries = 0; tries < 600; ++tries, ::usleep(100'000)) {
            const Outcome outcome = run_command({kTrace, "watch", "--once", "--format", "json", out_});
            if (outcome.status != 0) continue;
            status = Json::parse(outcome.out, nullptr, false);
            if (status.is_object() && is_so(status)) return status;
        }
        ADD_FAILURE() << status.dump();
        return status;
    }
    std::vector<std::string> line(const std::vector<std::string>& command) const {
        std::vector<std::string> line = {"env", "RANK=3", kRecord, "-o", out_, "--status", "--"};
        line.insert(line.end(), command.begin(), command.end());
        return line;
    }
};

TEST_F(RecordStatus, shows_the_processes_of_the_command) {
    RunningCommand run(line({kJob, "steps", "60000"}), "/dev/null", folder_ / "err");
    const Json status = await([](const Json& now) {
        return now["state"] == "running" && !now["ranks"].empty() && now["ranks"][0].contains("cores") &&
               now["ranks"][0].contains("range");
    });
    EXPECT_THAT(status.at("run").get<std::string>(), HasSubstr("job_program"));
    EXPECT_EQ(status.at("trace"), out_);
    EXPECT_GT(status.at("events"), 0);
    EXPECT_EQ(status.at("processes"), 1);
    ASSERT_EQ(status.at("ranks").size(), 1u);
    const Json& rank = status["ranks"][0];
    EXPECT_EQ(rank.at("rank"), 3);
    EXPECT_GT(rank.at("resident_bytes"), 0);
    EXPECT_THAT(rank["range"].at("name").get<std::string>(),
                ContainsRegex("^(step|forward of step [0-9]+)$"));
    EXPECT_EQ(run.end(SIGTERM), 128 + SIGTERM);
    EXPECT_EQ(value("SELECT ended FROM SHARD_STATE"), "1");
    EXPECT_THAT(run_command({"cat", folder_ / "err"}).out, HasSubstr("status at " + out_ + ".status; "));
    EXPECT_FALSE(exists("out.sqlite.status"));
}

TEST_F(RecordStatus, says_where_a_command_is_that_does_nothing) {
    RunningCommand run(line({kJob, "hangs", "60000"}));
    const Json status = await([](const Json& now) { return now["state"] == "waiting"; });
    EXPECT_THAT(status.at("reason").get<std::string>(),
                ContainsRegex("^nothing has been recorded for [0-9.]+ s: rank 3 is in .+ for [0-9.]+ s"));
    run.end(SIGKILL);
}

TEST_F(RecordStatus, a_watcher_sees_how_the_command_ended) {
    RunningCommand run(line({"sh", "-c", "sleep 3; exit 5"}));
    await([](const Json& now) { return now["state"] == "running"; });
    const Outcome watched = run_command({kTrace, "watch", out_});
    EXPECT_EQ(watched.status, 0) << watched.err;
    EXPECT_THAT(watched.out, AllOf(HasSubstr("failed"), HasSubstr("the command ended with status 5"),
                                   HasSubstr("the run has failed")));
    EXPECT_EQ(run.wait(), 5);
    // The trace is finished as without --status.
    EXPECT_EQ(value("SELECT ended FROM SHARD_STATE"), "1");
    EXPECT_EQ(run_command({kTrace, "check", out_}).status, 0);
}

TEST_F(RecordStatus, an_address_that_cannot_be_served_is_an_error_before_the_command_starts) {
    for (const auto& [address, saying] : {std::pair{"job", "job is not an address"},
                                          {"/nowhere/x.status", "/nowhere/x.status"},
                                          {"0.0.0.0:0", "a token is needed"}}) {
        const Outcome outcome =
            run_command({"env", "-u", "SHARDSCOPE_STATUS_TOKEN", "-u", "SHARDSCOPE_STATUS_TOKEN_FILE",
                         kRecord, "-o", out_, "--status", address, "--", "touch", folder_ / "started"});
        EXPECT_EQ(outcome.status, 125) << outcome.err;
        EXPECT_THAT(outcome.err, HasSubstr(saying));
        EXPECT_FALSE(exists("started"));
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
