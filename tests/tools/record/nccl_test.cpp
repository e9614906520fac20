// NCCL's own data in the finished file: shardscope-record on nccl_program, which acts as NCCL (see its first
// lines), for the newest and the oldest version of the plugin's interface.
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/run_command.h"

namespace shardscope::tools {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
        std::vector<std::string> command = {SHARDSCOPE_RECORD, "--overwrite", "-o", trace_};
        command.insert(command.end(), options.begin(), options.end());
        command.insert(command.end(), {"--", "env", NCCL_PROGRAM, version});
        return run_command(command);
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

}  // namespace TEST_FILE
}  // namespace shardscope::tools
