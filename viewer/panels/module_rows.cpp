// See module_rows.h.
#include "viewer/panels/module_rows.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace shardscope::viewer {
namespace {

using traces::ModuleNode;

bool same_letter(char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

bool contains(std::string_view text, std::string_view part) {
    return std::search(text.begin(), text.end(), part.begin(), part.end(), same_letter) != text.end();
}

bool found_below(const ModuleNode& node, std::string_view search) {
    return std::any_of(node.children.begin(), node.children.end(), [&](const ModuleNode& child) {
        return contains(child.name, search) || found_below(child, search);
    });
}

std::vector<const ModuleNode*> in_order(std::span<const ModuleNode> nodes, const ModuleTreeState& state) {
    std::vector<const ModuleNode*> order;
    order.reserve(nodes.size());
    for (const ModuleNode& node : nodes) order.push_back(&node);
    if (!state.sorted) return order;
    std::stable_sort(order.begin(), order.end(), [&](const ModuleNode* a, const ModuleNode* b) {
        if (state.descending) std::swap(a, b);
        if (state.sort_by == ModuleColumn::name) return a->name < b->name;
        return column_value(*a, state.sort_by) < column_value(*b, state.sort_by);
    });
    return order;
}

void add_rows(std::span<const ModuleNode> nodes, const ModuleTreeState& state, const std::string& above,
              int depth, std::vector<VisibleModule>& rows) {
    for (const ModuleNode* node : in_order(nodes, state)) {
        VisibleModule row;
        row.node = node;
        row.path = above.empty() ? node->name : above + "/" + node->name;
        row.depth = depth;
        row.has_children = !node->children.empty();
        if (state.search.empty()) {
            row.open = row.has_children && ((depth < state.open_levels) != state.toggled.contains(row.path));
        } else {
            row.found = contains(node->name, state.search);
            row.open = found_below(*node, state.search);
            if (!row.found && !row.open) continue;
        }
        const bool open = row.open;
        const std::string path = row.path;
        rows.push_back(std::move(row));
        if (open) add_rows(node->children, state, path, depth + 1, rows);
    }
}

void count_levels(std::span<const ModuleNode> nodes, std::size_t depth, std::vector<std::size_t>& counts) {
    if (nodes.empty()) return;
    if (counts.size() <= depth) counts.resize(depth + 1);
    counts[depth] += nodes.size();
    for (const ModuleNode& node : nodes) count_levels(node.children, depth + 1, counts);
}

std::string_view class_of(std::string_view name) {
    const std::size_t line = name.rfind('_');
    const bool numbered = line != std::string_view::npos && line + 1 < name.size() &&
                          std::all_of(name.begin() + static_cast<std::ptrdiff_t>(line) + 1, name.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
    return numbered ? name.substr(0, line) : name;
}

// Classes all the way down: equal shapes print alike.
std::string shape_of(const ModuleNode& node) {
    std::string shape(class_of(node.name));
    if (node.children.empty()) return shape;
    shape += '(';
    for (const ModuleNode& child : node.children) shape += shape_of(child) + ',';
    return shape + ')';
}

void add_lines(std::span<const ModuleNode> nodes, int depth, std::vector<TreeLine>& lines) {
    std::vector<std::pair<std::string, std::vector<const ModuleNode*>>>
        groups;  // in order of first appearance
    for (const ModuleNode& node : nodes) {
        const std::string shape = shape_of(node);
        auto group =
            std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == shape; });
        if (group == groups.end()) group = groups.insert(groups.end(), {shape, {}});
        group->second.push_back(&node);
    }
    for (const auto& [shape, members] : groups) {
        const ModuleNode& first = *members.front();
        std::string text = first.name;
        if (members.size() > 1) {
            const std::string_view last = members.back()->name;
            const std::string_view number = last.substr(std::min(last.size(), class_of(last).size() + 1));
            text =
                fmt::format("{} .. {}  \u00d7{}", first.name, number.empty() ? last : number, members.size());
        }
        lines.push_back({depth, std::move(text)});
        add_lines(first.children, depth + 1, lines);
    }
}

void add_every_line(std::span<const ModuleNode> nodes, int depth, std::vector<TreeLine>& lines) {
    for (const ModuleNode& node : nodes) {
        lines.push_back({depth, node.name});
        add_every_line(node.children, depth + 1, lines);
    }
}

}  // namespace

double column_value(const ModuleNode& node, ModuleColumn column) {
    switch (column) {
        case ModuleColumn::name:
            return 0;
        case ModuleColumn::occurrences:
            return static_cast<double>(node.occurrences);
        case ModuleColumn::operators:
            return static_cast<double>(node.operators);
        case ModuleColumn::host:
            return node.host_us;
        case ModuleColumn::host_self:
            return node.host_self_us;
        case ModuleColumn::device:
            return node.device_us;
        case ModuleColumn::device_self:
            return node.device_self_us;
        case ModuleColumn::backward:
            return backward_percent(node);
        case ModuleColumn::parameters:
            return static_cast<double>(node.parameters);
        case ModuleColumn::gathered:
            return static_cast<double>(node.gathered_bytes);
        case ModuleColumn::reduced:
            return static_cast<double>(node.reduced_bytes);
        case ModuleColumn::peak:
            return static_cast<double>(node.peak_bytes);
    }
    return 0;
}

double backward_percent(const ModuleNode& node) {
    return node.device_us > 0 ? 100.0 * node.backward_device_us / node.device_us : 0.0;
}

std::vector<VisibleModule> visible_modules(std::span<const ModuleNode> roots, const ModuleTreeState& state) {
    std::vector<VisibleModule> rows;
    add_rows(roots, state, "", 0, rows);
    return rows;
}

int levels_that_fit(std::span<const ModuleNode> roots, std::size_t rows) {
    std::vector<std::size_t> counts;
    count_levels(roots, 0, counts);
    std::size_t shown = counts.empty() ? 0 : counts[0];
    int levels = 0;
    for (std::size_t depth = 1; depth < counts.size() && shown + counts[depth] <= rows; ++depth) {
        shown += counts[depth];
        ++levels;
    }
    return std::max(1, levels);
}

std::vector<TreeLine> compact_tree(std::span<const ModuleNode> roots, std::size_t lines) {
    std::vector<TreeLine> all;
    add_every_line(roots, 0, all);
    if (all.size() <= lines) return all;
    all.clear();
    add_lines(roots, 0, all);
    if (all.size() <= lines || lines == 0) return all;
    const std::size_t left_out = all.size() - (lines - 1);
    all.resize(lines - 1);
    all.push_back({all.empty() ? 0 : all.back().depth, fmt::format("... {} more", left_out)});
    return all;
}

}  // namespace shardscope::viewer
