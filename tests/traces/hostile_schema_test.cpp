// Databases that were made to do harm, or made by mistake: a file is data, and nothing in it is executed.
// Either it loads, or it is refused with one sentence that names it.
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/outcome.h"
#include "tests/traces/temporary_folder.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/modules/modules.h"
#include "traces/analysis/time/summary.h"
#include "traces/schema/enums.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/sqlite.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::HasSubstr;

class HostileSchema : public ::testing::Test {
  protected:
    std::string made(const std::string& sql) {
        const std::string path = folder_ / "hostile.sqlite";
        std::fclose(std::fopen(path.c_str(), "w"));
        store::Database(path, store::Database::Mode::read_write).execute(sql);
        return path;
    }
    static std::string refusal(const std::string& path) {
        return refusal_of([&] { store::load_trace(path); });
    }
    TemporaryFolder folder_;
};

constexpr const char* kKernels =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid, "
    "shortName);";

TEST_F(HostileSchema, AViewWithoutAnEndIsNotRead) {
    const std::string path = made(
        "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(start) AS (SELECT 0 UNION ALL SELECT "
        "start + 1 FROM n) SELECT start, start + 1 AS \"end\", 0 AS deviceId, 0 AS globalPid FROM n");
    EXPECT_THAT(refusal(path), HasSubstr("CUPTI_ACTIVITY_KIND_KERNEL is a view or virtual table"));
    EXPECT_THAT(refusal(path), HasSubstr(path));
}

TEST_F(HostileSchema, AViewOfItselfIsNotRead) {
    EXPECT_THAT(refusal(made(std::string(kKernels) + "CREATE VIEW NVTX_EVENTS AS SELECT * FROM NVTX_EVENTS")),
                HasSubstr("NVTX_EVENTS is a view or virtual table"));
}

TEST_F(HostileSchema, AVirtualTableIsNotRead) {
    EXPECT_THAT(refusal(made(std::string(kKernels) + "CREATE VIRTUAL TABLE StringIds USING fts5(id, value)")),
                HasSubstr("StringIds is a view or virtual table"));
}

TEST_F(HostileSchema, TriggersAndForeignTablesAreLeftAlone) {
    const std::string path =
        made(std::string(kKernels) +
             "CREATE TABLE \"odd \"\" name'); DROP TABLE x; --\" (a);"
             "CREATE TRIGGER t AFTER INSERT ON CUPTI_ACTIVITY_KIND_KERNEL BEGIN DELETE FROM "
             "CUPTI_ACTIVITY_KIND_KERNEL; END;"
             "CREATE VIEW unused AS SELECT * FROM nothing_that_exists;");
    store::Database(path, store::Database::Mode::read_write)
        .execute("DROP TRIGGER t; INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 7, 0, 0, 0)");
    EXPECT_EQ(store::load_trace(path)->device.size(), 1u);
}

// A computed column could contain anything; it is ignored.
TEST_F(HostileSchema, GeneratedColumnsAreNotComputed) {
    const std::string path = made(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, "
        "correlationId AS (length(zeroblob(900000000))), globalPid);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 7, 0)");
    const auto trace = store::load_trace(path);
    ASSERT_EQ(trace->device.size(), 1u);
    EXPECT_EQ(trace->device.correlation[0], 0);
}

TEST_F(HostileSchema, ValuesOfAnyType) {
    const std::string path = made(
        std::string(kKernels) +
        "CREATE TABLE StringIds (id, value); INSERT INTO StringIds VALUES ('x', x'00ff'), (NULL, NULL), "
        "(9223372036854775807, 'far'), (-9223372036854775808, 'farther'), (1e300, 5), (3, NULL);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 'a', x'00', NULL, 1.5, 9223372036854775807), "
        "(5, 6, 9e99, -9e99, 'one', 'two', 'three'), (NULL, NULL, NULL, NULL, NULL, NULL, NULL), "
        "(9223372036854775807, -9223372036854775808, 0, 0, 0, 0, 0), "
        "(-9223372036854775808, 9223372036854775807, 0, 0, 0, 0, 0);"
        "CREATE TABLE SHARD_MEMORY (time, rank, address, bytes, total, category);"
        "INSERT INTO SHARD_MEMORY VALUES (1, 'x', x'01', 'many', 9223372036854775807, 99), (2, 0, 0, "
        "-9223372036854775808, -1, -1), (3, 0, 0, 72057594037927936, 72057594037927936, 1);"
        "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start, globalPid, deviceId, address, bytes, "
        "memoryOperationType); INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (1, 0, 0, 1, "
        "-9223372036854775808, 1)");
    const auto trace = store::load_trace(path);
    EXPECT_EQ(trace->device.size(), 3u);
    EXPECT_EQ(trace->strings[trace->device.name[1]], "far") << "of the largest id";
    (void)summarize(*trace);
    (void)module_view(*trace);
    (void)memory_report(*trace);
}

// More threads than a 16-bit column can distinguish: an error, not a wrong thread.
TEST_F(HostileSchema, AHundredThousandThreads) {
    const std::string path = made(
        "CREATE TABLE NVTX_EVENTS (start, end, eventType, text, globalTid);"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) "
        "INSERT INTO NVTX_EVENTS SELECT i, i + 1, 59, 'work', 5 * 16777216 + i FROM n");
    EXPECT_THAT(refusal(path), HasSubstr("100000 threads"));
}

// Correlation ids above 2^53, of 2^63 - 1 and below 0 each find their launch; events may last 0 ns or hours.
TEST_F(HostileSchema, FarIdsAndOddDurations) {
    const std::string path = made(
        std::string(kKernels) +
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 2, 0, 9007199254740993, 0), (3, 4, 0, "
        "9223372036854775807, 0), (5, 6, 0, -9223372036854775808, 0), (7, 8, 0, 9007199254740992, 0);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 10, 0, 7, 9223372036854775807, 0, 0), (11, "
        "7200000000011, 0, 7, 9007199254740993, 0, 0), (12, 12, 0, 7, -9223372036854775808, 0, 0), (13, 14, "
        "0, 7, 9007199254740994, 0, 0)");
    const auto trace = store::load_trace(path);
    EXPECT_EQ(trace->device.launch.all(), (std::vector<std::int32_t>{1, 0, 2, -1}));
    EXPECT_EQ(trace->last_ns, 7'200'000'000'011);
    (void)summarize(*trace);
}

TEST_F(HostileSchema, ANameOfTenMegabytes) {
    const std::string path =
        made(std::string(kKernels) +
             "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
             "INSERT INTO StringIds VALUES (1, replace(hex(zeroblob(5000000)), '0', 'n'));"
             "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 7, 0, 0, 1)");
    const auto trace = store::load_trace(path);
    EXPECT_EQ(trace->strings[trace->device.name.at(0)].size(), 10'000'000u);
}

// Any byte of a small file is changed to any value: the file loads, or is refused with its name.
TEST_F(HostileSchema, EveryPageDamaged) {
    const std::string whole = folder_ / "whole.sqlite";
    store::DatabaseWriter writer({.path = whole});
    for (int i = 0; i < 40; ++i) {
        schema::KernelRow kernel{.start = i, .end = i + 1};
        kernel.short_name = writer.intern("gemm" + std::to_string(i));
        kernel.correlation = i;
        writer.add(kernel);
        schema::RuntimeRow call{.start = i, .end = i + 1, .global_tid = schema::global_tid(1, 1)};
        call.correlation = i;
        writer.add(call);
    }
    writer.finish(100, 0);
    std::string bytes;
    {
        std::FILE* file = std::fopen(whole.c_str(), "rb");
        char buffer[65536];
        for (std::size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, file)) > 0;)
            bytes.append(buffer, got);
        std::fclose(file);
    }
    std::mt19937 random(7);
    int loaded = 0, refused = 0;
    for (int round = 0; round < 150; ++round) {
        std::string damaged = bytes;
        for (int hits = 0; hits < 20; ++hits)
            damaged[random() % damaged.size()] = static_cast<char>(random());
        const std::string path = folder_ / "damaged.sqlite";
        std::FILE* file = std::fopen(path.c_str(), "wb");
        std::fwrite(damaged.data(), 1, damaged.size(), file);
        std::fclose(file);
        try {
            (void)summarize(*store::load_trace(path));
            ++loaded;
        } catch (const store::StoreError& error) {
            EXPECT_THAT(error.what(), HasSubstr(path));
            ++refused;
        }
    }
    EXPECT_EQ(loaded + refused, 150);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
