// Gestures on the timeline.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui.h>

#include "tests/viewer/gestures_fixture.h"
#include "tests/viewer/mlp_sample.h"
#include "traces/analysis/time/summary.h"
#include "traces/store/columns/column_sink.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/model/time_view.h"
#include "viewer/timeline/measure.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer::timeline {
namespace TEST_FILE {

TEST_F(GesturesTest, ClickOnABarSelectsItAndShowsItsFields) {
    const std::string bar = widest_event();
    click(middle(bar));
    ASSERT_NE(session().selected.kind, model::EventKind::none);
    EXPECT_NE(item("timeline.selected").text, "");
    const EventTime time = time_of(*session().trace(), session().selected);
    EXPECT_EQ(item("timeline.field.start").text, instant_text(time.start));
    EXPECT_EQ(item("timeline.field.end").text, instant_text(time.end));
}

TEST_F(GesturesTest, CursorFollowsTheMouseForAllPanels) {
    move(on_ruler(0.5F));
    ASSERT_TRUE(entry().cursor);
    EXPECT_NEAR(static_cast<double>(*entry().cursor), static_cast<double>(time_at(mouse_.x)),
                2 * ns_per_pixel());
}

TEST_F(GesturesTest, UndoOfZoomShowsWhatWasShownBefore) {
    const model::TimeRange before = entry().visible;
    click(middle(widest_event()));
    act("zoom_to");
    const model::TimeRange zoomed = entry().visible;
    ASSERT_NE(zoomed, before);
    act("back");
    EXPECT_EQ(entry().visible, before);
    act("forward");
    EXPECT_EQ(entry().visible, zoomed);
}

TEST_F(GesturesTest, HomeAndEndGoToTheEndsAtTheSameZoom) {
    entry().visible = {entry().trace->first_ns + 100'000, entry().trace->first_ns + 200'000};
    settle();
    act("last");
    EXPECT_EQ(entry().visible.length(), 100'000);
    EXPECT_GE(entry().visible.to, entry().trace->last_ns);
    act("first");
    EXPECT_EQ(entry().visible.length(), 100'000);
    EXPECT_LE(entry().visible.from, entry().trace->first_ns);
}

TEST_F(GesturesTest, RulerDragLimitsAndItsEndsCanBeDragged) {
    drag(left_, on_ruler(0.3F), on_ruler(0.6F));
    ASSERT_TRUE(entry().limit);
    const model::TimeRange limit = *entry().limit;
    EXPECT_NEAR(static_cast<double>(limit.from), static_cast<double>(time_at(on_ruler(0.3F).x)),
                3 * ns_per_pixel());
    const ImVec2 end = middle("timeline.limit.to");
    drag(left_, end, {on_ruler(0.8F).x, end.y});
    ASSERT_TRUE(entry().limit);
    EXPECT_EQ(entry().limit->from, limit.from);
    EXPECT_NEAR(static_cast<double>(entry().limit->to), static_cast<double>(time_at(on_ruler(0.8F).x)),
                3 * ns_per_pixel());
    act("no_limit");
    EXPECT_FALSE(entry().limit);
}

TEST_F(GesturesTest, MeasureIsCaughtByAnEventsEdgesAndCopied) {
    // From slightly after the bar's start to slightly before its end: both edges are near.
    const std::string bar = widest_event();
    click(middle(bar));
    const EventTime time = time_of(*session().trace(), session().selected);
    session().selected = {};  // rows return to their places
    for (int i = 0; i < 4; ++i) act("page_up");
    const float y = middle(bar).y;
    const draw::items::Item rows = item("timeline.rows");
    const double pixel = ns_per_pixel();
    const auto x_of = [&](std::int64_t at) {
        return rows.min.x + static_cast<float>(static_cast<double>(at - entry().visible.from) / pixel);
    };
    drag(right_, {x_of(time.start) + 2, y}, {x_of(time.end) - 2, y});
    const Measure expected{time.start, time.end};
    EXPECT_EQ(item("timeline.measure").text, measure_text(expected));
    act("copy");
    EXPECT_EQ(clipboard_, measure_text(expected));
    act("let_go");
    EXPECT_FALSE(draw::items::find("timeline.measure"));
}

TEST_F(GesturesTest, MinimapMovesTheVisibleTime) {
    const model::TimeSpan whole{entry().trace->first_ns, entry().trace->last_ns};
    entry().visible = {whole.from, whole.from + (whole.to - whole.from) / 10};
    settle();
    const draw::items::Item map = item("timeline.minimap");
    const std::int64_t length = entry().visible.length();
    click({map.min.x + (map.max.x - map.min.x) * 0.75F, (map.min.y + map.max.y) / 2});
    EXPECT_EQ(entry().visible.length(), length);
    const std::int64_t wanted = whole.from + (whole.to - whole.from) * 3 / 4;
    const std::int64_t middle_now = entry().visible.from + length / 2;
    EXPECT_NEAR(static_cast<double>(middle_now), static_cast<double>(wanted),
                static_cast<double>(whole.to - whole.from) * 0.01);
}

TEST_F(GesturesTest, MinimapSaysWhatItShowsWhereTheMouseIs) {
    const draw::items::Item map = item("timeline.minimap");
    EXPECT_FALSE(draw::items::find("timeline.minimap.tip"));
    move({(map.min.x + map.max.x) / 2, (map.min.y + map.max.y) / 2});
    EXPECT_THAT(item("timeline.minimap.tip").text, testing::EndsWith("%"));
}

TEST_F(GesturesTest, MarksAreListedGoneToAndDeleted) {
    move(on_ruler(0.5F));
    const std::int64_t at = *entry().cursor;
    act("mark");
    EXPECT_EQ(item("timeline.mark.mark 1").text, "mark 1");
    EXPECT_EQ(item("timeline.marks.text").text, "mark 1");
    act("fit");
    entry().visible = {entry().trace->first_ns, entry().trace->first_ns + 1000};
    settle();
    act("next_mark");
    EXPECT_LE(entry().visible.from, at);
    EXPECT_GE(entry().visible.to, at);
    click(middle("timeline.marks.delete"));
    EXPECT_FALSE(draw::items::find("timeline.mark.mark 1"));
}

TEST_F(GesturesTest, RangesAreMarkedFromWhatIsSelected) {
    click(middle(widest_event()));
    mouse_ = {-1e6F, -1e6F};
    act("mark_range");
    const EventTime time = time_of(*session().trace(), session().selected);
    EXPECT_TRUE(draw::items::find("timeline.mark.range 1"));
    session().selected = {};
    settle();
    act("limit_selected");  // of the chosen range
    ASSERT_TRUE(entry().limit);
    EXPECT_EQ(*entry().limit, (model::TimeRange{time.start, time.end}));
}

TEST_F(GesturesTest, FindGoesFromMatchToMatch) {
    click(middle("timeline.find"));
    ImGui::GetIO().AddInputCharactersUTF8("Linear");
    settle();
    const std::string count = item("timeline.find.count").text;
    EXPECT_TRUE(count.ends_with(" found")) << count;
    click(middle("timeline.find.next"));
    const model::SelectedEvent first = session().selected;
    EXPECT_NE(first.kind, model::EventKind::none);
    EXPECT_TRUE(item("timeline.find.count").text.starts_with("1 of ")) << item("timeline.find.count").text;
    click(middle("timeline.find.next"));
    EXPECT_NE(session().selected, first);
    click(middle("timeline.find.previous"));
    EXPECT_EQ(session().selected, first);
    click(middle("timeline.find.list"));
    EXPECT_EQ(item("timeline.matches.rows").text.substr(0, 1), count.substr(0, 1));
}

TEST_F(GesturesTest, LinksGoFromADeviceEventToItsLaunchAndBack) {
    const traces::store::Trace& trace = *session().trace();
    const std::size_t launched = first_with_value(trace.device.launch);
    ASSERT_LT(launched, trace.device.size());
    session().selected = {model::EventKind::device, static_cast<std::int64_t>(launched)};
    settle();
    act("follow_launch");
    EXPECT_EQ(session().selected,
              (model::SelectedEvent{model::EventKind::runtime, trace.device.launch[launched]}));
    act("follow_launch");
    EXPECT_EQ(session().selected.kind, model::EventKind::device);
}

TEST_F(GesturesTest, NextPartGoesRoundTheRanksOfACollective) {
    const traces::store::Trace& trace = *session().trace();
    const model::SelectedEvent first{model::EventKind::device,
                                     static_cast<std::int64_t>(first_with_value(trace.device.collective))};
    session().selected = first;
    settle();
    act("next_part");
    EXPECT_NE(session().selected, first);
    EXPECT_NE(trace.device.rank[static_cast<std::size_t>(session().selected.index)],
              trace.device.rank[static_cast<std::size_t>(first.index)]);
    act("next_part");
    EXPECT_EQ(session().selected, first);  // the collective has two ranks
}

TEST_F(GesturesTest, RowsAreFoldedPinnedHiddenAndShownAgain) {
    click(middle("timeline.row.rank 0"));
    EXPECT_TRUE(entry().rows.collapsed.contains("rank 0"));
    click(middle("timeline.row.rank 0"));
    EXPECT_FALSE(entry().rows.collapsed.contains("rank 0"));
    const std::string memory = "rank 0/memory";
    move(middle("timeline.row." + memory));
    act("pin_row");
    EXPECT_TRUE(entry().rows.is_pinned(memory));
    move(middle("timeline.row." + memory));
    act("hide_row");
    EXPECT_FALSE(draw::items::find("timeline.row." + memory));
    act("show_rows");
    EXPECT_TRUE(draw::items::find("timeline.row." + memory));
    EXPECT_FALSE(entry().rows.is_pinned(memory));
}

TEST_F(GesturesTest, ARowsMenuHidesItAndItsNameIsDraggedToAnotherPlace) {
    press(right_, middle("timeline.row.rank 0/memory"));
    click(middle("timeline.menu.hide_row"));
    EXPECT_TRUE(entry().rows.hidden.contains("rank 0/memory"));
    act("show_rows");
    act("fold_ranks");
    const ImVec2 first = middle("timeline.row.rank 0");
    const ImVec2 second = middle("timeline.row.rank 1");
    ASSERT_GT(second.y, first.y);
    drag(left_, middle("timeline.row.rank 1"), {first.x, item("timeline.row.rank 0").min.y + 1});
    EXPECT_LT(middle("timeline.row.rank 1").y, middle("timeline.row.rank 0").y);
}

// Whatever hides its row: a folded group, hiding, a hidden group, a filter, or all of these.
TEST_F(GesturesTest, ShowsALinkedEventWhenItsRowIsHidden) {
    const traces::store::Trace& trace = *session().trace();
    const model::SelectedEvent event{model::EventKind::device, 5};
    const traces::store::RankIndex rank(trace.device.rank[5]);
    const std::string group = "rank " + std::to_string(trace.ranks[rank.at()].number);
    const std::string row = group + "/stream " + std::to_string(trace.streams[trace.device.stream[5]].id);
    ASSERT_TRUE(draw::items::find("timeline.row." + row)) << row;
    model::RowArrangement folded, hidden, hidden_group, filtered, all;
    folded.collapsed = {group};
    hidden.hidden = {row};
    hidden_group.hidden = {group};
    filtered.filter = "no row is called so";
    all.collapsed = {group};
    all.hidden = {row, group};
    all.filter = "no row is called so";
    for (const model::RowArrangement& before : {folded, hidden, hidden_group, filtered, all}) {
        session().selected = {};
        entry().rows = before;
        settle();
        EXPECT_FALSE(draw::items::find("timeline.row." + row)) << to_json(before);
        session().go_to({trace.device.start[5], trace.device.end[5]}, rank, event);
        settle();
        EXPECT_TRUE(draw::items::find("timeline.row." + row)) << to_json(before);
        EXPECT_EQ(session().selected, event);
    }
    // Settings that do not hide the row stay unchanged.
    model::RowArrangement others = folded;
    others.hidden = {"rank 1/memory"};
    others.collapsed = {"rank 0", "rank 1"};
    others.filter = "rank";
    session().selected = {};
    entry().rows = others;
    settle();
    session().go_to({trace.device.start[5], trace.device.end[5]}, rank, event);
    settle();
    others.collapsed.erase(group);
    EXPECT_EQ(entry().rows, others);
    // Afterwards the user folds it again, and it stays folded.
    entry().rows.collapsed = {group};
    settle();
    EXPECT_FALSE(draw::items::find("timeline.row." + row));
}

TEST_F(GesturesTest, AClickOnAMarksTagChoosesNothingBeneathIt) {
    // The event's row is at the top, and the tag of a mark at its start is drawn over the event.
    const traces::store::Trace& trace = *session().trace();
    session().go_to({trace.device.start[5], trace.device.end[5]}, {}, {model::EventKind::device, 5});
    settle();
    act("mark");
    const auto rank = static_cast<std::size_t>(trace.device.rank[5]);
    entry().rows.pinned = {"rank " + std::to_string(trace.ranks[rank].number) + "/stream " +
                           std::to_string(trace.streams[trace.device.stream[5]].id)};
    session().selected = {};
    settle();
    const model::TimeRange seen = entry().visible;
    click(middle("timeline.mark.mark 1"));
    EXPECT_EQ(session().selected.kind, model::EventKind::none);
    press_twice(middle("timeline.mark.mark 1"));
    EXPECT_EQ(session().selected.kind, model::EventKind::none);
    EXPECT_EQ(entry().visible, seen);
    drag(left_, middle("timeline.mark.mark 1"), on_ruler(0.9F));
    EXPECT_EQ(entry().visible, seen) << "a tag is no handle of the timeline";
}

TEST_F(GesturesTest, MenusOfRowsGroupsAndEventsDoWhatTheySay) {
    const std::string row = "rank 0/memory";
    press(right_, middle("timeline.row." + row));
    EXPECT_TRUE(draw::items::find("timeline.menu.pin_row"));
    EXPECT_FALSE(draw::items::find("timeline.menu.fold_row")) << "a row has nothing to fold";
    click(middle("timeline.menu.pin_row"));
    EXPECT_TRUE(entry().rows.is_pinned(row));
    press(right_, middle("timeline.row." + row));
    EXPECT_EQ(item("timeline.menu.pin_row").text, "Let go");
    click(middle("timeline.menu.pin_row"));
    EXPECT_FALSE(entry().rows.is_pinned(row));

    press(right_, middle("timeline.row.rank 1"));
    click(middle("timeline.menu.row_up"));
    EXPECT_LT(middle("timeline.row.rank 1").y, middle("timeline.row.rank 0").y);
    press(right_, middle("timeline.row.rank 1"));
    click(middle("timeline.menu.fold_row"));
    EXPECT_TRUE(entry().rows.collapsed.contains("rank 1"));
    press(right_, middle("timeline.row.rank 1"));
    click(middle("timeline.menu.group_rows"));
    EXPECT_EQ(entry().rows.grouping, model::RowArrangement::Grouping::kind);
    press(right_, middle("timeline.row.kind memory"));
    EXPECT_FALSE(entry().rows.order.empty());
    click(middle("timeline.menu.show_rows"));
    EXPECT_TRUE(entry().rows.order.empty());

    entry().rows = {};
    settle();
    const std::string event = widest_event();
    press(right_, middle(event));
    EXPECT_NE(session().selected.kind, model::EventKind::none);
    const EventTime time = time_of(*session().trace(), session().selected);
    click(middle("timeline.menu.limit_selected"));
    EXPECT_EQ(entry().limit, (model::TimeRange{time.start, time.end}));
}

TEST_F(GesturesTest, TheFilterLeavesOnlyRowsThatHoldItsText) {
    const auto rows = [] {
        std::vector<std::string> keys;  // of rows, not of groups
        for (const std::string& name : draw::items::names()) {
            if (name.starts_with("timeline.row.") && name.find('/') != std::string::npos)
                keys.push_back(name);
        }
        return keys;
    };
    const std::size_t before = rows().size();
    entry().rows.filter = "memory";
    settle();
    EXPECT_LT(rows().size(), before);
    EXPECT_EQ(rows(), (std::vector<std::string>{"timeline.row.rank 0/memory", "timeline.row.rank 1/memory"}));
}

TEST_F(GesturesTest, EveryTimelineActionCanBeDoneAtAnyTime) {
    // First without a selection, then with an event: no action crashes, and a frame can be drawn after each.
    for (const bool chosen : {false, true}) {
        for (const app::Action& action : app::actions()) {
            if (action.panel != "timeline") continue;
            if (chosen && session().selected.kind == model::EventKind::none)
                session().selected = {model::EventKind::device, 0};
            action.run(program_);
            frame();
        }
    }
    settle();
}

// A step's range on the host and its window are two rows with two names; the summary's bar highlights the
// window.
TEST_F(GesturesTest, TheRulerShowsHostStepsAndWindowsApart) {
    const traces::store::Trace& trace = *session().trace();
    const auto summary = traces::analysis::summarize(trace);
    const traces::analysis::StepSummary& step = summary.ranks[0].steps[1];
    const auto host = std::find_if(trace.steps.begin(), trace.steps.end(), [&](const traces::store::Step& s) {
        return s.rank == traces::store::RankIndex(0) && s.number == step.number;
    });
    ASSERT_NE(host, trace.steps.end());
    const std::string number = std::to_string(step.number);
    const draw::items::Item on_host = item("timeline.host step." + number),
                            window = item("timeline.window." + number);
    EXPECT_EQ(on_host.text, "host step " + number + "  " +
                                draw::format_duration(static_cast<double>(host->end - host->start)));
    const std::string said = "window " + number + "  " +
                             draw::format_duration(static_cast<double>(step.window_end - step.window_start));
    EXPECT_EQ(window.text, said);
    EXPECT_LE(on_host.max.y, window.min.y);
    EXPECT_NEAR(static_cast<double>(time_at(window.min.x)), static_cast<double>(step.window_start),
                2 * ns_per_pixel());
    EXPECT_NEAR(static_cast<double>(time_at(window.max.x)), static_cast<double>(step.window_end),
                2 * ns_per_pixel());
    entry().lit = model::TimeRange{step.window_start, step.window_end};
    settle();
    EXPECT_EQ(item("timeline.window." + number).text, said + "  lit");
    act("let_go");
    EXPECT_EQ(item("timeline.window." + number).text, said);
}

// Everything that a user could notice: the drawn triangles and the session.
class ActionsChange : public GesturesTest {
  protected:
    ActionsChange() { ImGui::GetIO().ConfigInputTextCursorBlink = false; }

    std::string signature() {
        settle();
        std::uint64_t hash = 0;
        const ImDrawData* data = ImGui::GetDrawData();
        for (int i = 0; i < data->CmdListsCount; ++i) {
            const auto& vertices = data->CmdLists[i]->VtxBuffer;
            const auto* bytes = reinterpret_cast<const char*>(vertices.Data);
            hash = hash * 31 + std::hash<std::string_view>{}(
                                   {bytes, static_cast<std::size_t>(vertices.Size) * sizeof(ImDrawVert)});
        }
        const model::OpenTrace& open = entry();
        return std::to_string(hash) + clipboard_ + to_json(open.rows) + std::to_string(open.visible.from) +
               " " + std::to_string(open.visible.to) + (open.limit ? "limited" : "") +
               std::to_string(session().selected.index);
    }
    static std::unique_ptr<traces::store::Trace> forward_and_backward() {
        traces::store::ColumnSink sink;
        const std::int64_t thread = traces::schema::global_tid(1, 1);
        sink.add(traces::schema::RankRow{
            .global_pid = traces::schema::global_pid(1), .global_tid = thread, .host = "host"});
        sink.add(traces::schema::ThreadRow{thread, "main", 0});
        sink.add(traces::schema::ModuleRow{4, -1, "Linear_0", "Linear", "net.0"});
        for (const auto& [name, start] : {std::pair{"nn.Module: Linear_0", 0}, std::pair{"backward", 500}}) {
            traces::schema::RangeRow row;
            row.start = start;
            row.end = start + 100;
            row.text = sink.intern(name);
            row.global_tid = thread;
            row.module = 4;
            sink.add(row);
        }
        return sink.take();
    }
    // The first event of a kind that satisfies `fits`.
    template <class Fits>
    model::SelectedEvent event(model::EventKind kind, std::size_t count, const Fits& fits) {
        for (std::size_t i = 0; i < count; ++i) {
            if (fits(i)) return {kind, static_cast<std::int64_t>(i)};
        }
        ADD_FAILURE() << "no such event";
        return {};
    }
};

TEST_F(ActionsChange, EveryTimelineActionDoesSomethingSomewhere) {
    const traces::store::Trace& trace = *session().trace();
    const model::SelectedEvent kernel =
        event(model::EventKind::device, trace.device.size(), [&](std::size_t i) {
            return trace.device.kind[i] == traces::store::DeviceKind::kernel && i > trace.device.size() / 2;
        });
    const model::SelectedEvent collective = event(
        model::EventKind::device, trace.device.size(),
        [&](std::size_t i) { return trace.device.kind[i] == traces::store::DeviceKind::communication; });
    const model::SelectedEvent module =
        event(model::EventKind::range, trace.ranges.size(),
              [&](std::size_t i) { return trace.ranges.kind[i] == traces::store::RangeKind::module; });
    std::set<std::string_view> dead;
    for (const app::Action& action : app::actions()) {
        if (action.panel == "timeline") dead.insert(action.id);
    }
    ASSERT_GT(dead.size(), 30U);
    const auto found = [&] { program_.shown().act("find_same", session()); };
    for (const model::SelectedEvent& start : {kernel, collective, module, model::SelectedEvent{}}) {
        session().selected = start;
        if (start.kind != model::EventKind::none) found();
        for (const app::Action& action : app::actions()) {
            if (dead.count(action.id) == 0) continue;
            session().fit();
            session().selected = start;
            entry().area.reset();
            run_action("zoom_in", program_);  // so that undo and redo both have an entry
            settle();
            if (action.id == "forward") run_action("back", program_);
            if (action.id == "no_limit") run_action("limit", program_);
            if (action.id == "scroll_up" || action.id == "page_up") run_action("page_down", program_);
            if (action.id == "row_up") run_action("row_down", program_);
            if (action.id.ends_with("_in_bin")) {
                run_action("area", program_);
                settle();
                click_a_bin();
            }
            if (action.id.ends_with("_mark")) {
                run_action("mark", program_);
                session().selected = {};
                session().fit();
                run_action("mark", program_);
            }
            const std::string before = signature();
            ASSERT_TRUE(run_action(action.id, program_)) << action.id;
            if (signature() != before) dead.erase(action.id);
            ImGui::SetWindowFocus(nullptr);  // leaves a field that was opened
        }
    }
    // The sample's backward has no ranges of its own.
    session().add_trace(forward_and_backward(), "tied");
    session().set_active(1);
    session().selected = {model::EventKind::range, 0};
    const std::string before = signature();
    ASSERT_TRUE(run_action("follow_backward", program_));
    if (signature() != before) dead.erase("follow_backward");
    // Two runs are open now.
    const std::string alone = signature();
    ASSERT_TRUE(run_action("other_run", program_));
    if (signature() != alone) dead.erase("other_run");
    EXPECT_EQ(dead, std::set<std::string_view>{});
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::timeline
