// See find_bar.h.
#include "viewer/timeline/find_bar.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include <fmt/core.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"
#include "viewer/timeline/find_text.h"

namespace shardscope::viewer::timeline {

constexpr int kStripSlices = 4096;
constexpr float kField = 12, kRest = 15;  // widths of the field and of what follows it, in font sizes

namespace {

auto marks_of(const std::shared_ptr<const FoundEvents>& found, const std::shared_ptr<const Tracks>& tracks) {
    return [found, tracks](const traces::store::Trace& trace, const std::atomic<bool>& cancel) {
        return make_hit_marks(trace, *tracks, *found, kStripSlices, cancel);
    };
}

std::shared_ptr<const traces::analysis::TraceSteps> steps_of(model::Session& session,
                                                             const model::TracePtr& trace) {
    return session.analyses.get<traces::analysis::TraceSteps>(
        "trace steps", {trace}, [](const auto& t) { return traces::analysis::find_steps(*t.front()); });
}

}  // namespace

float FindBar::width() {
    return ImGui::GetFontSize() * (kRest + kField / 2);
}

void FindBar::draw(model::Session& session, TimelinePage& page) {
    const float font = ImGui::GetFontSize();
    const float room = ImGui::GetContentRegionAvail().x;
    if (std::exchange(focus_, false)) ImGui::SetKeyboardFocusHere();
    // The field shrinks for its result, so that no line is added below and the rows stay where they are.
    ImGui::SetNextItemWidth(
        text_.empty() ? font * kField : std::clamp(room - font * kRest, font * kField / 2, font * kField));
    const bool entered = ImGui::InputTextWithHint("##find", "Find events (Ctrl+F)", &text_,
                                                  ImGuiInputTextFlags_EnterReturnsTrue);
    draw::items::mark("timeline.find", text_);
    if (text_.empty() && ImGui::IsItemHovered()) {
        draw::full_text_tip(
            "A part of a name, and filters: kind:kernel rank:3 dur>10us dur<=2ms unit:blocks.3 "
            "module:Linear. "
            "Text in double quotes is not read for filters.");
    }
    found_ = finder_.of(page.trace, text_);
    if (entered) {
        go(session, page, !ImGui::GetIO().KeyShift);
        focus_ = true;  // so that the next Enter finds the next match
    }
    if (text_.empty()) {
        list = false;
        return;
    }
    ImGui::SameLine(0, font * 0.3F);
    if (found_ == nullptr || found_->wrong.empty()) {
        if (draw::named_button("<##find", "timeline.find.previous")) go(session, page, false);
        ImGui::SameLine(0, font * 0.2F);
        if (draw::named_button(">##find", "timeline.find.next")) go(session, page, true);
        ImGui::SameLine(0, font * 0.3F);
        if (draw::named_button(list ? "List##on" : "List", "timeline.find.list")) list = !list;
        ImGui::SameLine(0, font * 0.5F);
    }
    draw_count(session, page);
}

void FindBar::draw_count(const model::Session& session, const TimelinePage& page) const {
    const std::string count = count_text(session, page);
    const bool wrong = found_ != nullptr && !found_->wrong.empty();
    ImGui::AlignTextToFramePadding();
    const std::string shown = draw::fit_text(count, ImGui::GetContentRegionAvail().x);
    if (wrong) {
        draw::text_in(theme::bad(), shown);
    } else {
        draw::text_dim(shown);
    }
    if (shown != count && ImGui::IsItemHovered()) draw::full_text_tip(count);
    draw::items::mark("timeline.find.count", count);
}

void FindBar::mark_hits(TimelinePage& page) {
    page.hits.reset();
    if (found_ == nullptr || found_->size() == 0 || page.tracks == nullptr) return;
    page.hits = marks_.of(page.trace, marks_key(found_, page.tracks), marks_of(found_, page.tracks));
}

std::string FindBar::marks_key(const std::shared_ptr<const FoundEvents>& found,
                               const std::shared_ptr<const Tracks>& tracks) const {
    return fmt::format("{} {} {}", static_cast<const void*>(found.get()),
                       static_cast<const void*>(tracks.get()), text_);
}

bool FindBar::ready(model::Session& session, const model::TracePtr& successor,
                    const std::shared_ptr<const Tracks>& tracks) {
    if (text_.empty()) return true;
    const auto found = finder_.ahead(successor, text_);
    if (found == nullptr) return false;
    const bool listed = !list || steps_of(session, successor) != nullptr;
    if (found->size() == 0) return listed;
    return marks_.ahead(successor, marks_key(found, tracks), marks_of(found, tracks)) != nullptr && listed;
}

std::string FindBar::count_text(const model::Session& session, const TimelinePage& page) const {
    if (found_ == nullptr) return "searching ...";
    if (!found_->wrong.empty()) return found_->wrong;
    if (found_->size() == 0) return "nothing found";
    const auto n = static_cast<std::int64_t>(found_->size());
    const auto place = found_->place_of(*page.trace, session.selected);
    if (!place) return fmt::format("{} found", draw::format_count(n));
    return fmt::format("{} of {}", draw::format_count(static_cast<std::int64_t>(*place) + 1),
                       draw::format_count(n));
}

void FindBar::go(model::Session& session, TimelinePage& page, bool forwards) {
    if (found_ == nullptr) return;
    const std::int64_t from = session.current()->visible.from;
    const auto next = forwards ? found_->after(*page.trace, session.selected, from)
                               : found_->before(*page.trace, session.selected, from);
    if (!next) return;
    page.go_to(session, found_->event(*next));
    page.show_closely(*session.current(), found_->event(*next));
}

void FindBar::draw_matches(model::Session& session, TimelinePage& page) {
    if (found_ == nullptr) return draw::note("Searching ...");
    if (!found_->wrong.empty()) return draw::note(found_->wrong);
    if (found_->size() == 0) return draw::note("No event passes this search.");
    const auto steps = steps_of(session, page.trace);
    if (model_of_ != found_ || steps_ != steps) {
        model_of_ = found_;
        steps_ = steps;
        model_ = std::make_shared<MatchTable>(page.trace, found_, page.tracks, steps);
    }
    const tables::TableEvents events =
        draw_table("timeline.matches", model_, table_, {.filter = false, .name = "matches"});
    if (events.clicked) {
        page.go_to(session, found_->event(*events.clicked));
        page.show_closely(*session.current(), found_->event(*events.clicked));
    }
    if (events.opened) {
        const EventTime time = time_of(*page.trace, found_->event(*events.opened));
        TimelinePage::show(*session.current(), framed({time.start, time.end}, page.whole()));
    }
}

}  // namespace shardscope::viewer::timeline
