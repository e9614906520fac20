// Folding is exact: at every zoom the bars and strips of a lane add up to its busy time, and the event under
// a pixel is found. Compared with a plain reference.
#include "viewer/timeline/fold_lane.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces/store/columns/column_sink.h"
#include "viewer/timeline/folded_rows.h"
#include "viewer/timeline/memory_rows.h"

namespace shardscope::viewer::timeline {
namespace TEST_FILE {

using traces::store::DeviceKind;

struct Event {
    std::int64_t start, end;
    Paint paint = paint_of(DeviceKind::kernel);
};

Lane lane_of(const std::vector<Event>& events) {
    Lane lane;
    for (std::size_t i = 0; i < events.size(); ++i) {
        EXPECT_TRUE(lane.add(events[i].start, events[i].end,
                             {model::EventKind::device, static_cast<std::int64_t>(i)}, events[i].paint));
    }
    lane.finish();
    return lane;
}

// Short and long events, some adjacent, some without length, of several kinds.
std::vector<Event> random_events(unsigned seed, int count) {
    std::mt19937 random(seed);
    std::vector<Event> events;
    std::int64_t t = 0;
    for (int i = 0; i < count; ++i) {
        t += random() % 4 == 0 ? 0 : static_cast<std::int64_t>(random() % 300);
        const std::int64_t length = random() % 50 == 0 ? random() % 20000 : random() % 40;
        events.push_back({t, t + length, static_cast<Paint>(random() % 4)});
        t += length;
    }
    return events;
}

std::int64_t busy_in(const std::vector<Event>& events, std::int64_t from, std::int64_t to) {
    std::int64_t busy = 0;
    for (const Event& e : events)
        busy += std::max<std::int64_t>(0, std::min(e.end, to) - std::max(e.start, from));
    return busy;
}

std::int64_t drawn(const std::vector<Event>& events, const FoldedLane& folded, const model::TimeView& view) {
    std::int64_t busy = 0;
    for (const Bar& bar : folded.bars) busy += busy_in({events[bar.item]}, view.from, view.to);
    for (const FoldedPixel& pixel : folded.pixels) busy += pixel.busy_ns;
    return busy;
}

TEST(Lane, RefusesWhatOverlaps) {
    Lane lane;
    EXPECT_TRUE(lane.add(0, 10, {model::EventKind::device, 0}, 0));
    EXPECT_FALSE(lane.add(9, 12, {model::EventKind::device, 1}, 0));
    EXPECT_TRUE(lane.add(10, 12, {model::EventKind::device, 2}, 0));
    EXPECT_EQ(lane.size(), 2U);
}

TEST(Lane, FindsTheNextLongEventAsAScanDoes) {
    const auto events = random_events(3, 20000);
    const Lane lane = lane_of(events);
    for (const std::int64_t ns : {1, 39, 1000, 15000, 100000}) {
        std::size_t expected = events.size();
        for (std::size_t at = events.size(); at-- > 0;) {
            if (events[at].end - events[at].start >= ns) expected = at;
            if (at % 97 != 0) continue;
            ASSERT_EQ(lane.next_lasting(at, ns), expected) << at << " " << ns;
        }
    }
}

TEST(Lane, FindsTheKindThatTakesMostTime) {
    const Lane lane = lane_of({{0, 10, paint_of(DeviceKind::kernel)},
                               {10, 25, paint_of(DeviceKind::communication)},
                               {30, 36, paint_of(DeviceKind::kernel)}});
    EXPECT_EQ(lane.dominant(0, 2), paint_of(DeviceKind::communication));  // 15 of 25 ns
    EXPECT_EQ(lane.dominant(0, 3), paint_of(DeviceKind::kernel));         // 16 of 31 ns
}

TEST(Fold, DrawsLongEventsAsBarsAndShortOnesAsTheirBusyShare) {
    // 10 ns per pixel: an event of 30 ns is a bar, two of 4 ns in one column make a strip of 80 %.
    const std::vector<Event> events = {{0, 30}, {40, 44}, {45, 49}, {100, 100}};
    const FoldedLane folded = fold_lane(lane_of(events), {0, 1000, 100}, 100);
    ASSERT_EQ(folded.bars.size(), 1U);
    EXPECT_FLOAT_EQ(folded.bars[0].x0, 0);
    EXPECT_FLOAT_EQ(folded.bars[0].x1, 3);
    ASSERT_EQ(folded.pixels.size(), 2U);
    EXPECT_EQ(folded.pixels[0].column, 4);
    EXPECT_DOUBLE_EQ(folded.pixels[0].share(), 0.8);
    EXPECT_EQ(folded.pixels[1].column, 10);  // an event without length is drawn, but is not busy time
    EXPECT_EQ(folded.pixels[1].busy_ns, 0);
}

TEST(Fold, SplitsAnEventOverTheColumnsThatItCrosses) {
    // 100 ns a pixel; [150, 310) is 1.6 pixels: 50 ns of column 1, all of column 2, 10 ns of column 3.
    const FoldedLane folded = fold_lane(lane_of({{150, 310}}), {0, 10000, 100}, 100);
    ASSERT_EQ(folded.pixels.size(), 3U);
    EXPECT_EQ(folded.pixels[0].busy_ns, 50);
    EXPECT_EQ(folded.pixels[1].busy_ns, 100);
    EXPECT_EQ(folded.pixels[2].busy_ns, 10);
}

TEST(Fold, AddsUpToTheBusyTimeAtEveryZoom) {
    for (unsigned seed = 1; seed <= 4; ++seed) {
        const auto events = random_events(seed, 3000);
        const Lane lane = lane_of(events);
        const std::int64_t end = events.back().end;
        std::mt19937 random(seed + 100);
        for (std::int64_t span = end * 3; span >= 10; span = span * 2 / 3) {
            for (int repeat = 0; repeat < 3; ++repeat) {
                const auto from =
                    static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end)) - span / 3;
                const model::TimeView view{from, from + span, 800};
                for (const int columns : {800, 400, 50}) {
                    const FoldedLane folded = fold_lane(lane, view, columns);
                    ASSERT_EQ(drawn(events, folded, view), busy_in(events, view.from, view.to))
                        << "seed " << seed << ", from " << from << ", span " << span << ", columns "
                        << columns;
                    for (const FoldedPixel& pixel : folded.pixels) {
                        ASSERT_GE(pixel.busy_ns, 0);
                        ASSERT_LE(pixel.busy_ns, pixel.column_ns);
                    }
                }
            }
        }
    }
}

TEST(Fold, DrawsNothingInEmptyPlaces) {
    const auto events = random_events(9, 2000);
    const Lane lane = lane_of(events);
    const model::TimeView view{0, events.back().end, 1000};
    for (const FoldedPixel& pixel : fold_lane(lane, view, 1000).pixels) {
        const std::int64_t from = view.column_start(pixel.column, 1000),
                           to = view.column_start(pixel.column + 1, 1000);
        const bool any = std::any_of(events.begin(), events.end(), [&](const Event& e) {
            return e.start < to && (e.end > from || (e.start == e.end && e.start >= from));
        });
        EXPECT_TRUE(any) << "column " << pixel.column;
    }
}

TEST(Hit, FindsTheEventUnderEveryPixel) {
    const auto events = random_events(5, 1500);
    const Lane lane = lane_of(events);
    int found = 0;
    for (const std::int64_t span : {events.back().end, std::int64_t{20000}, std::int64_t{900}}) {
        const model::TimeView view{events.back().end / 3, events.back().end / 3 + span, 1000};
        const FoldedLane folded = fold_lane(lane, view, 1000);
        for (int x = 0; x < 1000; ++x) {
            const std::int64_t time = view.time(x + 0.5);
            const auto hit = hit_lane(lane, folded, view, x + 0.5);
            const auto under = std::find_if(events.begin(), events.end(),
                                            [&](const Event& e) { return e.start <= time && time < e.end; });
            if (under != events.end()) {
                ASSERT_TRUE(hit) << "pixel " << x << ", span " << span;
                EXPECT_EQ(static_cast<std::ptrdiff_t>(hit->item), under - events.begin());
                ++found;
            } else if (hit) {  // the column of a strip contains one of its events
                const Event& e = events[hit->item];
                EXPECT_LE(e.start, view.column_start(x + 1, 1000));
                EXPECT_GE(e.end, view.column_start(x, 1000));
            }
        }
    }
    EXPECT_GT(found, 500);
}

TEST(Hit, SaysHowManyEventsAPixelHoldsAndHowBusyItIs) {
    const std::vector<Event> events = {{0, 20}, {30, 50}, {60, 80}};  // 100 ns a pixel
    const model::TimeView view{0, 10000, 100};
    const Lane lane = lane_of(events);
    const auto hit = hit_lane(lane, fold_lane(lane, view, 100), view, 0.35);
    ASSERT_TRUE(hit);
    EXPECT_EQ(hit->item, 1U);  // the nearest to 35 ns
    EXPECT_EQ(hit->events, 3);
    EXPECT_DOUBLE_EQ(hit->busy, 0.6);
    EXPECT_FALSE(hit_lane(lane, fold_lane(lane, view, 100), view, 1.5));
}

// Every pixel column of the memory row is exactly as high as its totals, however the curve jumps.
TEST(MemoryRuns, FillEveryColumnToItsTotals) {
    constexpr int kColumns = 300, kHeight = 40;
    constexpr std::int64_t kMost = 1'000'000;
    std::mt19937 random(11);
    std::vector<draw::FoldedColumn> columns(kColumns);
    for (std::size_t i = 0; i < columns.size(); ++i) {
        draw::FoldedColumn& column = columns[i];
        if (i % 3 != 0) column = columns[i - 1];  // some are equal
        if (i % 3 != 0) continue;
        for (std::int64_t& bytes : column.at_highest)
            bytes = random() % 2 == 0 ? 0 : static_cast<std::int64_t>(random() % (kMost / 8));
        column.highest = std::accumulate(column.at_highest.begin(), column.at_highest.end(), std::int64_t{0});
        column.lowest = column.highest / 2;
    }
    const auto pixels = [](std::int64_t bytes) {
        return static_cast<int>(std::lround(static_cast<double>(bytes) * static_cast<double>(kHeight) /
                                            static_cast<double>(kMost)));
    };
    std::vector<int> solid(kColumns, 0), pale(kColumns, 0), top(kColumns, 0);
    const auto runs = memory_runs(columns, kMost, kHeight);
    EXPECT_LT(runs.size(), columns.size() * traces::schema::kMemoryCategories);
    for (const MemoryRun& run : runs) {
        for (int c = run.first; c < run.first + run.count; ++c) {
            const auto at = static_cast<std::size_t>(c);
            (run.pale ? pale : solid)[at] += run.top - run.bottom;
            top[at] = std::max(top[at], run.top);
        }
    }
    for (std::size_t i = 0; i < columns.size(); ++i) {
        EXPECT_EQ(top[i], pixels(columns[i].highest)) << "column " << i;
        EXPECT_EQ(solid[i], pixels(columns[i].lowest)) << "column " << i;
        EXPECT_EQ(solid[i] + pale[i], top[i]) << "column " << i << ": nothing overlaps, nothing is left out";
    }
}

TEST(MemoryRows, HaveAColumnForEveryPixelOfACurveThatNeverRests) {
    traces::store::ColumnSink sink;
    sink.add(traces::schema::RankRow{.global_pid = 1, .global_tid = 1, .host = "host"});
    for (int i = 0; i < 20'000; ++i) {
        traces::schema::MemoryRow row;
        row.time = i * 100;
        row.bytes = i % 2 == 0 ? 1000 + i : -(1000 + i - 1);
        row.category =
            static_cast<traces::schema::MemoryCategory>((i / 2) % traces::schema::kMemoryCategories);
        sink.add(row);
    }
    const model::TracePtr trace = sink.take();
    model::AnalysisCache analyses;
    Row row;
    row.kind = Row::Kind::memory;
    row.rank = traces::store::RankIndex(0);
    MemoryRows rows;
    const model::TimeView view{0, 2'000'000, 1500};
    for (int i = 0; i < 5000 && rows.find(row.rank) == nullptr; ++i) {
        rows.update(analyses, trace, {&row}, view);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_NE(rows.find(row.rank), nullptr);
    EXPECT_EQ(rows.find(row.rank)->columns.size(), 1500U);
}

TEST(StripRuns, MergeColumnsThatLookAlike) {
    FoldedLane folded;
    folded.columns = 10;
    folded.pixels = {{0, 0, 50, 100}, {1, 0, 52, 100}, {2, 0, 100, 100}, {4, 0, 100, 100}, {5, 1, 0, 100}};
    EXPECT_THAT(strip_runs(folded, 10),
                testing::ElementsAre(FoldedRun{0, 2, 0, 5}, FoldedRun{2, 1, 0, 10}, FoldedRun{4, 1, 0, 10},
                                     FoldedRun{5, 1, 1, 1}));  // no length, but visible
    EXPECT_THAT(strip_grounds(folded), testing::ElementsAre(FoldedRun{0, 3, 0, 0}, FoldedRun{4, 2, 0, 0}));
}

// 60 lanes of 20,000 events each on 2000 pixels: far more than a frame may draw, until columns become wider.
TEST(FoldedRows, NeverDrawsMoreThanAFrameCanHold) {
    traces::store::Trace trace;
    trace.ranks.resize(1);
    Tracks tracks;
    for (int t = 0; t < 60; ++t) {
        Track track;
        track.rank = traces::store::RankIndex(0);
        track.lanes.push_back(lane_of(random_events(static_cast<unsigned>(t), 20000)));
        tracks.tracks.push_back(std::move(track));
    }
    const RowLayout layout = layout_rows(trace, tracks, {}, {});
    const std::int64_t end = tracks.tracks[0].lanes[0].last_end();
    FoldedRows rows;
    FoldRequest request{tracks, layout, layout.shown(0, layout.height), {0, end, 2000}, 18, nullptr, nullptr};
    rows.update(request);
    EXPECT_LE(rows.rectangles(), FoldedRows::kMostRectangles);
    EXPECT_NE(rows.find(59, 0), nullptr);
    // If few rows are visible, every lane is drawn to the pixel again.
    request.rows = layout.shown(0, 80);
    request.view = {0, end / 1000, 2000};
    rows.update(request);
    EXPECT_EQ(rows.find(2, 0)->lane.columns, 2000);
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::timeline
