// Devices, topology and the counters of hosts (SHARD_DEVICES, SHARD_TOPOLOGY, SHARD_COUNTERS) survive
// loading, export and import, joining, merging and slicing; files of schema version 8 open without them.
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/outcome.h"
#include "tests/traces/part_files.h"
#include "tests/traces/temporary_folder.h"
#include "traces/export/chrome_trace.h"
#include "traces/import/import.h"
#include "traces/import/open.h"
#include "traces/lanes/tracks.h"
#include "traces/merge/merge.h"
#include "traces/merge/slice.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces {
namespace TEST_FILE {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DeviceRows : public ::testing::Test {
  protected:
    // Part of a job: a rank of a host with a GPU of its own, one that nobody uses, and an adapter.
    std::string part(const char* name, int rank, const char* host) {
        PartSpec spec;
        spec.path = folder_ / name;
        spec.ranks = {rank};
        spec.pid = 500 + rank;
        spec.host = host;
        const auto counter = [&](const char* of, int of_rank, int device, double value) {
            spec.counters.push_back(
                {of, host, {.time = kStepNs / 2, .rank = of_rank, .value = value, .device = device}});
            spec.counters.push_back(
                {of,
                 host,
                 {.time = kStepNs + kStepNs / 2, .rank = of_rank, .value = value, .device = device}});
        };
        counter("gpu_power_watts", rank, 0, 300);
        counter("gpu1_power_watts", -1, 1, 40);
        counter("host_cpu_cores", -1, -1, 2.5);
        spec.devices = {{.host = host,
                         .kind = "gpu",
                         .number = 0,
                         .name = "card",
                         .bus = "0000:17:00.0",
                         .numa = 1,
                         .memory_bytes = 1 << 30,
                         .power_limit_watts = 700,
                         .cpus = "0-3"},
                        {.host = host, .kind = "infiniband", .name = "mlx5_0", .bytes_per_second = 5e10},
                        {.host = host, .kind = "gpu", .number = 1, .visible = false}};
        spec.topology = {{.host = host,
                          .from = "GPU0",
                          .to_host = host,
                          .to = "GPU1",
                          .link = "NV12",
                          .lanes = 12,
                          .bytes_per_second = 3e11,
                          .read = "OK",
                          .write = "CNS",
                          .nvlink = "OK",
                          .atomics = "NS",
                          .source = "nvml"}};
        write_part(spec);
        return spec.path;
    }
    static std::vector<std::string> devices(const store::Trace& trace) {
        std::vector<std::string> texts;
        for (const schema::DeviceRow& d : trace.devices)
            texts.push_back(fmt::format("{} {} {} {} {} {} {} {} {} {} {}", d.host, d.kind, d.number, d.name,
                                        d.bus, d.numa, d.memory_bytes, d.bytes_per_second,
                                        d.power_limit_watts, d.cpus, d.visible));
        return texts;
    }
    static std::vector<std::string> devices_of(const std::string& host) {
        return {host + " gpu 0 card 0000:17:00.0 1 1073741824 -1 700 0-3 true",
                host + " gpu 1   -1 -1 -1 -1  false",
                host + " infiniband 0 mlx5_0  -1 -1 50000000000 -1  true"};
    }
    static std::vector<std::string> links(const store::Trace& trace) {
        std::vector<std::string> texts;
        for (const schema::TopologyRow& t : trace.topology)
            texts.push_back(fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}", t.host, t.from, t.to_host,
                                        t.to, t.link, t.lanes, t.bytes_per_second, t.read, t.write, t.nvlink,
                                        t.atomics, t.source));
        return texts;
    }
    static std::string link_of(const std::string& host) {
        return fmt::format("{0} GPU0 {0} GPU1 NV12 12 300000000000 OK CNS OK NS nvml", host);
    }
    // Of each counter of the timeline; the samples of one are together.
    static std::vector<std::string> counters(const store::Trace& trace) {
        std::vector<std::string> texts;
        for (const lanes::CounterTrack& c : lanes::make_tracks(trace).counters) {
            if (trace.strings[c.name] == "reserved_bytes") continue;  // of every part
            texts.push_back(
                fmt::format("{} {} {} {} {}x{}", c.rank.known() ? trace.ranks[c.rank.at()].number : -1,
                            trace.strings[c.host], c.device, trace.strings[c.name], c.points.size(), c.most));
        }
        return texts;
    }

    TemporaryFolder folder_;
};

TEST_F(DeviceRows, AreLoaded) {
    const auto trace = store::load_trace(part("run.sqlite", 0, "north"));
    EXPECT_EQ(devices(*trace), devices_of("north"));
    EXPECT_THAT(links(*trace), ElementsAre(link_of("north")));
    EXPECT_THAT(counters(*trace),
                ElementsAre("0 north 0 gpu_power_watts 2x300", "-1 north -1 host_cpu_cores 2x2.5",
                            "-1 north 1 gpu1_power_watts 2x40"));
}

TEST_F(DeviceRows, SurviveExportAndImport) {
    const std::string run = part("run.sqlite", 0, "north"), chrome = folder_ / "run.json";
    exports::export_chrome(run, chrome);
    const auto trace = importer::open_any({chrome});
    EXPECT_EQ(devices(*trace), devices_of("north"));
    EXPECT_THAT(links(*trace), ElementsAre(link_of("north")));
    EXPECT_EQ(counters(*trace), counters(*store::load_trace(run)));
}

TEST_F(DeviceRows, OfTwoHostsStayApart) {
    const std::string a = part("a.sqlite", 0, "north"), b = part("b.sqlite", 1, "south");
    const std::string merged = folder_ / "merged.sqlite", slice = folder_ / "slice.sqlite";
    merge::merge_traces({.inputs = {a, b}, .output = merged});
    std::vector<std::string> both = devices_of("north");
    for (const std::string& text : devices_of("south")) both.push_back(text);
    for (const auto& trace : {importer::open_any({a, b}), store::load_trace(merged)}) {
        EXPECT_EQ(devices(*trace), both);
        EXPECT_THAT(links(*trace), ElementsAre(link_of("north"), link_of("south")));
        EXPECT_THAT(counters(*trace),
                    ::testing::UnorderedElementsAre(
                        "0 north 0 gpu_power_watts 2x300", "-1 north 1 gpu1_power_watts 2x40",
                        "-1 north -1 host_cpu_cores 2x2.5", "1 south 0 gpu_power_watts 2x300",
                        "-1 south 1 gpu1_power_watts 2x40", "-1 south -1 host_cpu_cores 2x2.5"));
    }
    // A slice's counters begin with their last values before it, each host's own.
    merge::slice_trace({.input = merged, .output = slice, .choice = {.first_step = 2, .last_step = 2}});
    EXPECT_EQ(devices(*store::load_trace(slice)), both);
    const std::vector<std::string> sliced = counters(*store::load_trace(slice));
    EXPECT_EQ(sliced.size(), 6U);
    EXPECT_THAT(sliced, Each(::testing::HasSubstr(" 1x")));
}

TEST_F(DeviceRows, AreOneView) {
    store::Database database(part("run.sqlite", 0, "north"), store::Database::Mode::read_only);
    const auto number = [&](const char* sql) { return database.integer(sql); };
    EXPECT_EQ(number("SELECT count(*) FROM counters WHERE host = 'north' AND rank IS NULL AND device = 1"),
              2);
    EXPECT_EQ(number("SELECT max(value) FROM counters WHERE name = 'gpu_power_watts' AND rank = 0"), 300);
}

// The tables and columns of version 9 are missing in a file of version 8.
TEST_F(DeviceRows, OfAnOlderFileAreNone) {
    const std::string path = part("old.sqlite", 0, "north"), merged = folder_ / "merged.sqlite";
    const std::string slice = folder_ / "slice.sqlite";
    store::Database(path, store::Database::Mode::read_write)
        .execute(
            "DROP VIEW counters; DROP TABLE SHARD_DEVICES; DROP TABLE SHARD_TOPOLOGY; "
            "ALTER TABLE SHARD_COUNTERS DROP COLUMN hostId; ALTER TABLE SHARD_COUNTERS DROP COLUMN device; "
            "PRAGMA user_version = 8");
    merge::merge_traces({.inputs = {path, part("new.sqlite", 1, "south")}, .output = merged});
    merge::slice_trace({.input = path, .output = slice, .choice = {.first_step = 2, .last_step = 2}});
    for (const std::string& file : {path, slice}) {
        const auto trace = store::load_trace(file);
        EXPECT_THAT(devices(*trace), IsEmpty());
        EXPECT_THAT(counters(*trace),
                    ::testing::UnorderedElementsAre(::testing::StartsWith("0  -1 gpu_power_watts"),
                                                    ::testing::StartsWith("-1  -1 gpu1_power_watts"),
                                                    ::testing::StartsWith("-1  -1 host_cpu_cores")));
    }
    EXPECT_EQ(devices(*store::load_trace(merged)), devices_of("south"));
    EXPECT_EQ(counters(*store::load_trace(merged)).size(), 6U);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces
