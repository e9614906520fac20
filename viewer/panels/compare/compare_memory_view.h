// The memory of the compared runs: their curves overlaid, and a table of what was allocated at their peaks.
// Drawing layer (Dear ImGui); frame thread only.
//
// For scripts: the table as "compare.memory" (tables/table.h); "compare.memory_by.<category|unit|...>",
// "compare.memory_whole", "compare.memory_step", "compare.curves".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "viewer/draw/fold.h"
#include "viewer/panels/compare/compare_memory_rows.h"
#include "viewer/panels/compare/compare_runs.h"
#include "viewer/tables/table.h"

namespace shardscope::viewer {

struct Chart;

class CompareMemoryView {
  public:
    void draw(Session& session, const ComparedRuns& runs);
    void forget() { curves_.clear(); }  // the curves keep their traces alive

  private:
    struct Curve {
        TracePtr trace;
        int rank = 0;  // index into Trace::ranks
        std::shared_ptr<const CategoryCurve> points;
        TimeRange time;
        double peak = 0;
        const CategoryCurve* folded_of = nullptr;
        TimeRange folded_time;
        std::vector<FoldedColumn> columns;
    };
    void take_curves(Session& session, const ComparedRuns& runs);
    void draw_curves(const ComparedRuns& runs, float height);
    void draw_peaks(const Chart& chart, const ComparedRuns& runs) const;

    MemoryBy by_ = MemoryBy::category;
    bool whole_ = false;  // the curves of the whole runs, or of the steps of the peaks
    std::vector<std::shared_ptr<const traces::MemoryReport>> of_;
    MemoryBy table_by_ = MemoryBy::category;
    std::vector<std::string> names_;
    std::vector<const traces::RankMemory*> ranks_;  // pointers into `of_`
    std::shared_ptr<const TableModel> table_;
    TableState state_;
    std::vector<Curve> curves_;
};

}  // namespace shardscope::viewer
