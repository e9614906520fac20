// Which rows of a module tree are shown: the tree of the FSDP talk, per-Linear wrap, with two layers.
#include "viewer/panels/module_rows.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardscope::viewer {
namespace {

using testing::ElementsAre;
using traces::ModuleNode;

ModuleNode node(std::string name, double device_us, std::vector<ModuleNode> children = {}) {
    ModuleNode n;
    n.name = std::move(name);
    n.device_us = device_us;
    n.children = std::move(children);
    return n;
}

std::vector<ModuleNode> wrapped_mlp() {
    return {
        node("FullyShardedDataParallel_0", 100,
             {node("MLP_0", 100,
                   {node("Sequential_0", 100,
                         {node("FullyShardedDataParallel_1", 30, {node("Linear_0", 20)}), node("ReLU_0", 10),
                          node("FullyShardedDataParallel_2", 60, {node("Linear_1", 50)})})})})};
}

std::vector<std::string> names(const std::vector<VisibleModule>& rows) {
    std::vector<std::string> texts;
    for (const VisibleModule& row : rows)
        texts.push_back(std::string(2 * static_cast<std::size_t>(row.depth), ' ') + row.node->name);
    return texts;
}

TEST(ModuleRows, OpenLevelsShowTheTreeDownToThere) {
    const auto tree = wrapped_mlp();
    ModuleTreeState state;
    state.open_levels = 2;
    EXPECT_THAT(names(visible_modules(tree, state)),
                ElementsAre("FullyShardedDataParallel_0", "  MLP_0", "    Sequential_0"));
    state.open_levels = 9;
    EXPECT_EQ(visible_modules(tree, state).size(), 8U);
}

TEST(ModuleRows, AToggledNodeIsTheOtherWay) {
    const auto tree = wrapped_mlp();
    ModuleTreeState state;
    state.open_levels = 9;
    state.toggled.insert("FullyShardedDataParallel_0/MLP_0/Sequential_0/FullyShardedDataParallel_1");
    const auto rows = visible_modules(tree, state);
    EXPECT_EQ(rows.size(), 7U) << "Linear_0 is hidden";
    EXPECT_FALSE(rows[3].open);
    EXPECT_TRUE(rows[3].has_children);
}

TEST(ModuleRows, ASearchShowsWhatItFindsAndTheWayThere) {
    const auto tree = wrapped_mlp();
    ModuleTreeState state;
    state.search = "linear_1";
    const auto rows = visible_modules(tree, state);
    EXPECT_THAT(names(rows), ElementsAre("FullyShardedDataParallel_0", "  MLP_0", "    Sequential_0",
                                         "      FullyShardedDataParallel_2", "        Linear_1"));
    EXPECT_FALSE(rows[3].found);
    EXPECT_TRUE(rows[4].found);
    state.search = "conv";
    EXPECT_TRUE(visible_modules(tree, state).empty());
}

TEST(ModuleRows, SortingStaysWithinSiblings) {
    const auto tree = wrapped_mlp();
    ModuleTreeState state;
    state.open_levels = 3;
    state.sorted = true;
    state.sort_by = ModuleColumn::device;
    EXPECT_THAT(
        names(visible_modules(tree, state)),
        ElementsAre("FullyShardedDataParallel_0", "  MLP_0", "    Sequential_0",
                    "      FullyShardedDataParallel_2", "      FullyShardedDataParallel_1", "      ReLU_0"));
    state.descending = false;
    EXPECT_EQ(visible_modules(tree, state)[3].node->name, "ReLU_0");
    state.sort_by = ModuleColumn::name;
    EXPECT_EQ(visible_modules(tree, state)[5].node->name, "ReLU_0");
}

TEST(ModuleRows, AsManyLevelsOpenAsFit) {
    const auto tree = wrapped_mlp();  // 1, 1, 1, 3, 2 rows by level
    EXPECT_EQ(levels_that_fit(tree, 8), 4) << "everything";
    EXPECT_EQ(levels_that_fit(tree, 7), 3) << "all but the Linears";
    EXPECT_EQ(levels_that_fit(tree, 5), 2);
    EXPECT_EQ(levels_that_fit(tree, 1), 1) << "never nothing";
    EXPECT_EQ(levels_that_fit({}, 10), 1);
}

TEST(ModuleRows, BackwardIsAShareOfDeviceTime) {
    ModuleNode n = node("Linear_0", 200);
    n.backward_device_us = 150;
    EXPECT_DOUBLE_EQ(backward_percent(n), 75);
    EXPECT_DOUBLE_EQ(backward_percent(node("ReLU_0", 0)), 0);
}

TEST(ModuleRows, TheCompactTreeMergesSiblingsOfOneShape) {
    const auto tree = wrapped_mlp();  // eight lines in full
    std::vector<std::string> lines;
    for (const TreeLine& line : compact_tree(tree, 7)) {
        lines.push_back(std::string(static_cast<std::size_t>(line.depth), ' ') + line.text);
    }
    EXPECT_THAT(lines,
                ElementsAre("FullyShardedDataParallel_0", " MLP_0", "  Sequential_0",
                            "   FullyShardedDataParallel_1 .. 2  \u00d72", "    Linear_0", "   ReLU_0"));
}

TEST(ModuleRows, ATreeThatFitsIsShownInFull) {
    const auto tree = wrapped_mlp();
    const auto lines = compact_tree(tree, 8);
    ASSERT_EQ(lines.size(), 8U);
    EXPECT_EQ(lines[3].text, "FullyShardedDataParallel_1");
    EXPECT_EQ(lines[7].text, "Linear_1");
    EXPECT_EQ(lines[7].depth, 4);
}

TEST(ModuleRows, TheCompactTreeSaysWhatItLeavesOut) {
    const auto tree = wrapped_mlp();
    const auto lines = compact_tree(tree, 4);  // six lines with siblings merged
    ASSERT_EQ(lines.size(), 4U);
    EXPECT_EQ(lines.back().text, "... 3 more");
}

}  // namespace
}  // namespace shardscope::viewer
