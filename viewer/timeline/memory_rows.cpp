// See memory_rows.h.
#include "viewer/timeline/memory_rows.h"

#include <algorithm>

namespace shardscope::viewer {
namespace {

constexpr std::size_t kMostRectangles = 1200;  // of all curves in sight

// After the trace's end nothing is known of the memory.
void clear_outside(std::vector<FoldedColumn>& columns, const TimeView& view, const traces::Trace& trace) {
    const int count = static_cast<int>(columns.size());
    for (std::int64_t c = std::max<std::int64_t>(0, view.column_of(trace.last_ns, count) + 1); c < count; ++c)
        columns[static_cast<std::size_t>(c)] = {};
}

bool is_shown(const std::vector<const Row*>& rows, int rank) {
    return std::any_of(rows.begin(), rows.end(), [rank](const Row* row) {
        return row->kind == Row::Kind::memory && row->rank == rank;
    });
}

// How many it takes to draw them: one for each category of a run of equal columns, or two.
std::size_t rectangles(const std::vector<FoldedColumn>& columns) {
    std::size_t count = 0;
    for (const ColumnRun& run : equal_runs(columns)) {
        const FoldedColumn& column = columns[static_cast<std::size_t>(run.first)];
        const auto held = std::count_if(column.at_highest.begin(), column.at_highest.end(),
                                        [](std::int64_t bytes) { return bytes > 0; });
        count += static_cast<std::size_t>(held) + (column.lowest < column.highest ? 1 : 0);
    }
    return count;
}

// Two columns as one, with the extremes of both.
std::vector<FoldedColumn> widened(const std::vector<FoldedColumn>& columns) {
    std::vector<FoldedColumn> wide;
    for (std::size_t i = 0; i < columns.size(); i += 2) {
        FoldedColumn column = columns[i];
        if (i + 1 < columns.size()) {
            const FoldedColumn& next = columns[i + 1];
            if (next.lowest < column.lowest) {
                column.lowest = next.lowest;
                column.at_lowest = next.at_lowest;
            }
            if (next.highest > column.highest) {
                column.highest = next.highest;
                column.at_highest = next.at_highest;
            }
        }
        wide.push_back(column);
    }
    return wide;
}

}  // namespace

void MemoryRows::update(AnalysisCache& analyses, const TracePtr& trace, const std::vector<const Row*>& rows,
                        const TimeView& view) {
    const bool moved = !(range_ == TimeRange{view.from, view.to}) || width_ != view.width;
    range_ = {view.from, view.to};
    width_ = view.width;
    const auto curves = std::count_if(rows.begin(), rows.end(),
                                      [](const Row* row) { return row->kind == Row::Kind::memory; });
    const std::size_t most = kMostRectangles / static_cast<std::size_t>(std::max<std::ptrdiff_t>(1, curves));
    for (const Row* row : rows) {
        if (row->kind != Row::Kind::memory) continue;
        const auto curve = analyses.category_curve(trace, row->rank);
        if (curve == nullptr) continue;
        MemoryRow& memory = rows_[row->rank];
        if (memory.curve != curve) {
            memory.curve = curve;
            memory.most = curve->most_total;
            memory.columns.clear();
        }
        if (moved || memory.columns.empty()) {
            memory.columns = fold_curve(*curve, view.from, view.to, static_cast<int>(view.width));
            clear_outside(memory.columns, view, *trace);
            while (memory.columns.size() > 1 && rectangles(memory.columns) > most)
                memory.columns = widened(memory.columns);
        }
    }
    if (moved) std::erase_if(rows_, [&](const auto& m) { return !is_shown(rows, m.first); });
}

const MemoryRow* MemoryRows::find(int rank_index) const {
    const auto found = rows_.find(rank_index);
    return found == rows_.end() ? nullptr : &found->second;
}

}  // namespace shardscope::viewer
