// What a module's sharding could be instead.
#include "viewer/panels/modules/unit_changes.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using testing::HasSubstr;
using testing::IsEmpty;

// A root around an Embedding, which is no unit, and two Blocks, of which the first is one; each has a ReLU.
traces::store::Trace sample() {
    traces::store::Trace trace;
    trace.config = {{"parallel.mode", "fsdp"}};
    const auto add = [&](int id, int parent, const char* kind, const char* path, std::int64_t parameters) {
        traces::schema::ModuleRow row;
        row.id = id;
        row.parent = parent;
        row.name = std::string(kind) + "_" + std::to_string(id);
        row.class_name = kind;
        row.path = path;
        row.parameters = parameters;
        trace.modules.push_back(row);
    };
    add(0, -1, "FullyShardedDataParallel", "", 0);
    add(1, 0, "GPT", "", 0);
    add(2, 1, "Embedding", "embedding", 100);
    add(3, 1, "FullyShardedDataParallel", "blocks.0", 0);
    add(4, 3, "Block", "blocks.0", 0);
    add(5, 4, "Linear", "blocks.0.up", 10);
    add(6, 4, "ReLU", "blocks.0.relu", 0);
    add(7, 1, "Block", "blocks.1", 10);
    traces::schema::UnitRow root, block;
    root.module = 0;
    block.id = 1;
    block.module = 3;
    trace.units = {root, block};
    return trace;
}

std::string change(const std::vector<UnitChange>& changes, const std::string& id) {
    for (const UnitChange& one : changes)
        if (one.id == id) return one.changes;
    return "";
}

TEST(UnitChanges, MakeAUnitOfAModuleOrMergeItIntoItsParent) {
    std::string why;
    const auto trace = sample();
    EXPECT_EQ(change(unit_changes(trace, 2, "", why), "unit"),
              R"(fsdp.wrap = "path:blocks.0,embedding", fsdp.exclude = none)");
    for (const int block : {3, 4})
        EXPECT_EQ(change(unit_changes(trace, block, "", why), "merge"), "fsdp.wrap = root");
    EXPECT_EQ(change(unit_changes(trace, 4, "", why), "class_unit"),
              R"(fsdp.wrap = "path:blocks.0,blocks.1", fsdp.exclude = none)");
    EXPECT_EQ(change(unit_changes(trace, 5, "", why), "unit"),
              R"(fsdp.wrap = "path:blocks.0,blocks.0.up", fsdp.exclude = none)");
    EXPECT_EQ(why, "");
}

TEST(UnitChanges, SayWhyThereIsNone) {
    auto trace = sample();
    const auto why = [&](int module) {
        std::string said;
        EXPECT_THAT(unit_changes(trace, module, "", said), IsEmpty());
        return said;
    };
    EXPECT_THAT(why(0), HasSubstr("in any case"));
    EXPECT_THAT(why(6), HasSubstr("no parameters"));
    EXPECT_THAT(why(99), HasSubstr("does not say where"));
    trace.config = {{"parallel.mode", "ddp"}};
    EXPECT_THAT(why(2), HasSubstr("not sharded by FSDP"));
}

// PyTorch's profiler names modules by class and number only.
TEST(UnitChanges, OfATraceWithoutPathsAreByClass) {
    auto trace = sample();
    trace.config.clear();
    for (traces::schema::ModuleRow& module : trace.modules) module.path.clear();
    std::string why;
    for (const int module : {4, -1}) {
        const auto changes = unit_changes(trace, module, "Block_0", why);
        ASSERT_EQ(changes.size(), 1U);
        EXPECT_EQ(changes.front().changes, "fsdp.wrap = module:Block");
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
