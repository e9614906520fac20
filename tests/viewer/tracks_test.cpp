// A trace's lanes and rows, and the details of its events.
#include "viewer/timeline/tracks.h"

#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viewer/mlp_sample.h"
#include "traces/lanes/thread_titles.h"
#include "traces/store/columns/column_sink.h"
#include "viewer/model/rank_steps.h"
#include "viewer/timeline/details.h"
#include "viewer/timeline/rows.h"

namespace shardscope::viewer::timeline {
namespace TEST_FILE {

using namespace traces::schema;
using testing::ElementsAre;
using traces::store::RankIndex;

TEST(RankSteps, AreThoseOfTheRankAloneInOrder) {
    std::mt19937 random(3);
    for (int round = 0; round < 50; ++round) {
        traces::store::Trace trace;
        for (int rank = 0; rank < 6; ++rank) {
            std::int64_t at = 0;
            for (std::uint32_t n = random() % 5; n > 0; --n) {  // some ranks have none
                traces::store::Step step;
                step.rank = RankIndex(rank);
                step.number = n;
                step.start = at += static_cast<std::int64_t>(random() % 100);
                step.end = step.start + static_cast<std::int64_t>(random() % 100);
                trace.steps.push_back(step);
            }
        }
        for (int number = -1; number <= 6; ++number) {
            const RankIndex rank(number);
            std::vector<const traces::store::Step*> expected, found;
            for (const traces::store::Step& step : trace.steps)
                if (step.rank == rank) expected.push_back(&step);
            for (const traces::store::Step& step : model::steps_of(trace, rank)) found.push_back(&step);
            EXPECT_EQ(found, expected);
            for (std::int64_t time = -1; time < 300; time += 7) {
                const auto first = std::find_if(
                    expected.begin(), expected.end(),
                    [&](const traces::store::Step* s) { return s->start <= time && time < s->end; });
                EXPECT_EQ(model::step_at(trace, rank, time), first == expected.end() ? nullptr : *first);
            }
        }
    }
}

// One rank with one stream on which two kernels overlap, and a thread with a step, a module in it and a call
// in that; a start/end range across both.
std::unique_ptr<traces::store::Trace> small_trace() {
    traces::store::ColumnSink sink;
    const std::int64_t tid = global_tid(1, 1);
    sink.add(RankRow{0, 0, global_pid(1), tid, "node", "Device"});
    sink.add(ThreadRow{tid, "main", 0});
    sink.add(StreamRow{0, 7, "compute"});
    sink.add(ModuleRow{4, -1, "Linear_0", "Linear", "net.0"});
    const auto range = [&](const char* name, std::int64_t start, std::int64_t end, int module) {
        RangeRow row;
        row.start = start;
        row.end = end;
        row.text = sink.intern(name);
        row.global_tid = tid;
        row.module = module;
        sink.add(row);
    };
    range("ProfilerStep#1", 0, 1000, -1);
    range("nn.Module: Linear_0", 100, 500, 4);
    sink.add(StepRow{0, 1, 0, 1000, tid});
    sink.add(RuntimeRow{150, 200, tid, 5, sink.intern("cudaLaunchKernel_v7000")});
    const auto kernel = [&](const char* name, std::int64_t start, std::int64_t end,
                            std::int64_t correlation) {
        KernelRow row;
        row.start = start;
        row.end = end;
        row.stream = 7;
        row.correlation = correlation;
        row.global_pid = global_pid(1);
        row.short_name = row.demangled_name = sink.intern(name);
        sink.add(row);
    };
    kernel("sgemm", 300, 800, 5);
    kernel("overlapping", 400, 600, 6);
    traces::schema::MemoryRow memory;
    memory.bytes = 100;
    sink.add(memory);
    return sink.take();
}

std::string value_of(const EventDetails& details, const std::string& label) {
    const auto it = std::find_if(details.rows.begin(), details.rows.end(),
                                 [&](const Detail& d) { return d.label == label; });
    return it == details.rows.end() ? "(absent)" : it->value;
}

TEST(Tracks, PutOverlappingKernelsBelowEachOther) {
    const auto trace = small_trace();
    const Tracks tracks = make_tracks(*trace);
    ASSERT_EQ(tracks.tracks.size(), 2U);
    EXPECT_EQ(tracks.tracks[0].label, "compute");
    ASSERT_EQ(tracks.tracks[0].lanes.size(), 2U);
    EXPECT_EQ(tracks.tracks[0].lanes[1].start(0), 400);
    EXPECT_TRUE(tracks.has_memory.at(0));
}

TEST(Tracks, NestRangesAndCallsOfAThread) {
    const auto trace = small_trace();
    const Tracks tracks = make_tracks(*trace);
    const Track& thread = tracks.tracks[1];
    EXPECT_EQ(thread.label, "main");
    ASSERT_EQ(thread.lanes.size(), 3U);
    EXPECT_EQ(thread.lanes[0].paint(0), paint_of(traces::store::RangeKind::step));
    EXPECT_EQ(thread.lanes[1].paint(0), paint_of(traces::store::RangeKind::module));
    EXPECT_EQ(thread.lanes[2].event(0).kind, model::EventKind::runtime);
}

TEST(Tracks, ShowEveryEventOfARunExactlyOnce) {
    const auto trace = mlp_sample({.per_linear = true}, "sample");
    const Tracks tracks = make_tracks(*trace);
    std::size_t items = 0;
    for (const Track& track : tracks.tracks) {
        if (track.kind == Track::Kind::collectives) continue;  // its events are repeated, joined
        for (const Lane& lane : track.lanes) items += lane.size();
    }
    EXPECT_EQ(items, trace->device.size() + trace->ranges.size() + trace->runtime.size());
    for (std::size_t i = 0; i < trace->device.size(); ++i) {
        const model::SelectedEvent event{model::EventKind::device, static_cast<std::int64_t>(i)};
        const auto place = find_event(*trace, tracks, event);
        ASSERT_TRUE(place);
        const Track& track = tracks.tracks[static_cast<std::size_t>(place->track)];
        EXPECT_EQ(track.rank, RankIndex(trace->device.rank[i]));
        EXPECT_EQ(track.lanes[static_cast<std::size_t>(place->lane)].event(place->item), event);
    }
}

TEST(Tracks, TieACallToWhatItLaunched) {
    const auto trace = small_trace();
    EXPECT_THAT(launched_by(*trace, 0), ElementsAre(0));
}

TEST(Details, NameEveryFieldOfAKernelWithUnits) {
    const auto trace = small_trace();
    const EventDetails details = describe(*trace, {model::EventKind::device, 0});
    EXPECT_EQ(details.title, "sgemm");
    EXPECT_EQ(value_of(details, "kind"), "Kernel");
    EXPECT_EQ(value_of(details, "start"), "0.000300 ms");
    EXPECT_EQ(value_of(details, "duration"), "500 ns");
    EXPECT_EQ(value_of(details, "stream"), "compute (7)");
    EXPECT_EQ(value_of(details, "module"), "Linear_0 (net.0)");
    EXPECT_EQ(value_of(details, "step"), "1");
    EXPECT_EQ(value_of(details, "launched by"), "cudaLaunchKernel");
    EXPECT_EQ(value_of(details, "launch to start"), "100 ns");  // 300 - 200
}

TEST(Details, NameWhatACollectiveMoves) {
    const auto trace = mlp_sample({.per_linear = true}, "sample");
    std::size_t i = 0;
    while (trace->device.collective[i] < 0) ++i;
    const model::SelectedEvent event{model::EventKind::device, static_cast<std::int64_t>(i)};
    const EventDetails details = describe(*trace, event);
    EXPECT_EQ(value_of(details, "operation"), "all_gather");
    EXPECT_EQ(value_of(details, "bytes"), "1.0 MiB (1,050,624 B)");  // (512 * 512 + 512) * 4
    EXPECT_EQ(value_of(details, "sequence number"), "0");
    EXPECT_EQ(value_of(details, "group"), "0 (2 ranks)");
    EXPECT_EQ(value_of(details, "unit"), "net.0");
    EXPECT_EQ(value_of(details, "phase"), "forward");
    EXPECT_EQ(bar_label(*trace, event), "all_gather net.0");
}

TEST(Details, CallAModuleByItsName) {
    const auto trace = small_trace();
    EXPECT_EQ(bar_label(*trace, {model::EventKind::range, 1}), "Linear_0");
    EXPECT_EQ(value_of(describe(*trace, {model::EventKind::range, 1}), "kind"), "Module forward");
    EXPECT_EQ(value_of(describe(*trace, {model::EventKind::runtime, 0}), "inside"), "nn.Module: Linear_0");
    EXPECT_EQ(describe(*trace, {}).title, "");
}

// --- names of threads

std::vector<std::string> titles_of(const std::vector<std::tuple<int, std::int64_t, const char*>>& threads,
                                   std::int64_t backward = 0) {
    traces::store::ColumnSink sink;
    sink.add(RankRow{.rank = 0, .global_pid = global_pid(100)});
    sink.add(RankRow{.rank = 1, .device = 1, .global_pid = global_pid(200)});
    for (const auto& [rank, tid, name] : threads)
        sink.add(ThreadRow{global_tid(rank == 0 ? 100 : 200, tid), name, rank});
    if (backward != 0) {
        RangeRow row;
        row.start = 0;
        row.end = 10;
        row.text = sink.intern("autograd::engine::evaluate_function: AddmmBackward0");
        row.global_tid = global_tid(100, backward);
        sink.add(row);
    }
    return thread_titles(*sink.take());
}

TEST(ThreadTitles, DistinguishKinetosThreads) {
    EXPECT_THAT(titles_of({{0, 100, "thread 100 (python3)"},
                           {0, 105, "thread 105 (python3)"},
                           {0, 106, "thread 106 (pt_autograd_0)"},
                           {1, 200, "thread 200 (pt_main_thread)"},
                           {1, 205, "thread 205 (python3)"}},
                          105),
                ElementsAre("main thread", "autograd", "pt_autograd_0", "main thread", "python3"));
}

TEST(ThreadTitles, AddNumbersOnlyToThoseThatAreCalledAlike) {
    EXPECT_THAT(
        titles_of({{0, 100, "python3"}, {0, 101, "python3"}, {0, 102, "worker"}, {1, 201, "python3"}}),
        ElementsAre("python3 100", "python3 101", "worker", "python3"));
    EXPECT_THAT(titles_of({{0, 101, ""}, {0, 102, ""}}), ElementsAre("thread 101", "thread 102"));
    EXPECT_THAT(titles_of({{0, 101, "thread (odd)"}, {0, 102, "thread 1"}}),
                ElementsAre("thread (odd)", "thread 1"));
}

TEST(Rows, LieBelowEachOtherWithoutOverlap) {
    const auto trace = mlp_sample({.ranks = 2}, "sample");
    const Tracks tracks = make_tracks(*trace);
    const RowLayout layout = layout_rows(*trace, tracks, {}, {});
    float y = 0;
    std::size_t lanes = 0;
    for (const Row& row : layout.rows) {
        EXPECT_GE(row.y, y);
        y = row.y + row.height;
        lanes += row.kind == Row::Kind::lane ? 1 : 0;
        EXPECT_EQ(layout.at(row.y), &row);
        EXPECT_EQ(layout.at(row.y + row.height - 0.5F), &row);
    }
    EXPECT_GE(layout.height, y);
    EXPECT_EQ(layout.at(layout.height + 1), nullptr);
    std::size_t expected = 0;
    for (const Track& track : tracks.tracks) expected += track.lanes.size();
    EXPECT_EQ(lanes, expected);
    EXPECT_EQ(layout.rows[0].kind, Row::Kind::group);
    EXPECT_EQ(layout.groups[static_cast<std::size_t>(layout.rows[0].group)].key, "collectives");
}

TEST(Rows, ShowTheHeadingAloneOfAFoldedRank) {
    const auto trace = mlp_sample({.ranks = 2}, "sample");
    const Tracks tracks = make_tracks(*trace);
    const RowLayout layout = layout_rows(*trace, tracks, {.collapsed = {"rank 0"}}, {});
    const auto heading = std::find_if(layout.rows.begin(), layout.rows.end(), [](const Row& row) {
        return row.kind == Row::Kind::group && row.rank == RankIndex(0);
    });
    ASSERT_NE(heading, layout.rows.end());
    EXPECT_EQ(std::next(heading)->kind, Row::Kind::group);
    EXPECT_EQ(std::next(heading)->rank, RankIndex(1));
    for (std::size_t t = 0; t < tracks.tracks.size(); ++t) {
        if (tracks.tracks[t].rank != RankIndex(0)) continue;
        EXPECT_EQ(layout.of_lane(static_cast<int>(t), 0), nullptr);
    }
}

TEST(Rows, AreFoundByWhatAWindowShows) {
    const auto trace = mlp_sample({.ranks = 2}, "sample");
    const Tracks tracks = make_tracks(*trace);
    const RowLayout layout = layout_rows(*trace, tracks, {}, {});
    const auto span = layout.between(100, 200);
    for (std::size_t i = 0; i < layout.rows.size(); ++i) {
        const Row& row = layout.rows[i];
        const bool seen = row.y < 200 && row.y + row.height > 100;
        EXPECT_EQ(seen, i >= span.first && i < span.last) << "row " << i;
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::timeline
