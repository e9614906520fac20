// See module_rows.h.
#include "viewer/panels/modules/module_rows.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "viewer/draw/format.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::ModuleNode;

double megabytes(std::int64_t bytes) {
    return bytes == 0 ? tables::kNoNumber : static_cast<double>(bytes) / (1024.0 * 1024.0);
}

std::string_view class_of(std::string_view name) {
    const std::size_t line = name.rfind('_');
    const bool numbered = line != std::string_view::npos && line + 1 < name.size() &&
                          std::all_of(name.begin() + static_cast<std::ptrdiff_t>(line) + 1, name.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
    return numbered ? name.substr(0, line) : name;
}

// The classes of the whole subtree: equal shapes give equal text.
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

double backward_percent(const ModuleNode& node) {
    return node.device_us > 0 ? 100.0 * node.backward_device_us / node.device_us : 0.0;
}

ModulesModel::ModulesModel(std::shared_ptr<const traces::analysis::ModuleView> view,
                           const traces::analysis::RankModules& rank)
    : view_(std::move(view)) {
    for (const ModuleNode& node : rank.modules) add(node, 0);
    add_columns();
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        if (columns_[c].bar != 0) columns_[c].full = largest(c);
    }
}

void ModulesModel::add(const ModuleNode& node, int depth) {
    add_node(node.name, depth);
    modules_.push_back(&node);
    for (const ModuleNode& child : node.children) add(child, depth + 1);
}

// The most important columns have bars. After the first six, only columns with a number are added.
void ModulesModel::add_columns() {
    const theme::Color kernel = theme::time_category_color(traces::analysis::TimeCategory::kernel);
    const theme::Color communication =
        theme::time_category_color(traces::analysis::TimeCategory::communication);
    const theme::Color memory = theme::category_color(traces::schema::MemoryCategory::activations);
    const auto count = [](std::int64_t n) { return static_cast<double>(n); };
    const auto or_none = [](bool known, double number) { return known ? number : tables::kNoNumber; };
    const auto add = [&](tables::TableColumn column, int decimals, auto of) {
        const bool known =
            columns_.size() <= 5 || std::any_of(modules_.begin(), modules_.end(),
                                                [&](const auto* node) { return !std::isnan(of(*node)); });
        if (known)
            cells_.add(std::move(column), decimals,
                       [this, of](std::size_t row) { return of(*modules_[row]); });
    };
    using Node = const ModuleNode&;
    cells_.add(tables::text_column("module", "Module", 0, 99, "The modules' calls as they nest"),
               [this](std::size_t row) { return nodes_[row].path; });
    add(tables::number_column("calls", "Calls", "", 3.6F, 8, 0, "Forward calls"), 0,
        [=](Node node) { return count(node.occurrences); });
    add(tables::number_column("operators", "Operators", "", 5.2F, 3, 0,
                              "Operators directly under it, forward and backward"),
        0, [=](Node node) { return count(node.operators); });
    add(tables::number_column("host_us", "Host total", tables::kMicro, 6.2F, 9, 0,
                              "Duration of its calls and backward ranges on the host"),
        0, [](Node node) { return node.host_us; });
    add(tables::number_column("host_self_us", "Host self", tables::kMicro, 6.2F, 4, 0,
                              "The same without modules inside"),
        0, [](Node node) { return node.host_self_us; });
    add(tables::number_column("device_us", "Device total", tables::kMicro, 7.2F, 12, kernel,
                              "Sum of the device events launched inside"),
        0, [](Node node) { return node.device_us; });
    add(tables::number_column("device_self_us", "Device self", tables::kMicro, 6.8F, 10, kernel,
                              "Without those launched in a module inside"),
        0, [](Node node) { return node.device_self_us; });
    add(tables::number_column("device_busy_us", "Device busy", tables::kMicro, 6.8F, 0, 0,
                              "When any of the device events launched inside ran"),
        0, [](Node node) { return node.device_busy_us; });
    add(tables::number_column("backward_percent", "Backward", "% of device", 6.2F, 6, 0,
                              "The backward's share of the device total"),
        1, [=](Node node) { return or_none(node.device_us > 0, backward_percent(node)); });
    add(tables::number_column(
            "recomputations", "Recomputed", "calls", 5.6F, 0, 0,
            "Forward calls that activation checkpointing repeats in the backward; they are not "
            "among the calls"),
        0, [=](Node node) { return or_none(node.recomputations > 0, count(node.recomputations)); });
    add(tables::number_column("recompute_host_us", "Recompute host", tables::kMicro, 7.4F, 0, 0,
                              "Of the backward: duration of the repeated calls on the host"),
        0, [=](Node node) { return or_none(node.recomputations > 0, node.recompute_host_us); });
    add(tables::number_column("recompute_device_us", "Recompute", tables::kMicro, 6.2F, 7, 0,
                              "Of the backward: sum of the device events launched in repeated calls"),
        0, [=](Node node) { return or_none(node.recompute_device_us > 0, node.recompute_device_us); });
    add(tables::number_column("parameters", "Parameters", "", 6.6F, 5, 0,
                              "Elements, modules inside included"),
        0, [=](Node node) { return or_none(node.parameters != 0, count(node.parameters)); });
    add(tables::number_column("gathered_mb", "Gathered", "MiB", 5.4F, 7, communication,
                              "All-gathers of the unit that it wraps"),
        2, [](Node node) { return megabytes(node.gathered_bytes); });
    add(tables::number_column("reduced_mb", "Reduced", "MiB", 5.4F, 2, communication,
                              "Reductions of the unit that it wraps"),
        2, [](Node node) { return megabytes(node.reduced_bytes); });
    add(tables::number_column("unshard_wait_us", "Unshard wait", tables::kMicro, 7, 1, 0,
                              "Host time in its rate limiter and unshard waits"),
        0, [=](Node node) { return or_none(node.unshard_wait_us > 0, node.unshard_wait_us); });
    add(tables::number_column("peak_mb", "Peak", "MiB", 5.4F, 11, memory,
                              "Largest allocated device memory while a call is open"),
        2, [](Node node) { return megabytes(node.peak_bytes); });
}

std::optional<std::size_t> ModulesModel::find_module(int id) const {
    const auto at = std::find_if(modules_.begin(), modules_.end(),
                                 [id](const ModuleNode* node) { return node->module == id; });
    if (id < 0 || at == modules_.end()) return std::nullopt;
    return static_cast<std::size_t>(at - modules_.begin());
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

}  // namespace shardscope::viewer::panels
