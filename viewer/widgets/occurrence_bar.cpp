// See occurrence_bar.h.
#include "viewer/widgets/occurrence_bar.h"

#include <algorithm>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/store/grouped.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer {
namespace {

TimeRange time_of(const traces::Trace& trace, EventKind kind, std::uint32_t row) {
    if (kind == EventKind::device) return {trace.device.start[row], trace.device.end[row]};
    return {trace.ranges.start[row], trace.ranges.end[row]};
}

void go_to(Session& session, EventKind kind, std::uint32_t row) {
    session.go_to(time_of(*session.trace(), kind, row), session.rank, {kind, static_cast<std::int64_t>(row)});
}

bool button(const char* id, const char* name, const char* label) {
    const bool clicked = ImGui::Button(label);
    items::mark(fmt::format("{}.{}", id, name), label);
    return clicked;
}

}  // namespace

void go_to_longest(Session& session, EventKind kind, const Occurrences& events) {
    if (events == nullptr || events->empty()) return;
    const traces::Trace& trace = *session.trace();
    go_to(session, kind,
          *std::max_element(events->begin(), events->end(), [&](std::uint32_t a, std::uint32_t b) {
              return time_of(trace, kind, a).length() < time_of(trace, kind, b).length();
          }));
}

void draw_occurrences(const char* id, Session& session, const std::string& name, EventKind kind,
                      const Occurrences& events) {
    const float font = ImGui::GetFontSize();
    ImGui::PushID(id);
    ImGui::AlignTextToFramePadding();
    if (name.empty()) {
        ImGui::PushStyleColor(ImGuiCol_Text, theme::text_dim());
        text("Click a row to step through its events in the timeline; double-click goes to the longest.");
        ImGui::PopStyleColor();
        ImGui::PopID();
        return;
    }
    const float buttons = font * 24;
    const std::string shown = fit_text(name, std::max(font * 8, ImGui::GetContentRegionAvail().x - buttons));
    text(shown);
    if (shown != name && ImGui::IsItemHovered()) full_text_tip(name);
    ImGui::SameLine(0, font);
    if (events == nullptr || events->empty()) {
        text(events == nullptr ? "looking for its events ..." : "has no event in what is looked at");
        ImGui::PopID();
        return;
    }
    const bool known = session.selected.kind == kind;
    const auto selected = static_cast<std::uint32_t>(std::max<std::int64_t>(0, session.selected.index));
    const auto next = known ? std::upper_bound(events->begin(), events->end(), selected) : events->begin();
    const auto here = known ? std::lower_bound(events->begin(), events->end(), selected) : events->end();
    const bool on_one = here != events->end() && *here == selected;
    if (button(id, "longest", "Longest")) go_to_longest(session, kind, events);
    ImGui::SameLine(0, font * 0.4F);
    ImGui::BeginDisabled(!known || here == events->begin());
    if (button(id, "previous", "Previous")) go_to(session, kind, *std::prev(here));
    ImGui::EndDisabled();
    ImGui::SameLine(0, font * 0.4F);
    ImGui::BeginDisabled(next == events->end());
    if (button(id, "next", known ? "Next" : "First")) go_to(session, kind, *next);
    ImGui::EndDisabled();
    ImGui::SameLine(0, font);
    const std::string count =
        on_one ? fmt::format("{} of {}", format_count(here - events->begin() + 1),
                             format_count(static_cast<std::int64_t>(events->size())))
               : traces::counted(static_cast<std::int64_t>(events->size()), "event", "events");
    text(count);
    items::mark(fmt::format("{}.occurrence", id), count);
    ImGui::PopID();
}

}  // namespace shardscope::viewer
