// See event_views.h.
#include "viewer/timeline/event_views.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <imgui.h>

#include "viewer/app/theme.h"
#include "viewer/draw/fold.h"
#include "viewer/draw/format.h"
#include "viewer/draw/text.h"
#include "viewer/timeline/details.h"

namespace shardscope::viewer {
namespace {

constexpr std::size_t kRows = 5;  // of a column of fields

float width_of(const std::string& text) {
    return ImGui::CalcTextSize(text.c_str()).x;
}

}  // namespace

void event_tip(const traces::Trace& trace, SelectedEvent event, const Hit& hit) {
    const EventDetails details = describe(trace, event);
    begin_tip(shorten_middle(details.title, 80));
    if (hit.events > 1) {
        tip_row("in this pixel",
                fmt::format("{} events, {} busy", format_count(hit.events), format_percent(hit.busy * 100)));
    }
    for (const Detail& detail : details.rows) tip_row(detail.label, shorten_middle(detail.value, 60));
    end_tip();
}

void memory_tip(const std::vector<traces::MemoryPoint>& curve, std::int64_t time) {
    const traces::MemoryPoint* point = point_at(curve, time);
    begin_tip(fmt::format("Allocated at {} ms", format_decimal(static_cast<double>(time) / 1e6, 3)));
    tip_row("total", format_size(point ? point->total : 0));
    for (std::size_t c = 0; point != nullptr && c < point->bytes.size(); ++c) {
        if (point->bytes[c] == 0) continue;
        tip_row(spaced(traces::kMemoryCategoryNames[c]), format_size(point->bytes[c]),
                category_color(static_cast<traces::MemoryCategory>(c)));
    }
    end_tip();
}

float event_fields_height() {
    return std::round(ImGui::GetTextLineHeightWithSpacing() * (static_cast<float>(kRows) + 1.6F));
}

void draw_event_fields(const traces::Trace& trace, SelectedEvent event, float right) {
    const EventDetails details = describe(trace, event);
    const float font = ImGui::GetFontSize(), line = ImGui::GetTextLineHeightWithSpacing();
    const ImVec2 top = ImGui::GetCursorScreenPos();
    ImDrawList* draw = ImGui::GetWindowDrawList();
    draw->AddRectFilled(top, {right, top.y + event_fields_height()}, theme::raised());
    float x = top.x + font * 0.6F;
    const float title_y = top.y + font * 0.4F;
    draw->AddText({x, title_y}, theme::text(), fit_text(details.title, right - x - font).c_str());
    // Rows fill column after column, each as wide as its longest row.
    for (std::size_t from = 0; from < details.rows.size(); from += kRows) {
        const std::size_t to = std::min(details.rows.size(), from + kRows);
        float labels = 0, values = 0;
        for (std::size_t i = from; i < to; ++i) {
            labels = std::max(labels, width_of(details.rows[i].label));
            values = std::max(values, width_of(details.rows[i].value));
        }
        const float room = right - x - labels - font * 1.5F;
        if (room < font * 4) break;  // the tooltip has them all
        for (std::size_t i = from; i < to; ++i) {
            const float y = title_y + line * (1.2F + static_cast<float>(i - from));
            draw->AddText({x, y}, theme::text_dim(), details.rows[i].label.c_str());
            draw->AddText({x + labels + font * 0.8F, y}, theme::text(),
                          fit_text(details.rows[i].value, room).c_str());
        }
        x += labels + std::min(values, room) + font * 2.6F;
    }
    ImGui::Dummy({right - top.x, event_fields_height()});
}

}  // namespace shardscope::viewer
