// What the parts of the timeline's painter share: the places of times and rows on the screen, and text on
// whole pixels. Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <cmath>
#include <string>

#include "viewer/draw/chart.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"
#include "viewer/timeline/painter.h"

namespace shardscope::viewer::timeline {

class Canvas {
  public:
    Canvas(ImDrawList& draw, const TimelinePicture& picture)
        : draw_(draw), p_(picture), font_(ImGui::GetFontSize()) {}

  protected:
    float x_of(std::int64_t time) const { return p_.area.x_of(p_.view, time); }
    float y_of(const Row& row) const {
        return std::floor(p_.area.top() + p_.layout.on_screen(row, p_.area.scroll));
    }
    void ground(const Row& row) {
        const float y = y_of(row);
        draw_.AddRectFilled({p_.area.left(), y}, {p_.area.max.x, y + row.height},
                            draw::faded(theme::text(), 0.025F));
    }
    void put(float x, float y, ImU32 color, const std::string& text) {
        draw_.AddText({std::floor(x), std::floor(y)}, color, text.c_str());
    }

    ImDrawList& draw_;
    const TimelinePicture& p_;
    float font_;
};

}  // namespace shardscope::viewer::timeline
