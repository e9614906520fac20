// The module tree as a table's model, and the compact tree of a card. Pure text and numbers over an analysis
// result, no drawing; any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "traces/analysis/modules/modules.h"
#include "viewer/tables/tree_model.h"

namespace shardscope::viewer::panels {

// The share of the node's device time spent in its backward, in percent; 0 if it has no device time.
double backward_percent(const traces::analysis::ModuleNode& node);

// The tree of one rank. Times in us, sizes in MiB.
class ModulesModel final : public tables::TreeModel {
  public:
    // `rank` points into `view`, which the model keeps alive.
    ModulesModel(std::shared_ptr<const traces::analysis::ModuleView> view,
                 const traces::analysis::RankModules& rank);

    std::string text(std::size_t row, std::size_t column) const override { return cells_.text(row, column); }
    double number(std::size_t row, std::size_t column) const override { return cells_.number(row, column); }

    const traces::analysis::ModuleNode& module(std::size_t row) const { return *modules_[row]; }
    std::optional<std::size_t> find_module(int id) const;  // ModuleRow::id

  private:
    void add(const traces::analysis::ModuleNode& node, int depth);

    void add_columns();
    std::shared_ptr<const traces::analysis::ModuleView> view_;
    std::vector<const traces::analysis::ModuleNode*> modules_;  // by row
    tables::LazyColumns cells_{columns_};
};

// A run of siblings shown as one line, for the compact tree of a card: "FullyShardedDataParallel_1 .. 8".
struct TreeLine {
    int depth = 0;
    std::string text;
};

// The tree in at most `lines` lines: siblings with equal class and inner structure become one line with their
// count; a last line "... N more" counts what does not fit.
std::vector<TreeLine> compact_tree(std::span<const traces::analysis::ModuleNode> roots, std::size_t lines);

}  // namespace shardscope::viewer::panels
