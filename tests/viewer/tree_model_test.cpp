// Which rows of a tree are shown: the module tree of the FSDP talk, per-Linear wrap, with two layers.
#include "viewer/tables/tree_model.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardscope::viewer::tables {
namespace TEST_FILE {

using testing::ElementsAre;

constexpr int kValue = 1;  // the column of numbers

class Tree final : public TreeModel {
  public:
    struct Row {
        int depth;
        const char* name;
        double value;
    };
    explicit Tree(const std::vector<Row>& rows) {
        columns_ = {{"path", "Path", ""}, {"value", "Value", "\u00b5s"}};
        for (const Row& row : rows) {
            add_node(row.name, row.depth);
            values_.push_back(row.value);
        }
    }
    std::string text(std::size_t row, std::size_t column) const override {
        return column == 0 ? node(row).path : std::to_string(values_[row]);
    }
    double number(std::size_t row, std::size_t) const override { return values_[row]; }

  private:
    std::vector<double> values_;
};

Tree wrapped_mlp() {
    return Tree({{0, "FSDP_0", 100},
                 {1, "MLP_0", 100},
                 {2, "Sequential_0", 100},
                 {3, "FSDP_1", 30},
                 {4, "Linear_0", 20},
                 {3, "ReLU_0", kNoNumber},
                 {3, "FSDP_2", 60},
                 {4, "Linear_1", 50}});
}

std::vector<std::string> names(const TreeModel& model, const std::vector<TreeRow>& rows) {
    std::vector<std::string> texts;
    for (const TreeRow& row : rows) {
        const TreeNode& node = model.node(row.row);
        texts.push_back(std::string(2 * static_cast<std::size_t>(node.depth), ' ') + node.name);
    }
    return texts;
}

TEST(TreeModel, ARowsSubtreeFollowsIt) {
    const Tree tree = wrapped_mlp();
    EXPECT_EQ(tree.node(0).end, 8U);
    EXPECT_EQ(tree.node(2).end, 8U);
    EXPECT_EQ(tree.node(3).end, 5U);
    EXPECT_EQ(tree.node(5).end, 6U);
    EXPECT_TRUE(tree.has_children(3));
    EXPECT_FALSE(tree.has_children(5));
    EXPECT_EQ(tree.node(4).path, "FSDP_0/MLP_0/Sequential_0/FSDP_1/Linear_0");
    EXPECT_EQ(tree.parent(6), 2U);
    EXPECT_EQ(tree.parent(0), std::nullopt);
    EXPECT_EQ(tree.find("FSDP_0/MLP_0"), 1U);
    EXPECT_EQ(tree.find("MLP_0"), std::nullopt);
    EXPECT_EQ(tree.largest(kValue), 100);
}

TEST(TreeModel, KeepsSeveralRoots) {
    const Tree tree({{0, "a", 1}, {1, "b", 1}, {0, "c", 1}});
    EXPECT_EQ(tree.node(0).end, 2U);
    EXPECT_EQ(tree.node(2).path, "c");
    EXPECT_EQ(tree.node(2).end, 3U);
}

TEST(TreeRows, OpenLevelsShowTheTreeDownToThere) {
    const Tree tree = wrapped_mlp();
    TreeView view;
    view.open_levels = 2;
    EXPECT_THAT(names(tree, tree_rows(tree, view)), ElementsAre("FSDP_0", "  MLP_0", "    Sequential_0"));
    view.open_levels = 9;
    EXPECT_EQ(tree_rows(tree, view).size(), 8U);
}

TEST(TreeRows, AToggledRowIsTheOtherWay) {
    const Tree tree = wrapped_mlp();
    TreeView view;
    view.open_levels = 9;
    view.toggled.insert("FSDP_0/MLP_0/Sequential_0/FSDP_1");
    const auto rows = tree_rows(tree, view);
    EXPECT_EQ(rows.size(), 7U) << "Linear_0 is hidden";
    EXPECT_FALSE(rows[3].open);
}

TEST(TreeRows, ASearchShowsWhatItFindsAndTheWayThere) {
    const Tree tree = wrapped_mlp();
    TreeView view;
    view.search = "linear_1";
    const auto rows = tree_rows(tree, view);
    EXPECT_THAT(names(tree, rows),
                ElementsAre("FSDP_0", "  MLP_0", "    Sequential_0", "      FSDP_2", "        Linear_1"));
    EXPECT_FALSE(rows[3].found);
    EXPECT_TRUE(rows[4].found);
    view.search = "conv";
    EXPECT_TRUE(tree_rows(tree, view).empty());
}

TEST(TreeRows, SortingStaysWithinSiblingsAndRowsWithoutANumberComeLast) {
    const Tree tree = wrapped_mlp();
    TreeView view;
    view.open_levels = 3;
    view.sort = {kValue, true};
    EXPECT_THAT(
        names(tree, tree_rows(tree, view)),
        ElementsAre("FSDP_0", "  MLP_0", "    Sequential_0", "      FSDP_2", "      FSDP_1", "      ReLU_0"));
    view.sort = {kValue, false};
    EXPECT_THAT(
        names(tree, tree_rows(tree, view)),
        ElementsAre("FSDP_0", "  MLP_0", "    Sequential_0", "      FSDP_1", "      FSDP_2", "      ReLU_0"));
    view.sort = {0, true};  // by name, last first
    EXPECT_EQ(tree.node(tree_rows(tree, view)[3].row).name, "ReLU_0");
}

TEST(TreeRows, AsManyLevelsOpenAsFit) {
    const Tree tree = wrapped_mlp();  // 1, 1, 1, 3, 2 rows by level
    EXPECT_EQ(levels_that_fit(tree, 8), 4) << "everything";
    EXPECT_EQ(levels_that_fit(tree, 7), 3) << "all but the Linears";
    EXPECT_EQ(levels_that_fit(tree, 5), 2);
    EXPECT_EQ(levels_that_fit(tree, 1), 1) << "never nothing";
    EXPECT_EQ(levels_that_fit(Tree({}), 10), 1);
}

TEST(TreeState, RevealsARowByOpeningWhatIsAboveIt) {
    const auto tree = std::make_shared<const Tree>(wrapped_mlp());
    TreeState state;
    state.open_levels(1);
    EXPECT_EQ(state.rows(tree).size(), 2U);
    state.reveal(*tree, 4);
    EXPECT_THAT(names(*tree, state.rows(tree)),
                ElementsAre("FSDP_0", "  MLP_0", "    Sequential_0", "      FSDP_1", "        Linear_0",
                            "      ReLU_0", "      FSDP_2"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::tables
