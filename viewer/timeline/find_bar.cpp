// See find_bar.h.
#include "viewer/timeline/find_bar.h"

#include <utility>

#include <fmt/core.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/timeline/find_text.h"

namespace shardscope::viewer::timeline {

float FindBar::width() {
    return ImGui::GetFontSize() * 25;
}

void FindBar::draw(model::Session& session, TimelinePage& page) {
    const float font = ImGui::GetFontSize();
    if (std::exchange(focus_, false)) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(font * 12);
    const bool entered = ImGui::InputTextWithHint("##find", "Find events (Ctrl+F)", &text_,
                                                  ImGuiInputTextFlags_EnterReturnsTrue);
    draw::items::mark("timeline.find", text_);
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
    if (draw::named_button("<##find", "timeline.find.previous")) go(session, page, false);
    ImGui::SameLine(0, font * 0.2F);
    if (draw::named_button(">##find", "timeline.find.next")) go(session, page, true);
    ImGui::SameLine(0, font * 0.3F);
    if (draw::named_button(list ? "List##on" : "List", "timeline.find.list")) list = !list;
    ImGui::SameLine(0, font * 0.5F);
    ImGui::AlignTextToFramePadding();
    const std::string count = count_text(session, page);
    draw::text_dim(count);
    draw::items::mark("timeline.find.count", count);
}

std::string FindBar::count_text(const model::Session& session, const TimelinePage& page) const {
    if (found_ == nullptr) return "searching ...";
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
    if (next) page.go_to(session, found_->event(*next));
}

void FindBar::draw_matches(model::Session& session, TimelinePage& page) {
    if (found_ == nullptr) return draw::note("Searching ...");
    if (found_->size() == 0) return draw::note("No event's name contains this text.");
    if (model_of_ != found_) {
        model_of_ = found_;
        model_ = std::make_shared<MatchTable>(page.trace, found_);
    }
    const tables::TableEvents events =
        draw_table("timeline.matches", model_, table_, {.filter = false, .name = "matches"});
    if (events.clicked) page.go_to(session, found_->event(*events.clicked));
    if (events.opened) {
        const EventTime time = time_of(*page.trace, found_->event(*events.opened));
        TimelinePage::show(*session.current(), framed({time.start, time.end}, page.whole()));
    }
}

}  // namespace shardscope::viewer::timeline
