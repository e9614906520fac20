// The module tree; see module_fields().
#include "traces/analysis/modules/modules.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/print.h"

namespace shardscope::traces::report {
namespace {

using Json = nlohmann::ordered_json;

// `above`: the tree lines of the ancestors, which precede this level's own lines.
void add_rows(analysis::ResultTable& table, const std::vector<analysis::ModuleNode>& nodes,
              const std::string& above, bool root) {
    for (const analysis::ModuleNode& node : nodes) {
        const bool last = &node == &nodes.back();
        std::vector<store::Cell>& cells = table.rows.emplace_back();
        add_cells(cells, analysis::module_fields(), node);
        if (!root) cells[0] = above + (last ? "└─ " : "├─ ") + node.name;
        add_rows(table, node.children, root ? std::string() : above + (last ? "   " : "│  "), false);
    }
}

Json module_json(const analysis::ModuleNode& node) {
    Json json = json_row(analysis::module_fields(), node);
    Json& children = json["children"] = Json::array();
    for (const analysis::ModuleNode& child : node.children) children.push_back(module_json(child));
    return json;
}

void add_paths(analysis::ResultTable& table, int rank, const std::string& above,
               const std::vector<analysis::ModuleNode>& nodes) {
    for (const analysis::ModuleNode& node : nodes) {
        const std::string path = above.empty() ? node.name : above + '/' + node.name;
        table.rows.push_back({std::int64_t{rank}, path});
        add_cells(table.rows.back(), analysis::module_fields(), node);
        add_paths(table, rank, path, node.children);
    }
}

std::string table_text(const analysis::ModuleView& view, std::size_t width) {
    if (view.ranks.empty()) return std::string(kNothingSelected);
    std::string text;
    for (const analysis::RankModules& rank : view.ranks) {
        if (!text.empty()) text += '\n';
        if (rank.modules.empty()) {
            text += fmt::format("Rank {}: no module ranges\n", rank.rank);
            continue;
        }
        text += fmt::format("Rank {}\n", rank.rank);
        analysis::ResultTable table = empty_table(analysis::module_fields());
        add_rows(table, rank.modules, "", true);
        text += text_of(table, width);
    }
    return text;
}

std::string json_text(const analysis::ModuleView& view) {
    Json ranks = Json::array();
    for (const analysis::RankModules& rank : view.ranks) {
        Json modules = Json::array();
        for (const analysis::ModuleNode& node : rank.modules) modules.push_back(module_json(node));
        ranks.push_back({{"rank", rank.rank}, {"modules", std::move(modules)}});
    }
    return json_line({{"ranks", std::move(ranks)}});
}

std::string csv_text(const analysis::ModuleView& view) {
    analysis::ResultTable table =
        empty_table(analysis::module_fields(),
                    {analysis::kRankColumn,
                     {"path", "Path", analysis::Unit::text, "The names from the root, with '/'."}});
    for (const analysis::RankModules& rank : view.ranks) add_paths(table, rank.rank, "", rank.modules);
    return csv_of(table);
}

}  // namespace

std::string render(const analysis::ModuleView& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
