// See tree_model.h.
#include "viewer/tables/tree_model.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "traces/schema/sort_rows.h"
#include "traces/schema/text.h"

namespace shardscope::viewer::tables {
namespace {

// The result of a search, by row: whether its name matches, and whether a row below it does.
struct Found {
    std::vector<bool> here, below;
};

Found find_all(const TreeModel& model, const std::string& text) {
    Found found{std::vector<bool>(model.rows()), std::vector<bool>(model.rows())};
    std::vector<std::size_t> above;  // the path to the row
    for (std::size_t row = 0; row < model.rows(); ++row) {
        above.resize(static_cast<std::size_t>(model.node(row).depth));
        if (traces::schema::contains_but_for_case(model.node(row).name, text)) {
            found.here[row] = true;
            for (const std::size_t a : above) found.below[a] = true;
        }
        above.push_back(row);
    }
    return found;
}

class Walk {
  public:
    Walk(const TreeModel& model, const TreeView& view)
        : model_(model), view_(view), found_(view.search.empty() ? Found{} : find_all(model, view.search)) {}

    std::vector<TreeRow> rows() {
        add(0, model_.rows());
        return std::move(rows_);
    }

  private:
    // Adds the siblings in [from, to), each with the open rows below it.
    void add(std::size_t from, std::size_t to) {
        std::vector<std::size_t> siblings;
        for (std::size_t row = from; row < to; row = model_.node(row).end) siblings.push_back(row);
        if (view_.sort.column >= 0) put_in_order(siblings);
        for (const std::size_t row : siblings) {
            TreeRow shown{row, false, false};
            const TreeNode& node = model_.node(row);
            if (view_.search.empty()) {
                shown.open = model_.has_children(row) &&
                             ((node.depth < view_.open_levels) != view_.toggled.contains(node.path));
            } else {
                shown.found = found_.here[row];
                shown.open = found_.below[row];
                if (!shown.found && !shown.open) continue;
            }
            rows_.push_back(shown);
            if (shown.open) add(row + 1, node.end);
        }
    }

    void put_in_order(std::vector<std::size_t>& siblings) const {
        const auto column = static_cast<std::size_t>(view_.sort.column);
        const bool by_name = column == 0;
        traces::schema::sort_rows(siblings, [&](std::size_t a, std::size_t b) {
            if (by_name) {
                if (view_.sort.descending) std::swap(a, b);
                return model_.node(a).name < model_.node(b).name;
            }
            const double x = model_.number(a, column), y = model_.number(b, column);
            if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) && std::isnan(y);  // NaN comes last
            return view_.sort.descending ? x > y : x < y;
        });
    }

    const TreeModel& model_;
    const TreeView& view_;
    Found found_;
    std::vector<TreeRow> rows_;
};

}  // namespace

void TreeModel::add_node(std::string name, int depth) {
    const std::size_t row = nodes_.size();
    std::size_t above = row;  // the nearest row before it with a smaller depth
    while (above > 0 && nodes_[above - 1].depth >= depth) --above;
    TreeNode node{std::move(name), {}, depth, row + 1};
    node.path = depth > 0 && above > 0 ? nodes_[above - 1].path + "/" + node.name : node.name;
    nodes_.push_back(std::move(node));
    for (std::size_t at = above; depth > 0 && at > 0;) {  // the subtrees of rows above it now end after it
        nodes_[at - 1].end = row + 1;
        const int own = nodes_[at - 1].depth;
        if (own == 0) break;
        while (at > 0 && nodes_[at - 1].depth >= own) --at;
    }
}

std::optional<std::size_t> TreeModel::find(const std::string& path) const {
    const auto at = std::find_if(nodes_.begin(), nodes_.end(),
                                 [&path](const TreeNode& node) { return node.path == path; });
    if (at == nodes_.end()) return std::nullopt;
    return static_cast<std::size_t>(at - nodes_.begin());
}

std::optional<std::size_t> TreeModel::parent(std::size_t row) const {
    const int depth = nodes_[row].depth;
    if (depth == 0) return std::nullopt;
    while (row > 0 && nodes_[row].depth >= depth) --row;
    return row;
}

std::vector<TreeRow> tree_rows(const TreeModel& model, const TreeView& view) {
    return Walk(model, view).rows();
}

int levels_that_fit(const TreeModel& model, std::size_t rows) {
    std::vector<std::size_t> counts;
    for (std::size_t row = 0; row < model.rows(); ++row) {
        const auto depth = static_cast<std::size_t>(model.node(row).depth);
        if (counts.size() <= depth) counts.resize(depth + 1);
        ++counts[depth];
    }
    std::size_t shown = counts.empty() ? 0 : counts[0];
    int levels = 0;
    for (std::size_t depth = 1; depth < counts.size() && shown + counts[depth] <= rows; ++depth) {
        shown += counts[depth];
        ++levels;
    }
    return std::max(1, levels);
}

const std::vector<TreeRow>& TreeState::rows(const std::shared_ptr<const TreeModel>& model) {
    if (changed_ || model_ != model) {
        model_ = model;
        rows_ = tree_rows(*model, view_);
        std::vector<std::uint32_t> order;
        order.reserve(rows_.size());
        for (const TreeRow& row : rows_) order.push_back(static_cast<std::uint32_t>(row.row));
        order_ = std::make_shared<const std::vector<std::uint32_t>>(std::move(order));
        changed_ = false;
    }
    return rows_;
}

void TreeState::open_levels(int levels) {
    view_.open_levels = levels;
    view_.toggled.clear();
    changed_ = true;
}

void TreeState::toggle(const std::string& path) {
    if (view_.toggled.erase(path) == 0) view_.toggled.insert(path);
    changed_ = true;
}

void TreeState::reveal(const TreeModel& model, std::size_t row) {
    for (auto above = model.parent(row); above; above = model.parent(*above)) {
        const TreeNode& node = model.node(*above);
        const bool open = (node.depth < view_.open_levels) != view_.toggled.contains(node.path);
        if (!open) toggle(node.path);
    }
}

void TreeState::search(const std::string& text) {
    if (view_.search == text) return;
    view_.search = text;
    changed_ = true;
}

void TreeState::sort(TableSort sort) {
    if (view_.sort == sort) return;
    view_.sort = sort;
    changed_ = true;
}

}  // namespace shardscope::viewer::tables
