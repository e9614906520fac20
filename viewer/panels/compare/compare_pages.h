// The pages of the compare panel. Drawing layer (Dear ImGui); frame thread only.
//
// The overview: a card for each run, then a table of every figure against the first run.
//
// For scripts: "compare.<figure>.<run>" with the value and "compare.<figure>.<run>.change" with its change,
// runs from 1: "compare.Peak allocated.2".
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "viewer/draw/fold.h"
#include "viewer/panels/compare/compare_card.h"
#include "viewer/panels/compare/compare_rows.h"
#include "viewer/panels/compare/compare_runs.h"
#include "viewer/panels/compare/compare_spread.h"
#include "viewer/panels/compare/compare_tables.h"
#include "viewer/tables/table.h"
#include "viewer/tables/table_model.h"
#include "viewer/tables/tree_table.h"

namespace shardscope::viewer::draw {
struct Chart;
}

namespace shardscope::viewer::panels {

class CompareOverview {
  public:
    void draw(model::Session& session, const ComparedRuns& runs,
              const std::shared_ptr<const traces::analysis::Comparison>& comparison);

  private:
    void draw_cards(model::Session& session, const ComparedRuns& runs,
                    const traces::analysis::Comparison& comparison);
    std::vector<CompareCard::Input> card_inputs(model::Session& session, const ComparedRuns& runs,
                                                const traces::analysis::Comparison& comparison);
    void add_memory(model::Session& session, const ComparedRuns& runs, std::size_t run,
                    CompareCard::Input& input);
    void draw_table(const ComparedRuns& runs);

    std::vector<CompareCard> cards_;
    std::shared_ptr<const traces::analysis::Comparison> rows_of_;
    std::vector<CompareRow> rows_;
    std::shared_ptr<const tables::TableModel> table_;          // the same rows, for export
    std::shared_ptr<const std::vector<std::uint32_t>> order_;  // all rows
    // What the pointers in the cards of this frame refer to.
    std::vector<std::shared_ptr<const traces::analysis::ExecutionSummary>> summaries_;
    std::vector<std::shared_ptr<const traces::analysis::ModuleView>> modules_;
    std::vector<std::shared_ptr<const traces::analysis::MemoryReport>> reports_;
    std::vector<std::shared_ptr<const std::vector<traces::analysis::MemoryPoint>>> curves_;
};

// --- The pages of the compare panel that show parts side by side: kernels, operators, collectives and units
// by name, modules as a tree; and the link from a part to the timeline.
//
// For scripts: "compare.kernel", "compare.operator", "compare.collective", "compare.unit" (tables/table.h)
// and "compare.module" (tables/tree_table.h); in the list that a double-click on a part opens:
// "compare.go.<run>" and "compare.go_module.<run>", runs from 1.

class ComparePartsView {
  public:
    void draw(model::Session& session, const ComparedRuns& runs, traces::analysis::CompareBy by,
              bool per_step);

  private:
    struct Page {
        std::shared_ptr<const traces::analysis::PartsComparison> of;
        std::vector<std::string> names;
        bool per_step = true;
        std::shared_ptr<const tables::TableModel> table;
        std::shared_ptr<const tables::TreeModel> tree;  // of modules
        tables::TableState state;
        tables::TreeState tree_state;
    };
    void take(Page& page, const std::shared_ptr<const traces::analysis::PartsComparison>& parts,
              const ComparedRuns& runs, bool per_step);
    void draw_go(model::Session& session, const ComparedRuns& runs);

    std::map<traces::analysis::CompareBy, Page> pages_;
    // The row whose list of runs is open, and the run that was chosen from it.
    traces::analysis::CompareBy by_ = traces::analysis::CompareBy::kernel;
    std::string part_;
    std::optional<std::size_t> going_;
    bool to_module_ = false;
};

// --- How the steps of the compared runs spread, or the calls of one kernel: overlaid histograms, the values
// in order, and a table.
//
// For scripts: the table as "compare.spread" (tables/table.h); "compare.of_steps", "compare.of_kernel",
// "compare.kernel_name", "compare.histogram".

class CompareSpreadView {
  public:
    void draw(model::Session& session, const ComparedRuns& runs);

  private:
    bool choose_kernel(model::Session& session, const ComparedRuns& runs);

    bool kernels_ = false;  // true: kernels, false: steps
    std::string kernel_;
    std::vector<std::shared_ptr<const Durations>> of_;
    std::vector<Durations> durations_;
    Histogram histogram_;
    std::vector<std::vector<DurationColumn>> folded_;  // by run
    std::shared_ptr<const tables::TableModel> table_;
    tables::TableState state_;
};

// --- The memory of the compared runs: their curves overlaid, and a table of what was allocated at their
// peaks.
//
// For scripts: the table as "compare.memory" (tables/table.h); "compare.memory_by.<category|unit|...>",
// "compare.memory_whole", "compare.memory_step", "compare.curves".

class CompareMemoryView {
  public:
    void draw(model::Session& session, const ComparedRuns& runs);
    void forget() { curves_.clear(); }  // the curves keep their traces alive

  private:
    struct Curve {
        model::TracePtr trace;
        traces::store::RankIndex rank;
        std::shared_ptr<const draw::CategoryCurve> points;
        model::TimeRange time;
        double peak = 0;
        const draw::CategoryCurve* folded_of = nullptr;
        model::TimeRange folded_time;
        std::vector<draw::FoldedColumn> columns;
    };
    void take_curves(model::Session& session, const ComparedRuns& runs);
    void draw_curves(const ComparedRuns& runs, float height);
    void draw_peaks(const draw::Chart& chart, const ComparedRuns& runs) const;

    MemoryBy by_ = MemoryBy::category;
    bool whole_ = false;  // true: curves of the whole runs, false: of the steps of the peaks
    std::vector<std::shared_ptr<const traces::analysis::MemoryReport>> of_;
    MemoryBy table_by_ = MemoryBy::category;
    std::vector<std::string> names_;
    std::vector<const traces::analysis::RankMemory*> ranks_;  // pointers into `of_`
    std::shared_ptr<const tables::TableModel> table_;
    tables::TableState state_;
    std::vector<Curve> curves_;
};

}  // namespace shardscope::viewer::panels
