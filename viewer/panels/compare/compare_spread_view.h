// How the steps of the compared runs spread, or the calls of one kernel: overlaid histograms, the values in
// order, and a table. Drawing layer (Dear ImGui); frame thread only.
//
// For scripts: the table as "compare.spread" (tables/table.h); "compare.of_steps", "compare.of_kernel",
// "compare.kernel_name", "compare.histogram".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "viewer/panels/compare/compare_runs.h"
#include "viewer/panels/compare/compare_spread.h"
#include "viewer/tables/table.h"

namespace shardscope::viewer {

class CompareSpreadView {
  public:
    void draw(Session& session, const ComparedRuns& runs);

  private:
    bool choose_kernel(Session& session, const ComparedRuns& runs);

    bool kernels_ = false;  // otherwise steps
    std::string kernel_;
    std::vector<std::shared_ptr<const Durations>> of_;
    std::vector<Durations> durations_;
    Histogram histogram_;
    std::vector<std::vector<DurationColumn>> folded_;  // by run
    std::shared_ptr<const TableModel> table_;
    TableState state_;
};

}  // namespace shardscope::viewer
