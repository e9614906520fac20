// See timeline_parts.h.
#include <array>
#include <cstdint>
#include <utility>

#include <fmt/core.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"
#include "viewer/timeline/measure.h"
#include "viewer/timeline/timeline_parts.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::timeline {
namespace {

struct ColorChoice {
    model::ColorBy by;
    const char *label, *item;
};
constexpr std::array kColors = {
    ColorChoice{model::ColorBy::kind, "Colour by kind", "kind"},
    ColorChoice{model::ColorBy::name, "Colour by name", "name"},
    ColorChoice{model::ColorBy::module, "Colour by module", "module"},
    ColorChoice{model::ColorBy::unit, "Colour by FSDP unit", "unit"},
    ColorChoice{model::ColorBy::cause, "Colour by exposure", "cause"},
};

// Places the next item of the toolbar, `width` wide: on this line if it fits, else on a new one.
void next(float width) {
    const float gap = ImGui::GetFontSize() * 0.6F;
    const float right = ImGui::GetWindowPos().x + ImGui::GetWindowContentRegionMax().x;
    if (ImGui::GetItemRectMax().x + gap + width <= right) ImGui::SameLine(0, gap);
}

void tip(const char* what) {
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", what);
}

bool button(const char* label, const char* item, const char* help, bool on = false) {
    if (on) {
        ImGui::PushStyleColor(ImGuiCol_Button, theme::accent());
        ImGui::PushStyleColor(ImGuiCol_Text, theme::ground());
    }
    const bool clicked = draw::named_button(label, item);
    if (on) ImGui::PopStyleColor(2);
    tip(help);
    return clicked;
}

void choose_color(model::Session& session) {
    next(ImGui::GetFontSize() * 11);
    ImGui::SetNextItemWidth(ImGui::GetFontSize() * 11);
    const ColorChoice& now = kColors[static_cast<std::size_t>(session.color_by)];
    const bool open = ImGui::BeginCombo("##color", now.label);
    draw::items::mark("timeline.color", now.item);
    if (!open) return;
    for (const ColorChoice& choice : kColors) {
        if (ImGui::Selectable(choice.label, choice.by == session.color_by)) session.color_by = choice.by;
        draw::items::mark(fmt::format("timeline.color.{}", choice.item), choice.label);
    }
    ImGui::EndCombo();
}

void filter_rows(model::OpenTrace& entry, const TimelinePage& page, bool& focus) {
    const float width = ImGui::GetFontSize() * 9;
    next(width);
    if (std::exchange(focus, false)) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(width);
    ImGui::InputTextWithHint("##rows", "Filter rows ( / )", &entry.rows.filter);
    draw::items::mark("timeline.filter", entry.rows.filter);
    if (entry.rows.filter.empty() || page.rows == nullptr || page.layout().filtered_out == 0) return;
    const auto out = static_cast<std::int64_t>(page.layout().filtered_out);
    if (ImGui::IsItemHovered())
        ImGui::SetTooltip("%s row%s filtered out", draw::format_count(out).c_str(),
                          out == 1 ? " is" : "s are");
}

// "shows 12.3 ms, limit range 1.2 ms" at the right end of the legend's line, if there is room.
void draw_shown(const model::OpenTrace& entry, float right) {
    std::string shown = "shows " + draw::format_duration(static_cast<double>(entry.visible.length()));
    if (entry.limit) {
        shown = fmt::format("filtered to {}, ",
                            draw::format_duration(static_cast<double>(entry.limit->length()))) +
                shown;
    }
    const float width = ImGui::CalcTextSize(shown.c_str()).x;
    const bool fits = ImGui::GetItemRectMax().x + width + ImGui::GetFontSize() * 2 < right;
    if (fits) {
        ImGui::SameLine();
        ImGui::SetCursorScreenPos({right - width, ImGui::GetCursorScreenPos().y});
        draw::text_dim(shown);
    }
    draw::items::value("timeline.shown", shown);
    draw::items::value("timeline.visible", fmt::format("{} to {}", instant_text(entry.visible.from),
                                                       instant_text(entry.visible.to)));
    draw::items::value(
        "timeline.limit",
        entry.limit ? fmt::format("{} to {}", instant_text(entry.limit->from), instant_text(entry.limit->to))
                    : "none");
}

}  // namespace

std::string draw_timeline_toolbar(model::Session& session, TimelinePage& page, FindBar& find,
                                  ToolbarState state) {
    std::string action;
    widgets::draw_choosers(session);
    draw::flow(draw::button_width("<") + draw::button_width(">") + ImGui::GetFontSize() * 0.2F);
    if (button("<##back", "timeline.back", "Undo the last zoom or move ( Ctrl+Left, Backspace )"))
        action = "back";
    ImGui::SameLine(0, ImGui::GetFontSize() * 0.2F);
    if (button(">##forward", "timeline.forward", "Redo ( Ctrl+Right )")) action = "forward";
    next(draw::button_width("Fit"));
    if (button("Fit", "timeline.fit", "Show the whole trace ( F )")) action = "fit";
    next(draw::button_width("Measure"));
    if (button("Measure", "timeline.measuring",
               "Measure by dragging ( T; also a drag with the right button )", state.measuring)) {
        state.measuring = !state.measuring;
    }
    const std::string marks = state.marks == 0 ? "Marks" : fmt::format("Marks {}", state.marks);
    next(draw::button_width(marks));
    if (button((marks + "###marks").c_str(), "timeline.marks.show", "List marks and ranges ( B )",
               state.marks_shown)) {
        state.marks_shown = !state.marks_shown;
    }
    filter_rows(*session.current(), page, state.focus_filter);
    choose_color(session);
    next(FindBar::width());
    find.draw(session, page);
    if (const float width = ImGui::GetFontSize() * 14; session.ready().size() > 1) {
        next(width);
        state.other.draw_choice(session, width);
    }

    const float right = ImGui::GetWindowPos().x + ImGui::GetWindowContentRegionMax().x;
    legend(page.legend);
    draw_shown(*session.current(), right);
    return action;
}

}  // namespace shardscope::viewer::timeline
