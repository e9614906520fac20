// See named_work.h.
#include "viewer/panels/work/named_work.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/store/grouped.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"

namespace shardscope::viewer::panels {
namespace {

// --- The bar of shares.

// The name with its share if both fit, else as much of the name as fits.
std::string label_of(const NameShare& part, float room) {
    if (room < ImGui::GetFontSize() * 3) return {};
    const std::string share = fmt::format(" {:.0f} %", part.percent);
    const float left = room - ImGui::CalcTextSize(share.c_str()).x;
    const bool both = left > 0 && draw::fit_text(part.name, left) == part.name;
    return both ? part.name + share : draw::fit_text(part.name, room);
}

// As wide as the room left. Returns the table's row of the part that was clicked.
std::optional<std::size_t> draw_share_bar(const char* id, std::span<const NameShare> parts) {
    if (parts.empty()) return {};
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const ImVec2 size = {ImGui::GetContentRegionAvail().x, ImGui::GetFontSize() * 1.7F};
    std::vector<draw::Segment> segments;
    double whole = 0;
    for (const NameShare& part : parts) {
        const float room = size.x * static_cast<float>(part.percent / 100) - ImGui::GetFontSize() * 0.8F;
        segments.push_back({part.us, part.color, label_of(part, room)});
        whole += part.us;
    }
    const int hovered = stacked_bar(at, size, segments, whole, true);
    draw::place_button(id, size);
    const bool clicked = ImGui::IsItemClicked();
    draw::items::mark(id);
    if (hovered < 0) return {};
    const NameShare& part = parts[static_cast<std::size_t>(hovered)];
    draw::begin_tip(part.name);
    draw::tip_row("Device time", draw::format_duration(part.us * 1e3), part.color);
    draw::tip_row("Share", draw::format_percent(part.percent));
    draw::end_tip();
    return clicked && part.row >= 0 ? std::optional(static_cast<std::size_t>(part.row)) : std::nullopt;
}

// --- The line under the table: buttons go to the longest of the chosen row's events, and to the previous and
// next one from the selected event.

model::TimeRange time_of(const traces::store::Trace& trace, model::EventKind kind, std::uint32_t row) {
    if (kind == model::EventKind::device) return {trace.device.start[row], trace.device.end[row]};
    return {trace.ranges.start[row], trace.ranges.end[row]};
}

void go_to(model::Session& session, model::EventKind kind, std::uint32_t row) {
    session.go_to(time_of(*session.trace(), kind, row), session.rank, {kind, static_cast<std::int64_t>(row)});
}

bool button(const char* id, const char* name, const char* label) {
    return draw::named_button(label, fmt::format("{}.{}", id, name));
}

void go_to_longest(model::Session& session, model::EventKind kind, const Occurrences& events) {
    if (events == nullptr || events->empty()) return;
    const traces::store::Trace& trace = *session.trace();
    go_to(session, kind,
          *std::max_element(events->begin(), events->end(), [&](std::uint32_t a, std::uint32_t b) {
              return time_of(trace, kind, a).length() < time_of(trace, kind, b).length();
          }));
}

// `events` is nullptr during the search for them.
void draw_occurrences(const char* id, model::Session& session, const std::string& name, model::EventKind kind,
                      const Occurrences& events) {
    const float font = ImGui::GetFontSize();
    ImGui::AlignTextToFramePadding();
    if (name.empty()) {
        return draw::text_fit_dim(
            "Click a row to step through its events in the timeline; double-click goes to the longest.");
    }
    const float buttons = font * 24;
    const std::string shown =
        draw::fit_text(name, std::max(font * 8, ImGui::GetContentRegionAvail().x - buttons));
    draw::text(shown);
    if (shown != name && ImGui::IsItemHovered()) draw::full_text_tip(name);
    ImGui::SameLine(0, font);
    if (events == nullptr || events->empty())
        return draw::text(events == nullptr ? "searching for its events ..."
                                            : "has no event in the current selection");
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
        on_one ? fmt::format("{} of {}", draw::format_count(here - events->begin() + 1),
                             draw::format_count(static_cast<std::int64_t>(events->size())))
               : traces::store::counted(static_cast<std::int64_t>(events->size()), "event", "events");
    draw::text(count);
    draw::items::mark(fmt::format("{}.occurrence", id), count);
}

}  // namespace

void NamedWork::draw(model::Session& session, const std::function<Chosen(std::size_t row)>& chosen) {
    if (const auto row = draw_share_bar(fmt::format("{}.shares", id_).c_str(), rows_.shares)) {
        state_.chosen = row;
        state_.scroll_to_chosen = true;
    }
    const float below = ImGui::GetFrameHeightWithSpacing();
    const float height = ImGui::GetContentRegionAvail().y - below - ImGui::GetFrameHeightWithSpacing();
    const tables::TableEvents events = draw_table(id_, rows_.model, state_, {.size = {0, height}});
    Chosen now;
    if (state_.chosen && *state_.chosen < rows_.model->rows()) now = chosen(*state_.chosen);
    if (events.opened) wants_longest_ = true;
    if (wants_longest_ && now.events != nullptr) {
        wants_longest_ = false;
        go_to_longest(session, kind_, now.events);
    }
    ImGui::PushID(id_);
    draw_occurrences(id_, session, now.name, kind_, now.events);
    ImGui::PopID();
    name_ = now.name;
}

}  // namespace shardscope::viewer::panels
