// A table whose rows form a tree, and which of them are shown: open and closed rows, search, sorting within
// siblings. No Dear ImGui; frame thread for TreeState, any thread for the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "viewer/tables/column_scale.h"
#include "viewer/tables/table_order.h"

namespace shardscope::viewer::tables {

struct TreeNode {
    std::string name;  // the text in the tree: "Linear_1"
    std::string path;  // names from the root with '/': exported, and the row's name for scripts
    int depth = 0;
    std::size_t end = 0;  // the first row after its subtree
};

// Rows are in preorder: a row's subtree is [row, node(row).end). The first column is the path.
class TreeModel : public TableModel {
  public:
    std::size_t rows() const override { return nodes_.size(); }
    const TreeNode& node(std::size_t row) const { return nodes_[row]; }
    bool has_children(std::size_t row) const { return nodes_[row].end > row + 1; }
    std::optional<std::size_t> find(const std::string& path) const;
    std::optional<std::size_t> parent(std::size_t row) const;

  protected:
    // Adds a row after those that exist; `depth` is at most one more than the last row's.
    void add_node(std::string name, int depth);
    std::vector<TreeNode> nodes_;
};

struct TreeRow {
    std::size_t row = 0;  // of the model
    bool open = false;
    bool found = false;  // the search's text is in its name
    bool operator==(const TreeRow&) const = default;
};

struct TreeView {
    int open_levels = 1;                      // rows of smaller depth are open unless toggled
    std::unordered_set<std::string> toggled;  // paths with the opposite state
    std::string search;                       // ignores case; empty shows all
    TableSort sort;                           // within siblings; column -1: the model's order
};

// Rows from top to bottom. With a search: the matching rows and the rows above them, all open.
std::vector<TreeRow> tree_rows(const TreeModel& model, const TreeView& view);

// The number of levels that can be open with at most `rows` rows shown; at least 1.
int levels_that_fit(const TreeModel& model, std::size_t rows);

// What a panel keeps between frames for each of its trees.
class TreeState {
  public:
    // The rows of this model, computed again only when something has changed.
    const std::vector<TreeRow>& rows(const std::shared_ptr<const TreeModel>& model);
    // The same as rows of the model, from the last call of rows(): for export.
    const std::shared_ptr<const std::vector<std::uint32_t>>& order() const { return order_; }

    const TreeView& view() const { return view_; }
    void open_levels(int levels);  // affects all rows
    void toggle(const std::string& path);
    void reveal(const TreeModel& model, std::size_t row);  // opens all rows above it
    void search(const std::string& text);
    void sort(TableSort sort);

    std::optional<std::string> chosen;  // a path: kept if another model has it too
    bool scroll_to_chosen = false;
    std::set<std::string> hidden;  // ids of columns
    std::string search_text;       // of the field
    ColumnScales scales;

  private:
    TreeView view_;
    bool changed_ = true;
    std::shared_ptr<const TreeModel> model_;
    std::vector<TreeRow> rows_;
    std::shared_ptr<const std::vector<std::uint32_t>> order_;
};

}  // namespace shardscope::viewer::tables
