// Counters next to the events: those of the command's processes, and of GPUs through a library that simulates
// NVML.
#include <cstdio>
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

// Neither the shell nor what it starts records anything.
TEST_F(Counters, are_also_those_of_what_the_command_starts) {
    ASSERT_EQ(record({"sh", "-c", "'" + kJob + "' burns 1500 & sleep 0.1; wait"}).status, 0);
    EXPECT_GT(of("max", "process_resident_bytes", -1), 64 << 20);
    EXPECT_GT(of("max", "process_cpu_cores", -1), 0.05);
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
    // Each sample of a GPU says which one it is, and on which host.
    EXPECT_EQ(value("SELECT count(*) FROM counters WHERE name LIKE 'gpu%' AND (host IS NULL OR host = '' OR "
                    "device < 0)"),
              "0");
    EXPECT_EQ(value("SELECT group_concat(DISTINCT device) FROM counters WHERE name LIKE 'gpu1_%'"), "1");
    EXPECT_EQ(
        value(
            "SELECT count(*) FROM SHARD_DEVICES WHERE kind = 'gpu' AND name = 'Played GPU' AND visible = 1"),
        "2");
}

TEST_F(Counters, of_the_host_say_which_one) {
    ASSERT_EQ(record({"env", "RANK=2", kJob, "steps", "600"}).status, 0);
    const std::string host = value("SELECT host FROM SHARD_RANKS WHERE rank = 2");
    EXPECT_EQ(value("SELECT group_concat(DISTINCT host) FROM counters WHERE name LIKE 'host%'"), host);
    EXPECT_GT(of("count", "host_cpu_cores", -1), 0);
    EXPECT_GT(of("min", "host_memory_available_bytes", -1), 1 << 20);
    EXPECT_GT(std::stod(setting("host." + host + ".cpus")), 0);
    EXPECT_GT(std::stod(setting("host." + host + ".memory_bytes")), 1 << 20);
    EXPECT_EQ(setting("sampler.period_ns"), "100000000");
    // A rank's own counters do not: its host is its rank's.
    EXPECT_EQ(value("SELECT count(*) FROM SHARD_COUNTERS WHERE rank = 2 AND hostId IS NOT NULL"), "0");
}

// Rates times the time since the sample before are what the program itself says that it has used.
TEST_F(Counters, sum_to_what_a_process_has_used) {
    const std::string file = folder_ / "written";
    const Outcome outcome = record({kJob, "uses", "700", file});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    double used = 0, written = 0;
    ASSERT_EQ(std::sscanf(outcome.out.c_str(), "%lf %lf", &used, &written), 2) << outcome.out;
    const auto sum = [&](const std::string& name) {
        return number(
            "SELECT total(value * (time_ns - before)) / 1e9 FROM (SELECT value, time_ns, "
            "coalesce(lag(time_ns) "
            "OVER (ORDER BY time_ns), 0) AS before FROM counters WHERE name = '" +
            name + "')");
    };
    EXPECT_LT(sum("process_cpu_cores"), 1.02 * used + 0.01);
    EXPECT_LT(sum("process_written_bytes_per_second"), 1.02 * written + (1 << 20));
    // The last sample is taken when the program has ended, unless the machine is much too busy for it.
    EXPECT_GT(sum("process_cpu_cores"), 0.5 * used);
    EXPECT_GE(sum("process_written_bytes_per_second"), 0.5 * written);
}

TEST_F(Counters, of_one_host_are_sampled_by_one_of_its_recorders) {
    const Outcome outcome =
        shell("for rank in 0 1; do RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank LD_LIBRARY_PATH=" FAKE_NVML_FOLDER
              " FAKE_NVML=one_of_four CUDA_VISIBLE_DEVICES=$rank \"$record\" -o \"$out\" -- \"$job\" steps "
              "2000 & done; wait; "
              "\"$trace\" merge \"$folder\"/out.rank*.sqlite -o \"$folder\"/both.sqlite");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const auto count = [&](const std::string& file, const std::string& what) {
        return std::stoi(value_in(folder_ / file, "SELECT count(*) FROM counters WHERE " + what));
    };
    const std::string of_host = "name LIKE 'host%' OR name LIKE 'ethernet%' OR name LIKE 'gpu%'";
    EXPECT_GT(count("out.rank0.sqlite", of_host), 0);
    EXPECT_EQ(count("out.rank1.sqlite", of_host), 0);
    EXPECT_EQ(count("both.sqlite", of_host), count("out.rank0.sqlite", of_host));
    EXPECT_GT(count("both.sqlite", "rank = 1 AND name = 'process_resident_bytes'"), 0);
    // Each of the two may use one GPU.
    EXPECT_EQ(value_in(folder_ / "both.sqlite",
                       "SELECT group_concat(number) FROM (SELECT number FROM SHARD_DEVICES WHERE kind = "
                       "'gpu' AND visible = 1 ORDER BY number)"),
              "0,1");
    EXPECT_EQ(
        value_in(folder_ / "both.sqlite",
                 "SELECT count(*) FROM counters WHERE host IS NULL AND device IS NOT NULL AND device >= 0"),
        "0");
}

TEST_F(Counters, survive_a_slice) {
    ASSERT_EQ(shell("LD_LIBRARY_PATH=" FAKE_NVML_FOLDER
                    " FAKE_NVML=one_of_four \"$record\" -o \"$out\" -- env RANK=0 \"$job\" steps 2000")
                  .status,
              0);
    const std::string of_gpu = " FROM counters WHERE name LIKE '%power_watts' AND device = 0 AND host <> ''";
    ASSERT_GE(number("SELECT count(*)" + of_gpu), 3);
    const std::string until = value("SELECT (min(time_ns) + max(time_ns)) / 2" + of_gpu);
    const std::string part = folder_ / "part.sqlite";
    ASSERT_EQ(run_command({kTrace, "slice", out_, "--range", "0:" + until, "-o", part}).status, 0);
    EXPECT_GT(std::stoi(value_in(part, "SELECT count(*)" + of_gpu)), 0);
    EXPECT_LT(std::stoi(value_in(part, "SELECT count(*)" + of_gpu)), number("SELECT count(*)" + of_gpu));
    EXPECT_EQ(value_in(part, "SELECT count(*) FROM SHARD_DEVICES WHERE kind = 'gpu'"), "4");
    // The links between its four GPUs, each pair once.
    EXPECT_EQ(
        value("SELECT count(*) FROM SHARD_TOPOLOGY WHERE fromDevice LIKE 'GPU%' AND toDevice LIKE 'GPU%'"),
        "6");
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
