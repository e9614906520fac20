// See event_views.h.
#include "viewer/timeline/event_views.h"

#include <fmt/core.h>

#include "viewer/draw/fold.h"
#include "viewer/draw/format.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"
#include "viewer/timeline/details.h"

namespace shardscope::viewer {

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

}  // namespace shardscope::viewer
