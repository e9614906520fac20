// NCCL's own NVTX ranges, recorded by the real tool: the library is called without a communicator (no GPU is
// needed), and the file contains the bytes of each call, decoded with the schema that NCCL registered.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "traces/store/sqlite/sqlite.h"

namespace shardscope {
namespace TEST_FILE {

// Little-endian bytes in hexadecimal, as SQLite's hex() gives them.
std::uint64_t little_endian(const std::string& hex) {
    std::uint64_t value = 0;
    for (std::size_t at = hex.size() / 2; at-- > 0;) {
        value = value << 8 | std::stoul(hex.substr(2 * at, 2), nullptr, 16);
    }
    return value;
}

std::string text(traces::store::Database& file, const std::string& sql) {
    traces::store::Statement statement(file, sql);
    return statement.step() ? std::string(statement.text(0)) : "";
}

// The value of one entry of the payload of the only range with that name.
std::uint64_t entry(traces::store::Database& file, const std::string& range, const std::string& name) {
    const std::string from = " FROM NVTX_EVENTS WHERE text = '" + range + "'";
    EXPECT_EQ(file.integer("SELECT COUNT(*)" + from), 1) << range;
    const std::uint64_t schema = little_endian(text(file, "SELECT hex(substr(binaryData, 9, 8))" + from));
    return little_endian(text(
        file,
        "SELECT hex(substr(r.binaryData, 33 + COALESCE(e.offset, 0), CASE e.type WHEN 5 THEN 4 ELSE 8 END))"
        " FROM NVTX_EVENTS r JOIN NVTX_PAYLOAD_SCHEMA_ENTRIES e USING (domainId)"
        " WHERE r.text = '" +
            range + "' AND e.name = '" + name + "' AND e.schemaId = " + std::to_string(schema)));
}

TEST(NcclWithoutCommunicator, leaves_its_ranges_with_their_bytes) {
    const std::string output =
        (std::filesystem::temp_directory_path() / ("nccl-null-" + std::to_string(::getpid()) + ".sqlite"))
            .string();
    const std::string command = std::string("'") + RECORD_TOOL + "' -o '" + output + "' --overwrite -- '" +
                                NCCL_NULL_PROGRAM + "' '" + NCCL_LIBRARY + "' 2>&1";
    const int status = std::system(command.c_str());
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        std::filesystem::remove(output);
        GTEST_SKIP() << "needs the NCCL library (libnccl.so.2)";
    }
    ASSERT_EQ(status, 0);
    {
        traces::store::Database file(output, traces::store::Database::Mode::read_only);
        const std::int64_t domain =
            file.integer("SELECT domainId FROM NVTX_EVENTS WHERE eventType = 75 AND text = 'NCCL'");
        EXPECT_GT(domain, 0);
        for (const char* name :
             {"ncclAllGather", "ncclAllReduce", "ncclReduceScatter", "ncclGroupStart", "ncclGroupEnd"}) {
            EXPECT_EQ(file.integer(std::string("SELECT COUNT(*) FROM NVTX_EVENTS WHERE eventType = 59 AND"
                                               " \"end\" >= start AND text = '") +
                                   name + "' AND domainId = " + std::to_string(domain)),
                      1)
                << name;
        }
        const std::string size = "Message size [bytes]";
        EXPECT_EQ(entry(file, "ncclAllGather", size), 1024u * 4);     // floats that one rank contributes
        EXPECT_EQ(entry(file, "ncclAllReduce", size), 100u * 8);      // doubles
        EXPECT_EQ(entry(file, "ncclReduceScatter", size), 512u * 2);  // bfloat16s that one rank receives
        EXPECT_EQ(entry(file, "ncclAllGather", "NCCL communicator ID"), 0u);  // there is no communicator
        EXPECT_EQ(file.integer("SELECT dropped FROM SHARD_STATE"), 0);
    }
    std::filesystem::remove(output);
}

}  // namespace TEST_FILE
}  // namespace shardscope
