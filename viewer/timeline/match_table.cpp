// See match_table.h.
#include "viewer/timeline/match_table.h"

#include <utility>

#include "viewer/draw/format.h"
#include "viewer/timeline/details.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer {
namespace {

enum Column : std::size_t { kName, kRank, kStart, kDuration };

double rank_of(const traces::Trace& trace, SelectedEvent event) {
    const auto i = static_cast<std::size_t>(event.index);
    int rank = -1;
    if (event.kind == EventKind::device) {
        rank = trace.device.rank[i];
    } else {
        const std::size_t thread = event.kind == EventKind::range     ? trace.ranges.thread[i]
                                   : event.kind == EventKind::runtime ? trace.runtime.thread[i]
                                                                      : trace.marks.thread[i];
        if (thread < trace.threads.size()) rank = trace.threads[thread].rank;
    }
    if (rank < 0 || static_cast<std::size_t>(rank) >= trace.ranks.size()) return kNoNumber;
    return trace.ranks[static_cast<std::size_t>(rank)].number;
}

}  // namespace

MatchTable::MatchTable(TracePtr trace, std::shared_ptr<const FoundEvents> found)
    : trace_(std::move(trace)), found_(std::move(found)) {
    columns_ = {
        {"name", "Event", "", TableColumn::Kind::text, 8},
        {"rank", "Rank", "", TableColumn::Kind::number, 3.5F, 5},
        {"start_ms", "Start", "ms", TableColumn::Kind::number, 6.5F, 8},
        {"duration_us", "Duration", "\u00b5s", TableColumn::Kind::number, 6},
    };
}

std::string MatchTable::text(std::size_t row, std::size_t column) const {
    if (column == kName) return bar_label(*trace_, event(row));
    const double value = number(row, column);
    if (!(value == value)) return "-";
    return column == kRank ? format_count(static_cast<std::int64_t>(value)) : format_decimal(value, 3);
}

double MatchTable::number(std::size_t row, std::size_t column) const {
    const SelectedEvent found = event(row);
    const EventTime time = time_of(*trace_, found);
    switch (column) {
        case kRank:
            return rank_of(*trace_, found);
        case kStart:
            return static_cast<double>(time.start) / 1e6;
        case kDuration:
            return static_cast<double>(time.end - time.start) / 1e3;
        default:
            return kNoNumber;
    }
}

}  // namespace shardscope::viewer
