// The counters that shardscope-train samples into its trace.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/train/train_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

// Trains a small job for a second or more, with a library in NVML's place.
Outcome train_with_gpus(const std::string& trace, const Words& more) {
    Words words = {"env",
                   "LD_LIBRARY_PATH=" FAKE_NVML_FOLDER,
                   "FAKE_NVML=one_of_four",
                   train_binary(),
                   sample("mlp.toml"),
                   "--run.steps=30",
                   "--train.epochs=0",
                   "--model.width=256",
                   "--trace",
                   trace};
    words.insert(words.end(), more.begin(), more.end());
    return run_command(words);
}

std::vector<std::string> names(const std::string& trace, const std::string& which) {
    return texts(
        trace, "SELECT DISTINCT name FROM counters WHERE name NOT LIKE '%\\_bytes' ESCAPE '\\' AND " + which);
}

TEST(TrainCounters, AreOfTheProcessTheHostAndItsGpus) {
    const TemporaryFolder folder;
    const std::string trace = folder / "run.sqlite";
    const Outcome outcome = train_with_gpus(trace, {"--run.ranks=1"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(names(trace, "rank = 0"),
                IsSupersetOf({"process_cpu_cores", "gpu_utilization_percent", "gpu_power_watts"}));
    EXPECT_THAT(names(trace, "rank IS NULL"), IsSupersetOf({"host_cpu_cores", "gpu1_utilization_percent"}));
    EXPECT_GT(
        number(trace, "SELECT count(*) FROM counters WHERE name = 'process_resident_bytes' AND rank = 0"), 0);
    const std::vector<std::string> host = texts(trace, "SELECT host FROM SHARD_RANKS");
    EXPECT_EQ(texts(trace, "SELECT DISTINCT host FROM counters WHERE name LIKE 'host%' OR name LIKE 'gpu%'"),
              host);
    EXPECT_EQ(number(trace, "SELECT count(*) FROM SHARD_DEVICES WHERE kind = 'gpu'"), 4);
    EXPECT_THAT(texts(trace, "SELECT key FROM SHARD_RUN"),
                IsSupersetOf({std::string("sampler.period_ns"), "host." + host.at(0) + ".cpus"}));
    // What the process has used is what the sum of its counters is: the sampler began with the trace.
    EXPECT_GT(number(trace, "SELECT max(value) > 0 FROM counters WHERE name = 'process_cpu_cores'"), 0);
    EXPECT_EQ(number(trace,
                     "SELECT count(*) FROM SHARD_COUNTERS WHERE time < 0 OR time > (SELECT stopTime FROM "
                     "ANALYSIS_DETAILS)"),
              0);
    EXPECT_EQ(trace_tool({"check", trace}).status, 0);
}

TEST(TrainCounters, OfThreadsAreTheirProcess) {
    const TemporaryFolder folder;
    const std::string trace = folder / "run.sqlite";
    ASSERT_EQ(train_with_gpus(trace, {"--run.ranks=2"}).status, 0);
    EXPECT_THAT(names(trace, "rank IS NULL AND host IS NOT NULL"), Contains("process_cpu_cores"));
    EXPECT_THAT(names(trace, "rank IS NOT NULL"), Not(Contains("process_cpu_cores")));
}

TEST(TrainCounters, OfProcessesHaveTheHostOnce) {
    const TemporaryFolder folder;
    const std::string trace = folder / "run.sqlite";
    const Outcome outcome = train_with_gpus(trace, {"--run.processes=2"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(names(trace, "rank = 0"), Contains("process_cpu_cores"));
    EXPECT_THAT(names(trace, "rank = 1"), Contains("process_cpu_cores"));
    // A sampler of the host has one value for each of its samples; two would have two within a period.
    EXPECT_GT(number(trace, "SELECT count(*) FROM counters WHERE name = 'host_memory_available_bytes'"), 0);
    EXPECT_LE(
        number(trace, "SELECT count(*) FROM counters WHERE name = 'host_memory_available_bytes'"),
        number(trace, "SELECT count(*) FROM counters WHERE name = 'process_resident_bytes' AND rank = 0"));
    EXPECT_EQ(number(trace, "SELECT count(DISTINCT number) FROM SHARD_DEVICES WHERE kind = 'gpu'"), 4);
    EXPECT_EQ(trace_tool({"check", trace}).status, 0);
}

TEST(TrainCounters, MayBeLeftOut) {
    const TemporaryFolder folder;
    const std::string trace = folder / "run.sqlite";
    ASSERT_EQ(train_with_gpus(trace, {"--run.ranks=1", "--run.counters=false"}).status, 0);
    EXPECT_THAT(texts(trace,
                      "SELECT DISTINCT name FROM counters WHERE name LIKE 'process%' OR name LIKE 'host%' OR "
                      "name LIKE 'gpu%'"),
                IsEmpty());
    EXPECT_EQ(number(trace, "SELECT count(*) FROM SHARD_DEVICES"), 0);
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
