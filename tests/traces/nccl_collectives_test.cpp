// NCCL's kernels joined with NCCL's calls. A call is a range of the domain NCCL whose payload contains
// communicator and bytes; a kernel belongs to the call in which it was launched.
#include "traces/store/nccl/nccl_collectives.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/temporary_folder.h"
#include "traces/import/open.h"
#include "traces/merge/merge.h"
#include "traces/schema/rows.h"
#include "traces/schema/schema.h"
#include "traces/store/load/loader.h"
#include "traces/store/nccl/nccl_calls.h"
#include "traces/store/write/create.h"

namespace shardscope::traces::store {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kWorld = 0xC0FFEE0000000001, kPair = 2;
constexpr std::uint64_t kInitSchema = 1 << 24, kGatherSchema = (1 << 24) + 4;
constexpr int kPids[] = {100, 200};

std::string empty_file(const std::string& path) {
    std::ofstream{path};
    return path;
}

std::string bytes_of(std::uint64_t value) {
    return {reinterpret_cast<const char*>(&value), 8};
}

// Two ranks, each of which is a process with a device; their rows are added one by one.
class NcclJoin : public ::testing::Test {
  protected:
    NcclJoin() : db_(create_schema(empty_file(folder_ / "run.sqlite"), 4096)) {
        db_.execute(
            "INSERT INTO SHARD_STATE VALUES (1, 0);"
            "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId, schemaId, idx, type, name, offset) VALUES "
            "(1, 16777220, 0, 18, 'NCCL communicator ID', NULL), (1, 16777220, 1, 22, 'Message size "
            "[bytes]', 8),"
            "(1, 16777216, 0, 18, 'NCCL communicator ID', NULL), (1, 16777216, 1, 5, 'No. of ranks', 8)");
        for (const int rank : {0, 1}) {
            db_.execute(fmt::format(
                "INSERT INTO SHARD_RANKS VALUES ({0}, {0}, {1}, {2}, 'host', 0, 0, 0, 0, NULL, NULL, NULL);"
                "INSERT INTO NVTX_EVENTS (start, eventType, text, domainId, globalTid) VALUES "
                "(0, 75, 'NCCL', 1, {1})",
                rank, schema::global_pid(kPids[rank]), tid(rank)));
        }
    }

    static std::int64_t tid(int rank) { return schema::global_tid(kPids[rank], 7); }

    std::int64_t string_id(const std::string& text) {
        Statement find(db_, "SELECT id FROM StringIds WHERE value = ?");
        find.bind(1, std::string_view(text));
        if (find.step()) return find.integer(0);
        Statement insert(db_, "INSERT INTO StringIds (value) VALUES (?)");
        insert.bind(1, std::string_view(text));
        insert.run();
        return db_.integer("SELECT last_insert_rowid()");
    }

    // A range of 10 ns from `start` on.
    void range(int rank, std::int64_t start, const std::string& name, const std::string& payload = "") {
        Statement insert(db_,
                         "INSERT INTO NVTX_EVENTS (start, end, eventType, textId, domainId, globalTid, "
                         "binaryData) VALUES (?, ?, 59, ?, 1, ?, CAST(? AS BLOB))");
        insert.bind(1, start);
        insert.bind(2, start + 10);
        insert.bind(3, string_id(name));
        insert.bind(4, tid(rank));
        if (payload.empty())
            insert.bind_null(5);
        else
            insert.bind(5, std::string_view(payload));
        insert.run();
    }
    void call(int rank, std::int64_t start, const std::string& name, std::uint64_t bytes,
              std::uint64_t communicator = kWorld) {
        range(rank, start, name,
              schema::binary_payload(kGatherSchema, bytes_of(communicator) + bytes_of(bytes)));
    }
    void make_communicator(int rank, std::uint64_t communicator, int ranks) {
        range(rank, 0, "ncclCommInitRank",
              schema::binary_payload(kInitSchema,
                                     bytes_of(communicator) + bytes_of(static_cast<std::uint64_t>(ranks))));
    }
    void make_world() {
        for (const int rank : {0, 1}) make_communicator(rank, kWorld, 2);
    }

    // Launched at that time on the rank's thread; runs later. Its correlation id is the same on both ranks.
    void kernel(int rank, std::int64_t launched, const std::string& name, std::int64_t correlation) {
        db_.execute(
            fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME (start, end, eventClass, globalTid, "
                        "correlationId, nameId, "
                        "returnValue) VALUES ({}, {}, 0, {}, {}, 1, 0)",
                        launched, launched + 2, tid(rank), correlation));
        device_work(rank, launched + 1000, name, correlation);
    }
    void device_work(int rank, std::int64_t start, const std::string& name, std::int64_t correlation) {
        const std::int64_t id = string_id(name);
        db_.execute(fmt::format(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId, "
            "correlationId, "
            "globalPid, demangledName, shortName, registersPerThread, gridX, gridY, gridZ, blockX, blockY, "
            "blockZ, "
            "staticSharedMemory, dynamicSharedMemory, localMemoryPerThread, localMemoryTotal, gridId, "
            "tensorSizeMinusOneElements) VALUES ({}, {}, {}, 1, 7, {}, {}, {}, {}, 0, 1, 1, 1, 1, 1, 1, 0, "
            "0, 0, 0, 0, "
            "'[]')",
            start, start + 5, rank, correlation, schema::global_pid(kPids[rank]), id, id));
    }

    // "rank operation bytes sequence" of each collective, by rank and kernel.
    std::vector<std::string> join() {
        join_nccl_collectives(db_);
        Statement rows(db_,
                       "SELECT c.rank, e.name, c.bytes, c.sequence FROM SHARD_COLLECTIVES c JOIN "
                       "SHARD_ENUM_OPERATION e ON e.id = c.operation ORDER BY c.rank, c.correlationId");
        std::vector<std::string> found;
        while (rows.step()) {
            found.push_back(
                fmt::format("{} {} {} {}", rows.integer(0), rows.text(1), rows.integer(2), rows.integer(3)));
        }
        return found;
    }
    std::vector<std::string> diagnostics() {
        Statement rows(db_, "SELECT text FROM DIAGNOSTIC_EVENT");
        std::vector<std::string> texts;
        while (rows.step()) texts.emplace_back(rows.text(0));
        return texts;
    }

    TemporaryFolder folder_;
    Database db_;
};

constexpr char kGather[] = "ncclDevKernel_AllGather_RING_LL",
               kReduce[] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL", kSendRecv[] = "ncclDevKernel_SendRecv",
               kGeneric[] = "ncclDevKernel_Generic";

TEST_F(NcclJoin, a_kernel_belongs_to_the_call_that_launched_it) {
    make_world();
    call(0, 100, "ncclAllGather", 4096);
    call(0, 200, "ncclAllReduce", 1000);
    kernel(0, 105, kGather, 1);
    kernel(0, 205, kReduce, 2);
    kernel(0, 300, "sgemm", 3);
    EXPECT_THAT(join(), ElementsAre("0 all_gather 8192 0", "0 all_reduce 1000 1"));  // 2 ranks x 4096
    EXPECT_EQ(db_.integer("SELECT groupId FROM SHARD_COLLECTIVES"), static_cast<std::int64_t>(kWorld));
    EXPECT_EQ(db_.integer("SELECT max(groupSize) FROM SHARD_COLLECTIVES"), 2);
    EXPECT_THAT(diagnostics(), IsEmpty());
}

TEST_F(NcclJoin, bytes_are_those_of_the_full_buffer) {
    EXPECT_EQ(full_bytes(schema::Operation::all_gather, 10, 4), 40);      // what one rank contributes
    EXPECT_EQ(full_bytes(schema::Operation::reduce_scatter, 10, 4), 40);  // what one rank gets
    EXPECT_EQ(full_bytes(schema::Operation::all_to_all, 10, 4), 40);      // the part for one peer
    EXPECT_EQ(full_bytes(schema::Operation::gather, 10, 4), 40);
    EXPECT_EQ(full_bytes(schema::Operation::scatter, 10, 4), 40);
    EXPECT_EQ(full_bytes(schema::Operation::all_reduce, 10, 4), 10);
    EXPECT_EQ(full_bytes(schema::Operation::broadcast, 10, 4), 10);
    EXPECT_EQ(full_bytes(schema::Operation::reduce, 10, 4), 10);
    EXPECT_EQ(full_bytes(schema::Operation::send, 10, 4), 10);
}

TEST_F(NcclJoin, correlation_ids_count_within_a_process) {
    make_world();
    for (const int rank : {0, 1}) {
        call(rank, 100 + rank, "ncclAllReduce", 64);
        kernel(rank, 105, kReduce, 1);  // the id is the same on both ranks
    }
    EXPECT_THAT(join(), ElementsAre("0 all_reduce 64 0", "1 all_reduce 64 0"));
}

TEST_F(NcclJoin, a_groups_kernels_are_launched_at_its_end) {
    make_world();
    make_communicator(0, kPair, 2);
    range(0, 100, "ncclGroupStart");
    range(0, 120, "ncclGroupStart");  // nested: only the outermost end launches
    call(0, 140, "ncclAllGather", 10);
    range(0, 160, "ncclGroupEnd");
    call(0, 180, "ncclAllReduce", 7, kPair);
    range(0, 200, "ncclGroupEnd");
    kernel(0, 204, kReduce, 1);  // the operations show which kernel belongs to which call
    kernel(0, 206, kGather, 2);
    EXPECT_THAT(join(), ElementsAre("0 all_reduce 7 0", "0 all_gather 20 0"));
}

TEST_F(NcclJoin, kernels_of_one_kind_in_a_group_follow_the_calls) {
    make_world();
    range(0, 100, "ncclGroupStart");
    call(0, 120, "ncclAllReduce", 1);
    call(0, 140, "ncclAllReduce", 2);
    range(0, 160, "ncclGroupEnd");
    kernel(0, 162, kReduce, 1);
    kernel(0, 164, kReduce, 2);
    EXPECT_THAT(join(), ElementsAre("0 all_reduce 1 0", "0 all_reduce 2 1"));
}

TEST_F(NcclJoin, one_kernel_may_carry_a_whole_group) {
    make_world();
    range(0, 100, "ncclGroupStart");
    call(0, 120, "ncclAllGather", 1);
    call(0, 140, "ncclAllGather", 2);
    range(0, 160, "ncclGroupEnd");
    kernel(0, 162, kGather, 1);
    range(0, 200, "ncclGroupStart");
    call(0, 220, "ncclSend", 100);
    call(0, 240, "ncclRecv", 50);
    range(0, 260, "ncclGroupEnd");
    kernel(0, 262, kSendRecv, 2);
    // (1 + 2) x 2 ranks; sends and receives have no number by which they could be matched.
    EXPECT_THAT(join(), ElementsAre("0 all_gather 6 0", "0 other 150 -1"));
}

TEST_F(NcclJoin, kernels_of_an_ambiguous_group_stay_unknown) {
    make_world();
    range(0, 100, "ncclGroupStart");
    for (const int i : {0, 1, 2}) call(0, 120 + 20 * i, "ncclAllReduce", 8);
    range(0, 200, "ncclGroupEnd");
    kernel(0, 202, kReduce, 1);  // 2 kernels, but 3 calls
    kernel(0, 204, kReduce, 2);
    range(0, 300, "ncclGroupEnd");  // its group began before the recording
    kernel(0, 302, kGeneric, 3);
    EXPECT_THAT(join(), IsEmpty());
    EXPECT_THAT(diagnostics(), ElementsAre("The bytes of 3 of 3 kernels of NCCL are unknown: they belong to "
                                           "a group whose calls cannot be matched to its kernels"));
}

TEST_F(NcclJoin, reports_what_it_does_not_know) {
    call(0, 100, "ncclAllReduce", 8);  // the creation of its communicator was not recorded
    kernel(0, 105, kReduce, 1);
    range(0, 200, "ncclAllReduce");  // no payload
    kernel(0, 205, kReduce, 2);
    kernel(0, 300, kReduce, 3);         // a graph's launch: inside no call
    device_work(0, 400, kReduce, 999);  // its launch was lost
    EXPECT_THAT(join(), IsEmpty());
    EXPECT_THAT(diagnostics(),
                ElementsAre(HasSubstr("2 of 4 kernels of NCCL are unknown: they were launched outside"),
                            HasSubstr("1 of 4 kernels of NCCL are unknown: they belong to calls whose"),
                            HasSubstr("1 of 4 kernels of NCCL are unknown: they belong to commun")));
    join();  // joins again, as a second finalize does
    EXPECT_EQ(diagnostics().size(), 3u);
}

TEST_F(NcclJoin, payloads_that_are_truncated_or_absurd_are_ignored) {
    make_world();
    range(0, 100, "ncclAllReduce",
          schema::binary_payload(kGatherSchema, bytes_of(kWorld)));  // ends before the size
    range(0, 200, "ncclAllReduce", "short");
    call(0, 300, "ncclAllGather", ~std::uint64_t{0});
    for (const int i : {1, 2, 3}) kernel(0, 100 * i + 5, i == 3 ? kGather : kReduce, i);
    EXPECT_THAT(join(), IsEmpty());
    EXPECT_THAT(diagnostics(), ElementsAre(HasSubstr("3 of 3 kernels")));
}

TEST_F(NcclJoin, ranks_that_recorded_different_calls_have_no_common_numbers) {
    make_world();
    for (const int i : {1, 2}) {
        call(0, 100 * i, "ncclAllReduce", 8);
        kernel(0, 100 * i + 5, kReduce, i);
    }
    call(1, 200, "ncclAllReduce", 8);  // the recording of rank 1 began later
    kernel(1, 205, kReduce, 1);
    EXPECT_THAT(join(), ElementsAre("0 all_reduce 8 -1", "0 all_reduce 8 -1", "1 all_reduce 8 -1"));
    EXPECT_THAT(diagnostics(), ElementsAre(HasSubstr("communicator 0xc0ffee0000000001 recorded different")));
}

TEST_F(NcclJoin, nccls_own_numbers_come_first) {
    db_.execute(
        fmt::format("INSERT INTO SHARD_NCCL_COMMUNICATORS (communicator, globalPid, rank, ranks) VALUES "
                    "({}, {}, 0, 2)",
                    static_cast<std::int64_t>(kWorld), schema::global_pid(kPids[0])));
    const auto operation = [&](int rank, std::int64_t start, int number) {
        db_.execute(
            fmt::format("INSERT INTO SHARD_NCCL_OPERATIONS (communicator, globalPid, globalTid, rank, "
                        "operation, sequence, start) VALUES ({}, {}, {}, {}, 2, {}, {})",
                        static_cast<std::int64_t>(kWorld), schema::global_pid(kPids[rank]), tid(rank), rank,
                        number, start));
    };
    for (const int i : {1, 2}) {
        call(0, 100 * i, "ncclAllReduce", 8);
        operation(0, 100 * i + 1, 40 + i);
        kernel(0, 100 * i + 5, kReduce, i);
    }
    call(1, 200, "ncclAllReduce", 8);
    operation(1, 201, 42);
    kernel(1, 205, kReduce, 1);
    EXPECT_THAT(join(), ElementsAre("0 all_reduce 8 41", "0 all_reduce 8 42", "1 all_reduce 8 42"));
    EXPECT_THAT(diagnostics(), IsEmpty());
}

TEST_F(NcclJoin, leaves_a_trace_alone_that_has_collectives) {
    make_world();
    call(0, 100, "ncclAllReduce", 8);
    kernel(0, 105, kReduce, 1);
    db_.execute(
        "INSERT INTO SHARD_COLLECTIVES (rank, correlationId, operation, bytes, padding, groupId, groupSize, "
        "sequence, phase) VALUES (0, 77, 0, 1, 0, 1, 2, 0, 0)");
    EXPECT_THAT(join(), ElementsAre("0 all_gather 1 0"));
}

// An export has none of our tables: loading it gives the same, and leaves it unchanged. Each rank contributes
// 1000 bytes, the result has 2000.
TEST_F(NcclJoin, is_made_for_an_export_when_it_is_loaded) {
    make_world();
    for (const int rank : {0, 1}) {
        call(rank, 100, "ncclAllGather", 1000);
        kernel(rank, 105, "ncclDevKernel_AllGather_RING_LL", 1);
        kernel(rank, 500, "ncclDevKernel_AllGather_RING_LL", 2);  // outside any call
    }
    db_.execute("DROP TABLE SHARD_STATE; DROP TABLE SHARD_RANKS; DROP TABLE SHARD_COLLECTIVES");
    const auto trace = load_trace(folder_ / "run.sqlite");
    const Collectives& c = trace->collectives;
    EXPECT_THAT(c.bytes, ElementsAre(2000, 2000));
    EXPECT_THAT(c.sequence, ElementsAre(0, 0));
    EXPECT_THAT(c.group_size, ElementsAre(2, 2));
    EXPECT_THAT(c.rank, ElementsAre(0, 1));
    ASSERT_EQ(c.event.size(), 2u);
    for (const std::int32_t event : c.event) EXPECT_GE(event, 0);
    ASSERT_EQ(trace->diagnostics.size(), 1u);
    EXPECT_THAT(trace->diagnostics[0].text, HasSubstr("The bytes of 2 of 4 kernels of NCCL are unknown"));
    EXPECT_FALSE(db_.has_table("SHARD_COLLECTIVES"));
}

// Exports of two hosts, each with the one rank that ran there; the second's clock is 3 ms ahead. Their
// all_reduces end at the same time; both opened together and merged, they are two ranks on one clock.
TEST_F(NcclJoin, brings_the_exports_of_two_hosts_onto_one_clock) {
    constexpr std::int64_t kAhead = 3'000'000;
    make_world();
    for (const int rank : {0, 1}) {
        for (const std::int64_t start : {100, 10'100, 20'100}) {
            call(rank, start, "ncclAllReduce", 1000);
            kernel(rank, start + 5, kReduce, start);
        }
    }
    db_.execute("DROP TABLE SHARD_STATE; DROP TABLE SHARD_RANKS; DROP TABLE SHARD_COLLECTIVES");
    std::vector<std::string> files;
    for (const int rank : {0, 1}) {
        files.push_back(folder_ / fmt::format("host{}.sqlite", rank));
        db_.execute(fmt::format("VACUUM INTO '{}'", files.back()));
        Database host(files.back(), Database::Mode::read_write);
        const std::int64_t pid = schema::global_pid(kPids[rank]);
        for (const char* table : {"NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_RUNTIME"}) {
            host.execute(
                fmt::format("DELETE FROM {0} WHERE globalTid / 16777216 * 16777216 <> {1}; UPDATE {0} SET "
                            "start = start + {2}, "
                            "end = end + {2}",
                            table, pid, rank * kAhead));
        }
        host.execute(
            fmt::format("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE globalPid <> {0}; UPDATE "
                        "CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = 0, start = start + {1}, "
                        "end = end + {1}",
                        pid, rank * kAhead));
    }
    const auto expect_one_clock = [](const Trace& trace) {
        ASSERT_EQ(trace.ranks.size(), 2u);
        EXPECT_EQ(trace.ranks[0].number, 0);
        EXPECT_EQ(trace.ranks[1].number, 1);
        EXPECT_THAT(trace.device.rank, ElementsAre(0, 1, 0, 1, 0, 1));
        for (std::size_t i = 0; i < 6; i += 2) EXPECT_EQ(trace.device.end[i], trace.device.end[i + 1]) << i;
    };
    const auto opened = importer::open_any(files);
    expect_one_clock(*opened);
    ASSERT_FALSE(opened->diagnostics.empty());
    EXPECT_THAT(opened->diagnostics.back().text, HasSubstr("host1.sqlite is rank 1 here"));

    const merge::MergeResult merged =
        merge::merge_traces({.inputs = files, .output = folder_ / "both.sqlite"});
    EXPECT_EQ(merged.collectives, 3);
    EXPECT_EQ(merged.residual_by_wall_ns, kAhead);
    EXPECT_EQ(merged.residual_ns, 0);
    expect_one_clock(*load_trace(folder_ / "both.sqlite"));
}

// --- a real export of Nsight Systems -----------------------------------------------------------------------

TEST(NcclJoinOfAnExport, ties_every_kernel_of_a_real_ddp_job) {
    const char* file = std::getenv("SHARDSCOPE_DDP_EXPORT");
    if (file == nullptr || !std::filesystem::exists(file)) {
        GTEST_SKIP() << "set SHARDSCOPE_DDP_EXPORT to an export of a job that uses NCCL";
    }
    const TemporaryFolder folder;
    const std::string copy = folder / "export.sqlite";
    std::filesystem::copy_file(file, copy);
    std::filesystem::permissions(copy, std::filesystem::perms::owner_all);
    Database db(copy, Database::Mode::read_write);
    // The export's own tables, and ours next to them.
    std::string tables = std::regex_replace(schema::migration_sql(0), std::regex("CREATE TEMP TABLE "),
                                            "CREATE TABLE IF NOT EXISTS ");
    tables = std::regex_replace(tables, std::regex("INSERT INTO "), "INSERT OR IGNORE INTO ");
    db.execute(tables);
    const std::int64_t kernels = db.integer(
        "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.shortName "
        "WHERE s.value LIKE 'nccl%'");
    ASSERT_GT(kernels, 0);

    // The export as it is, without blobs: this is reported, and no row is invented.
    join_nccl_collectives(db);
    EXPECT_EQ(db.integer("SELECT count(*) FROM SHARD_COLLECTIVES"), 0);
    EXPECT_EQ(db.integer(fmt::format("SELECT count(*) FROM DIAGNOSTIC_EVENT WHERE text LIKE "
                                     "'The bytes of {0} of {0} kernels of NCCL are unknown%payload%'",
                                     kernels)),
              1);

    // The same export as it would be with payloads: 1000 bytes in each call of one communicator of two ranks.
    const std::string payload =
        schema::binary_payload((1 << 24) + 5, bytes_of(kWorld) + bytes_of(1000) + bytes_of(0));
    Statement update(
        db,
        "UPDATE NVTX_EVENTS SET binaryData = CAST(? AS BLOB) WHERE domainId = 1 AND eventType = 59 AND "
        "textId IN (SELECT id FROM StringIds WHERE value IN ('ncclAllReduce', 'ncclBroadcast'))");
    update.bind(1, std::string_view(payload));
    update.run();
    db.execute(
        fmt::format("INSERT INTO SHARD_NCCL_COMMUNICATORS (communicator, globalPid, rank, ranks) VALUES "
                    "({}, 0, 0, 2)",
                    static_cast<std::int64_t>(kWorld)));
    join_nccl_collectives(db);
    EXPECT_EQ(db.integer("SELECT count(*) FROM SHARD_COLLECTIVES WHERE bytes = 1000 AND sequence >= 0"),
              kernels);
    // The kernel's name agrees with its call.
    EXPECT_EQ(
        db.integer(
            "SELECT count(*) FROM SHARD_COLLECTIVES c JOIN SHARD_ENUM_OPERATION e ON e.id = c.operation "
            "JOIN CUPTI_ACTIVITY_KIND_KERNEL k ON k.correlationId = c.correlationId AND k.deviceId = "
            "c.rank JOIN StringIds s ON s.id = k.shortName WHERE instr(s.value, e.label) > 0"),
        kernels);
    // Each number occurs once per rank, for the same operation.
    EXPECT_EQ(
        db.integer(
            "SELECT count(*) FROM SHARD_COLLECTIVES a JOIN SHARD_COLLECTIVES b ON a.sequence = b.sequence "
            "AND a.operation = b.operation WHERE a.rank = 0 AND b.rank = 1"),
        kernels / 2);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::store
