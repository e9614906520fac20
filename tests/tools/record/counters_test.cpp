// Counters next to the events: those of the command's processes, and of GPUs through a library that simulates
// NVML.
#include <string>

#include "tests/tools/record/record_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

class Counters : public RecordTool {
  protected:
    // An aggregate over all samples of a counter of a rank.
    double of(const std::string& function, const std::string& name, int rank) const {
        return number(
            "SELECT " + function +
            "(c.value) FROM SHARD_COUNTERS c JOIN StringIds s ON s.id = c.nameId WHERE s.value = '" + name +
            "' AND c.rank = " + std::to_string(rank));
    }
};

TEST_F(Counters, measure_what_a_process_uses) {
    ASSERT_EQ(record({"env", "RANK=2", kJob, "burns", "900"}).status, 0);
    // At least nine samples are due in 0.9 s; the first has no processor use yet. `burns` makes no NVTX call,
    // so the tool does not know its rank.
    EXPECT_GE(of("count", "process_resident_bytes", -1), 4);
    EXPECT_GE(of("count", "process_cpu_cores", -1), 3);
    EXPECT_GT(of("max", "process_resident_bytes", -1), 64 << 20);
    // The machine may be busy with other things: together the samples contain most of the 0.9 s.
    EXPECT_GT(
        number("SELECT sum(cores * (time - before)) / 1e9 FROM (SELECT c.value AS cores, time, lag(time) "
               "OVER (ORDER BY "
               "time) AS before FROM SHARD_COUNTERS c JOIN StringIds s ON s.id = c.nameId WHERE s.value = "
               "'process_cpu_cores' AND c.rank = -1)"),
        0.3);
    EXPECT_LT(of("max", "process_cpu_cores", -1), 1.2);
    EXPECT_GE(number("SELECT min(time) FROM SHARD_COUNTERS"), 0);
    EXPECT_LT(number("SELECT max(time) FROM SHARD_COUNTERS"),
              number("SELECT stopTime FROM ANALYSIS_DETAILS") + 1);
}

TEST_F(Counters, are_those_of_a_process_that_has_a_rank) {
    ASSERT_EQ(record({"env", "RANK=2", kJob, "steps", "600"}).status, 0);
    EXPECT_GE(of("count", "process_resident_bytes", 2), 2);
    EXPECT_LT(of("max", "process_cpu_cores", 2), 1.0);
    EXPECT_EQ(run_command({kTrace, "info", out_}).status, 0);
    EXPECT_EQ(run_command({kTrace, "check", out_}).status, 0);
}

TEST_F(Counters, may_be_left_out) {
    ASSERT_EQ(record({kJob, "steps", "300"}, {"--no-counters"}).status, 0);
    EXPECT_EQ(value("SELECT count(*) FROM SHARD_COUNTERS"), "0");
}

TEST_F(Counters, are_not_sampled_before_recording_starts) {
    ASSERT_EQ(record({kJob, "steps", "600"}, {"--delay", "0.3"}).status, 0);
    EXPECT_GE(number("SELECT min(time) FROM SHARD_COUNTERS"), 300'000'000);
}

TEST_F(Counters, of_gpus_go_to_the_rank_that_uses_them) {
    const Outcome outcome = shell("LD_LIBRARY_PATH=" FAKE_NVML_FOLDER
                                  " \"$record\" -o \"$out\" -- env RANK=5 \"$job\" steps 900");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    // GPU 0 is used by the process that is rank 5.
    EXPECT_EQ(of("max", "gpu_utilization_percent", 5), 87);
    EXPECT_EQ(of("max", "gpu_memory_utilization_percent", 5), 12);
    EXPECT_EQ(of("max", "gpu_memory_used_bytes", 5), 3221225472.0);
    EXPECT_EQ(of("max", "gpu_power_watts", 5), 250.5);
    EXPECT_EQ(of("max", "gpu_sm_clock_mhz", 5), 1410);
    EXPECT_EQ(of("max", "gpu_memory_clock_mhz", 5), 2619);
    EXPECT_EQ(of("max", "gpu_throttle_reasons_bits", 5), 0x44);
    // Each sample counts 1 MiB, some 100 ms after the previous one.
    EXPECT_GT(of("max", "gpu_nvlink_sent_bytes_per_second", 5), 1e5);
    EXPECT_LT(of("max", "gpu_nvlink_sent_bytes_per_second", 5), 1.2e7);
    EXPECT_EQ(of("count", "gpu_nvlink_received_bytes_per_second", 5), 0);
    // GPU 1 is not used by the job.
    EXPECT_EQ(of("max", "gpu1_utilization_percent", -1), 3);
    EXPECT_EQ(of("max", "gpu1_pcie_sent_bytes_per_second", -1), 1e6);
    EXPECT_EQ(of("max", "gpu1_pcie_received_bytes_per_second", -1), 2e6);
    EXPECT_EQ(run_command({kTrace, "info", out_}).status, 0);
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
