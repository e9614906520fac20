// MPI's module and its wire, between processes that mpirun starts.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

using ::testing::HasSubstr;
using ::testing::Not;

namespace TEST_FILE {

struct Outcome {
    int status = -1;
    std::string text;  // stdout and stderr
};

Outcome run(const std::string& command) {
    Outcome outcome;
    std::FILE* output = ::popen(("{ timeout 120 env " + command + "; } 2>&1").c_str(), "r");
    if (!output) return outcome;
    char part[4096];
    for (std::size_t bytes; (bytes = std::fread(part, 1, sizeof part, output)) > 0;)
        outcome.text.append(part, bytes);
    const int status = ::pclose(output);
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return outcome;
}

class MpiWire : public ::testing::Test {
  protected:
    void SetUp() override {
        if (std::system("command -v mpirun > /dev/null 2>&1") != 0) GTEST_SKIP() << "no mpirun is installed";
        std::filesystem::create_directories(folder_);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    // Processes may use any free core, as is usual for tests that run at the same time.
    Outcome mpirun(int ranks, const std::string& arguments, const std::string& environment = {}) const {
        return run(environment +
                   " OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_orte_tmpdir_base=" +
                   folder_ +
                   " "
                   "mpirun --oversubscribe --bind-to none -np " +
                   std::to_string(ranks) + " " + SHARDSCOPE_MPI_WIRE_PROGRAM + " " + arguments);
    }
    // A folder of its own: Open MPI fails if two jobs of a host create their common folder at the same time.
    const std::string folder_ = ::testing::TempDir() + "shardscope-mpi-" + std::to_string(::getpid());

    static void expect_done(const Outcome& outcome, int ranks) {
        EXPECT_EQ(outcome.status, 0) << outcome.text;
        EXPECT_THAT(outcome.text, HasSubstr(", " + std::to_string(ranks) + " ranks: done"));
    }
};

TEST_F(MpiWire, ObeysTheRulesOfWires) {
    expect_done(mpirun(4, "all"), 4);
}

// As for a message of gigabytes, whose size MPI's counts cannot represent.
TEST_F(MpiWire, CarriesAMessageInParts) {
    expect_done(mpirun(2, "all 10000"), 2);
    expect_done(mpirun(2, "order 1021"), 2);
}

// As if tags had few bits: other communicators represent the remaining bits.
TEST_F(MpiWire, CarriesTagsThatMpiDoesNot) {
    expect_done(mpirun(2, "all 1073741824 1073741824"), 2);
}

TEST_F(MpiWire, ReportsThatATagIsTooLarge) {
    const Outcome outcome = mpirun(2, "tag 1073741824 32768");
    expect_done(outcome, 2);
    EXPECT_THAT(outcome.text, HasSubstr("supports only tags below 262144, but tag 4294967295 is needed"));
}

TEST_F(MpiWire, LeavesTheCoresToOthersWhileItWaits) {
    expect_done(mpirun(2, "gentle"), 2);
}

TEST_F(MpiWire, OfAnotherSizeIsAnError) {
    expect_done(mpirun(2, "short"), 2);
    expect_done(mpirun(2, "long"), 2);
}

TEST_F(MpiWire, AFailedJobEndsImmediately) {
    const Outcome outcome = mpirun(4, "abandon");
    EXPECT_EQ(outcome.status, 3) << outcome.text;
    EXPECT_THAT(outcome.text, Not(HasSubstr("done")));
}

TEST_F(MpiWire, NeedsTheLauncherOfItsMpi) {
    const Outcome outcome =
        run("RANK=0 WORLD_SIZE=4 LOCAL_RANK=0 LOCAL_WORLD_SIZE=4 MASTER_ADDR=localhost "
            "MASTER_PORT=29500 " SHARDSCOPE_MPI_WIRE_PROGRAM " all");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.text, HasSubstr("run.comm = \"mpi\": torchrun has started 4 processes, but "));
    EXPECT_THAT(outcome.text, HasSubstr(" sees this one only; start them with this MPI's mpirun"));
}

}  // namespace TEST_FILE
