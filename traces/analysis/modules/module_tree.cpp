// See module_tree.h.
#include "traces/analysis/modules/module_tree.h"

#include <algorithm>
#include <utility>

#include "traces/store/columns/names.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

constexpr int kMaxDepth = 1000;  // deeper calls (broken nesting) count for their ancestor at this depth

}  // namespace

std::string_view shown_module_name(std::string_view range) {
    if (!range.starts_with(store::kModulePrefix)) return range;
    range.remove_prefix(store::kModulePrefix.size());
    if (range.ends_with(store::kBackwardSuffix)) range.remove_suffix(store::kBackwardSuffix.size());
    return range;
}

std::size_t ModuleTree::ChildHash::operator()(const ChildKey& key) const {
    return std::hash<std::string_view>()(key.name) ^ ((key.parent.at() + 1) * 0x9E3779B97F4A7C15u) ^
           (key.rank.at() << 48);
}

ModuleTree::ModuleTree(const store::Trace& trace)
    : trace_(trace),
      roots_(trace.ranks.size()),
      by_module_(trace.ranks.size()),
      by_name_(trace.ranks.size()) {
    for (const schema::ModuleRow& row : trace.modules) rows_.emplace(row.id, &row);
    for (const schema::ModuleRow& row : trace.modules) parents_.emplace(row.id, sound_parent(row));
    parameters_ = parameters_with_children();
    for (std::size_t s = 0; s < trace.strings.size(); ++s) {
        std::string_view text = trace.strings[static_cast<schema::StringId>(s)];
        if (!text.starts_with(store::kModulePathPrefix)) continue;
        text.remove_prefix(store::kModulePathPrefix.size());
        const std::size_t space = text.find(' ');
        if (space != text.npos) fqns_.emplace(text.substr(0, space), text.substr(space + 1));
    }
}

std::string_view ModuleTree::fqn_of(const ModuleTreeNode& node) const {
    const auto row = node.module >= 0 ? rows_.find(node.module) : rows_.end();
    if (row != rows_.end() && !row->second->path.empty()) return row->second->path;
    const auto named = fqns_.find(node.name);
    return named != fqns_.end() ? named->second : std::string_view();
}

ModuleNodeIndex ModuleTree::child(store::RankIndex rank, ModuleNodeIndex parent, schema::StringId name) {
    // Calls repeat, so most lookups do not need the text.
    const std::uint32_t above = parent.known() ? static_cast<std::uint32_t>(parent.value)
                                               : 0x80000000u | static_cast<std::uint32_t>(rank.value);
    const std::uint64_t key = std::uint64_t{above} << 32 | static_cast<std::uint32_t>(name);
    if (const auto known = quick_.find(key); known != quick_.end()) return known->second;
    const ModuleNodeIndex node = child_named(rank, parent, shown_module_name(trace_.strings[name]));
    quick_.emplace(key, node);
    return node;
}

ModuleNodeIndex ModuleTree::child_named(store::RankIndex rank, ModuleNodeIndex parent,
                                        std::string_view name) {
    if (parent.known() && (*this)[parent].depth >= kMaxDepth) return parent;
    const ModuleNodeIndex next(nodes_.size());
    const auto [at, added] = children_.try_emplace({rank, parent, name}, next);
    if (!added) return at->second;
    (parent.known() ? (*this)[parent].children : roots_[rank.at()]).push_back(next);
    by_name_[rank.at()].emplace(name, next);
    ModuleTreeNode node;
    node.name = name;
    node.parent = parent;
    node.rank = rank;
    node.depth = parent.known() ? (*this)[parent].depth + 1 : 0;
    nodes_.push_back(std::move(node));
    return next;
}

void ModuleTree::tie(ModuleNodeIndex node, int module) {
    ModuleTreeNode& row = (*this)[node];
    if (module < 0 || row.module >= 0) return;
    row.module = module;
    by_module_[row.rank.at()].emplace(module, node);
}

// The parent of a module in the module table; -1 if it is missing or its parents form a cycle (a broken
// file).
int ModuleTree::sound_parent(const schema::ModuleRow& row) const {
    int above = row.parent;
    for (int depth = 0; depth < kMaxDepth; ++depth) {
        const auto next = above >= 0 ? rows_.find(above) : rows_.end();
        if (next == rows_.end()) return depth == 0 ? -1 : row.parent;
        above = next->second->parent;
    }
    return -1;
}

ModuleNodeIndex ModuleTree::known_module(store::RankIndex rank, int module) const {
    const auto& known = by_module_[rank.at()];
    const auto at = known.find(module);
    return at != known.end() ? at->second : ModuleNodeIndex();
}

ModuleNodeIndex ModuleTree::of_module(store::RankIndex rank, int module) {
    if (const ModuleNodeIndex known = known_module(rank, module); known.known()) return known;
    const auto row = rows_.find(module);
    if (row == rows_.end()) return {};
    const int above = parents_.at(module);
    const ModuleNodeIndex parent = above >= 0 ? of_module(rank, above) : ModuleNodeIndex();
    const ModuleNodeIndex node = child_named(rank, parent, row->second->name);
    tie(node, module);
    return node;
}

ModuleNodeIndex ModuleTree::wrapper_of(ModuleNodeIndex node) const {
    for (ModuleNodeIndex at = node; at.known(); at = nodes_[at.at()].parent) {
        if (nodes_[at.at()].name.starts_with("FullyShardedDataParallel_")) return at;
    }
    return node;
}

ModuleNodeIndex ModuleTree::of_name(store::RankIndex rank, schema::StringId name) const {
    const auto& known = by_name_[rank.at()];
    const auto at = known.find(shown_module_name(trace_.strings[name]));
    return at != known.end() ? at->second : ModuleNodeIndex();
}

void ModuleTree::add_totals() {
    for (ModuleTreeNode& row : nodes_) {
        row.total = {row.forward.host + row.backward.host, row.forward.device + row.backward.device};
        row.backward_total = row.backward;
        row.recompute_total = row.recompute;
    }
    for (std::size_t n = nodes_.size(); n-- > 0;) {
        const ModuleTreeNode& row = nodes_[n];
        if (!row.parent.known()) continue;
        ModuleTreeNode& parent = (*this)[row.parent];
        parent.total.host += row.total.host;
        parent.total.device += row.total.device;
        parent.backward_total.host += row.backward_total.host;
        parent.backward_total.device += row.backward_total.device;
        parent.recompute_total.host += row.recompute_total.host;
        parent.recompute_total.device += row.recompute_total.device;
        parent.peak = std::max(parent.peak, row.peak);
    }
}

std::unordered_map<int, std::int64_t> ModuleTree::parameters_with_children() const {
    std::unordered_map<int, std::int64_t> sums;
    for (const schema::ModuleRow& row : trace_.modules) {
        for (int at = row.id; at >= 0; at = parents_.at(at)) sums[at] += row.parameters;
    }
    return sums;
}

std::vector<ModuleNode> ModuleTree::result(store::RankIndex rank) const {
    std::vector<ModuleNode> modules;
    for (const ModuleNodeIndex root : roots_[rank.at()]) {
        ModuleNode node;
        if (result_of(root, node)) modules.push_back(std::move(node));
    }
    return modules;
}

// False if the row and all rows below it have no events.
bool ModuleTree::result_of(ModuleNodeIndex n, ModuleNode& node) const {
    const ModuleTreeNode& row = nodes_[n.at()];
    for (const ModuleNodeIndex c : row.children) {
        ModuleNode child;
        if (result_of(c, child)) node.children.push_back(std::move(child));
    }
    const bool own = row.occurrences > 0 || row.total.host > 0 || row.total.device > 0 || row.operators > 0 ||
                     row.unshard_wait > 0 || row.gathered > 0 || row.reduced > 0;
    if (!own && node.children.empty()) return false;
    const auto us = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-3; };
    node.name = row.name;
    node.fqn = fqn_of(row);
    node.module = row.module;
    node.occurrences = row.occurrences;
    node.operators = row.operators;
    node.host_self_us = us(row.forward.host + row.backward.host);
    node.device_self_us = us(row.forward.device + row.backward.device);
    node.device_busy_us = us(row.busy);
    node.unshard_wait_us = us(row.unshard_wait);
    node.gathered_bytes = row.gathered;
    node.reduced_bytes = row.reduced;
    node.peak_bytes = row.peak;
    if (const auto sum = parameters_.find(row.module); sum != parameters_.end())
        node.parameters = sum->second;
    node.host_us = us(row.total.host);
    node.device_us = us(row.total.device);
    node.backward_host_us = us(row.backward_total.host);
    node.backward_device_us = us(row.backward_total.device);
    node.recomputations = row.recomputations;
    node.recompute_host_us = us(row.recompute_total.host);
    node.recompute_device_us = us(row.recompute_total.device);
    return true;
}

}  // namespace shardscope::traces::analysis
