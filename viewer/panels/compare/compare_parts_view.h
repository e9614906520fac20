// The pages of the compare panel that show parts side by side: kernels, operators, collectives and units by
// name, modules as a tree; and the link from a part to the timeline. Drawing layer (Dear ImGui); frame thread
// only.
//
// For scripts: "compare.kernel", "compare.operator", "compare.collective", "compare.unit" (tables/table.h)
// and "compare.module" (tables/tree_table.h); in the list that a double-click on a part opens:
// "compare.go.<run>" and "compare.go_module.<run>", runs from 1.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "viewer/panels/compare/compare_runs.h"
#include "viewer/tables/table.h"
#include "viewer/tables/tree_table.h"

namespace shardscope::viewer {

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

}  // namespace shardscope::viewer
