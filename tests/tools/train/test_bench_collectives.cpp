// shardscope-train --bench-collectives: every collective at every size, printed and recorded, for ranks that
// are threads and for ranks that are processes.
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kSmallest = 4 << 10, kLargest = 64 << 20;

void expect_every_collective(const Json& result) {
    std::map<std::string, std::int64_t> next;  // the next size, by collective
    for (const Json& row : result.at("collectives")) {
        std::int64_t& size = next.try_emplace(row.at("name"), kSmallest).first->second;
        EXPECT_EQ(row.at("bytes"), size);
        size *= 4;
        const double us = row.at("us");
        EXPECT_GT(us, 0);
        EXPECT_GT(row.at("latency_us"), 0.0);
        EXPECT_GT(row.at("bound_us"), 0.0);
        EXPECT_DOUBLE_EQ(row.at("algbw_gbps"), static_cast<double>(row.at("bytes")) / us / 1e3);
        // For two ranks: (n - 1) / n = 1/2, 2 (n - 1) / n = 1 for all_reduce, 1 for broadcast.
        const bool half = row.at("name") == "all_gather" || row.at("name") == "reduce_scatter";
        EXPECT_DOUBLE_EQ(row.at("busbw_gbps"), row.at("algbw_gbps").get<double>() * (half ? 0.5 : 1));
    }
    ASSERT_EQ(next.size(), 4u);
    for (const auto& [name, size] : next) EXPECT_EQ(size, 4 * kLargest) << name;
}

void expect_recorded(const std::string& trace, const std::string& engine) {
    for (const int rank : {0, 1}) {
        const std::string of_rank = " WHERE rank = " + std::to_string(rank);
        for (const std::string operation : {"all_gather", "reduce_scatter", "all_reduce", "broadcast"}) {
            EXPECT_GT(number(trace, "SELECT count(*) FROM collectives" + of_rank + " AND operation = '" +
                                        operation + "' AND bytes = " + std::to_string(kLargest)),
                      5)
                << operation;
        }
        EXPECT_EQ(number(trace, "SELECT count(*) FROM kernels" + of_rank +
                                    " AND name LIKE 'ncclDevKernel_AllGather%'" + " AND name NOT LIKE '%_" +
                                    engine + "'"),
                  0);
        // Each measurement is a step.
        EXPECT_GT(number(trace, "SELECT count(*) FROM SHARD_STEPS" + of_rank), 4 * 8 * 15);
    }
}

TEST(BenchCollectives, OfThreads) {
    const TemporaryFolder folder;
    const std::string trace = folder / "bench.sqlite";
    const Json result =
        train_json({sample("mlp.toml"), "--run.ranks=2", "--bench-collectives", "--trace", trace});
    EXPECT_EQ(result.at("ranks"), 2);
    EXPECT_GT(result.at("copy_gbps"), 0.0);
    expect_every_collective(result);
    expect_recorded(trace, "local");
}

TEST(BenchCollectives, OfProcesses) {
    const TemporaryFolder folder;
    const std::string trace = folder / "bench.sqlite";
    const Json result =
        train_json({sample("mlp.toml"), "--run.processes=2", "--bench-collectives", "--trace", trace});
    EXPECT_THAT(result.at("group").get<std::string>(), HasSubstr("2 processes on 1 host"));
    expect_every_collective(result);
    expect_recorded(trace, "tcp");
}

TEST(BenchCollectives, AreRefusedIfThereIsNothingToMeasure) {
    const Outcome alone = train({sample("mlp.toml"), "--run.ranks=1", "--bench-collectives"});
    EXPECT_EQ(alone.status, 2);
    EXPECT_THAT(alone.err, AllOf(HasSubstr("one rank has no collectives"), HasSubstr("run.ranks")));
    const Outcome simulated = train({sample("mlp.toml"), "--run.device=sim", "--bench-collectives"});
    EXPECT_EQ(simulated.status, 2);
    EXPECT_THAT(simulated.err, HasSubstr("measures real devices"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
