// Wrap policies: which modules become units, and the resulting tree and numbering.
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "plan_jobs.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::sharding {
namespace TEST_FILE {

using ::testing::ElementsAre;

std::string tree_text(const Program& program) {
    const model::ModuleTree& tree = program.modules();
    std::string text;
    for (std::size_t i = 0; i < tree.modules.size(); ++i) {
        int depth = 0;
        for (int p = tree.parents[i]; p >= 0; p = tree.parents[static_cast<std::size_t>(p)]) ++depth;
        text += std::string(static_cast<std::size_t>(depth), ' ') + tree.modules[i]->name + "\n";
    }
    return text;
}

std::vector<std::string> unit_names(const Program& program) {
    std::vector<std::string> names;
    for (const UnitInfo& unit : program.units()) names.push_back(unit.name);
    return names;
}

TEST(Wrap, RootMakesOneUnit) {
    const Program program(testing::with_wrap(testing::mlp_job(2, 8, 1, 2), "root"));
    EXPECT_EQ(tree_text(program),
              "FullyShardedDataParallel_0\n MLP_0\n  Sequential_0\n   Linear_0\n   ReLU_0\n   Linear_1\n");
    EXPECT_THAT(unit_names(program), ElementsAre("root"));
    EXPECT_EQ(program.units()[0].elements, 2 * (8 * 8 + 8));
}

TEST(Wrap, ByClassMakesOneUnitPerModule) {
    const Program program(testing::with_wrap(testing::mlp_job(2, 8, 1, 2), "module:Linear"));
    EXPECT_EQ(
        tree_text(program),
        "FullyShardedDataParallel_0\n MLP_0\n  Sequential_0\n   FullyShardedDataParallel_1\n    Linear_0\n"
        "   ReLU_0\n   FullyShardedDataParallel_2\n    Linear_1\n");
    EXPECT_THAT(unit_names(program), ElementsAre("net.0", "net.2")) << "nothing is left to the root";
}

TEST(Wrap, TheRootKeepsTheRest) {
    const testing::SampleText text;
    const Program program(testing::with_wrap(testing::gpt_job(text, 1, 2), "module:Block"));
    EXPECT_THAT(unit_names(program), ElementsAre("root", "blocks.0", "blocks.1"));
    // Embeddings 256*32 + 16*32, last norm 2*32, head 32*256 without bias.
    EXPECT_EQ(program.units()[0].elements, 256 * 32 + 16 * 32 + 2 * 32 + 32 * 256);
    // Norms 2*(2*32), qkv 32*96+96, projection 32*32+32, expand 32*128+128, projection 128*32+32.
    EXPECT_EQ(program.units()[1].elements, 128 + 3168 + 1056 + 4224 + 4128);
}

// PyTorch's recursion: bottom up, a module is wrapped when its remaining parameters reach the threshold.
TEST(Wrap, BySizeWrapsIfTheRemainderIsLargeEnough) {
    const job::Job job = testing::mlp_job(4, 10, 1, 2);  // 110 elements a Linear
    EXPECT_THAT(unit_names(Program(testing::with_wrap(job, "size:110"))),
                ElementsAre("net.0", "net.2", "net.4", "net.6"));
    EXPECT_THAT(unit_names(Program(testing::with_wrap(job, "size:111"))), ElementsAre("net"));
    try {
        const Program program(testing::with_wrap(job, "size:441"));
        FAIL() << "nothing below the root has so many parameters";
    } catch (const job::JobError& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr("the largest has 440"));
    }
}

TEST(Wrap, ByPathWithPatterns) {
    const testing::SampleText text;
    const auto units = [job = testing::gpt_job(text, 1, 2)](const char* wrap) {
        return unit_names(Program(testing::with_wrap(job, wrap)));
    };
    EXPECT_THAT(units("path:blocks.*"), ElementsAre("root", "blocks.0", "blocks.1")) << "* ends at a dot";
    EXPECT_THAT(units("path:blocks.*.feed_forward,head"),
                ElementsAre("root", "blocks.0.feed_forward", "blocks.1.feed_forward", "head"));
    EXPECT_THAT(units("path:**.qkv"),
                ElementsAre("root", "blocks.0.attention.qkv", "blocks.1.attention.qkv"));
    EXPECT_THAT(units("path:blocks.?,blocks.1.attention"),
                ElementsAre("root", "blocks.0", "blocks.1", "blocks.1.attention"));
}

TEST(Wrap, APatternOfManyStarsIsMatchedInNoTime) {
    const std::string stars(60, '*');
    EXPECT_THAT(
        unit_names(Program(testing::with_wrap(testing::mlp_job(2, 8, 1, 2), "path:net" + stars + "2"))),
        ElementsAre("root", "net.2"));
}

TEST(Wrap, OneOfEveryKModulesOfAClass) {
    const job::Job job = testing::mlp_job(5, 8, 1, 2);
    EXPECT_THAT(unit_names(Program(testing::with_wrap(job, "every:2,Linear"))),
                ElementsAre("root", "net.0", "net.4", "net.8"));
    EXPECT_THAT(unit_names(Program(testing::with_wrap(job, "every:9,Linear"))), ElementsAre("root", "net.0"));
}

TEST(Wrap, ExcludedModulesBelongToTheUnitAroundThem) {
    job::Job job = testing::mlp_job(4, 10, 1, 2);
    job.fsdp.exclude = job::parse_modules("path:net.2,net.4");
    EXPECT_THAT(unit_names(Program(testing::with_wrap(job, "module:Linear"))),
                ElementsAre("root", "net.0", "net.6"));
    EXPECT_THAT(unit_names(Program(testing::with_wrap(job, "size:110"))),
                ElementsAre("net", "net.0", "net.6"));
}

TEST(Wrap, ListsPathsWhenNoneMatches) {
    try {
        const Program program(testing::with_wrap(testing::mlp_job(6, 8, 1, 2), "path:net.0,blocks.*"));
        FAIL() << "a policy that matches nothing was accepted";
    } catch (const job::JobError& error) {
        EXPECT_STREQ(
            error.what(),
            "fsdp.wrap: no module has a path like blocks.*; paths are net, net.0, net.1, net.2, net.3, "
            "net.4, net.5, net.6 and 4 more");
    }
}

TEST(Wrap, RulesOfUnitsMustSelectOne) {
    job::Job job = testing::with_wrap(testing::mlp_job(2, 8, 1, 2), "module:Linear");
    job.fsdp.unit = job::parse_unit_rules("path:net=false");
    job.origins["fsdp.unit"] = "job.toml:9";
    try {
        const Program program(job);
        FAIL() << "a rule that selects no unit was accepted";
    } catch (const job::JobError& error) {
        EXPECT_STREQ(
            error.what(),
            "job.toml:9: fsdp.unit: path:net selects modules, but none of them is a unit; fsdp.wrap is "
            "module:Linear");
    }
}

TEST(Wrap, ListsTheClassesWhenNoneMatches) {
    try {
        const Program program(testing::with_wrap(testing::mlp_job(2, 8, 1, 2), "module:Conv2d"));
        FAIL() << "a policy that matches nothing was accepted";
    } catch (const job::JobError& error) {
        EXPECT_STREQ(error.what(),
                     "fsdp.wrap: the model has no module of class Conv2d; its classes are Linear, MLP, ReLU, "
                     "Sequential");
    }
}

TEST(Wrap, PathsDoNotShowTheWrap) {
    for (const char* wrap : {"root", "module:Linear"}) {
        const Program program(testing::with_wrap(testing::mlp_job(2, 8, 1, 2), wrap));
        EXPECT_EQ(program.modules().parameters[2]->path, "net.2.weight") << wrap;
    }
}

// 25 weights, 3 elements so that the bias begins at a multiple of 16 bytes, 5 biases; on 4 ranks.
TEST(Wrap, AlignsParametersAndPadsToTheRanks) {
    job::Job job = testing::with_wrap(testing::mlp_job(1, 5, 1, 4), "root");
    const Program program(job);
    EXPECT_EQ(program.units()[0].elements, 30);
    EXPECT_EQ(program.units()[0].shard_elements, 9);
    EXPECT_EQ(program.units()[0].padded_elements, 36);
    job.fsdp.layout = job::FsdpLayout::lean;
    EXPECT_EQ(Program(job).units()[0].padded_elements, 32) << "side by side";
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::sharding
