// A table whose rows hang together as a tree, and which of them are shown: open and closed rows, search,
// sorting within siblings. No Dear ImGui; frame thread for TreeState, any thread for the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "viewer/tables/table_order.h"

namespace shardscope::viewer {

struct TreeNode {
    std::string name;  // what stands in the tree: "Linear_1"
    std::string path;  // names from the root with '/': what is exported, and the row's name for scripts
    int depth = 0;
    std::size_t end = 0;  // the first row behind its subtree
};

// Rows stand in preorder: a row's subtree is [row, node(row).end). The first column is the path.
class TreeModel : public TableModel {
  public:
    std::size_t rows() const override { return nodes_.size(); }
    const TreeNode& node(std::size_t row) const { return nodes_[row]; }
    bool has_children(std::size_t row) const { return nodes_[row].end > row + 1; }
    std::optional<std::size_t> find(const std::string& path) const;
    std::optional<std::size_t> parent(std::size_t row) const;
    double largest(std::size_t column) const;  // over all rows; 0 where there is no number

  protected:
    // Adds a row below those that were added; `depth` at most one more than the last one's.
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
    int open_levels = 1;                      // rows less deep than this are open unless toggled
    std::unordered_set<std::string> toggled;  // paths whose state is the other one
    std::string search;                       // letters' case does not matter; empty shows all
    TableSort sort;                           // within siblings; column -1: in the order of the model
};

// Rows from top to bottom. With a search: the rows found and the way to them, all open.
std::vector<TreeRow> tree_rows(const TreeModel& model, const TreeView& view);

// How many levels can be open so that at most `rows` rows show; at least 1.
int levels_that_fit(const TreeModel& model, std::size_t rows);

// What a panel keeps between frames for each of its trees.
class TreeState {
  public:
    // The rows for this model, worked out again only when something changed.
    const std::vector<TreeRow>& rows(const std::shared_ptr<const TreeModel>& model);
    // The same as rows of the model, as rows() was asked last: for export.
    const std::shared_ptr<const std::vector<std::uint32_t>>& order() const { return order_; }

    const TreeView& view() const { return view_; }
    void open_levels(int levels);  // of all rows
    void toggle(const std::string& path);
    void reveal(const TreeModel& model, std::size_t row);  // opens what is above it
    void search(const std::string& text);
    void sort(TableSort sort);

    std::optional<std::string> chosen;  // a path: stays where another model has it too
    bool scroll_to_chosen = false;
    std::set<std::string> hidden;  // ids of columns
    std::string search_text;       // of the field

  private:
    TreeView view_;
    bool changed_ = true;
    std::shared_ptr<const TreeModel> model_;
    std::vector<TreeRow> rows_;
    std::shared_ptr<const std::vector<std::uint32_t>> order_;
};

}  // namespace shardscope::viewer
