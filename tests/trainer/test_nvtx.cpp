// Another tool records a run by NVTX: it gets the same ranges as the run's own trace, whether or not that
// trace is written.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/run_command.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::trainer::executor {
namespace TEST_FILE {

using ::testing::Contains;
using ::testing::ElementsAre;
using Texts = std::vector<std::string>;

class NvtxOfARun : public ::testing::Test {
  protected:
    void SetUp() override {
#ifndef SHARDSCOPE_HAS_NVTX
        GTEST_SKIP() << "built without NVTX's headers";
#endif
    }

    // Runs shardscope-train under shardscope-record.
    void record(const Texts& options) const {
        Texts command = {
            SHARDSCOPE_RECORD, "-o", recorded_, "--", SHARDSCOPE_TRAIN, SHARDSCOPE_SAMPLES "/mlp.toml"};
        for (const char* word : {"--run.steps", "2", "--run.ranks", "2", "--model.width", "32"}) {
            command.emplace_back(word);
        }
        command.insert(command.end(), options.begin(), options.end());
        const tools::Outcome outcome = tools::run_command(command);
        ASSERT_EQ(outcome.status, 0) << outcome.err;
    }

    // The first column of a query.
    static Texts texts(const std::string& trace, const std::string& sql) {
        traces::store::Database database(trace, traces::store::Database::Mode::read_only);
        traces::store::Statement statement(database, sql);
        Texts found;
        while (statement.step()) found.emplace_back(statement.text(0));
        return found;
    }
    // All push/pop ranges: domain, text, and the payload of the NCCL calls.
    static Texts ranges(const std::string& trace) {
        return texts(trace,
                     "SELECT r.domainId || ' ' || s.value || ' ' || hex(COALESCE(r.binaryData, '')) FROM "
                     "NVTX_EVENTS r JOIN StringIds s ON s.id = r.textId WHERE r.eventType = 59 ORDER BY 1");
    }

    const tools::TemporaryFolder folder_;
    const std::string recorded_ = folder_ / "recorded.sqlite", own_ = folder_ / "own.sqlite";
};

TEST_F(NvtxOfARun, HasTheRangesOfItsOwnTrace) {
    record({"--trace", own_});
    const Texts told = ranges(recorded_);
    EXPECT_GT(told.size(), 100u);
    EXPECT_EQ(told, ranges(own_));
    const std::string layouts =
        "SELECT schemaId || ' ' || name || ' ' || type FROM NVTX_PAYLOAD_SCHEMA_ENTRIES ORDER BY 1";
    EXPECT_EQ(texts(recorded_, layouts), texts(own_, layouts));
}

TEST_F(NvtxOfARun, NeedsNoTrace) {
    record({});
    const Texts names =
        texts(recorded_, "SELECT DISTINCT s.value FROM NVTX_EVENTS r JOIN StringIds s ON s.id = r.textId");
    for (const char* name : {"ProfilerStep#0", "ProfilerStep#1", "nn.Module: Linear_0", "ncclAllGather",
                             "ncclReduceScatter", "aten::fill_"}) {
        EXPECT_THAT(names, Contains(name));
    }
    EXPECT_THAT(texts(recorded_,
                      "SELECT s.value FROM ThreadNames t JOIN StringIds s ON s.id = t.nameId WHERE "
                      "s.value LIKE 'rank _ host' ORDER BY 1"),
                ElementsAre("rank 0 host", "rank 1 host"));
}

// Both ranks are threads of one process, whose environment names no rank.
TEST_F(NvtxOfARun, HasEachThreadsRankAndItsStepsOnce) {
    record({});
    EXPECT_THAT(texts(recorded_, "SELECT rank FROM SHARD_RANKS ORDER BY 1"), ElementsAre("0", "1"));
    const tools::Outcome steps =
        tools::run_command({SHARDSCOPE_TRACE, "steps", recorded_, "--format", "csv"});
    EXPECT_EQ(steps.status, 0) << steps.err;
    EXPECT_EQ(std::count(steps.out.begin(), steps.out.end(), '\n'), 1 + 4) << steps.out;
    for (const char* row : {"\n0,0,", "\n0,1,", "\n1,0,", "\n1,1,"}) {
        EXPECT_THAT(steps.out, ::testing::HasSubstr(row));
    }
    const tools::Outcome check = tools::run_command({SHARDSCOPE_TRACE, "check", recorded_});
    EXPECT_EQ(check.status, 0) << check.out << check.err;
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::executor
