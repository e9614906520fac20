// The pages of the compare panel beside its overview: how steps and kernels spread, parts side by side, and
// memory. Drawing layer (Dear ImGui); frame thread only.
//
// For scripts: tables as "compare.spread", "compare.kernel", "compare.operator", "compare.collective",
// "compare.unit", "compare.memory" (tables/table.h) and "compare.module" (tables/tree_table.h); and
// "compare.of_steps", "compare.of_kernel", "compare.kernel_name", "compare.memory_by.<category|unit|...>",
// "compare.per_step", "compare.memory_whole", "compare.memory_step"; of the list that a double-click on a
// part opens "compare.go.<run>" and "compare.go_module.<run>", runs from 1.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "viewer/draw/fold.h"
#include "viewer/panels/compare_memory_rows.h"
#include "viewer/panels/compare_runs.h"
#include "viewer/panels/compare_spread.h"
#include "viewer/tables/table.h"
#include "viewer/tables/tree_table.h"

namespace shardscope::viewer {

// Says what one cannot see with the runs that are chosen: the run's colour, its number and its name.
void draw_run_legend(const ComparedRuns& runs);

class ComparePartsView {
  public:
    void draw(Session& session, const ComparedRuns& runs, traces::CompareBy by, bool per_step);

  private:
    struct Page {
        std::shared_ptr<const traces::PartsComparison> of;
        std::vector<std::string> names;
        bool per_step = true;
        std::shared_ptr<const TableModel> table;
        std::shared_ptr<const TreeModel> tree;  // of modules
        TableState state;
        TreeState tree_state;
    };
    void take(Page& page, const std::shared_ptr<const traces::PartsComparison>& parts,
              const ComparedRuns& runs, bool per_step);
    void draw_go(Session& session, const ComparedRuns& runs);

    std::map<traces::CompareBy, Page> pages_;
    // The row whose list of runs is open, and the run that was chosen from it.
    traces::CompareBy by_ = traces::CompareBy::kernel;
    std::string part_;
    std::optional<std::size_t> going_;
    bool to_module_ = false;
};

class CompareSpreadView {
  public:
    void draw(Session& session, const ComparedRuns& runs);

  private:
    bool choose_kernel(Session& session, const ComparedRuns& runs);

    bool kernels_ = false;  // or steps
    std::string kernel_;
    std::vector<std::shared_ptr<const Durations>> of_;
    std::vector<Durations> durations_;
    Histogram histogram_;
    std::vector<std::vector<DurationColumn>> folded_;  // by run
    std::shared_ptr<const TableModel> table_;
    TableState state_;
};

class CompareMemoryView {
  public:
    void draw(Session& session, const ComparedRuns& runs);

  private:
    struct Curve {
        TracePtr trace;
        int rank = 0;  // index into Trace::ranks
        std::shared_ptr<const std::vector<traces::MemoryPoint>> points;
        TimeRange time;
        double peak = 0;
        const std::vector<traces::MemoryPoint>* folded_of = nullptr;
        TimeRange folded_time;
        std::vector<FoldedColumn> columns;
    };
    void take_curves(Session& session, const ComparedRuns& runs);
    void draw_curves(const ComparedRuns& runs, float height);

    MemoryBy by_ = MemoryBy::category;
    bool whole_ = false;  // the curves of the whole runs, or of the steps of the peaks
    std::vector<std::shared_ptr<const traces::MemoryReport>> of_;
    MemoryBy table_by_ = MemoryBy::category;
    std::vector<std::string> names_;
    std::vector<const traces::RankMemory*> ranks_;  // into `of_`
    std::shared_ptr<const TableModel> table_;
    TableState state_;
    std::vector<Curve> curves_;
};

}  // namespace shardscope::viewer
