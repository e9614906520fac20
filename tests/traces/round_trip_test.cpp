// load_trace and plain SQL read back what DatabaseWriter writes: every kind of row with exact values. The
// plain reference is a ColumnSink with the same rows. The run is described in sample_run.h.
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/traces/sample_run.h"
#include "tests/traces/temporary_folder.h"
#include "traces/schema/schema.h"
#include "traces/store/columns/column_sink.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/query.h"
#include "traces/store/sqlite/sqlite.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::store {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class RoundTrip : public ::testing::Test {
  protected:
    RoundTrip() : path_(folder_ / "run.sqlite") {
        DatabaseWriter writer(
            {.path = path_, .start_utc_ns = 1'700'000'000'000'000'000, .start_system_ns = 77});
        write_sample_run(writer);
        writer.finish(3 * kSampleMs, 0);
    }
    // The only row of a query, each value as text, separated by bars.
    std::string row(const std::string& sql) const {
        const auto results = run_query(path_, sql);
        if (results.size() != 1 || results[0].rows.size() != 1) return "not one row";
        std::string text;
        for (const QueryValue& value : results[0].rows[0]) {
            if (!text.empty()) text += '|';
            if (const auto* whole = std::get_if<std::int64_t>(&value)) text += std::to_string(*whole);
            if (const auto* real = std::get_if<double>(&value)) text += std::to_string(*real);
            if (const auto* chars = std::get_if<std::string>(&value)) text += *chars;
        }
        return text;
    }

    TemporaryFolder folder_;
    std::string path_;
};

// Texts, because ids differ between sinks.
std::vector<std::string> texts(const Trace& trace, const Column<schema::StringId>& ids) {
    std::vector<std::string> result;
    for (const schema::StringId id : ids) result.emplace_back(trace.strings[id]);
    return result;
}

TEST_F(RoundTrip, LoadsTheColumnsThatMemoryWouldHold) {
    const auto loaded = load_trace(path_);
    ColumnSink sink;
    write_sample_run(sink);
    const auto expected = sink.take();

    const auto& d = loaded->device;
    const auto& e = expected->device;
    EXPECT_EQ(d.start, e.start);
    EXPECT_EQ(d.end, e.end);
    EXPECT_EQ(d.correlation, e.correlation);
    EXPECT_EQ(d.bytes, e.bytes);
    EXPECT_EQ(d.launch.all(), e.launch.all());
    EXPECT_EQ(d.collective.all(), e.collective.all());
    EXPECT_EQ(d.rank, e.rank);
    EXPECT_EQ(d.stream, e.stream);
    EXPECT_EQ(d.kind, e.kind);
    EXPECT_EQ(d.copy_kind, e.copy_kind);
    EXPECT_EQ(texts(*loaded, d.name), texts(*expected, e.name));

    EXPECT_EQ(loaded->ranges.start, expected->ranges.start);
    EXPECT_EQ(loaded->ranges.end, expected->ranges.end);
    EXPECT_EQ(loaded->ranges.module, expected->ranges.module);
    EXPECT_EQ(loaded->ranges.parent, expected->ranges.parent);
    EXPECT_EQ(loaded->ranges.thread, expected->ranges.thread);
    EXPECT_EQ(loaded->ranges.kind, expected->ranges.kind);
    EXPECT_EQ(texts(*loaded, loaded->ranges.name), texts(*expected, expected->ranges.name));

    EXPECT_EQ(loaded->runtime.start, expected->runtime.start);
    EXPECT_EQ(loaded->runtime.end, expected->runtime.end);
    EXPECT_EQ(loaded->runtime.correlation, expected->runtime.correlation);
    EXPECT_EQ(loaded->runtime.thread, expected->runtime.thread);
    EXPECT_EQ(loaded->runtime.range, expected->runtime.range);
    EXPECT_EQ(texts(*loaded, loaded->runtime.name), texts(*expected, expected->runtime.name));

    EXPECT_EQ(loaded->marks.time, expected->marks.time);
    EXPECT_EQ(loaded->marks.thread, expected->marks.thread);
    EXPECT_EQ(texts(*loaded, loaded->marks.name), texts(*expected, expected->marks.name));

    EXPECT_EQ(loaded->synchronizations.start, expected->synchronizations.start);
    EXPECT_EQ(loaded->synchronizations.end, expected->synchronizations.end);
    EXPECT_EQ(loaded->synchronizations.call, expected->synchronizations.call);
    EXPECT_EQ(loaded->synchronizations.stream, expected->synchronizations.stream);
    EXPECT_EQ(loaded->synchronizations.rank, expected->synchronizations.rank);
    EXPECT_EQ(loaded->synchronizations.type, expected->synchronizations.type);

    EXPECT_EQ(loaded->collectives.correlation, expected->collectives.correlation);
    EXPECT_EQ(loaded->collectives.bytes, expected->collectives.bytes);
    EXPECT_EQ(loaded->collectives.padding, expected->collectives.padding);
    EXPECT_EQ(loaded->collectives.group, expected->collectives.group);
    EXPECT_EQ(loaded->collectives.group_size, expected->collectives.group_size);
    EXPECT_EQ(loaded->collectives.sequence, expected->collectives.sequence);
    EXPECT_EQ(loaded->collectives.unit, expected->collectives.unit);
    EXPECT_EQ(loaded->collectives.event, expected->collectives.event);
    EXPECT_EQ(loaded->collectives.rank, expected->collectives.rank);
    EXPECT_EQ(loaded->collectives.operation, expected->collectives.operation);
    EXPECT_EQ(loaded->collectives.phase, expected->collectives.phase);

    EXPECT_EQ(loaded->memory.time, expected->memory.time);
    EXPECT_EQ(loaded->memory.bytes, expected->memory.bytes);
    EXPECT_EQ(loaded->memory.address, expected->memory.address);
    EXPECT_EQ(loaded->memory.unit, expected->memory.unit);
    EXPECT_EQ(loaded->memory.module, expected->memory.module);
    EXPECT_EQ(loaded->memory.rank, expected->memory.rank);
    EXPECT_EQ(loaded->memory.category, expected->memory.category);
    EXPECT_EQ(loaded->memory.space, expected->memory.space);
    EXPECT_EQ(loaded->memory.phase, expected->memory.phase);
    EXPECT_EQ(texts(*loaded, loaded->memory.name), texts(*expected, expected->memory.name));

    EXPECT_EQ(loaded->counters.time, expected->counters.time);
    EXPECT_EQ(loaded->counters.value, expected->counters.value);
    EXPECT_EQ(loaded->counters.rank, expected->counters.rank);
    EXPECT_EQ(loaded->config, expected->config);
    EXPECT_EQ(loaded->first_ns, expected->first_ns);
    EXPECT_EQ(loaded->last_ns, expected->last_ns);
    EXPECT_EQ(loaded->invalid_events, 0);
}

// Rows of processes on several hosts: their places, the state of their clocks, and which of them stopped
// first.
TEST_F(RoundTrip, KeepsPlacesClocksAndStops) {
    const std::string path = folder_ / "hosts.sqlite";
    {
        DatabaseWriter writer({.path = path, .start_utc_ns = 5, .start_system_ns = 77});
        writer.add(
            schema::RankRow{.rank = 3, .host = "b", .device_name = "A", .local_rank = 1, .cpus = "2-3"});
        writer.add(schema::RankRow{.rank = 4, .host = "c", .device_name = "A", .cpus = {}});
        writer.add(schema::ClockRow{.rank = 3, .at_ns = 900, .offset_ns = -6, .uncertainty_ns = 2});
        writer.add(schema::ClockRow{.rank = 3, .at_ns = 100, .offset_ns = -5, .uncertainty_ns = 1});
        writer.add(schema::ClockRow{
            .rank = 3, .at_ns = 100, .offset_ns = INT64_MIN, .uncertainty_ns = 1});  // damage
        writer.add(schema::StopRow{.rank = 4,
                                   .at_ns = 800,
                                   .first_rank = 3,
                                   .lost = true,
                                   .reason = "has ended",
                                   .waiting = "step 2"});
        writer.add(schema::StopRow{.rank = 3, .at_ns = 700, .reason = {}, .waiting = {}});
        writer.add(
            schema::StopRow{.rank = 4, .at_ns = 850, .first_rank = 0, .reason = "late", .waiting = {}});
        writer.finish(1000, 0);
    }
    const auto trace = load_trace(path);
    EXPECT_EQ(trace->start_system_ns, 77);
    ASSERT_EQ(trace->ranks.size(), 2u);
    EXPECT_EQ(trace->ranks[0].local_rank, 1);
    EXPECT_EQ(trace->ranks[0].cpus, "2-3");
    EXPECT_EQ(trace->ranks[1].local_rank, -1);
    EXPECT_EQ(trace->ranks[1].cpus, "");
    ASSERT_EQ(trace->clocks.size(), 2u);  // ordered by time, without the impossible one
    EXPECT_EQ(trace->clocks[0].at_ns, 100);
    EXPECT_EQ(trace->clocks[1].offset_ns, -6);
    EXPECT_EQ(trace->clocks[1].uncertainty_ns, 2);
    ASSERT_EQ(trace->stops.size(), 2u);  // the first row of each rank
    EXPECT_EQ(trace->stops[0].rank, 3);
    EXPECT_EQ(trace->stops[0].first_rank, -1);
    EXPECT_EQ(trace->stops[1].first_rank, 3);
    EXPECT_TRUE(trace->stops[1].lost);
    EXPECT_EQ(trace->stops[1].reason, "has ended");
    EXPECT_EQ(trace->stops[1].waiting, "step 2");
}

TEST_F(RoundTrip, KeepsTheMeshAndItsGroups) {
    const std::string path = folder_ / "mesh.sqlite";
    {
        DatabaseWriter writer({.path = path});
        writer.add(schema::RankRow{.rank = 5,
                                   .host = "",
                                   .device_name = "",
                                   .data = 1,
                                   .shard = 2,
                                   .context = 5,
                                   .tensor = 3,
                                   .pipeline = 4,
                                   .cpus = {}});
        writer.add(schema::GroupRow{
            .group = 9, .axis = "tensor", .ranks = "4,5", .name = "0", .description = "mesh_tp"});
        writer.add(schema::GroupRow{.group = 2, .axis = {}, .ranks = {}, .name = {}, .description = {}});
        // A second rank of the group reports it again.
        writer.add(schema::GroupRow{.group = 9, .axis = "shard", .ranks = {}, .name = {}, .description = {}});
        writer.finish(1000, 0);
    }
    const auto trace = load_trace(path);
    EXPECT_THAT(trace->ranks.at(0).place, ElementsAre(1, 2, 5, 3, 4));
    ASSERT_THAT(trace->groups, SizeIs(2));
    EXPECT_EQ(trace->groups[0].group, 2);
    EXPECT_EQ(trace->groups[0].axis, "");
    EXPECT_EQ(trace->groups[1].axis, "tensor");
    EXPECT_EQ(trace->groups[1].ranks, "4,5");
    EXPECT_EQ(trace->groups[1].name, "0");
    EXPECT_EQ(trace->groups[1].description, "mesh_tp");
}

TEST_F(RoundTrip, LoadsWhatDescribesTheRun) {
    const auto trace = load_trace(path_);
    EXPECT_EQ(trace->path, path_);
    EXPECT_EQ(trace->schema_version, schema::kSchemaVersion);
    EXPECT_TRUE(trace->ended);
    EXPECT_EQ(trace->dropped, 0);
    EXPECT_EQ(trace->start_utc_ns, 1'700'000'000'000'000'000);

    ASSERT_THAT(trace->ranks, SizeIs(2));
    EXPECT_EQ(trace->ranks[1].number, 1);
    EXPECT_EQ(trace->ranks[1].device, 1);
    EXPECT_EQ(trace->ranks[1].global_pid, sample_pid());
    EXPECT_EQ(trace->ranks[1].global_tid, sample_tid(1));
    EXPECT_EQ(trace->ranks[1].host, "laptop");
    EXPECT_EQ(trace->ranks[1].device_name, "A processor");
    ASSERT_THAT(trace->threads, SizeIs(2));
    EXPECT_EQ(trace->threads[0].name, "rank 0");
    EXPECT_EQ(trace->threads[0].rank, RankIndex(0));
    ASSERT_THAT(trace->streams, SizeIs(4));
    EXPECT_EQ(trace->streams[3].name, "unshard");
    EXPECT_EQ(trace->streams[3].rank, RankIndex(1));

    ASSERT_THAT(trace->steps, SizeIs(4));
    EXPECT_EQ(trace->steps[3].start, kSampleMs + 10 * kSampleUs);
    EXPECT_EQ(trace->steps[3].end, 2 * kSampleMs + 10 * kSampleUs);
    EXPECT_EQ(trace->steps[3].loss, 1.5);

    ASSERT_THAT(trace->modules, SizeIs(2));
    EXPECT_EQ(trace->modules[0].parent, -1);
    EXPECT_EQ(trace->modules[0].name, "FullyShardedDataParallel_0");
    EXPECT_EQ(trace->modules[1].parent, 0);
    EXPECT_EQ(trace->modules[1].class_name, "Linear");
    EXPECT_EQ(trace->modules[1].path, "net.0");
    EXPECT_EQ(trace->modules[1].unit, 0);
    EXPECT_EQ(trace->modules[1].parameters, 1000);
    ASSERT_THAT(trace->units, SizeIs(1));
    EXPECT_EQ(trace->units[0].module, 0);
    EXPECT_EQ(trace->units[0].name, "root");
    EXPECT_EQ(trace->units[0].elements, 1000);
    EXPECT_EQ(trace->units[0].padded_elements, 1024);
    EXPECT_EQ(trace->units[0].shard_bytes, 2048);
    EXPECT_EQ(trace->units[0].bytes, 4096);
    ASSERT_THAT(trace->predictions, SizeIs(2));
    EXPECT_EQ(trace->predictions[1].rank, 1);
    EXPECT_EQ(trace->predictions[1].peak_bytes, 5096);
    EXPECT_THAT(trace->predictions[1].at_peak, ElementsAre(1000, 4096, 0, 0, 0, 0, 0, 0));
    EXPECT_EQ(trace->predictions[1].where, "forward of root");
    ASSERT_THAT(trace->prediction_parts, SizeIs(12));  // 6 per rank
    const auto part = [&](std::size_t i) {
        const schema::PredictionPartRow& row = trace->prediction_parts[i];
        return std::tuple(row.rank, row.kind, row.id, row.name, row.bytes);
    };
    EXPECT_EQ(part(6), std::tuple(1, schema::PredictionPart::unit, 0, "", 5096));
    EXPECT_EQ(part(7), std::tuple(1, schema::PredictionPart::module, 0, "", 4096));
    EXPECT_EQ(part(8), std::tuple(1, schema::PredictionPart::module, -1, "", 1000));
    EXPECT_EQ(part(9), std::tuple(1, schema::PredictionPart::buffer, -1, "root flat_param", 4096));
    EXPECT_EQ(part(10), std::tuple(1, schema::PredictionPart::buffer, -1, "root shard", 1000));
    EXPECT_EQ(part(11), std::tuple(1, schema::PredictionPart::step, 0, "", 5096));
    ASSERT_THAT(trace->diagnostics, SizeIs(1));
    EXPECT_EQ(trace->diagnostics[0].time, 5);
    EXPECT_EQ(trace->diagnostics[0].severity, schema::Severity::information);
    EXPECT_EQ(trace->diagnostics[0].text, "a note");
}

// Version 1 had no SHARD_PREDICTION_PARTS. Such a file loads without parts, every documented query runs on
// it, and it is left unchanged.
TEST_F(RoundTrip, OpensTheFirstSchemaAsBefore) {
    Database(path_, Database::Mode::read_write)
        .execute(
            "DROP VIEW predictions; DROP TABLE SHARD_PREDICTION_PARTS; DROP TABLE SHARD_ENUM_PART;"
            "PRAGMA user_version = 1");
    const auto trace = load_trace(path_);
    EXPECT_EQ(trace->schema_version, 1);
    EXPECT_THAT(trace->prediction_parts, SizeIs(0));
    EXPECT_THAT(trace->predictions, SizeIs(2));
    EXPECT_EQ(row("SELECT count(*) FROM predictions"), "0");
    EXPECT_EQ(row("SELECT name FROM SHARD_ENUM_PART WHERE id = 3"), "step");
    EXPECT_FALSE(Database(path_, Database::Mode::read_only).has_table("SHARD_PREDICTION_PARTS"));
}

TEST_F(RoundTrip, NamesThePartsOfThePrediction) {
    const std::string of_rank = " FROM predictions WHERE rank = 1 AND part = ";
    EXPECT_EQ(row("SELECT name, bytes" + of_rank + "'unit'"), "root|5096");
    EXPECT_EQ(row("SELECT name, bytes" + of_rank + "'module' AND name NOT NULL"),
              "FullyShardedDataParallel_0|4096");
    EXPECT_EQ(row("SELECT bytes" + of_rank + "'module' AND name IS NULL"), "1000");
    EXPECT_EQ(row("SELECT bytes" + of_rank + "'buffer' AND name = 'root shard'"), "1000");
    EXPECT_EQ(row("SELECT name, bytes" + of_rank + "'step'"), "0|5096");
}

TEST_F(RoundTrip, WritesWhatTheColumnsDoNotKeep) {
    EXPECT_EQ(row("SELECT gridX, gridY, gridZ, blockX, contextId, tensorSizeMinusOneElements, d.value "
                  "FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds s ON s.id = shortName "
                  "JOIN StringIds d ON d.id = demangledName WHERE s.value = 'sgemm' AND start = 200000"),
              "4|2|1|128|1|[]|sgemm(float*, int)");
    EXPECT_EQ(row("SELECT srcKind, dstKind, copyKind FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE start = 600000"),
              "1|2|1");
    EXPECT_EQ(row("SELECT value, memKind FROM CUPTI_ACTIVITY_KIND_MEMSET WHERE start = 700000"), "0|2");
    // No stream is involved, so it has Nsight's 4294967295.
    EXPECT_EQ(row("SELECT streamId, syncType, eventId FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION WHERE start = "
                  "800000"),
              "4294967295|1|3");
    EXPECT_EQ(row("SELECT eventClass, returnValue, value FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds ON "
                  "id = nameId "
                  "WHERE start = 160000"),
              "0|0|cudaLaunchKernel_v7000");  // with the suffix of an export
    EXPECT_EQ(row("SELECT pid, name FROM PROCESSES"), "4242|shardscope-train");
    EXPECT_EQ(row("SELECT shard, data, tensor, pipeline FROM SHARD_RANKS WHERE rank = 1"), "1|0|0|0");
    EXPECT_EQ(row("SELECT name, totalMemory FROM TARGET_INFO_GPU WHERE id = 1"), "A processor|1073741824");
    EXPECT_EQ(row("SELECT duration, startTime, stopTime FROM ANALYSIS_DETAILS"), "3000000|0|3000000");
    EXPECT_EQ(row("SELECT utcEpochNs, utcTime, systemClockNs FROM TARGET_INFO_SESSION_START_TIME"),
              "1700000000000000000|2023-11-14T22:13:20|77");
}

TEST_F(RoundTrip, WritesRangesAsNsightDoes) {
    // Scripts use either text or textId, so both are present; the module is in int64Value.
    EXPECT_EQ(
        row("SELECT n.text, s.value, n.int64Value, n.domainId, n.rangeId, n.endGlobalTid FROM NVTX_EVENTS n "
            "JOIN StringIds s ON s.id = n.textId WHERE n.start = 150000"),
        "nn.Module: Linear_0|nn.Module: Linear_0|1|0||");
    EXPECT_EQ(row("SELECT eventType, end IS NULL, category FROM NVTX_EVENTS WHERE start = 500000"), "34|1|7");
    EXPECT_EQ(row("SELECT count(*) FROM NVTX_EVENTS WHERE category IS NOT NULL AND eventType <> 34"), "0");
    // NCCL's domain is 1, named once for the one process.
    EXPECT_EQ(row("SELECT domainId, text FROM NVTX_EVENTS WHERE eventType = 75"), "1|NCCL");
    EXPECT_EQ(row("SELECT count(*) FROM NVTX_EVENTS WHERE domainId = 1 AND eventType = 59"), "4");
}

TEST_F(RoundTrip, WritesCudaMemoryEventsOfDeviceAndPinnedSpace) {
    // Each rank: 1 + 2 steps * 2 in device memory, and 1 in host memory that CUDA does not manage.
    EXPECT_EQ(row("SELECT count(*) FROM CUDA_GPU_MEMORY_USAGE_EVENTS"), "10");
    EXPECT_EQ(
        row("SELECT deviceId, bytes, memKind, memoryOperationType, name FROM CUDA_GPU_MEMORY_USAGE_EVENTS "
            "WHERE start = 560000"),
        "0|4096|2|1|root flat_param");
}

TEST_F(RoundTrip, ShowsNamesAndRanksInItsViews) {
    EXPECT_EQ(row("SELECT * FROM kernels WHERE rank = 1 AND start_ns = 210000"),
              "1|1|1|compute|sgemm|sgemm(float*, int)|0|210000|510000|300000|22");
    EXPECT_EQ(row("SELECT communication FROM kernels WHERE start_ns = 100000"), "1");
    EXPECT_EQ(row("SELECT rank, kind, bytes, source, destination, duration_ns FROM memcpys WHERE start_ns = "
                  "600000"),
              "0|Host-to-Device|1024|Pinned|Device|20000");
    EXPECT_EQ(
        row("SELECT rank, operation, bytes, padding, group_id, group_size, sequence, unit, phase, stream, "
            "start_ns, duration_ns FROM collectives WHERE rank = 1 AND sequence = 1"),
        "1|all_gather|4096|96|7|2|1|root|forward|2|1110000|50000");
    // Two steps: two gathers of 4096 bytes and 50 us.
    EXPECT_EQ(
        row("SELECT name, module, gathers, gathered_bytes, gather_ns, reductions, reduced_bytes FROM units "
            "WHERE rank = 0"),
        "root|FullyShardedDataParallel_0|2|8192|100000|0|0");
    EXPECT_EQ(row("SELECT name, class, path, unit, parameters, calls, host_ns FROM modules WHERE rank = 0 "
                  "AND id = 1"),
              "Linear_0|Linear|net.0|root|1000|2|400000");
    EXPECT_EQ(row("SELECT rank, step, start_ns, duration_ns, loss FROM steps WHERE rank = 1 AND step = 1"),
              "1|1|1010000|1000000|1.500000");
    EXPECT_EQ(row("SELECT bytes, category, space, phase, unit, module, name, stream FROM memory WHERE "
                  "time_ns = 560000"),
              "-4096|unsharded_parameters|device|forward|root|FullyShardedDataParallel_0|root flat_param|2");
    EXPECT_EQ(row("SELECT rank, thread, name, domain, module, duration_ns FROM ranges WHERE domain = 'NCCL' "
                  "AND start_ns = 60000"),
              "0|rank 0|ncclAllGather|NCCL||10000");
    EXPECT_EQ(row("SELECT rank, thread, name, duration_ns, correlation FROM calls WHERE start_ns = 62000"),
              "0|rank 0|cudaLaunchKernelExC_v11060|2000|1");
}

TEST_F(RoundTrip, AnswersTheQueryThatNsightUsersKnow) {
    EXPECT_EQ(row("SELECT s.value, count(*), sum(k.end-k.start) FROM CUPTI_ACTIVITY_KIND_KERNEL k "
                  "JOIN StringIds s ON s.id=k.shortName WHERE s.value='sgemm' GROUP BY 1"),
              "sgemm|4|1200000");
}

TEST_F(RoundTrip, LeavesOneFileForItsOwner) {
    struct stat status {};
    ASSERT_EQ(::stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    int files = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_.path())) ++files;
    EXPECT_EQ(files, 1);
    EXPECT_LT(status.st_size, 460 << 10);  // a small run is a small file: pages are compacted at the end
}

TEST(Writer, ReportsDroppedEvents) {
    TemporaryFolder folder;
    const std::string path = folder / "run.sqlite";
    DatabaseWriter({.path = path}).finish(10, 3);
    const auto trace = load_trace(path);
    EXPECT_EQ(trace->dropped, 3);
    ASSERT_THAT(trace->diagnostics, SizeIs(1));
    EXPECT_EQ(trace->diagnostics[0].text,
              "3 events were lost: a buffer was full, or the device reported invalid timestamps");
    const std::string with_one = folder / "one.sqlite";
    DatabaseWriter({.path = with_one}).finish(10, 1);
    EXPECT_EQ(load_trace(with_one)->diagnostics.at(0).text,
              "1 event was lost: a buffer was full, or the device reported invalid timestamps");
}

TEST(Writer, KeepsOddTextsAndNumbers) {
    TemporaryFolder folder;
    const std::string path = folder / "odd 'name' %41?.sqlite";
    DatabaseWriter writer({.path = path});
    const std::string odd = "quote ' \" \n \xF0\x9F\x94\xA5 %";
    writer.add(schema::RunInfoRow{"key", odd});
    writer.add(schema::RunInfoRow{"key", odd + "2"});  // the later value counts
    writer.add(schema::LossRow{.step = 0, .loss = std::nan("")});
    writer.add(schema::StepRow{.rank = 0, .step = 0, .start = -5, .end = 5});
    writer.add(schema::CounterRow{.time = 0, .rank = 0, .name = writer.intern(odd), .value = std::nan("")});
    writer.add(schema::MemoryRow{
        .time = 0, .rank = 0, .address = std::numeric_limits<std::uint64_t>::max(), .bytes = 1});
    writer.finish(1, 0);
    const auto trace = load_trace(path);
    EXPECT_EQ(trace->config_value("key"), odd + "2");
    EXPECT_TRUE(std::isnan(*trace->steps[0].loss));
    EXPECT_EQ(trace->steps[0].start, -5);
    EXPECT_EQ(trace->strings[trace->counters.name[0]], odd);
    EXPECT_EQ(trace->memory.address[0], std::numeric_limits<std::uint64_t>::max());
}

TEST(Writer, WritesMoreRowsThanABatchHolds) {
    // 16 rows are written at a time: tested below, at and above that, in two transactions.
    for (const int rows : {15, 16, 17, 40}) {
        TemporaryFolder folder;
        const std::string path = folder / "run.sqlite";
        DatabaseWriter writer({.path = path});
        for (int i = 0; i < rows; ++i) {
            writer.add(
                schema::CounterRow{.time = i, .rank = 0, .name = writer.intern("c"), .value = i * 0.5});
            if (i == 7) writer.commit();
        }
        writer.finish(rows, 0);
        const auto trace = load_trace(path);
        ASSERT_EQ(trace->counters.size(), static_cast<std::size_t>(rows));
        for (int i = 0; i < rows; ++i) EXPECT_EQ(trace->counters.value[static_cast<std::size_t>(i)], i * 0.5);
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::store
