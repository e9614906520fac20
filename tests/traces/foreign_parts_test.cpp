// Data that only traces of other tools have survives merge and slice: ids, times and threads become those of
// the new file.
#include <gtest/gtest.h>

#include "tests/traces/temporary_folder.h"
#include "traces/merge/merge.h"
#include "traces/merge/slice.h"
#include "traces/store/columns/names.h"
#include "traces/store/load/loader.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::merge {
namespace TEST_FILE {

constexpr std::int64_t kSecond = 1'000'000'000;

class ForeignParts : public ::testing::Test {
  protected:
    // One rank of a job, whose clock began at `utc`. Both parts use the same process, threads and ids.
    //
    //   time        10      20        30       50        60       70      80
    //   host        aten::linear(1)            LinearBackward0(2)
    //   device               gemm (names 1)             gemm (names 2)
    //   memory          +512 in linear           -512
    //   segment     +4096
    void write(const std::string& path, int rank, std::int64_t utc) {
        store::DatabaseWriter sink({.path = path, .start_utc_ns = utc});
        const std::int64_t tid = schema::global_tid(7, 7), autograd = schema::global_tid(7, 8);
        sink.add(schema::RankRow{.rank = rank,
                                 .device = rank,
                                 .global_pid = schema::global_pid(7),
                                 .global_tid = tid,
                                 .host = "host" + std::to_string(rank),
                                 .device_name = {}});
        const auto range = [&](std::int64_t start, std::int64_t end, std::string_view name, std::int64_t id,
                               std::int64_t thread) {
            schema::RangeRow row{.start = start, .end = end};
            row.text = sink.intern(name);
            row.domain = sink.intern(store::kOperatorDomain);
            row.global_tid = thread;
            row.external_id = id;
            row.detail = sink.intern("{\"rank\":" + std::to_string(rank) + "}");
            sink.add(row);
        };
        range(10, 30, "aten::linear", 1, tid);
        range(50, 70, "LinearBackward0", 2, autograd);
        sink.add(schema::LinkRow{.from_tid = tid, .from_time = 10, .to_tid = autograd, .to_time = 50});
        for (const int k : {1, 2}) {
            schema::KernelRow row{.start = 20 + 40 * (k - 1), .end = 30 + 40 * (k - 1)};
            row.device = rank;
            row.stream = 7;
            row.correlation = 100 + k;
            row.global_pid = schema::global_pid(7);
            row.short_name = sink.intern("gemm");
            row.external_id = k;
            row.occupancy = static_cast<float>(10 * rank + k);
            sink.add(row);
        }
        const auto memory = [&](std::int64_t time, std::int64_t bytes, std::int64_t total) {
            schema::MemoryRow row{.time = time, .rank = rank, .address = 0xA0, .bytes = bytes};
            row.global_tid = tid;
            row.total = total;
            row.reserved = 4096;
            sink.add(row);
        };
        memory(15, 512, 512);
        memory(65, -512, 0);
        sink.add(schema::SegmentRow{.time = 12, .rank = rank, .address = 0xA0, .bytes = 4096, .stream = -1});
        schema::FlightRow flight{
            .rank = rank, .id = 3, .group = sink.intern("group of " + std::to_string(rank))};
        flight.created = 40;
        flight.started = 45;
        sink.add(flight);
        sink.finish(100, 0);
    }
    static std::string text(const store::Trace& trace, schema::StringId id) {
        return std::string(trace.strings[id]);
    }

    TemporaryFolder folder_;
};

// The second part began 1 s later, on another host: its times are shifted accordingly, and its process is a
// different one.
TEST_F(ForeignParts, MergedRanksKeepTheirOwn) {
    write(folder_ / "0.sqlite", 0, 5 * kSecond);
    write(folder_ / "1.sqlite", 1, 6 * kSecond);
    merge_traces({.inputs = {folder_ / "0.sqlite", folder_ / "1.sqlite"}, .output = folder_ / "all.sqlite"});
    const auto trace = store::load_trace(folder_ / "all.sqlite");
    ASSERT_EQ(trace->ranks.size(), 2u);

    ASSERT_EQ(trace->device.size(), 4u);
    ASSERT_EQ(trace->device.occupancy, (std::vector<float>{1, 2, 11, 12}));
    for (std::size_t e = 0; e < 4; ++e) {
        const int rank = e < 2 ? 0 : 1;
        EXPECT_EQ(trace->device.rank[e], rank);
        ASSERT_GE(trace->device.range[e], 0) << "found by the operator's id within its process";
        const auto r = static_cast<std::size_t>(trace->device.range[e]);
        EXPECT_EQ(text(*trace, trace->ranges.name[r]), e % 2 == 0 ? "aten::linear" : "LinearBackward0");
        EXPECT_EQ(trace->threads[trace->ranges.thread[r]].rank.value, rank);
        EXPECT_EQ(trace->ranges.start[r], (e % 2 == 0 ? 10 : 50) + rank * kSecond);
        EXPECT_EQ(text(*trace, trace->ranges.detail[r]), "{\"rank\":" + std::to_string(rank) + "}");
    }
    ASSERT_EQ(trace->ranges.forward.size(), 4u);
    EXPECT_EQ(trace->ranges.forward, (std::vector<std::int32_t>{-1, 0, -1, 2}));

    ASSERT_EQ(trace->memory.size(), 4u);
    EXPECT_EQ(trace->memory.time, (std::vector<std::int64_t>{15, 65, 15 + kSecond, 65 + kSecond}));
    EXPECT_EQ(text(*trace, trace->memory.name[2]), "aten::linear");
    EXPECT_EQ(trace->segments.time, (std::vector<std::int64_t>{12, 12 + kSecond}));
    EXPECT_EQ(trace->segments.rank, (std::vector<std::uint16_t>{0, 1}));
    ASSERT_EQ(trace->flight.size(), 2u);
    EXPECT_EQ(trace->flight[1].rank, 1);
    EXPECT_EQ(trace->flight[1].created, 40 + kSecond);
    EXPECT_EQ(trace->flight[1].started, 45 + kSecond);
    EXPECT_EQ(text(*trace, trace->flight[1].group), "group of 1");
}

// The slice from 40 on contains the second operator and kernel. At 40, 512 bytes and the segment are
// allocated; they are kept without the ranges that contained them, and the free reduces the total to 0.
TEST_F(ForeignParts, ASliceKeepsWhatIsAllocatedAtItsStart) {
    write(folder_ / "0.sqlite", 0, 5 * kSecond);
    slice_trace({.input = folder_ / "0.sqlite",
                 .output = folder_ / "late.sqlite",
                 .choice = {.from_ns = 40, .to_ns = 100}});
    const auto trace = store::load_trace(folder_ / "late.sqlite");
    ASSERT_EQ(trace->device.size(), 1u);
    EXPECT_EQ(trace->device.occupancy, (std::vector<float>{2}));
    ASSERT_GE(trace->device.range[0], 0);
    EXPECT_EQ(text(*trace, trace->ranges.name[static_cast<std::size_t>(trace->device.range[0])]),
              "LinearBackward0");
    EXPECT_EQ(trace->memory.time, (std::vector<std::int64_t>{40, 65}));
    EXPECT_EQ(trace->memory.bytes, (std::vector<std::int64_t>{512, -512}));
    EXPECT_EQ(trace->segments.time, (std::vector<std::int64_t>{40}));
    EXPECT_EQ(trace->segments.bytes, (std::vector<std::int64_t>{4096}));
    EXPECT_EQ(trace->flight.size(), 1u);
}

// The gemm from 20 to 30 extends into the slice, which begins at 25: its occupancy is kept.
TEST_F(ForeignParts, AnEventThatReachesIntoASliceKeepsItsDetails) {
    write(folder_ / "0.sqlite", 0, 5 * kSecond);
    slice_trace({.input = folder_ / "0.sqlite",
                 .output = folder_ / "early.sqlite",
                 .choice = {.from_ns = 25, .to_ns = 35}});
    const auto trace = store::load_trace(folder_ / "early.sqlite");
    ASSERT_EQ(trace->device.size(), 1u);
    EXPECT_EQ(trace->device.occupancy, (std::vector<float>{1}));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::merge
