// See timeline_items.h.
#include "viewer/timeline/timeline_items.h"

#include <algorithm>
#include <map>
#include <string>

#include <fmt/core.h>

#include "viewer/draw/items.h"
#include "viewer/timeline/details.h"

namespace shardscope::viewer {
namespace {

constexpr std::size_t kMostBars = 3000;

class Names {
  public:
    explicit Names(const TimelinePage& page) : p_(page) {}

    void row(const Row& row) {
        const float y0 = std::max(p_.y_of(row), p_.area.top());
        const float y1 = std::min(p_.y_of(row) + row.height, p_.area.max.y);
        if (row.kind == Row::Kind::lane && !row.first_of_track) return;
        const std::string& key = p_.key_of(row);
        const std::string& label = row.entry >= 0
                                       ? p_.layout().entries[static_cast<std::size_t>(row.entry)].label
                                       : p_.layout().groups[static_cast<std::size_t>(row.group)].label;
        items::place("timeline.row." + key, {p_.area.min.x, y0}, {p_.area.left(), y1}, label);
    }

    void bars(const Row& row) {
        const FoldedRow* folded = p_.folded_rows.find(row.track, row.lane);
        if (folded == nullptr) return;
        const Lane& lane = p_.lane_of(row);
        const float y0 = std::max(p_.y_of(row), p_.area.top());
        const float y1 = std::min(p_.y_of(row) + row.height, p_.area.max.y);
        for (const Bar& bar : folded->lane.bars) {
            if (count_++ >= kMostBars) return;
            const std::string label = bar_label(*p_.trace, lane.event(bar.item));
            const int n = ++seen_[label];
            const ImVec2 min{p_.area.left() + bar.x0, y0}, max{p_.area.left() + bar.x1, y1};
            if (n == 1) items::place("timeline.event." + label, min, max, label);
            items::place(fmt::format("timeline.event.{}.{}", label, n), min, max, label);
        }
    }

  private:
    const TimelinePage& p_;
    std::map<std::string, int> seen_;
    std::size_t count_ = 0;
};

}  // namespace

void name_timeline_items(const OpenTrace& entry, const TimelinePage& page) {
    if (!items::kept()) return;
    const TimelineArea& a = page.area;
    items::place("timeline.ruler", {a.left(), a.min.y}, {a.max.x, a.top()});
    items::place("timeline.rows", {a.left(), a.top()}, {a.max.x, a.max.y},
                 fmt::format("{} rows", page.layout().rows.size()));
    if (entry.trace == nullptr) return;
    Names names(page);
    for (const Row* row : page.rows_in_sight()) {
        names.row(*row);
        if (row->kind == Row::Kind::lane) names.bars(*row);
    }
}

}  // namespace shardscope::viewer
