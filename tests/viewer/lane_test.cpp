// Lanes with any kind of events: sums, searches and folding agree with a plain reference at every zoom, and
// odd input (no length, an end before the start, overlaps, long times, nothing) does no harm.

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces/store/columns/column_sink.h"
#include "viewer/timeline/color_modes.h"
#include "viewer/timeline/counter_fold.h"
#include "viewer/timeline/details.h"
#include "viewer/timeline/fold_lane.h"
#include "viewer/timeline/folded_rows.h"
#include "viewer/timeline/rows.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer::timeline {
namespace TEST_FILE {

using namespace traces::schema;

struct Event {
    std::int64_t start = 0, end = 0;
    Paint paint = 0;
};

std::int64_t overlap(const Event& e, std::int64_t from, std::int64_t to) {
    return std::max<std::int64_t>(0, std::min(e.end, to) - std::max(e.start, from));
}

// `unit`: the typical length in nanoseconds; 10^9 makes blocks that do not fit into 32 bits.
std::vector<Event> random_events(unsigned seed, int count, std::int64_t unit, std::int64_t first = 0) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::int64_t n) {
        return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
    };
    std::vector<Event> events;
    std::int64_t time = first;
    for (int i = 0; i < count; ++i) {
        time += below(3) == 0 ? 0 : below(unit);
        const std::int64_t length = below(10) == 0 ? 0 : below(40) == 0 ? below(60 * unit) : below(unit);
        events.push_back({time, time + length, static_cast<Paint>(below(5))});
        time += length;
    }
    return events;
}

Lane lane_of(const std::vector<Event>& events) {
    Lane lane;
    for (std::size_t i = 0; i < events.size(); ++i) {
        EXPECT_TRUE(lane.add(events[i].start, events[i].end,
                             {model::EventKind::range, static_cast<std::int64_t>(i)}, events[i].paint));
    }
    lane.finish();
    return lane;
}

TEST(Lane, GivesBackWhatWasPutIn) {
    for (const std::int64_t unit : {std::int64_t{1}, std::int64_t{1000}, std::int64_t{1'000'000'000}}) {
        const auto events = random_events(7, 1000, unit);
        const Lane lane = lane_of(events);
        ASSERT_EQ(lane.size(), events.size());
        for (std::size_t i = 0; i < events.size(); ++i) {
            ASSERT_EQ(lane.start(i), events[i].start);
            ASSERT_EQ(lane.end(i), events[i].end);
            ASSERT_EQ(lane.paint(i), events[i].paint);
            ASSERT_EQ(lane.event(i),
                      (model::SelectedEvent{model::EventKind::range, static_cast<std::int64_t>(i)}));
        }
    }
}

TEST(Lane, FindsAndSumsAsAScanDoes) {
    for (const std::int64_t unit : {std::int64_t{3}, std::int64_t{1000}, std::int64_t{1'000'000'000}}) {
        const auto events = random_events(11, 700, unit, -5 * unit);
        const Lane lane = lane_of(events);
        std::mt19937_64 random(3);
        const std::int64_t from = events.front().start - unit, to = events.back().end + unit;
        const auto instant = [&] {
            return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from));
        };
        for (int repeat = 0; repeat < 500; ++repeat) {
            const std::int64_t a = instant(), b = std::max(a, instant());
            const auto starts = static_cast<std::size_t>(
                std::count_if(events.begin(), events.end(), [&](const Event& e) { return e.start < a; }));
            ASSERT_EQ(lane.first_starting_from(0, a), starts);
            const auto after =
                std::find_if(events.begin(), events.end(), [&](const Event& e) { return e.end > a; });
            ASSERT_EQ(lane.first_ending_after(a), static_cast<std::size_t>(after - events.begin()));
            std::int64_t busy = 0;  // of the events that overlap [a, b)
            for (const Event& e : events) busy += e.end > a && e.start < b ? e.end - e.start : 0;
            const std::size_t first = lane.first_ending_after(a);
            ASSERT_EQ(lane.busy(first, lane.first_starting_from(first, b)), busy);
        }
    }
}

TEST(LanePaints, SumEveryPaintOfAnyStretch) {
    const auto events = random_events(5, 900, 100);
    const Lane lane = lane_of(events);
    for (std::size_t first = 0; first < events.size(); first += 13) {
        for (std::size_t last = first; last <= events.size(); last += 29) {
            PaintTimes expected{}, times{};
            for (std::size_t i = first; i < last; ++i)
                expected[events[i].paint] += events[i].end - events[i].start;
            lane.paints().add_times(lane, first, last, times);
            ASSERT_EQ(times, expected) << first << " to " << last;
        }
    }
}

// Twenty thousand events of a few microseconds: indices, offsets, sums and paints, and little else.
TEST(Lane, TakesFewBytesForAnEvent) {
    std::vector<Event> events = random_events(2, 20'000, 1000);
    for (Event& e : events) e.paint = 1;
    EXPECT_LT(lane_of(events).memory(), 14 * events.size());
}

TEST(Fold, AddsUpToTheBusyTimeWhereBlocksAreLong) {
    const auto events = random_events(21, 900, 1'000'000'000);
    const Lane lane = lane_of(events);
    for (std::int64_t span = events.back().end * 2; span > 1000; span /= 3) {
        for (const int columns : {1, 7, 100, 1600}) {
            const model::TimeView view{events[450].start - span / 3, events[450].start + span, 1600};
            const FoldedLane folded = fold_lane(lane, view, columns);
            std::int64_t drawn = 0, busy = 0;
            for (const Bar& bar : folded.bars) drawn += overlap(events[bar.item], view.from, view.to);
            for (const FoldedPixel& pixel : folded.pixels) drawn += pixel.busy_ns;
            for (const Event& e : events) busy += overlap(e, view.from, view.to);
            ASSERT_EQ(drawn, busy) << span << " ns in " << columns << " columns";
        }
    }
}

TEST(Hit, FindsTheEventUnderThePixelsOfEveryBar) {
    const auto events = random_events(4, 400, 500);
    const Lane lane = lane_of(events);
    for (std::int64_t span = events.back().end; span > 100; span /= 2) {
        const model::TimeView view{0, span, 1000};
        const FoldedLane folded = fold_lane(lane, view, 1000);
        for (const Bar& bar : folded.bars) {
            const auto middle = static_cast<double>(bar.x0 + bar.x1) / 2;
            const auto hit = hit_lane(lane, folded, view, middle);
            ASSERT_TRUE(hit);
            EXPECT_EQ(hit->item, bar.item);
            EXPECT_EQ(hit->events, 1);
        }
        for (const FoldedPixel& pixel : folded.pixels) {
            const auto hit = hit_lane(lane, folded, view, pixel.column + 0.5);
            ASSERT_TRUE(hit) << "column " << pixel.column;
            const Event& e = events[hit->item];
            EXPECT_LE(e.start, view.column_start(pixel.column + 1, 1000));
            EXPECT_GE(e.end, view.column_start(pixel.column, 1000));
        }
    }
}

// --- groups ------------------------------------------------------------------------------------------------

KernelRow kernel(std::int64_t start, std::int64_t end, int stream, StringId name) {
    KernelRow row;
    row.start = start;
    row.end = end;
    row.stream = stream;
    row.global_pid = global_pid(1);
    row.short_name = row.demangled_name = name;
    return row;
}

// Three random streams; if two events overlap on one stream, it gets a second lane.
std::unique_ptr<traces::store::Trace> random_trace(unsigned seed, std::vector<Event>& events) {
    std::mt19937_64 random(seed);
    traces::store::ColumnSink sink;
    sink.add(RankRow{0, 0, global_pid(1), global_tid(1, 1), "node", "Device"});
    const StringId gemm = sink.intern("gemm"), nccl = sink.intern("ncclDevKernel_AllGather_RING_LL");
    for (int i = 0; i < 600; ++i) {
        const auto start = static_cast<std::int64_t>(random() % 60'000);
        const auto length = static_cast<std::int64_t>(random() % 10 == 0 ? random() % 3000 : random() % 80);
        const int stream = static_cast<int>(random() % 3);
        sink.add(kernel(start, start + length, stream, stream == 2 ? nccl : gemm));
        events.push_back({start, start + length, 0});
    }
    return sink.take();
}

std::vector<const Track*> all_of(const Tracks& tracks) {
    std::vector<const Track*> all;
    for (const Track& track : tracks.tracks) all.push_back(&track);
    return all;
}

// Nanoseconds in [from, to) that any event covers, counted one by one.
std::int64_t union_within(const std::vector<Event>& events, std::int64_t from, std::int64_t to) {
    std::vector<bool> busy(static_cast<std::size_t>(to - from));
    for (const Event& e : events) {
        for (std::int64_t t = std::max(e.start, from); t < std::min(e.end, to); ++t)
            busy[static_cast<std::size_t>(t - from)] = true;
    }
    return std::count(busy.begin(), busy.end(), true);
}

TEST(SummaryStrip, ShowsTheExactUnionAtEveryZoom) {
    std::vector<Event> events;
    const auto trace = random_trace(8, events);
    const Tracks tracks = make_tracks(*trace);
    const Lane busy = busy_union(*trace, all_of(tracks));
    std::vector<StripMember> members;
    for (const Track& track : tracks.tracks) {
        for (const Lane& lane : track.lanes) members.push_back({&lane, &lane.paints()});
    }
    for (const int columns : {1, 50, 700}) {
        for (const model::TimeView view :
             {model::TimeView{-500, 65'000, 700}, model::TimeView{20'000, 21'000, 700},
              model::TimeView{30'000, 30'100, 700}}) {
            std::int64_t drawn = 0;
            for (const FoldedPixel& pixel : fold_strip(busy, members, view, columns)) {
                const std::int64_t from = view.column_start(pixel.column, columns),
                                   to = view.column_start(pixel.column + 1, columns);
                ASSERT_EQ(pixel.busy_ns, union_within(events, from, to)) << "column " << pixel.column;
                drawn += pixel.busy_ns;
            }
            EXPECT_EQ(drawn, union_within(events, view.from, view.to));
        }
    }
}

TEST(SummaryStrip, IsPaintedAsWhatTakesMostOfAColumn) {
    // [0, 100): 60 ns of a kernel, 2 x 40 ns of communication on two streams, 80 ns busy: communication.
    // [100, 200): 30 ns of a kernel alone.
    Lane compute, gather, reduce, busy;
    const Paint kernels = paint_of(traces::store::DeviceKind::kernel),
                sends = paint_of(traces::store::DeviceKind::communication);
    compute.add(0, 60, {}, kernels);
    compute.add(110, 140, {}, kernels);
    gather.add(30, 70, {}, sends);
    reduce.add(40, 80, {}, sends);
    busy.add(0, 80, {}, 0);
    busy.add(110, 140, {}, 0);
    for (Lane* lane : {&compute, &gather, &reduce, &busy}) lane->finish();
    const auto pixels = fold_strip(
        busy, {{&compute, &compute.paints()}, {&gather, &gather.paints()}, {&reduce, &reduce.paints()}},
        {0, 300, 3}, 3);
    ASSERT_EQ(pixels.size(), 2U);  // the third one is empty
    EXPECT_EQ(pixels[0].busy_ns, 80);
    EXPECT_EQ(pixels[0].paint, sends);
    EXPECT_EQ(pixels[1].busy_ns, 30);
    EXPECT_EQ(pixels[1].paint, kernels);
}

// --- odd input ---------------------------------------------------------------------------------------------

TEST(OddInput, AnEmptyLaneIsNothing) {
    Lane lane;
    lane.finish();
    EXPECT_EQ(lane.size(), 0U);
    EXPECT_EQ(lane.first_ending_after(0), 0U);
    const FoldedLane folded = fold_lane(lane, {0, 100, 10}, 10);
    EXPECT_TRUE(folded.bars.empty() && folded.pixels.empty());
    EXPECT_FALSE(hit_lane(lane, folded, {0, 100, 10}, 5));
    EXPECT_TRUE(fold_strip(lane, {}, {0, 100, 10}, 10).empty());
}

TEST(OddInput, ATraceWithoutEventsHasNoTracks) {
    const auto trace = traces::store::ColumnSink().take();
    const Tracks tracks = make_tracks(*trace);
    EXPECT_TRUE(tracks.tracks.empty());
    EXPECT_TRUE(layout_rows(*trace, tracks, {}, {}).rows.empty());
    EXPECT_TRUE(TrackPaints(*trace, tracks, model::ColorBy::kind).legend().empty());
}

TEST(OddInput, AnEventThatEndsBeforeItStartsTakesNoTime) {
    Lane lane;
    EXPECT_TRUE(lane.add(100, 40, {model::EventKind::range, 0}, 0));
    EXPECT_TRUE(lane.add(100, 120, {model::EventKind::range, 1}, 0));
    lane.finish();
    EXPECT_EQ(lane.end(0), 100);
    EXPECT_EQ(lane.busy(0, 2), 20);
}

TEST(OddInput, TimesBeyondTwoToThe53KeepTheirNanosecond) {
    const std::int64_t far = (std::int64_t{1} << 60) + 1;
    const Lane lane = lane_of({{far, far + 1}, {far + 2, far + 3}, {far + 7, far + 10}});
    const model::TimeView view{far, far + 10, 10};
    const FoldedLane folded = fold_lane(lane, view, 10);
    ASSERT_EQ(folded.bars.size(), 1U);
    EXPECT_EQ(folded.bars[0].item, 2U);
    EXPECT_FLOAT_EQ(folded.bars[0].x0, 7);
    ASSERT_EQ(folded.pixels.size(), 2U);
    EXPECT_EQ(folded.pixels[1].column, 2);
    EXPECT_EQ(folded.pixels[1].busy_ns, 1);
}

TEST(OddInput, RangesThatDoNotNestLieBelowEachOther) {
    traces::store::ColumnSink sink;
    const std::int64_t tid = global_tid(1, 1);
    sink.add(RankRow{0, 0, global_pid(1), tid, "node", "Device"});
    sink.add(ThreadRow{tid, "main", 0});
    for (int i = 0; i < 5; ++i) {
        RangeRow row;
        row.start = i * 10;
        row.end = row.start + 35;  // up to four at the same time
        row.text = sink.intern("overlapping");
        row.global_tid = tid;
        sink.add(row);
    }
    const auto trace = sink.take();
    const Tracks tracks = make_tracks(*trace);
    ASSERT_EQ(tracks.tracks.size(), 1U);
    std::size_t events = 0;
    for (const Lane& lane : tracks.tracks[0].lanes) {
        events += lane.size();
        for (std::size_t i = 0; i + 1 < lane.size(); ++i) EXPECT_LE(lane.end(i), lane.start(i + 1));
    }
    EXPECT_EQ(events, 5U);
    // Busy from the first start to the last end, without a gap.
    const Lane busy = busy_union(*trace, all_of(tracks));
    EXPECT_EQ(busy.busy(0, busy.size()), 75);
}

TEST(OddInput, NamesOfAMegabyteAndNoUtf8AreColouredAndListed) {
    traces::store::ColumnSink sink;
    sink.add(RankRow{0, 0, global_pid(1), global_tid(1, 1), "node", "Device"});
    sink.add(kernel(0, 10, 1, sink.intern(std::string(1 << 20, 'x'))));
    sink.add(kernel(20, 30, 1, sink.intern("\xFF\xFE broken \xC3")));
    const auto trace = sink.take();
    const Tracks tracks = make_tracks(*trace);
    const TrackPaints paints(*trace, tracks, model::ColorBy::name);
    EXPECT_EQ(paints.legend().size(), 2U);
    for (const PaintName& name : paints.legend()) EXPECT_LE(name.name.size(), 200U);
}

TEST(OddInput, TenThousandRowsLieBelowEachOther) {
    traces::store::Trace trace;
    trace.ranks.resize(1);
    Tracks tracks;
    for (int t = 0; t < 10'000; ++t) {
        Track track;
        track.rank = traces::store::RankIndex(0);
        track.stream = traces::store::StreamIndex(t);
        track.lanes.push_back(lane_of({{t, t + 5}}));
        tracks.tracks.push_back(std::move(track));
    }
    const RowLayout layout = layout_rows(trace, tracks, {}, {});
    ASSERT_EQ(layout.rows.size(), 10'001U);
    for (std::size_t i = 0; i + 1 < layout.rows.size(); ++i)
        ASSERT_LE(layout.rows[i].y + layout.rows[i].height, layout.rows[i + 1].y);
    EXPECT_EQ(layout.of_lane(9'999, 0), &layout.rows.back());
}

// --- colours and counters ----------------------------------------------------------------------------------

TEST(ColorModes, GiveANameTheSameHueInEveryTrace) {
    EXPECT_EQ(hue_of("layers.0"), hue_of("layers.0"));
    EXPECT_NE(hue_of("layers.0"), hue_of("layers.1"));
    for (const char* name : {"", "a", "aten::mm"}) {
        EXPECT_GE(hue_of(name), kFirstHue);
        EXPECT_LT(hue_of(name), kFirstHue + kHues);
    }
}

TEST(ColorModes, ListNamesByTheirBusyTime) {
    traces::store::ColumnSink sink;
    sink.add(RankRow{0, 0, global_pid(1), global_tid(1, 1), "node", "Device"});
    const StringId gemm = sink.intern("gemm"), copy = sink.intern("copy");
    sink.add(kernel(0, 10, 1, copy));
    sink.add(kernel(10, 40, 1, gemm));
    sink.add(kernel(40, 50, 1, copy));
    const auto trace = sink.take();
    const TrackPaints paints(*trace, make_tracks(*trace), model::ColorBy::name);
    ASSERT_EQ(paints.legend().size(), 2U);
    EXPECT_EQ(paints.legend()[0].name, "gemm");
    EXPECT_EQ(paints.legend()[0].busy_ns, 30);
    EXPECT_EQ(paints.legend()[1].busy_ns, 20);
}

TEST(ColorModes, DistinguishUnitsWhoseNamesShareAHue) {
    ASSERT_EQ(hue_of("root"), hue_of("blocks.3"));
    traces::store::ColumnSink sink;
    sink.add(RankRow{0, 0, global_pid(1), global_tid(1, 1), "node", "Device"});
    const StringId nccl = sink.intern("ncclDevKernel_AllGather");
    for (int unit = 0; unit < 2; ++unit) {
        sink.add(UnitRow{.id = unit, .module = -1, .name = unit == 0 ? "root" : "blocks.3"});
        KernelRow row = kernel(unit * 20, unit * 20 + 10, 1, nccl);
        row.correlation = unit + 1;
        sink.add(row);
        sink.add(CollectiveRow{.correlation = row.correlation,
                               .operation = Operation::all_gather,
                               .group_size = 1,
                               .unit = unit});
    }
    const auto trace = sink.take();
    const TrackPaints paints(*trace, make_tracks(*trace), model::ColorBy::unit);
    ASSERT_EQ(paints.legend().size(), 2U);
    EXPECT_EQ(paints.legend()[0].name, "root");
    EXPECT_EQ(paints.legend()[0].paint, hue_of("root"));
    EXPECT_EQ(paints.legend()[1].name, "blocks.3");
    EXPECT_NE(paints.legend()[1].paint, paints.legend()[0].paint);
}

// The fold with an index equals one that reads every point, at every zoom.
TEST(FoldCounter, WithAnIndexEqualsThePlainFold) {
    std::mt19937 random(5);
    for (const unsigned gap : {1U, 3U, 500U}) {
        traces::store::ColumnSink sink;
        sink.add(RankRow{.global_pid = global_pid(1)});
        const StringId name = sink.intern("counter");
        std::int64_t time = 0;
        for (int i = 0; i < 3000; ++i) {
            time += static_cast<std::int64_t>(random() % gap);
            sink.add(
                CounterRow{.time = time, .name = name, .value = static_cast<double>(random() % 100) - 30});
        }
        const auto trace = sink.take();
        const Tracks tracks = make_tracks(*trace);
        ASSERT_EQ(tracks.counters.size(), 1U);
        const CounterTrack& counter = tracks.counters.front();
        for (int round = 0; round < 100; ++round) {
            const std::int64_t from = static_cast<std::int64_t>(random() % 2000) - 500;
            const std::int64_t length =
                1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(time + 10));
            const model::TimeView view{from, from + length, 800};
            for (const int columns : {1, 40, 800})
                ASSERT_EQ(fold_counter(counter, view, columns), fold_counter(counter.points, view, columns))
                    << gap << ": " << from << " + " << length << ", " << columns << " columns";
        }
    }
}

TEST(FoldCounter, KeepsTheExtremesOfEveryColumn) {
    // Ten columns of 10 ns; the value 5 from 12 on, up to 9 and back within [30, 40).
    const auto runs = fold_counter({{12, 5}, {31, 9}, {33, 5}}, {0, 100, 10}, 10);
    EXPECT_THAT(runs,
                testing::ElementsAre(CounterRun{1, 2, 5, 5}, CounterRun{3, 1, 5, 9}, CounterRun{4, 6, 5, 5}));
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::timeline
