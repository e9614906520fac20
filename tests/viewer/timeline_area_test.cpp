// The statistics of an area of the timeline, and of a name, with mouse and keys.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui.h>

#include "tests/viewer/gestures_fixture.h"
#include "traces/analysis/area/area.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/timeline/find_text.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer::timeline {
namespace TEST_FILE {

const std::atomic<bool> kGoOn = false;

std::string count_text(std::size_t count) {
    return draw::format_count(static_cast<std::int64_t>(count));
}

class AreaTest : public GesturesTest {
  protected:
    void mark(ImVec2 from, ImVec2 to) {
        ctrl_ = true;
        drag(left_, from, to);
        ctrl_ = false;
        settle();
    }
    // The visible rows' stream of rank 0 on which kernels run.
    const std::string row_ = "timeline.row.rank 0/stream 7";
};

TEST_F(AreaTest, CtrlDragOverARowSumsUpItsEventsInThatTime) {
    const float y = middle(row_).y;
    mark({on_ruler(0.2F).x, y}, {on_ruler(0.7F).x, y + 2});
    ASSERT_TRUE(entry().area);
    EXPECT_THAT(entry().area->rows, testing::ElementsAre("rank 0/stream 7"));
    const double near = 8 * ns_per_pixel();  // the ends snap to events
    EXPECT_NEAR(static_cast<double>(entry().area->time.from), static_cast<double>(time_at(on_ruler(0.2F).x)),
                near);
    EXPECT_NEAR(static_cast<double>(entry().area->time.to), static_cast<double>(time_at(on_ruler(0.7F).x)),
                near);
    const traces::store::Trace& trace = *session().trace();
    std::size_t events = 0;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < trace.device.size(); ++i) {
        const traces::store::DeviceStream& stream = trace.streams[trace.device.stream[i]];
        if (stream.id != 7 || stream.rank.value != 0 || trace.device.end[i] <= entry().area->time.from ||
            trace.device.start[i] >= entry().area->time.to)
            continue;
        ++events;
        sum += std::min(trace.device.end[i], entry().area->time.to) -
               std::max(trace.device.start[i], entry().area->time.from);
    }
    EXPECT_THAT(item("timeline.area.sums").text, testing::StartsWith(count_text(events) + " events"));
    EXPECT_THAT(item("timeline.area.sums").text,
                testing::HasSubstr("sum " + draw::format_duration(static_cast<double>(sum))));
    EXPECT_THAT(item("timeline.area.title").text, testing::EndsWith("on 1 row"));
    EXPECT_TRUE(draw::items::find("timeline.area"));
    act("let_go");
    EXPECT_FALSE(entry().area);
    EXPECT_FALSE(draw::items::find("timeline.area.sums"));
}

TEST_F(AreaTest, SeveralRowsAndTheHeadingOfAFoldedRank) {
    const ImVec2 stream = middle("timeline.row.rank 0/stream 7");
    mark({on_ruler(0.1F).x, stream.y}, {on_ruler(0.9F).x, middle("timeline.row.rank 0/stream 9").y});
    ASSERT_TRUE(entry().area);
    EXPECT_THAT(entry().area->rows,
                testing::ElementsAre("rank 0/stream 7", "rank 0/stream 8", "rank 0/stream 9"));
    act("let_go");
    act("fold_ranks");
    const float y = middle("timeline.row.rank 1").y;
    mark({on_ruler(0.1F).x, y}, {on_ruler(0.9F).x, y + 1});
    ASSERT_TRUE(entry().area);
    for (const std::string& key : entry().area->rows) EXPECT_THAT(key, testing::StartsWith("rank 1/"));
    EXPECT_GE(entry().area->rows.size(), 4U);
}

TEST_F(AreaTest, ARowOfTheTableLimitsTheHistogramAndABarIsWalked) {
    act("area");
    ASSERT_TRUE(entry().area);
    EXPECT_EQ(item("timeline.area.of").text, "all events");
    click(middle("timeline.area.by.kind"));
    const draw::items::Item row = item("timeline.area.groups.row.0");
    click({row.min.x + 8, (row.min.y + row.max.y) / 2});
    const std::string kind = item("timeline.area.of").text;
    EXPECT_EQ(kind, item("timeline.area.groups." + kind + ".name").text);
    std::size_t all = 0;
    for (const std::string& name : draw::items::names())
        all += name.starts_with("timeline.area.bin.") ? std::stoul(item(name).text) : 0;
    EXPECT_EQ(std::to_string(all), item("timeline.area.groups." + kind + ".count").text);
    const std::string in_bar = click_a_bin();
    EXPECT_THAT(item("timeline.area.walk").text, testing::StartsWith(in_bar + " events of "));
    act("next_in_bin");
    EXPECT_THAT(item("timeline.area.walk").text, testing::StartsWith("1 of " + in_bar + ", "));
    ASSERT_NE(session().selected.kind, model::EventKind::none);
    EXPECT_TRUE(draw::items::find("timeline.area.sums"));  // the pane stays in front
    // The event can be seen.
    const EventTime time = time_of(*session().trace(), session().selected);
    EXPECT_GE(static_cast<double>(time.end - time.start), 5 * ns_per_pixel());
    act("previous_in_bin");
    EXPECT_THAT(item("timeline.area.walk").text, testing::StartsWith(in_bar + " of " + in_bar + ", "));
    click(middle("timeline.area.show_event"));
    EXPECT_TRUE(draw::items::find("timeline.field.start"));
    click(middle("timeline.details.show_area"));
    EXPECT_TRUE(draw::items::find("timeline.area.walk"));
}

TEST_F(AreaTest, StatisticsOfANameCountAllItsEventsInTheRunOrTheTimeFilter) {
    session().selected = {model::EventKind::device, 0};
    settle();
    const std::string name(name_of(*session().trace(), session().selected));
    ASSERT_NE(name, "");
    act("statistics");
    ASSERT_TRUE(entry().area);
    EXPECT_EQ(entry().area->name, name);
    const traces::store::Trace& trace = *session().trace();
    traces::analysis::Area area = traces::analysis::whole_area(trace);
    area.name = *trace.strings.find(name);
    const auto all = area_events(trace, area, traces::analysis::GroupBy::name, {}, kGoOn);
    EXPECT_THAT(item("timeline.area.sums").text, testing::StartsWith(count_text(all.size()) + " event"));
    EXPECT_THAT(item("timeline.area.title").text, testing::StartsWith("Statistics of "));
    entry().limit = model::TimeRange{trace.first_ns, trace.first_ns + (trace.last_ns - trace.first_ns) / 3};
    act("statistics");
    area.time = {entry().limit->from, entry().limit->to};
    const auto some = area_events(trace, area, traces::analysis::GroupBy::name, {}, kGoOn);
    ASSERT_LT(some.size(), all.size());
    EXPECT_THAT(item("timeline.area.sums").text, testing::StartsWith(count_text(some.size()) + " event"));
}

TEST_F(AreaTest, TheTableIsCopiedForASpreadsheet) {
    act("area");
    click(middle("timeline.area.by.rank"));
    click(middle("timeline.area.copy_area"));
    EXPECT_THAT(clipboard_, testing::StartsWith("name\tcount\tsum_us\tunion_us\tmean_us\tmin_us\tmax_us\t"));
    EXPECT_EQ(std::count(clipboard_.begin(), clipboard_.end(), '\n'), 3);  // the head and two ranks
    const std::string tabs = clipboard_;
    click(middle("timeline.area.copy_area_csv"));
    std::string commas = tabs;
    std::replace(commas.begin(), commas.end(), '\t', ',');
    EXPECT_EQ(clipboard_, commas);
    act("copy");
    EXPECT_EQ(clipboard_, tabs);
}

TEST_F(AreaTest, AnAreaBelongsToItsTrace) {
    act("area");
    const std::string sums = item("timeline.area.sums").text;
    program_.session.add_trace(mlp_sample({.per_linear = true, .ranks = 2}, "another"), "another");
    program_.session.set_active(1);
    settle();
    EXPECT_FALSE(draw::items::find("timeline.area.sums"));
    program_.session.set_active(0);
    settle();
    EXPECT_EQ(item("timeline.area.sums").text, sums);
    program_.session.close(0);
    settle();
    EXPECT_FALSE(draw::items::find("timeline.area.sums"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::timeline
