// A trace as Chrome JSON and CSV: the content that other tools find, and that our own importer restores all
// of it.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/traces/outcome.h"
#include "tests/traces/sample_run.h"
#include "tests/traces/temporary_folder.h"
#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/fsdp/units.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/modules/modules.h"
#include "traces/analysis/time/summary.h"
#include "traces/export/chrome_trace.h"
#include "traces/export/csv_tables.h"
#include "traces/import/open.h"
#include "traces/report/report.h"
#include "traces/schema/memory_kinds.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/sqlite.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::exports {
namespace TEST_FILE {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Export : public ::testing::Test {
  protected:
    Export() : run_(folder_ / "run.sqlite"), chrome_(folder_ / "run.json") {
        store::DatabaseWriter writer({.path = run_, .start_utc_ns = 1'700'000'000'000'000'123});
        write_sample_run(writer);
        // A range inside an operator whose name must be escaped in JSON, with shapes; its backward runs on
        // another thread.
        const auto operation = [&](std::string_view name, std::int64_t start, std::int64_t tid) {
            writer.add(schema::RangeRow{.start = start,
                                        .end = start + 1000,
                                        .text = writer.intern(name),
                                        .domain = writer.intern("cpu_op"),
                                        .global_tid = tid,
                                        .detail = writer.intern(R"({"Input Dims":[[2,3]]})"),
                                        .external_id = 77});
        };
        operation("aten::\"mm\"\n", 170'000, sample_tid(0));
        operation("autograd::mm", 800'000, sample_tid(0) + 9);
        writer.add(schema::ThreadRow{.global_tid = sample_tid(0) + 9, .name = "autograd", .rank = 0});
        writer.add(schema::LinkRow{.from_tid = sample_tid(0),
                                   .from_time = 170'000,
                                   .to_tid = sample_tid(0) + 9,
                                   .to_time = 800'000});
        writer.finish(3 * kSampleMs, 0);
    }

    json events(std::string_view phase, std::string_view category) const {
        const json whole = json::parse(bytes_of(chrome_));
        json found = json::array();
        for (const json& event : whole.at("traceEvents")) {
            if (event.at("ph") == phase && event.value("cat", "") == category) found.push_back(event);
        }
        return found;
    }

    TemporaryFolder folder_;
    std::string run_, chrome_;
};

TEST_F(Export, SpellsEventsAsKinetoDoes) {
    const ChromeExportResult result = export_chrome(run_, chrome_);
    const json whole = json::parse(bytes_of(chrome_));
    EXPECT_EQ(whole.at("traceEvents").size(), static_cast<std::size_t>(result.events));
    EXPECT_EQ(whole.at("baseTimeNanoseconds"), 1'700'000'000'000'000'123);
    EXPECT_EQ(whole.at("schemaVersion"), 1);
    EXPECT_EQ(whole.at("distributedInfo").at("world_size"), 2);

    // Rank 1, step 1 starts at 1010 us; the gather 100 us later, 50 us long, on stream 2 of device 1.
    const json kernels = events("X", "kernel");
    const auto gather =
        std::find_if(kernels.begin(), kernels.end(), [](const json& e) { return e.at("ts") == 1110.0; });
    ASSERT_NE(gather, kernels.end());
    EXPECT_EQ(gather->at("dur"), 50.0);
    EXPECT_EQ(gather->at("pid"), 1);
    EXPECT_EQ(gather->at("tid"), 2);
    const json& args = gather->at("args");
    EXPECT_EQ(args.at("Collective name"), "_allgather_base");
    EXPECT_EQ(args.at("Out msg nelems"), 4096);  // of one byte
    EXPECT_EQ(args.at("In msg nelems"), 2048);   // half of it comes from each of 2 ranks
    EXPECT_EQ(args.at("Group size"), 2);
    EXPECT_EQ(args.at("shardscope").at("padding"), 96);

    const json copies = events("X", "gpu_memcpy");
    EXPECT_EQ(copies.size(), 4u);  // one per rank and step
    EXPECT_THAT(copies[0].at("name").get<std::string>(), StartsWith("Memcpy HtoD ("));
    EXPECT_EQ(copies[0].at("args").at("bytes"), 1024);
    EXPECT_EQ(events("X", "gpu_memset").size(), 4u);

    const json operators = events("X", "cpu_op");
    ASSERT_EQ(operators.size(), 2u);
    EXPECT_EQ(operators[0].at("name"), "aten::\"mm\"\n");
    EXPECT_EQ(operators[0].at("args").at("Input Dims"), json::parse("[[2,3]]"));
    EXPECT_EQ(operators[0].at("args").at("External id"), 77);
}

TEST_F(Export, TiesFramesLaunchesAndBackwards) {
    export_chrome(run_, chrome_);
    // FullyShardedDataParallel_0 runs from 50 to 450 us, Linear_0 within it from 150 to 350.
    const json frames = events("X", "python_function");
    ASSERT_EQ(frames.size(), 8u);
    std::map<std::int64_t, json> by_id;
    for (const json& frame : frames) by_id[frame.at("args").at("Python id")] = frame;
    EXPECT_EQ(by_id.size(), 8u);  // ids are unique
    for (const json& frame : frames) {
        const json& parent = frame.at("args").at("Python parent id");
        if (frame.at("name") == "nn.Module: Linear_0") {
            ASSERT_TRUE(parent.is_number());
            EXPECT_EQ(by_id.at(parent).at("name"), "nn.Module: FullyShardedDataParallel_0");
            EXPECT_EQ(by_id.at(parent).at("tid"), frame.at("tid"));
        } else {
            EXPECT_TRUE(parent.is_null());
        }
    }
    // Each arrow begins within a call and ends at device work of the same correlation.
    std::set<std::int64_t> begun, ended;
    for (const json& flow : events("s", "ac2g")) begun.insert(flow.at("id").get<std::int64_t>());
    for (const json& flow : events("f", "ac2g")) ended.insert(flow.at("id").get<std::int64_t>());
    EXPECT_EQ(begun, ended);
    EXPECT_FALSE(begun.empty());

    ASSERT_EQ(events("s", "fwdbwd").size(), 1u);
    EXPECT_EQ(events("s", "fwdbwd")[0].at("ts"), 170.0);
    EXPECT_EQ(events("f", "fwdbwd")[0].at("ts"), 800.0);
}

TEST_F(Export, CountsAllocatedBytes) {
    export_chrome(run_, chrome_);
    std::int64_t most = 0;
    for (const json& event : events("i", "cpu_instant_event")) {
        if (event.at("args").at("Device Type") == 1)
            most = std::max(most, event.at("args").at("Total Allocated").get<std::int64_t>());
    }
    EXPECT_EQ(most, 5096);  // 1000 of the shard, 4096 gathered
}

TEST_F(Export, ImportsBackWithEqualAnalyses) {
    for (const bool pack : {false, true}) {
        const std::string path = pack ? folder_ / "run.json.gz" : chrome_;
        export_chrome(run_, path, {.pack = pack});
        const auto before = store::load_trace(run_), after = importer::open_any({path});
        ASSERT_EQ(after->ranks.size(), 2u);
        EXPECT_EQ(after->ranks[1].host, before->ranks[1].host);
        EXPECT_EQ(after->config_value("model.width"), "256");
        const auto same = [&](auto analysis) {
            EXPECT_EQ(report::render(analysis(*after), report::Format::json),
                      report::render(analysis(*before), report::Format::json));
        };
        same([](const store::Trace& t) { return analysis::summarize(t); });
        same([](const store::Trace& t) { return analysis::module_view(t); });
        same([](const store::Trace& t) { return analysis::memory_report(t); });
        same([](const store::Trace& t) { return analysis::collectives_report(t); });
        same([](const store::Trace& t) { return analysis::units_report(t); });
    }
}

// A run on two hosts that one rank has ended: places, clocks and the rank that stopped first.
TEST_F(Export, ImportsBackTheHostsAndTheRankThatStopped) {
    const std::string path = folder_ / "hosts.sqlite";
    {
        store::DatabaseWriter writer({.path = path, .start_utc_ns = 1'700'000'000'000'000'000});
        writer.add(schema::RankRow{.rank = 0,
                                   .global_pid = 7LL << 24,
                                   .host = "a",
                                   .device_name = "A",
                                   .local_rank = 0,
                                   .cpus = "0-1"});
        writer.add(schema::RankRow{.rank = 1,
                                   .device = 1,
                                   .global_pid = 8LL << 24,
                                   .host = "b \"quoted\"",
                                   .device_name = "A",
                                   .data = 4,
                                   .shard = 3,
                                   .context = 5,
                                   .tensor = 2,
                                   .pipeline = 1,
                                   .cpus = {}});
        writer.add(schema::GroupRow{
            .group = 3, .axis = "data+shard", .ranks = "0,1", .name = "a \"b\"", .description = "mesh_dp"});
        writer.add(schema::ClockRow{.rank = 1, .at_ns = 100, .offset_ns = -5, .uncertainty_ns = 1});
        writer.add(
            schema::ClockRow{.rank = 1, .at_ns = 900, .offset_ns = 6'000'000'000, .uncertainty_ns = 2});
        writer.add(schema::StopRow{.rank = 0,
                                   .at_ns = 800,
                                   .first_rank = 1,
                                   .lost = true,
                                   .reason = "(process 8 on host b) has ended",
                                   .waiting = "all_gather number 3 of communicator 0"});
        writer.add(schema::StopRow{.rank = 1, .at_ns = 850, .reason = "is \"gone\"", .waiting = {}});
        writer.finish(kSampleMs, 0);
    }
    export_chrome(path, chrome_);
    const auto before = store::load_trace(path), after = importer::open_any({chrome_});
    ASSERT_EQ(after->ranks.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(after->ranks[i].host, before->ranks[i].host);
        EXPECT_EQ(after->ranks[i].local_rank, before->ranks[i].local_rank);
        EXPECT_EQ(after->ranks[i].cpus, before->ranks[i].cpus);
        EXPECT_EQ(after->ranks[i].place, before->ranks[i].place);
    }
    EXPECT_THAT(after->ranks[1].place, ElementsAre(4, 3, 5, 2, 1));
    ASSERT_EQ(after->groups.size(), 1u);
    EXPECT_EQ(after->groups[0].group, 3);
    EXPECT_EQ(after->groups[0].axis, "data+shard");
    EXPECT_EQ(after->groups[0].ranks, "0,1");
    EXPECT_EQ(after->groups[0].name, "a \"b\"");
    EXPECT_EQ(after->groups[0].description, "mesh_dp");
    EXPECT_EQ(after->ranks[0].local_rank, 0);
    EXPECT_EQ(after->ranks[1].local_rank, -1);
    ASSERT_EQ(after->clocks.size(), 2u);
    ASSERT_EQ(after->stops.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(after->clocks[i].rank, 1);
        EXPECT_EQ(after->clocks[i].at_ns, before->clocks[i].at_ns);
        EXPECT_EQ(after->clocks[i].offset_ns, before->clocks[i].offset_ns);
        EXPECT_EQ(after->clocks[i].uncertainty_ns, before->clocks[i].uncertainty_ns);
        EXPECT_EQ(after->stops[i].rank, before->stops[i].rank);
        EXPECT_EQ(after->stops[i].at_ns, before->stops[i].at_ns);
        EXPECT_EQ(after->stops[i].first_rank, before->stops[i].first_rank);
        EXPECT_EQ(after->stops[i].lost, before->stops[i].lost);
        EXPECT_EQ(after->stops[i].reason, before->stops[i].reason);
        EXPECT_EQ(after->stops[i].waiting, before->stops[i].waiting);
    }
    EXPECT_EQ(after->stops[0].first_rank, 1);
}

TEST_F(Export, ReplacesOnlyWithOverwrite) {
    std::ofstream(chrome_) << "mine";
    EXPECT_THROW(export_chrome(run_, chrome_), store::StoreError);
    EXPECT_EQ(bytes_of(chrome_), "mine");
    export_chrome(run_, chrome_, {.overwrite = true});
    EXPECT_THAT(bytes_of(chrome_), StartsWith("{\"schemaVersion\":1"));
}

TEST_F(Export, LeavesNothingWhenStopped) {
    const std::atomic<bool> cancel = true;
    EXPECT_THROW(export_csv(run_, folder_ / "none.sqlite/x", false), store::StoreError);
    std::map<std::string, int> files;
    try {
        export_chrome(folder_ / "missing.sqlite", chrome_, {}, {.cancel = &cancel, .progress = {}});
        ADD_FAILURE() << "there is no such trace";
    } catch (const store::StoreError& error) {
        EXPECT_THAT(error.what(), HasSubstr("missing.sqlite"));
    }
    EXPECT_FALSE(std::ifstream(chrome_).good());
}

TEST_F(Export, WritesCsvWithUnits) {
    const std::string csv = folder_ / "csv";
    const auto tables = export_csv(run_, csv, false);
    EXPECT_EQ(tables.size(), 11u);
    std::istringstream steps(bytes_of(csv + "/steps.csv"));
    std::string header, first;
    std::getline(steps, header);
    std::getline(steps, first);
    EXPECT_EQ(header, "rank,step,start_ns,duration_ns,loss\r");
    EXPECT_THAT(first, StartsWith("0,0,0,1000000,"));
    // A name with a quote and a newline is one field.
    EXPECT_THAT(bytes_of(csv + "/ranges.csv"), HasSubstr("\"aten::\"\"mm\"\"\n\""));
    // 2 ranks * 2 steps * (gather, sgemm, copy, memset).
    EXPECT_EQ(
        std::find_if(tables.begin(), tables.end(), [](const CsvTable& t) { return t.file == "events.csv"; })
            ->rows,
        16);
    EXPECT_THROW(export_csv(run_, csv, false), store::StoreError);
    EXPECT_NO_THROW(export_csv(run_, csv, true));
}

// A name of 5 MB is repeated in each of its events: the file would be that many times as large.
TEST_F(Export, TruncatesHugeNames) {
    store::Database(run_, store::Database::Mode::read_write)
        .execute(
            "UPDATE StringIds SET value = hex(zeroblob(2500000)) WHERE value = 'aten::\"mm\"' || char(10);"
            "UPDATE NVTX_EVENTS SET text = hex(zeroblob(2500000)) WHERE text LIKE 'aten::%'");
    const auto result = export_chrome(run_, chrome_, {.overwrite = true, .pack = false});
    EXPECT_LT(result.bytes, 1 << 20);
    const std::string text = bytes_of(chrome_);
    EXPECT_THAT(text, HasSubstr("0... (5000000 bytes)\""));
    EXPECT_TRUE(json::accept(text));
    export_csv(run_, folder_ / "csv", false);
    EXPECT_THAT(bytes_of(folder_ / "csv/ranges.csv"), HasSubstr("0... (5000000 bytes)"));
}

// Views with endless rows replace a table or a view.
TEST_F(Export, ReadsNoComputedRowsInPlaceOfRecordedOnes) {
    const std::string endless =
        " AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS rank, x AS step, x "
        "AS "
        "start, x AS \"end\", x AS start_ns, x AS duration_ns, x AS loss FROM c";
    const auto refusal = [&](const std::string& sql, bool csv) -> std::string {
        const std::string path = folder_ / "made.sqlite";
        std::filesystem::copy_file(run_, path, std::filesystem::copy_options::overwrite_existing);
        store::Database(path, store::Database::Mode::read_write).execute(sql);
        try {
            if (csv) {
                export_csv(path, folder_ / "csv", true);
            } else {
                export_chrome(path, chrome_, {.overwrite = true, .pack = false});
            }
        } catch (const store::StoreError& error) {
            return error.what();
        }
        return "";
    };
    for (const bool csv : {false, true}) {
        EXPECT_THAT(refusal("DROP TABLE SHARD_STEPS; CREATE VIEW SHARD_STEPS" + endless, csv),
                    HasSubstr("SHARD_STEPS is a view or virtual table"));
        EXPECT_THAT(refusal("DROP TABLE NVTX_EVENTS; CREATE VIEW NVTX_EVENTS AS SELECT 1 AS start", csv),
                    HasSubstr("NVTX_EVENTS is a view or virtual table"));
        // The export uses the schema's views, whatever the file defines.
        EXPECT_EQ(refusal("DROP VIEW steps; CREATE VIEW steps" + endless, csv), "");
    }
    EXPECT_THAT(bytes_of(folder_ / "csv/steps.csv"), HasSubstr("0,0,0,1000000,"));
}

TEST_F(Export, KeepsReadsAndWritesOfFiles) {
    const std::string path = folder_ / "files.sqlite";
    {
        store::DatabaseWriter writer({.path = path, .start_utc_ns = 1'700'000'000'000'000'123});
        write_sample_run(writer);
        const auto copy = [&](std::int64_t start, int kind, int from, int to) {
            writer.add(schema::MemcpyRow{.start = start,
                                         .end = start + 500,
                                         .device = 0,
                                         .stream = 10,
                                         .global_pid = sample_pid(),
                                         .bytes = 4096,
                                         .copy_kind = kind,
                                         .src_kind = from,
                                         .dst_kind = to});
        };
        copy(1'000, schema::kCopyDiskToHost, schema::kMemKindDisk, schema::kMemKindPinned);
        copy(2'000, schema::kCopyHostToDisk, schema::kMemKindPinned, schema::kMemKindDisk);
        writer.add(schema::MemoryRow{
            .time = 500, .rank = 0, .address = 1, .bytes = 4096, .space = schema::MemorySpace::disk});
        writer.finish(3 * kSampleMs, 0);
    }
    export_chrome(path, chrome_);
    const json copies = events("X", "gpu_memcpy");
    EXPECT_EQ(copies.at(0).at("name"), "Read of a file (Disk -> Pinned)");
    EXPECT_EQ(copies.at(1).at("name"), "Write of a file (Pinned -> Disk)");
    const auto after = importer::open_any({chrome_});
    ASSERT_GE(after->device.size(), 2u);
    EXPECT_EQ(after->device.copy_kind[0], schema::kCopyDiskToHost);
    EXPECT_EQ(after->device.copy_kind[1], schema::kCopyHostToDisk);
    const auto& spaces = after->memory.space;
    EXPECT_EQ(std::count(spaces.begin(), spaces.end(), schema::MemorySpace::disk), 1);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::exports
