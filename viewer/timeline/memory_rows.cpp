// See memory_rows.h.
#include "viewer/timeline/memory_rows.h"

#include <algorithm>
#include <cmath>

namespace shardscope::viewer::timeline {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// After the trace's end the memory is unknown.
void clear_outside(std::vector<draw::FoldedColumn>& columns, const model::TimeView& view,
                   const traces::store::Trace& trace) {
    const int count = static_cast<int>(columns.size());
    for (std::int64_t c = std::max<std::int64_t>(0, view.column_of(trace.last_ns, count) + 1); c < count; ++c)
        columns[static_cast<std::size_t>(c)] = {};
}

bool is_shown(const std::vector<const Row*>& rows, traces::store::RankIndex rank) {
    return std::any_of(rows.begin(), rows.end(), [rank](const Row* row) {
        return row->kind == Row::Kind::memory && row->rank == rank;
    });
}

}  // namespace

void MemoryRows::update(model::AnalysisCache& analyses, const model::TracePtr& trace,
                        const std::vector<const Row*>& rows, const model::TimeView& view) {
    const bool moved = !(range_ == model::TimeRange{view.from, view.to}) || width_ != view.width;
    range_ = {view.from, view.to};
    width_ = view.width;
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
        }
    }
    if (moved) std::erase_if(rows_, [&](const auto& m) { return !is_shown(rows, m.first); });
}

const MemoryRow* MemoryRows::find(traces::store::RankIndex rank) const {
    const auto found = rows_.find(rank);
    return found == rows_.end() ? nullptr : &found->second;
}

std::vector<MemoryRun> memory_runs(const std::vector<draw::FoldedColumn>& columns, std::int64_t most,
                                   int height) {
    std::vector<MemoryRun> runs;
    if (most <= 0) return runs;
    const double scale = static_cast<double>(height) / static_cast<double>(most);
    const auto pixels = [&](std::int64_t bytes) {
        return static_cast<int>(std::lround(static_cast<double>(bytes) * scale));
    };
    std::vector<std::int64_t> below(columns.size(), 0);
    for (int category = 0; category < traces::schema::kMemoryCategories; ++category) {
        std::size_t solid = kNone, pale = kNone;  // the runs that the next column may extend
        const auto add = [&](std::size_t& last, MemoryRun run) {
            if (run.bottom >= run.top) {
                last = kNone;
            } else if (last != kNone && runs[last].goes_on_with(run)) {
                ++runs[last].count;
            } else {
                last = runs.size();
                runs.push_back(run);
            }
        };
        for (std::size_t i = 0; i < columns.size(); ++i) {
            const draw::FoldedColumn& column = columns[i];
            const std::int64_t bytes =
                std::max<std::int64_t>(0, column.at_highest[static_cast<std::size_t>(category)]);
            const int bottom = pixels(below[i]), top = pixels(below[i] += bytes);
            const int always = std::clamp(pixels(column.lowest), bottom, top);
            const int at = static_cast<int>(i);
            add(solid, {at, 1, category, bottom, always, false});
            add(pale, {at, 1, category, always, top, true});
        }
    }
    return runs;
}

}  // namespace shardscope::viewer::timeline
