// How a launcher, or run.processes, changes a job's ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/job/agreed.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::job {
namespace TEST_FILE {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kEight = "[run]\nranks = 8\n";

std::string refusal(const std::string& toml, const std::vector<Override>& overrides,
                    const Launched& launched) {
    try {
        parse_job(toml, "job.toml", overrides, launched);
    } catch (const JobError& error) {
        return error.what();
    }
    return "";
}

TEST(Launched, AloneTheFileDecides) {
    const Job job = parse_job(kEight, "job.toml");
    EXPECT_EQ(job.run.ranks, 8);
    EXPECT_EQ(job.run.processes, 0);
    EXPECT_TRUE(job.notes.empty());
}

TEST(Launched, TheLauncherOverridesTheFileWithANote) {
    const Job job = parse_job(kEight, "job.toml", {}, {4, 4, "mpirun"});
    EXPECT_EQ(job.run.ranks, 4);
    EXPECT_EQ(job.run.processes, 4);
    ASSERT_EQ(job.notes.size(), 1u);
    EXPECT_EQ(job.notes[0], "job.toml:2: run.ranks = 8 is ignored: mpirun has 4 processes, one rank each");
    EXPECT_TRUE(parse_job("", "job.toml", {}, {4, 4, "mpirun"}).notes.empty());
}

TEST(Launched, TheCommandLineMustNotContradictIt) {
    EXPECT_THAT(refusal(kEight, {{"run.ranks", "2"}}, {4, 4, "mpirun"}),
                HasSubstr("run.ranks: 2 contradicts the 4 processes of mpirun"));
    EXPECT_EQ(refusal(kEight, {{"run.ranks", "4"}}, {4, 4, "mpirun"}), "");
    EXPECT_THAT(refusal("", {{"run.processes", "2"}}, {4, 4, "torchrun"}),
                HasSubstr("run.processes: 2 contradicts the 4 processes of torchrun"));
}

TEST(Launched, OwnProcessesAreRanks) {
    const Job job = parse_job(kEight, "job.toml", {{"run.processes", "2"}});
    EXPECT_EQ(job.run.ranks, 2);
    EXPECT_EQ(job.notes.size(), 1u);
    EXPECT_THAT(refusal("", {{"run.processes", "2"}, {"run.ranks", "3"}}, {}),
                HasSubstr("run.ranks: 3 contradicts"));
}

TEST(Launched, HybridShardsWithinAHostByDefault) {
    const std::string hybrid = "[fsdp]\nsharding_strategy = 'HYBRID_SHARD'\n";
    EXPECT_EQ(parse_job(hybrid, "job.toml", {}, {8, 4, "mpirun"}).fsdp.shard_group, 4);
    EXPECT_EQ(parse_job(hybrid + "shard_group = 2\n", "job.toml", {}, {8, 4, "mpirun"}).fsdp.shard_group, 2);
    EXPECT_THAT(refusal(hybrid, {}, {8, 8, "mpirun"}), HasSubstr("fsdp.shard_group"));
    // Places of 12 ranks on hosts of 8: a group is in one of both.
    const std::string piped = hybrid + "[parallel]\npipeline = 2\n[train]\naccumulation = 2\n";
    EXPECT_EQ(parse_job(piped, "job.toml", {}, {24, 8, "mpirun"}).fsdp.shard_group, 4);
}

TEST(Launched, TheCollectivesMustFitTheProcesses) {
    EXPECT_THAT(refusal("[run]\ncomm = 'local'", {}, {4, 4, "mpirun"}), HasSubstr("threads of one process"));
    EXPECT_THAT(refusal("[run]\nranks = 4\ncomm = 'mpi'", {}, {}), HasSubstr("--run.processes=4"));
    EXPECT_THAT(refusal("[run]\ncomm = 'tcp'\ndevice = 'cuda'", {}, {4, 4, "torchrun"}),
                HasSubstr("\"nccl\""));
    EXPECT_THAT(refusal("[run]\ntrace_parts = '/tmp'", {}, {}), HasSubstr("run.trace_parts"));
    EXPECT_THAT(refusal("[run]\ntrace_parts = '/tmp'\ndevice = 'sim'", {}, {}), HasSubstr("run.trace_parts"));
    EXPECT_EQ(refusal("[run]\ntrace_parts = '/tmp'", {}, {2, 2, "mpirun"}), "");
    EXPECT_THAT(refusal("[run]\nranks = 2\nsums = 'ring'", {}, {}), HasSubstr("run.sums"));
    EXPECT_EQ(parse_job("[run]\nsums = 'ring'", "job.toml", {}, {2, 2, "mpirun"}).run.sums, SumOrder::ring);
}

TEST(Agreed, NamesEveryKeyThatDiffersFromRankZero) {
    const Job first = parse_job("[model]\nwidth = 64\n", "job.toml");
    const std::string values = agreed_values(first);
    EXPECT_NO_THROW(check_agreed(first, values));
    const Job other = parse_job("[model]\nwidth = 64\n[run]\nseed = 99\n[optimizer]\nlr = 0.5\n", "job.toml");
    try {
        check_agreed(other, values);
        ADD_FAILURE() << "another seed was taken";
    } catch (const JobError& error) {
        EXPECT_THAT(error.what(), AllOf(HasSubstr("run.seed = 99, and 1 on rank 0; optimizer.lr = 0.5, and "),
                                        HasSubstr("give all ranks the same job"), Not(HasSubstr("model"))));
    }
    EXPECT_THROW(check_agreed(first, ""), JobError);
}

TEST(Agreed, LeavesEachRankItsOwnPathsAndCores) {
    const Job first = parse_job("[checkpoint]\nsave = \"here\"\n", "job.toml");
    const Job other = parse_job(
        "[run]\nworkers = 3\ntimeout = 7\nmemory_limit = 5\n[checkpoint]\nsave = "
        "\"there\"\n",
        "job.toml");
    EXPECT_NO_THROW(check_agreed(other, agreed_values(first)));
}

// All ranks save together.
TEST(Agreed, APathIsSetOnAllRanksOrOnNone) {
    for (const char* key : {"[run]\ntrace", "[checkpoint]\nsave", "[checkpoint]\nload"}) {
        const Job other = parse_job(std::string(key) + " = \"there\"\n", "job.toml");
        try {
            check_agreed(other, agreed_values(parse_job("", "job.toml")));
            ADD_FAILURE() << key;
        } catch (const JobError& error) {
            EXPECT_THAT(error.what(), HasSubstr(" = set, and unset on rank 0; give all ranks"));
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::job
