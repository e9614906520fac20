// Which rows of a module tree are shown: the tree of the FSDP talk, per-Linear wrap, with two layers.
#include "viewer/panels/modules/module_rows.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using testing::ElementsAre;
using traces::analysis::ModuleNode;

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

// A view of one rank with this tree.
std::shared_ptr<const traces::analysis::ModuleView> view_of(std::vector<ModuleNode> tree) {
    auto view = std::make_shared<traces::analysis::ModuleView>();
    view->ranks.push_back({.rank = 0, .modules = std::move(tree)});
    return view;
}

TEST(ModuleRows, TheModelHasTheTreeInPreorderWithPaths) {
    const auto view = view_of(wrapped_mlp());
    const ModulesModel model(view, view->ranks[0]);
    ASSERT_EQ(model.rows(), 8U);
    EXPECT_EQ(model.node(7).name, "Linear_1");
    EXPECT_EQ(model.node(7).depth, 4);
    EXPECT_EQ(model.text(7, 0),
              "FullyShardedDataParallel_0/MLP_0/Sequential_0/FullyShardedDataParallel_2/Linear_1");
    EXPECT_EQ(model.module(7).device_us, 50);
}

TEST(ModuleRows, NumbersAreInTheColumnsUnit) {
    ModuleNode n = node("Linear_0", 1234.6);
    n.module = 3;
    n.occurrences = 12;
    n.gathered_bytes = 3 * 1024 * 1024 / 2;
    n.backward_device_us = 308.65;
    const auto view = view_of({n});
    const ModulesModel model(view, view->ranks[0]);
    const auto cell = [&](const std::string& id) {
        for (std::size_t c = 0; c < model.columns().size(); ++c) {
            if (model.columns()[c].id == id) return model.text(0, c);
        }
        ADD_FAILURE() << "no column " << id;
        return std::string();
    };
    EXPECT_EQ(cell("calls"), "12");
    EXPECT_EQ(cell("device_us"), "1,235");  // whole microseconds
    EXPECT_EQ(cell("backward_percent"), "25.0");
    EXPECT_EQ(cell("gathered_mb"), "1.50");
    for (const tables::TableColumn& column : model.columns())
        EXPECT_TRUE(column.id != "reduced_mb" && column.id != "peak_mb") << "no module has any";
    EXPECT_EQ(model.find_module(3), 0U);
    EXPECT_FALSE(model.find_module(-1)) << "unknown modules have no id";
}

TEST(ModuleRows, RecomputedTimeHasColumnsWhereThereIsAny) {
    const auto columns_of = [](const ModuleNode& n) {
        const auto view = view_of({n});
        const ModulesModel model(view, view->ranks[0]);
        std::vector<std::string> cells;
        for (std::size_t c = 0; c < model.columns().size(); ++c) {
            const std::string& id = model.columns()[c].id;
            if (id.starts_with("recomput")) cells.push_back(id + " " + model.text(0, c));
        }
        return cells;
    };
    ModuleNode n = node("Block_0", 200);
    EXPECT_THAT(columns_of(n), testing::IsEmpty());
    n.recomputations = 2;
    n.recompute_host_us = 30;
    n.recompute_device_us = 70;
    EXPECT_THAT(columns_of(n),
                ElementsAre("recomputations 2", "recompute_host_us 30", "recompute_device_us 70"));
}

TEST(ModuleRows, BackwardIsAShareOfDeviceTime) {
    ModuleNode n = node("Linear_0", 200);
    n.backward_device_us = 150;
    EXPECT_DOUBLE_EQ(backward_percent(n), 75);
    EXPECT_DOUBLE_EQ(backward_percent(node("ReLU_0", 0)), 0);
}

TEST(ModuleRows, TheCompactTreeMergesSiblingsOfOneShape) {
    const auto tree = wrapped_mlp();  // eight rows in full
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
    const auto lines = compact_tree(tree, 4);  // six rows with siblings merged
    ASSERT_EQ(lines.size(), 4U);
    EXPECT_EQ(lines.back().text, "... 3 more");
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
