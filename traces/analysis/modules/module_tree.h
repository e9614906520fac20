// The rows of the module view and their tree; rows are found by path, by module id and by name. Internal to
// the library. Times in nanoseconds.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/analysis/modules/modules.h"
#include "traces/schema/rows.h"
#include "traces/store/columns/index.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// Times of one part (forward or backward) of a row, without its children.
struct ModulePart {
    std::int64_t host = 0, device = 0;
};

struct ModuleTreeNode;
using ModuleNodeIndex = store::IndexOf<ModuleTreeNode>;  // ModuleTree::nodes(); a module is its ModuleRow::id

struct ModuleTreeNode {
    std::string_view name;
    ModuleNodeIndex parent;
    store::RankIndex rank;
    int depth = 0;
    int module = -1;
    std::int64_t occurrences = 0, operators = 0;
    ModulePart forward, backward;
    ModulePart recompute;                               // part of the backward: forward calls that it repeats
    ModulePart total, backward_total, recompute_total;  // children included; total: forward and backward
    std::int64_t recomputations = 0;
    std::int64_t busy = 0, busy_until = INT64_MIN;  // union of device time, children included
    std::int64_t unshard_wait = 0, gathered = 0, reduced = 0, peak = 0;
    std::vector<ModuleNodeIndex> children;
};

// "nn.Module: Linear_0 (backward)" -> "Linear_0".
std::string_view shown_module_name(std::string_view range);

class ModuleTree {
  public:
    explicit ModuleTree(const store::Trace& trace);

    ModuleTreeNode& operator[](ModuleNodeIndex node) { return nodes_[node.at()]; }
    std::vector<ModuleTreeNode>& nodes() { return nodes_; }

    // The row of a range's name below a row (none: at the root); created if new.
    ModuleNodeIndex child(store::RankIndex rank, ModuleNodeIndex parent, schema::StringId name);
    void tie(ModuleNodeIndex node, int module);

    // The row of a module: where its forward is, else where the module table places it; none if the table
    // does not contain it.
    ModuleNodeIndex of_module(store::RankIndex rank, int module);
    // The row that already has the module.
    ModuleNodeIndex known_module(store::RankIndex rank, int module) const;
    // The FSDP wrapper that is the row or contains it; the row itself if there is none.
    ModuleNodeIndex wrapper_of(ModuleNodeIndex node) const;
    // The first row with the name of a range.
    ModuleNodeIndex of_name(store::RankIndex rank, schema::StringId name) const;

    // Sums up the tree. A child's call is time inside its parent, even if the parent's backward has no range
    // of its own.
    void add_totals();
    // The rows of a rank with any events.
    std::vector<ModuleNode> result(store::RankIndex rank) const;

  private:
    ModuleNodeIndex child_named(store::RankIndex rank, ModuleNodeIndex parent, std::string_view name);
    int sound_parent(const schema::ModuleRow& row) const;
    std::unordered_map<int, std::int64_t> parameters_with_children() const;
    bool result_of(ModuleNodeIndex node, ModuleNode& result) const;

    struct ChildKey {
        store::RankIndex rank;
        ModuleNodeIndex parent;
        std::string_view name;
        bool operator==(const ChildKey&) const = default;
    };
    struct ChildHash {
        std::size_t operator()(const ChildKey& key) const;
    };

    std::string_view fqn_of(const ModuleTreeNode& node) const;

    const store::Trace& trace_;
    std::unordered_map<std::string_view, std::string_view>
        fqns_;                                         // by name, of traces that name them in ranges
    std::vector<ModuleTreeNode> nodes_;                // parents before their children
    std::vector<std::vector<ModuleNodeIndex>> roots_;  // by rank
    std::unordered_map<ChildKey, ModuleNodeIndex, ChildHash> children_;
    std::unordered_map<std::uint64_t, ModuleNodeIndex> quick_;  // by (parent or rank, string): its child
    std::vector<std::unordered_map<int, ModuleNodeIndex>> by_module_;  // by rank, then module
    // By rank: the first row with that name.
    std::vector<std::unordered_map<std::string_view, ModuleNodeIndex>> by_name_;
    std::unordered_map<int, const schema::ModuleRow*> rows_;
    std::unordered_map<int, int> parents_;  // module -> its parent in the module table, without cycles
    std::unordered_map<int, std::int64_t> parameters_;
};

}  // namespace shardscope::traces::analysis
