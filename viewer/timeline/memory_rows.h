// The memory curves of the ranks in sight, folded to the pixels of the view and kept until it changes.
// Frame thread; no Dear ImGui.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "viewer/app/session.h"
#include "viewer/draw/fold.h"
#include "viewer/timeline/rows.h"
#include "viewer/timeline/time_view.h"

namespace shardscope::viewer {

struct MemoryRow {
    std::shared_ptr<const CategoryCurve> curve;
    std::int64_t most = 0;              // of the whole curve: the row's full height
    std::vector<FoldedColumn> columns;  // of the view; a pixel each, or more where they differ too much
};

class MemoryRows {
  public:
    // Folds what is missing for the rows on show; forgets ranks that are out of sight once the view moves.
    void update(AnalysisCache& analyses, const TracePtr& trace, const std::vector<const Row*>& rows,
                const TimeView& view);
    const MemoryRow* find(int rank_index) const;
    const std::map<int, MemoryRow>& all() const { return rows_; }

  private:
    std::map<int, MemoryRow> rows_;  // by index into Trace::ranks
    TimeRange range_;
    double width_ = 0;
};

}  // namespace shardscope::viewer
