// Which rows of the module tree are shown, in which order: open and closed nodes, search, sorting within
// siblings. Pure arithmetic over an analysis result, no drawing; any thread. Rows point into the RankModules
// given.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "traces/analysis/modules.h"

namespace shardscope::viewer {

enum class ModuleColumn {
    name,
    occurrences,
    operators,
    host,
    host_self,
    device,
    device_self,
    backward,
    parameters,
    gathered,
    reduced,
    peak,
};
inline constexpr int kModuleColumns = 12;

// What a column holds of a node, as a number to sort and scale by; 0 for the name.
double column_value(const traces::ModuleNode& node, ModuleColumn column);
// The share of the node's device time that is its backward, in percent; 0 where it has no device time.
double backward_percent(const traces::ModuleNode& node);

struct ModuleTreeState {
    int open_levels = 1;                      // nodes less deep than this are open unless toggled
    std::unordered_set<std::string> toggled;  // paths whose state is the other one
    std::string search;                       // letters' case does not matter; empty shows all
    bool sorted = false;                      // false: in the order of the model
    ModuleColumn sort_by = ModuleColumn::device;
    bool descending = true;
};

struct VisibleModule {
    const traces::ModuleNode* node = nullptr;
    std::string path;  // names from the root with '/': the key of `toggled`
    int depth = 0;
    bool has_children = false, open = false;
    bool found = false;  // the search's text is in its name
};

// Rows from top to bottom. With a search: the nodes found and the way to them, all open.
std::vector<VisibleModule> visible_modules(std::span<const traces::ModuleNode> roots,
                                           const ModuleTreeState& state);

// How many levels can be open so that at most `rows` rows show; at least 1.
int levels_that_fit(std::span<const traces::ModuleNode> roots, std::size_t rows);

// A run of siblings that print alike, for the compact tree of a card: "FullyShardedDataParallel_1 .. 8".
struct TreeLine {
    int depth = 0;
    std::string text;
};

// The tree in at most `lines` lines: siblings of one class and one inner structure become one line with their
// count; what then does not fit is named by a last line "... N more".
std::vector<TreeLine> compact_tree(std::span<const traces::ModuleNode> roots, std::size_t lines);

}  // namespace shardscope::viewer
