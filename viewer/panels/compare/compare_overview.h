// The overview of the compare panel: a card for each run, then a table of every figure against the first run.
// Drawing layer (Dear ImGui); frame thread only.
//
// For scripts: "compare.<figure>.<run>" with the value and "compare.<figure>.<run>.change" with its change,
// runs from 1: "compare.Peak allocated.2".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "viewer/panels/compare/compare_card.h"
#include "viewer/panels/compare/compare_rows.h"
#include "viewer/panels/compare/compare_runs.h"
#include "viewer/tables/table_model.h"

namespace shardscope::viewer {

class CompareOverview {
  public:
    void draw(Session& session, const ComparedRuns& runs,
              const std::shared_ptr<const traces::Comparison>& comparison);

  private:
    void draw_cards(Session& session, const ComparedRuns& runs, const traces::Comparison& comparison);
    std::vector<CompareCard::Input> card_inputs(Session& session, const ComparedRuns& runs,
                                                const traces::Comparison& comparison);
    void add_memory(Session& session, const ComparedRuns& runs, std::size_t run, CompareCard::Input& input);
    void draw_table(const ComparedRuns& runs);

    std::vector<CompareCard> cards_;
    std::shared_ptr<const traces::Comparison> rows_of_;
    std::vector<CompareRow> rows_;
    std::shared_ptr<const TableModel> table_;                  // the same rows, for export
    std::shared_ptr<const std::vector<std::uint32_t>> order_;  // all rows
    // What the pointers in the cards of this frame refer to.
    std::vector<std::shared_ptr<const traces::ExecutionSummary>> summaries_;
    std::vector<std::shared_ptr<const traces::ModuleView>> modules_;
    std::vector<std::shared_ptr<const traces::MemoryReport>> reports_;
    std::vector<std::shared_ptr<const std::vector<traces::MemoryPoint>>> curves_;
};

}  // namespace shardscope::viewer
