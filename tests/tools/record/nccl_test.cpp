// NCCL's own data in the finished file: shardscope-record on nccl_program, which acts as NCCL (see its first
// lines), for the newest and the oldest version of the plugin's interface.
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/run_command.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class NcclFile : public ::testing::Test {
  protected:
    // The rows of a query on the recording, as CSV without its header.
    std::vector<std::string> rows(const std::string& sql) const {
        const Outcome outcome = run_command({SHARDSCOPE_TRACE, "query", trace_, sql, "--format", "csv"});
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        std::vector<std::string> lines;
        std::istringstream in(outcome.out);
        for (std::string line; std::getline(in, line);) lines.push_back(line);
        if (!lines.empty()) lines.erase(lines.begin());
        return lines;
    }
    Outcome record(const std::string& version, std::vector<std::string> options = {}) {
        return record_as({}, std::move(options), {version});
    }
    // With these variables ("NAME=VALUE") in the environment of shardscope-record.
    Outcome record_as(const std::vector<std::string>& variables, const std::vector<std::string>& options,
                      const std::vector<std::string>& arguments) {
        std::vector<std::string> command = {"env"};
        command.insert(command.end(), variables.begin(), variables.end());
        command.insert(command.end(), {SHARDSCOPE_RECORD, "--overwrite", "-o", trace_});
        command.insert(command.end(), options.begin(), options.end());
        command.insert(command.end(), {"--", "env", NCCL_PROGRAM});
        command.insert(command.end(), arguments.begin(), arguments.end());
        return run_command(command);
    }
    std::vector<std::string> links() const {
        return rows(
            "SELECT fromDevice, toDevice, link, source FROM SHARD_TOPOLOGY WHERE source = 'nccl' ORDER BY 1, "
            "2");
    }

    TemporaryFolder folder_;
    std::string trace_ = folder_ / "run.sqlite";
};

constexpr char kOperations[] =
    "SELECT printf('%x', o.communicator), o.rank, e.name, o.sequence, o.count, o.dataType, o.root, "
    "o.algorithm, "
    "o.protocol, o.channels, o.warps, o.start < o.\"end\" FROM SHARD_NCCL_OPERATIONS o JOIN "
    "SHARD_ENUM_OPERATION e ON "
    "e.id = o.operation ORDER BY o.start";

TEST_F(NcclFile, ContainsWhatNcclReported) {
    const Outcome outcome = record("v5");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(
        rows(kOperations),
        ElementsAre("fedcba9876543210,1,all_gather,7,1000,ncclFloat32,0,RING,LL128,4,16,1",
                    "fedcba9876543210,1,send,,12,ncclFloat16,3,,,2,,1",
                    "fedcba9876543210,1,all_reduce,3,500,ncclBfloat16,0,TREE,SIMPLE,2,8,1",
                    "22,0,broadcast,0,64,ncclInt8,2,NVLS,LL,1,4,1",
                    "22,0,broadcast,1,64,ncclInt8,2,NVLS,LL,1,4,1", "22,0,barrier,,1,ncclInt8,,,,,,1"));
    EXPECT_THAT(
        rows("SELECT printf('%x', communicator), rank, ranks, nodes, name FROM SHARD_NCCL_COMMUNICATORS "
             "ORDER BY rank"),
        ElementsAre("22,0,2,1,", "fedcba9876543210,1,8,2,pipeline"));
}

TEST_F(NcclFile, ContainsWhatAnOldNcclReported) {
    ASSERT_EQ(record("v1").status, 0);
    EXPECT_THAT(rows(kOperations),
                ElementsAre("fedcba9876543210,1,all_gather,7,1000,ncclFloat32,0,RING,LL128,4,16,1",
                            "fedcba9876543210,1,send,,12,ncclFloat16,3,,,,,1",
                            "fedcba9876543210,1,all_reduce,3,500,ncclBfloat16,0,TREE,SIMPLE,2,8,1",
                            "22,0,broadcast,0,64,ncclInt8,2,NVLS,LL,1,4,1"));
}

TEST_F(NcclFile, ContainsNoNcclWhenItIsSwitchedOff) {
    const Outcome outcome = record("v5", {"--no-nccl"});
    EXPECT_EQ(outcome.status, 2) << "nccl_program has no plugin then: " << outcome.err;
    EXPECT_THAT(rows("SELECT count(*) FROM SHARD_NCCL_OPERATIONS"), ElementsAre("0"));
}

// --- the files that NCCL writes about the host
// ---------------------------------------------------------------

const std::string kDiagnostics = "SELECT text FROM DIAGNOSTIC_EVENT WHERE text LIKE '%NCCL wrote%'";

TEST_F(NcclFile, ContainsTheTopologyAndTheRingsThatNcclWrote) {
    const Outcome outcome = record_as({}, {}, {"v5", "0"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(links()[0], "GPU0,GPU1,NV18,nccl");
    EXPECT_THAT(rows("SELECT value FROM SHARD_RUN WHERE key LIKE 'nccl.rings.%'"), ElementsAre("\"0,1\""));
    const Outcome matrix = run_command({SHARDSCOPE_TRACE, "info", "--topology", trace_});
    EXPECT_THAT(matrix.out, HasSubstr("NV18")) << matrix.err;
    EXPECT_THAT(rows(kDiagnostics), IsEmpty());
    // The files were in a folder of the recorder's.
    EXPECT_EQ(run_command({"ls", folder_ / "."}).out, "run.sqlite\n");
}

TEST_F(NcclFile, ContainsWhatTheUserHadWritten) {
    const std::string file = folder_ / "topo.xml";
    ASSERT_EQ(record_as({"NCCL_TOPO_DUMP_FILE=" + file}, {}, {"v5", "0"}).status, 0);
    EXPECT_THAT(links(), SizeIs(::testing::Ge(1)));
    EXPECT_THAT(run_command({"cat", file}).out, HasSubstr("<system version=")) << "it is left";
}

TEST_F(NcclFile, OmitsWhatNcclWroteInPart) {
    const Outcome outcome = record_as({}, {}, {"v5", "0", "0.5"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(links(), IsEmpty());
    EXPECT_THAT(rows(kDiagnostics), SizeIs(1));
    EXPECT_THAT(rows("SELECT count(*) FROM SHARD_NCCL_OPERATIONS"), ElementsAre("6"));
    // Nothing, as where the process is killed before, is not worth a word.
    EXPECT_EQ(record_as({}, {}, {"v5", "0", "0"}).status, 0);
    EXPECT_THAT(rows(kDiagnostics), IsEmpty());
}

TEST_F(NcclFile, HasOneRankOfAHostWriteAboutIt) {
    trace_ = folder_ / "run-%r.sqlite";
    const auto as = [&](const std::string& local_rank, const std::string& rank) {
        const Outcome outcome =
            record_as({"RANK=5", "WORLD_SIZE=8", "LOCAL_RANK=" + local_rank}, {}, {"v5", rank});
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        const std::string pattern = std::exchange(trace_, folder_ / "run-5.sqlite");
        const std::size_t count = links().size();
        trace_ = pattern;
        return count;
    };
    EXPECT_GT(as("0", "5"), 0u) << "the first rank of the host, by its number";
    EXPECT_EQ(as("0", "0"), 0u);
    EXPECT_EQ(as("1", "5"), 0u) << "the first rank's recorder has it";
}

TEST_F(NcclFile, LeavesTheFilesToNcclWhenItIsSwitchedOff) {
    const Outcome outcome =
        run_command({SHARDSCOPE_RECORD, "--overwrite", "-o", trace_, "--no-nccl", "--", "sh", "-c",
                     "echo \"files:$NCCL_TOPO_DUMP_FILE$NCCL_GRAPH_DUMP_FILE\""});
    EXPECT_THAT(outcome.out, HasSubstr("files:\n"));
    const Outcome on = run_command({SHARDSCOPE_RECORD, "--overwrite", "-o", trace_, "--", "sh", "-c",
                                    "ls -d \"$(dirname \"$NCCL_TOPO_DUMP_FILE\")\""});
    EXPECT_THAT(on.out, HasSubstr("shardscope-nccl-"));
    EXPECT_NE(run_command({"test", "-e", on.out.substr(0, on.out.size() - 1)}).status, 0) << "it is gone";
}

// The driver's library knows the four GPUs with their names; their numbers are NCCL's, too.
TEST_F(NcclFile, AddsToWhatTheDriverSays) {
    const Outcome outcome =
        run_command({"env", "LD_LIBRARY_PATH=" FAKE_NVML_FOLDER, "FAKE_NVML=one_of_four", SHARDSCOPE_RECORD,
                     "-o", trace_, "--", "sh", "-c", NCCL_PROGRAM " v5 0; sleep 1"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(
        rows("SELECT count(*), count(DISTINCT number), min(length(name)) > 0 FROM SHARD_DEVICES WHERE "
             "kind = 'gpu'"),
        ElementsAre("4,4,1"));
    EXPECT_THAT(rows("SELECT count(*) FROM SHARD_TOPOLOGY WHERE fromDevice = 'GPU0' AND toDevice = 'GPU1'"),
                ElementsAre("1"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::tools
