// The memory curves of the visible ranks, folded to the pixels of the view and kept until it changes. Frame
// thread; no Dear ImGui.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "viewer/draw/fold.h"
#include "viewer/model/session.h"
#include "viewer/model/time_view.h"
#include "viewer/timeline/rows.h"

namespace shardscope::viewer::timeline {

struct MemoryRow {
    std::shared_ptr<const draw::CategoryCurve> curve;
    std::int64_t most = 0;                    // of the whole curve: the row's full height
    std::vector<draw::FoldedColumn> columns;  // of the view; a pixel each
};

// A rectangle of the row's picture: neighbouring columns in which a category covers the same pixels, counted
// from the row's bottom.
struct MemoryRun {
    int first = 0, count = 0;  // columns
    int category = 0;          // of MemoryCategory
    int bottom = 0, top = 0;   // pixels
    bool pale = false;         // above the column's lowest total: not allocated all the time
    bool goes_on_with(const MemoryRun& next) const {
        return first + count == next.first && bottom == next.bottom && top == next.top;
    }
};
// The categories at each column's highest moment, stacked; `most` bytes correspond to `height` pixels.
std::vector<MemoryRun> memory_runs(const std::vector<draw::FoldedColumn>& columns, std::int64_t most,
                                   int height);

class MemoryRows {
  public:
    // Folds visible rows that are missing; drops ranks that are not visible once the view moves.
    void update(model::AnalysisCache& analyses, const model::TracePtr& trace,
                const std::vector<const Row*>& rows, const model::TimeView& view);
    const MemoryRow* find(traces::store::RankIndex rank) const;
    const std::map<traces::store::RankIndex, MemoryRow>& all() const { return rows_; }

  private:
    std::map<traces::store::RankIndex, MemoryRow> rows_;
    model::TimeRange range_;
    double width_ = 0;
};

}  // namespace shardscope::viewer::timeline
