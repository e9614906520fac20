// See rail_icons.h.
#include "viewer/app/rail_icons.h"

namespace shardscope::viewer {

void draw_icon(ImDrawList& list, std::span<const Stroke> icon, ImVec2 at, float size, ImU32 color) {
    const float unit = size / 16, thick = unit * 1.4F;
    for (const Stroke& s : icon) {
        const ImVec2 a{at.x + s.ax * unit, at.y + s.ay * unit}, b{at.x + s.bx * unit, at.y + s.by * unit};
        switch (s.shape) {
            case Shape::line:
                list.AddLine(a, b, color, thick);
                break;
            case Shape::box:
                list.AddRectFilled(a, b, color, unit);
                break;
            case Shape::frame:
                list.AddRect(a, b, color, unit, 0, thick);
                break;
            case Shape::dot:
                list.AddCircleFilled(a, s.bx * unit, color);
                break;
            case Shape::ring:
                list.AddCircle(a, s.bx * unit, color, 0, thick);
                break;
        }
    }
}

}  // namespace shardscope::viewer
