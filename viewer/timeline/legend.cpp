// See legend.h.
#include "viewer/timeline/legend.h"

#include <cstddef>
#include <string>

#include "viewer/draw/format.h"

namespace shardscope::viewer {
namespace {

constexpr std::size_t kMost = 14;     // entries, so that they take a line or two
constexpr std::size_t kLongest = 18;  // letters

}  // namespace

std::vector<LegendItem> make_legend(const TrackPaints& paints) {
    std::vector<LegendItem> items;
    for (const PaintName& name : paints.legend()) {
        if (items.size() == kMost) break;
        items.push_back({shorten_middle(name.name, kLongest), paint_color(name.paint)});
    }
    return items;
}

}  // namespace shardscope::viewer
