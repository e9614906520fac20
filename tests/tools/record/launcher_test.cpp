// One shardscope-record for each rank, as torchrun, mpirun and srun start them (their environment is
// simulated).
#include <string>
#include <vector>

#include "tests/tools/record/record_tool.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::HasSubstr;

class Launcher : public RecordTool {
  protected:
    Outcome as(const std::vector<std::string>& environment, const std::string& output) const {
        std::vector<std::string> line = {"env"};
        line.insert(line.end(), environment.begin(), environment.end());
        line.insert(line.end(), {kRecord, "-o", folder_ / output, "--", kJob, "steps", "30"});
        return run_command(line);
    }
};

TEST_F(Launcher, gives_each_rank_a_file_of_its_own) {
    const std::vector<std::pair<std::string, std::string>> launchers = {
        {"RANK", "WORLD_SIZE"},
        {"HOROVOD_RANK", "HOROVOD_SIZE"},
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
        {"PMI_RANK", "PMI_SIZE"},
        {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
    for (const auto& [rank, ranks] : launchers) {
        const std::string name = rank + ".sqlite";
        const Outcome third = as({rank + "=3", ranks + "=4"}, name);
        EXPECT_EQ(third.status, 0);
        EXPECT_EQ(third.err, "");  // rank 0 reports for all ranks
        const std::string file = folder_ / (rank + ".rank3.sqlite");
        ASSERT_TRUE(std::filesystem::exists(file));
        EXPECT_FALSE(exists(name));
        EXPECT_EQ(value_in(file, "SELECT rank FROM SHARD_RANKS"), "3");
        const Outcome first = as({rank + "=0", ranks + "=4"}, name);
        EXPECT_THAT(first.err, HasSubstr("each rank writes a trace of its own, " +
                                         (folder_ / (rank + ".rank*.sqlite"))));
        EXPECT_THAT(first.err, HasSubstr("next: shardscope-trace merge " +
                                         (folder_ / (rank + ".rank*.sqlite")) + " -o " + (folder_ / name)));
    }
}

TEST_F(Launcher, of_one_rank_changes_no_name) {
    EXPECT_EQ(as({"RANK=0", "WORLD_SIZE=1"}, "one.sqlite").status, 0);
    EXPECT_TRUE(exists("one.sqlite"));
    // A batch script of Slurm is not a task of srun.
    EXPECT_EQ(as({"SLURM_PROCID=0", "SLURM_NTASKS=8"}, "batch.sqlite").status, 0);
    EXPECT_TRUE(exists("batch.sqlite"));
}

TEST_F(Launcher, may_be_given_the_names) {
    EXPECT_EQ(as({"RANK=3", "WORLD_SIZE=4", "JOB=77"}, "run-%q{JOB}-%r%%.sqlite").status, 0);
    EXPECT_TRUE(exists("run-77-3%.sqlite"));
    const Outcome unset = as({"-u", "JOB"}, "run-%q{JOB}.sqlite");
    EXPECT_EQ(unset.status, 125);
    EXPECT_THAT(unset.err, HasSubstr("JOB is not set"));
    EXPECT_EQ(as({"A=b"}, "run-%x.sqlite").status, 125);
}

TEST_F(Launcher, with_all_ranks_under_one_tool_gives_one_file) {
    ASSERT_EQ(
        record({"bash", "-c", "for r in 0 1 2; do RANK=$r WORLD_SIZE=3 \"$0\" steps 60 & done; wait", kJob})
            .status,
        0);
    EXPECT_EQ(value("SELECT count(*) FROM SHARD_RANKS"), "3");
    EXPECT_EQ(value("SELECT count(DISTINCT globalTid) FROM NVTX_EVENTS WHERE text = 'step'"), "3");
}

TEST_F(Launcher, mpirun_itself) {
    if (run_command({"bash", "-c", "command -v mpirun"}).status != 0) GTEST_SKIP() << "needs mpirun";
    const Outcome outcome = run_command({"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2",
                                         kRecord, "-o", out_, "--", kJob, "steps", "30"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_TRUE(exists("out.rank0.sqlite"));
    EXPECT_TRUE(exists("out.rank1.sqlite"));
}

class Variables : public RecordTool {};

TEST_F(Variables, of_the_user_stay_and_are_reported) {
    const Outcome outcome = shell(
        "NCCL_PROFILER_PLUGIN=inspector \"$record\" -o \"$out\" -- bash -c "
        "'echo $NCCL_PROFILER_PLUGIN; echo $CUDA_INJECTION64_PATH; echo $NVTX_INJECTION64_PATH'");
    EXPECT_EQ(outcome.out.rfind("inspector\n/", 0), 0u) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr("NCCL_PROFILER_PLUGIN is already set to inspector"));
}

TEST_F(Variables, are_those_of_what_is_recorded) {
    const std::string print =
        "env | grep -cE '^(NCCL_PROFILER_PLUGIN|CUDA_INJECTION64_PATH|NVTX_INJECTION64_PATH|"
        "SHARDSCOPE_SESSION)=' || true";
    EXPECT_EQ(record({"bash", "-c", print}).out, "4\n");
    EXPECT_EQ(record({"bash", "-c", print}, {"--overwrite", "--no-nccl"}).out, "3\n");
    EXPECT_EQ(record({"bash", "-c", print}, {"--overwrite", "--no-nccl", "--no-cuda"}).out, "2\n");
    EXPECT_EQ(record({"bash", "-c", print}, {"--overwrite", "--no-nccl", "--no-cuda", "--no-nvtx"}).out,
              "0\n");
    // Steps are recognized by their ranges.
    EXPECT_EQ(record({"bash", "-c", print},
                     {"--overwrite", "--no-nccl", "--no-cuda", "--no-nvtx", "--steps", "1:2"})
                  .out,
              "2\n");
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
