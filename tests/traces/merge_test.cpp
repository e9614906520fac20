// Parts merged into one file: what happens to every kind of id, to clocks and to facts. The job is described
// in part_files.h.
#include "traces/merge/merge.h"

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/traces/outcome.h"
#include "tests/traces/part_files.h"
#include "tests/traces/temporary_folder.h"
#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/facts/info.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/time/summary.h"
#include "traces/schema/column_roles.h"
#include "traces/schema/schema.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::merge {
namespace TEST_FILE {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kMs = 1'000'000;

class MergeTest : public ::testing::Test {
  protected:
    PartSpec spec(const std::string& name, int rank) const {
        PartSpec s;
        s.path = folder_ / name;
        s.ranks = {rank};
        s.host = "node" + std::to_string(rank);
        return s;
    }
    // Two ranks on two hosts; the second began 2 ms later, and its clock is 3 ms ahead.
    std::pair<PartSpec, PartSpec> two_hosts() const {
        PartSpec a = spec("a.sqlite", 0), b = spec("b.sqlite", 1);
        b.origin_ns = -2 * kMs;
        b.clock_ns = 3 * kMs;
        return {a, b};
    }
    MergeResult merge(const std::vector<std::string>& inputs) {
        const MergeResult result = merge_traces({.inputs = inputs, .output = out(), .overwrite = true});
        database_.emplace(out(), store::Database::Mode::read_only);
        return result;
    }
    std::string refusal(const std::vector<std::string>& inputs, const std::string& output = {}) const {
        return refusal_of(
            [&] { merge_traces({.inputs = inputs, .output = output.empty() ? out() : output}); });
    }
    std::string out() const { return folder_ / "out.sqlite"; }
    std::int64_t number(const std::string& sql) { return database_->integer(sql); }
    std::string text(const std::string& sql) {
        store::Statement row(*database_, sql);
        return row.step() ? std::string(row.text(0)) : "";
    }
    std::vector<std::int64_t> numbers(const std::string& sql) {
        std::vector<std::int64_t> result;
        for (store::Statement row(*database_, sql); row.step();) result.push_back(row.integer(0));
        return result;
    }
    std::vector<std::string> files() const {
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator(folder_.path()))
            names.push_back(entry.path().filename());
        return names;
    }

    TemporaryFolder folder_;
    std::optional<store::Database> database_;
};

TEST_F(MergeTest, KeepsRanksAndGivesEachItsDevice) {
    PartSpec a = spec("a.sqlite", 0), b = spec("b.sqlite", 1);
    a.device = b.device = 0;  // each process calls its own GPU 0
    merge({write_part(a), write_part(b)});
    EXPECT_THAT(numbers("SELECT rank FROM SHARD_RANKS ORDER BY rank"), ElementsAre(0, 1));
    EXPECT_THAT(numbers("SELECT deviceId FROM SHARD_RANKS ORDER BY rank"), ElementsAre(0, 1));
    EXPECT_THAT(numbers("SELECT id FROM TARGET_INFO_GPU ORDER BY id"), ElementsAre(0, 1));
    // 3 steps of 2 kernels each.
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE deviceId = 0"), 6);
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE deviceId = 1"), 6);
}

TEST_F(MergeTest, MakesCorrelationIdsUniqueAndKeepsTheirLinks) {
    merge({write_part(spec("a.sqlite", 0)), write_part(spec("b.sqlite", 1))});  // both count from 1
    EXPECT_EQ(number("SELECT count(DISTINCT correlationId) FROM CUPTI_ACTIVITY_KIND_KERNEL"), 12);
    EXPECT_EQ(
        number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON "
               "r.correlationId = k.correlationId"),
        12);
    EXPECT_EQ(number("SELECT count(*) FROM SHARD_COLLECTIVES c JOIN CUPTI_ACTIVITY_KIND_KERNEL k ON "
                     "k.correlationId = c.correlationId AND k.deviceId = c.rank"),
              6);
}

TEST_F(MergeTest, DistinguishesEqualPidsOfTwoHosts) {
    merge({write_part(spec("a.sqlite", 0)), write_part(spec("b.sqlite", 1))});  // both are process 500
    EXPECT_THAT(numbers("SELECT globalPid >> 24 & 0xFFFFFF FROM PROCESSES"), ElementsAre(500, 500));
    EXPECT_EQ(number("SELECT count(DISTINCT globalPid) FROM PROCESSES"), 2);
    // The joins that Nsight's users write.
    EXPECT_EQ(number("SELECT count(*) FROM PROCESSES p JOIN ThreadNames t ON p.globalPid == (t.globalTid & "
                     "0xFFFFFFFFFF000000)"),
              2);
    EXPECT_EQ(
        number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON "
               "r.correlationId = k.correlationId AND k.globalPid == (r.globalTid & 0xFFFFFFFFFF000000)"),
        12);
    EXPECT_THAT(numbers("SELECT globalPid >> 48 FROM PROCESSES ORDER BY 1"), ElementsAre(1, 2));
}

TEST_F(MergeTest, KeepsOneProcessOfOneHostOne) {
    PartSpec a = spec("a.sqlite", 0), b = spec("b.sqlite", 1);
    b.host = a.host;
    b.pid = 501;
    merge({write_part(a), write_part(b)});
    EXPECT_THAT(numbers("SELECT globalPid FROM PROCESSES ORDER BY 1"),
                ElementsAre(schema::global_pid(500), schema::global_pid(501)));
}

TEST_F(MergeTest, DistinguishesContainersOfOneHost) {
    PartSpec a = spec("a.sqlite", 0), b = spec("b.sqlite", 1);
    b.host = a.host;  // both have thread 500 of process 500, for different ranks
    merge({write_part(a), write_part(b)});
    EXPECT_EQ(number("SELECT count(DISTINCT globalTid) FROM SHARD_THREADS"), 2);
    EXPECT_EQ(number("SELECT count(DISTINCT globalPid) FROM PROCESSES"), 2);
}

TEST_F(MergeTest, NumbersDomainsByName) {
    merge({write_part(spec("a.sqlite", 0)), write_part(spec("b.sqlite", 1))});
    EXPECT_EQ(number("SELECT domainId FROM NVTX_EVENTS WHERE eventType = 75 AND text = 'NCCL' LIMIT 1"), 1);
    EXPECT_EQ(number("SELECT count(*) FROM NVTX_EVENTS WHERE domainId = 1 AND eventType = 59"), 6);
    // In both parts it is domain 2.
    EXPECT_EQ(number("SELECT count(DISTINCT domainId) FROM NVTX_EVENTS WHERE text LIKE 'domain of rank %'"),
              2);
    EXPECT_EQ(number("SELECT count(*) FROM NVTX_EVENTS r JOIN NVTX_EVENTS d ON d.domainId = r.domainId AND "
                     "d.eventType = 75 WHERE r.text = 'rank 1 alone' AND d.text = 'domain of rank 1'"),
              3);
}

TEST_F(MergeTest, SharesTextsAndNamesBothWays) {
    merge({write_part(spec("a.sqlite", 0)), write_part(spec("b.sqlite", 1))});
    EXPECT_EQ(number("SELECT count(*) FROM StringIds WHERE value = 'gemm'"), 1);
    EXPECT_EQ(number("SELECT count(*) FROM StringIds GROUP BY value ORDER BY 1 DESC LIMIT 1"), 1);
    EXPECT_EQ(
        number(
            "SELECT count(*) FROM NVTX_EVENTS n JOIN StringIds s ON s.id = n.textId WHERE s.value = n.text"),
        number("SELECT count(*) FROM NVTX_EVENTS"));
}

// Two parts with clocks shifted by 3 ms merge to collectives that end at the same time.
TEST_F(MergeTest, BringsClocksTogetherByTheEndsOfCollectives) {
    const auto [a, b] = two_hosts();
    const MergeResult result = merge({write_part(a), write_part(b)});
    EXPECT_EQ(result.collectives, 3);
    EXPECT_EQ(result.residual_by_wall_ns, 3 * kMs);
    EXPECT_LE(result.worst_ns, 50 * kUs);
    EXPECT_EQ(result.worst_ns, 0);  // these ends are exact
    EXPECT_EQ(
        number(
            "SELECT max(w) FROM (SELECT max(k.\"end\") - min(k.\"end\") AS w FROM SHARD_COLLECTIVES c JOIN "
            "CUPTI_ACTIVITY_KIND_KERNEL k ON k.correlationId = c.correlationId GROUP BY c.sequence)"),
        0);
    EXPECT_EQ(text("SELECT value FROM SHARD_RUN WHERE key = 'merge.residual_us'"), "0.000");
    EXPECT_EQ(text("SELECT value FROM SHARD_RUN WHERE key = 'merge.residual_by_wall_clock_us'"), "3000.000");
}

TEST_F(MergeTest, BeginsWithTheEarliestPart) {
    const auto [a, b] = two_hosts();  // b began at -2 ms of the job, on the reference's clock
    const MergeResult result = merge({write_part(a), write_part(b)});
    EXPECT_EQ(number("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME"), kJobUtc - 2 * kMs);
    EXPECT_EQ(result.parts[0].shift_ns, 2 * kMs);
    EXPECT_EQ(result.parts[1].shift_ns, 0);
    EXPECT_THAT(numbers("SELECT start FROM SHARD_STEPS WHERE step = 0"), ElementsAre(2 * kMs, 2 * kMs));
    // The longest range goes to the end of step 2: 3 ms + 100 us of the job, 2 ms after the start.
    EXPECT_EQ(number("SELECT stopTime FROM ANALYSIS_DETAILS"), 5 * kMs + 100 * kUs);
}

TEST_F(MergeTest, GivesEachRankTheNumbersOfItsPart) {
    const auto [a, b] = two_hosts();
    merge({write_part(a), write_part(b)});
    const auto merged = store::load_trace(out());
    for (const PartSpec& part : {a, b}) {
        const int rank = part.ranks[0];
        const auto alone = store::load_trace(part.path);
        const analysis::RankSummary one = analysis::summarize(*alone).ranks.at(0);
        const analysis::RankSummary of_all = analysis::summarize(*merged, {.rank = rank}).ranks.at(0);
        EXPECT_EQ(one.average_us, of_all.average_us);
        EXPECT_EQ(one.steps.size(), of_all.steps.size());
        const analysis::RankMemory memory = analysis::memory_report(*alone).ranks.at(0);
        const analysis::RankMemory of_all_memory =
            analysis::memory_report(*merged, {.rank = rank}).ranks.at(0);
        EXPECT_EQ(memory.peak_bytes, 5096);
        EXPECT_EQ(of_all_memory.peak_bytes, 5096);
        EXPECT_EQ(memory.at_peak, of_all_memory.at_peak);
        EXPECT_EQ(memory.reserved_bytes, of_all_memory.reserved_bytes);
    }
    // The shortest part of each collective is rank 1's, 45 us; rank 0 waits 5 us of its 50.
    const auto collectives = analysis::collectives_report(*merged).ranks;
    EXPECT_EQ(collectives.at(0).unmatched, 0);
    EXPECT_DOUBLE_EQ(collectives.at(0).operations.at(0).transfer_us, 3 * 45);
    EXPECT_DOUBLE_EQ(collectives.at(0).operations.at(0).waiting_us, 3 * 5);
    EXPECT_THAT(analysis::check_trace(*merged), IsEmpty());
}

TEST_F(MergeTest, KeepsWhatPartsAgreeOnOnce) {
    PartSpec a = spec("a.sqlite", 0), b = spec("b.sqlite", 1);
    a.run = {{"model.width", "256"}, {"pid", "1"}, {"seed", "7"}};
    b.run = {{"model.width", "256"}, {"pid", "2"}};
    merge({write_part(a), write_part(b)});
    const auto value = [&](const std::string& key) {
        return text("SELECT value FROM SHARD_RUN WHERE key = '" + key + "'");
    };
    EXPECT_EQ(value("model.width"), "256");
    EXPECT_EQ(value("seed"), "7");
    EXPECT_EQ(value("pid"), "");
    EXPECT_EQ(value("part.1.pid"), "1");
    EXPECT_EQ(value("part.2.pid"), "2");
    EXPECT_EQ(value("merge.part.2.file"), "b.sqlite");
    EXPECT_EQ(number("SELECT count(*) FROM SHARD_MODULES"), 1);
    EXPECT_EQ(number("SELECT count(*) FROM SHARD_UNITS"), 1);
    EXPECT_EQ(number("SELECT count(*) FROM SHARD_LOSSES"), 1);
}

TEST_F(MergeTest, KeepsDifferentModuleTreesApart) {
    PartSpec a = spec("a.sqlite", 0), b = spec("b.sqlite", 1);
    b.class_name = "Conv2d";
    const MergeResult result = merge({write_part(a), write_part(b)});
    EXPECT_THAT(result.notes, Contains(HasSubstr("another module tree")));
    EXPECT_THAT(numbers("SELECT id FROM SHARD_MODULES ORDER BY id"), ElementsAre(0, 1));
    EXPECT_EQ(
        number(
            "SELECT count(*) FROM NVTX_EVENTS n JOIN SHARD_MODULES m ON m.id = n.int64Value WHERE n.text = "
            "'nn.Module: ' || m.name"),
        6);
    EXPECT_EQ(number("SELECT unit FROM SHARD_MODULES WHERE name = 'Conv2d_0'"), 1);
    EXPECT_EQ(number("SELECT module FROM SHARD_UNITS WHERE id = 1"), 1);
    EXPECT_EQ(number("SELECT DISTINCT unit FROM SHARD_COLLECTIVES WHERE rank = 1"), 1);
}

TEST_F(MergeTest, RenumbersARankOfAnotherJob) {
    PartSpec a = spec("a.sqlite", 0), b = spec("b.sqlite", 0);
    a.group_size = b.group_size = 1;  // two unrelated programs
    b.pid = 777;
    const MergeResult result = merge({write_part(a), write_part(b)});
    EXPECT_THAT(numbers("SELECT rank FROM SHARD_RANKS"), ElementsAre(0, 1));
    EXPECT_THAT(numbers("SELECT deviceId FROM SHARD_RANKS"), ElementsAre(0, 1));
    EXPECT_THAT(result.notes, Contains(AllOf(HasSubstr("rank 0 of"), HasSubstr("is rank 1"))));
    EXPECT_EQ(number("SELECT count(DISTINCT groupId) FROM SHARD_COLLECTIVES"), 2);
    EXPECT_EQ(
        number("SELECT count(*) FROM SHARD_GROUPS WHERE groupId IN (SELECT groupId FROM SHARD_COLLECTIVES)"),
        2);
    EXPECT_EQ(number("SELECT count(*) FROM SHARD_MEMORY WHERE rank = 1"), 7);
    EXPECT_EQ(
        number("SELECT count(*) FROM SHARD_STEPS s JOIN SHARD_THREADS t ON t.globalTid = s.globalTid AND "
               "t.rank = s.rank"),
        6);
}

TEST_F(MergeTest, RefusesTwoPartsThatAreTheSameRankOfOneJob) {
    PartSpec a = spec("a.sqlite", 0), b = spec("b.sqlite", 0);
    b.pid = 777;
    EXPECT_THAT(refusal({write_part(a), write_part(b)}), HasSubstr("rank 0 of one job"));
    fs::copy_file(a.path, folder_ / "copy.sqlite");
    EXPECT_THAT(refusal({a.path, folder_ / "copy.sqlite"}), HasSubstr("both contain rank 0 of one process"));
    EXPECT_THAT(refusal({a.path, a.path}), HasSubstr("is given twice"));
    EXPECT_THAT(refusal({a.path}, a.path), HasSubstr("both read and written"));
}

TEST_F(MergeTest, GivesASchemaThatClashesAnotherId) {
    PartSpec a = spec("a.sqlite", 0), b = spec("b.sqlite", 1), c = spec("c.sqlite", 2);
    a.schema_size = c.schema_size = 4;
    b.schema_size = 8;  // the same id, but another layout
    merge({write_part(a), write_part(b), write_part(c)});
    EXPECT_THAT(numbers("SELECT payloadSize FROM NVTX_PAYLOAD_SCHEMAS ORDER BY 1"), ElementsAre(4, 8));
    EXPECT_EQ(number("SELECT count(DISTINCT schemaId) FROM NVTX_PAYLOAD_SCHEMA_ENTRIES"), 2);
    // Each payload names the schema of its size (the third integer of its header).
    store::Statement row(*database_, "SELECT binaryData FROM NVTX_EVENTS WHERE binaryData NOT NULL");
    int payloads = 0;
    for (; row.step(); ++payloads) {
        std::int64_t header[4];
        std::memcpy(header, row.text(0).data(), sizeof header);
        EXPECT_EQ(number("SELECT payloadSize FROM NVTX_PAYLOAD_SCHEMAS WHERE schemaId = " +
                         std::to_string(header[1])),
                  header[2]);
    }
    EXPECT_EQ(payloads, 3);
}

TEST_F(MergeTest, CopiesASinglePart) {
    PartSpec a = spec("a.sqlite", 0);
    a.ranks = {0, 1};
    merge({write_part(a)});
    store::Database part(a.path, store::Database::Mode::read_only);
    for (const auto tables : {schema::nsight_tables(), schema::shard_tables()}) {
        for (const schema::SchemaTable& table : tables) {
            const std::string count = "SELECT count(*) FROM " + std::string(table.name);
            if (table_role(table) != schema::TableRole::made) {
                EXPECT_EQ(number(count), part.integer(count)) << table.name;
            }
        }
    }
    EXPECT_EQ(number("SELECT sum(start) FROM CUPTI_ACTIVITY_KIND_KERNEL"),
              part.integer("SELECT sum(start) FROM CUPTI_ACTIVITY_KIND_KERNEL"));
    EXPECT_EQ(number("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME"), kJobUtc);
    EXPECT_EQ(number("SELECT count(*) FROM SHARD_RUN"), 1);
}

TEST_F(MergeTest, LeavesAFinishedFileForItsOwner) {
    const auto [a, b] = two_hosts();
    write_part(a);
    write_part(b);
    const std::string before = bytes_of(a.path) + bytes_of(b.path);
    merge({a.path, b.path});
    EXPECT_TRUE(before == bytes_of(a.path) + bytes_of(b.path));
    struct stat facts {};
    ASSERT_EQ(::stat(out().c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0600u);
    EXPECT_THAT(files(), SizeIs(3));  // two parts and one result, no other file
    EXPECT_EQ(number("SELECT ended FROM SHARD_STATE"), 1);
    EXPECT_EQ(number("SELECT count(*) FROM sqlite_master WHERE type = 'index' AND name LIKE '%.%'"),
              static_cast<std::int64_t>(schema::indexes().size()));
    EXPECT_GT(number("SELECT count(*) FROM SHARD_TOTALS"), 0);
    EXPECT_EQ(text("PRAGMA integrity_check"), "ok");
    EXPECT_THAT(refusal({a.path, b.path}), HasSubstr("--overwrite"));
}

TEST_F(MergeTest, TakesPartsThatDidNotEndAndSaysSo) {
    auto [a, b] = two_hosts();
    b.finished = false;
    const MergeResult result = merge({write_part(a), write_part(b)});
    EXPECT_THAT(result.notes, Contains(AllOf(HasSubstr("b.sqlite"), HasSubstr("did not end"))));
    EXPECT_EQ(number("SELECT count(*) FROM SHARD_STEPS"), 6);
    EXPECT_THAT(analysis::check_trace(*store::load_trace(out())), Contains(HasSubstr("did not end")));
}

TEST_F(MergeTest, RefusesFilesThatAreNotTraces) {
    const std::string good = write_part(spec("a.sqlite", 0));
    const std::string text_file = folder_ / "text.sqlite";
    std::ofstream(text_file)
        << "hello, this is no database at all, and long enough to have a header if it were one."
           " It goes on for a while, so that nobody takes it for truncated.";
    EXPECT_THAT(refusal({good, text_file}), HasSubstr("is not an SQLite file"));
    EXPECT_THAT(refusal({good, folder_ / "missing.sqlite"}), HasSubstr("does not exist"));
    const std::string newer = write_part(spec("newer.sqlite", 1));
    store::Database(newer, store::Database::Mode::read_write).execute("PRAGMA user_version = 99");
    EXPECT_THAT(refusal({good, newer}), HasSubstr("schema version 99"));
    EXPECT_FALSE(fs::exists(out()));
}

TEST_F(MergeTest, LeavesNothingWhenItIsStopped) {
    const auto [a, b] = two_hosts();
    write_part(a);
    write_part(b);
    const std::atomic<bool> stop = true;
    EXPECT_THROW(
        merge_traces({.inputs = {a.path, b.path}, .output = out()}, {.cancel = &stop, .progress = {}}),
        Cancelled);
    EXPECT_THAT(files(), SizeIs(2));
}

TEST_F(MergeTest, LeavesNothingOnAFullDisk) {
    const auto [a, b] = two_hosts();
    write_part(a);
    write_part(b);
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{.rlim_cur = 200'000, .rlim_max = before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const std::string sentence = refusal({a.path, b.path});
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_THAT(sentence, AllOf(HasSubstr(out()), HasSubstr("space")));
    EXPECT_THAT(files(), SizeIs(2));
}

TEST_F(MergeTest, TakesFilesOfOlderSchemas) {
    const std::string a = write_part(spec("a.sqlite", 0)), b = write_part(spec("b.sqlite", 1));
    {
        store::Database old(b, store::Database::Mode::read_write);  // written by version 1
        std::vector<std::string> newer;
        for (const auto tables : {schema::nsight_tables(), schema::shard_tables(), schema::shard_enums()}) {
            for (const schema::SchemaTable& table : tables) {
                if (table.since > 1) newer.emplace_back(table.name);
            }
        }
        for (const schema::SchemaView& view : schema::views())
            old.execute("DROP VIEW " + std::string(view.name));
        for (const std::string& table : newer) old.execute("DROP TABLE " + table);
        old.execute("PRAGMA user_version = 1");
    }
    merge({a, b});
    EXPECT_EQ(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"), 12);
    EXPECT_EQ(number("PRAGMA user_version"), schema::kSchemaVersion);
}

TEST_F(MergeTest, NotesThatPartsAreOfDifferentTimes) {
    PartSpec a = spec("a.sqlite", 0), b = spec("b.sqlite", 1);
    b.clock_ns = 7200 * 1'000'000'000LL;
    b.group = 8;  // the groups have no collective in common
    EXPECT_THAT(merge({write_part(a), write_part(b)}).notes, Contains(HasSubstr("7199 s apart")));
}

// An export of Nsight Systems: only its own tables, older columns, domains by process.
TEST_F(MergeTest, TakesExportsOfNsightSystems) {
    const std::string path = folder_ / "nsight.sqlite";
    std::ofstream(path).close();
    {
        store::Database nsight(path, store::Database::Mode::read_write);
        nsight.execute(R"(
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaLaunchKernel_v7000');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, "end" INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 200, 0, 1, 7, 1, 281475010265088, 1, 1);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, "end" INTEGER NOT NULL, eventClass INTEGER NOT NULL,
    globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (50, 60, 0, 281475010265090, 1, 2, 0);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, "end" INTEGER, eventType INTEGER NOT NULL, text TEXT,
    globalTid INTEGER, domainId INTEGER);
INSERT INTO NVTX_EVENTS VALUES (0, NULL, 75, 'NCCL', 281475010265090, 5);
INSERT INTO NVTX_EVENTS VALUES (10, 20, 59, 'ncclAllReduce', 281475010265090, 5);
)");
    }
    const MergeResult result = merge({write_part(spec("a.sqlite", 0)), path});
    EXPECT_THAT(result.notes, Contains(HasSubstr("does not record its start time")));
    EXPECT_EQ(number("SELECT count(*) FROM SHARD_RANKS"), 2);
    EXPECT_EQ(
        number(
            "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN SHARD_RANKS r ON r.deviceId = k.deviceId "
            "AND r.globalPid = k.globalPid JOIN CUPTI_ACTIVITY_KIND_RUNTIME c ON c.correlationId = "
            "k.correlationId WHERE r.rank = 1 AND k.registersPerThread = 0 AND "
            "k.tensorSizeMinusOneElements = '[]'"),
        1);
    EXPECT_EQ(number("SELECT domainId FROM NVTX_EVENTS WHERE text = 'ncclAllReduce'"), 1);
    EXPECT_EQ(store::load_trace(out())->ranks.size(), 2u);
}

// A process that uses two devices stays one rank, also for SQL.
TEST_F(MergeTest, KeepsAProcessWithTwoDevicesOneRank) {
    const std::string path = folder_ / "two.sqlite";
    std::ofstream(path).close();
    {
        store::Database nsight(path, store::Database::Mode::read_write);
        nsight.execute(R"(
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, 'gemm');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, "end" INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 200, 0, 1, 7, 1, 281475010265088, 1, 1),
    (300, 400, 1, 1, 7, 2, 281475010265088, 1, 1), (500, 600, 1, 1, 7, 3, 281475027042304, 1, 1);
)");
    }
    merge({path});
    EXPECT_EQ(number("SELECT count(*) FROM SHARD_RANKS"), 2);
    EXPECT_EQ(number("SELECT group_concat(rank, '') FROM (SELECT rank FROM kernels ORDER BY start_ns)"), 1)
        << "ranks 0, 0 and 1";
    EXPECT_EQ(number("SELECT count(DISTINCT device) FROM kernels"), 3);
    const auto trace = store::load_trace(out());
    ASSERT_EQ(trace->ranks.size(), 2u);
    EXPECT_THAT(trace->device.rank, ElementsAre(0, 0, 1));
    ASSERT_EQ(trace->streams.size(), 3u);
    EXPECT_EQ(trace->streams[1].id, 1'000'007);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::merge
