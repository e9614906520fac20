// The values of a sweep: how they are distinguished, which combinations they make, the names of the traces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/cli/sweep_grid.h"

namespace shardscope::trainer::cli {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<std::string> values(const std::string& key, const std::vector<std::string>& texts) {
    std::vector<job::Override> overrides;
    for (const std::string& text : texts) overrides.push_back({key, text});
    const SweepGrid grid = make_grid(overrides);
    if (!grid.axes.empty()) return grid.axes.front().values;
    return {grid.fixed.front().value};
}

std::string refusal(const std::vector<job::Override>& overrides) {
    try {
        make_grid(overrides);
    } catch (const job::JobError& error) {
        return error.what();
    }
    return "accepted";
}

std::vector<std::string> names(const std::vector<job::Override>& overrides) {
    std::vector<std::string> all;
    for (const SweepPoint& point : combinations(make_grid(overrides), "mlp")) all.push_back(point.name);
    return all;
}

TEST(SweepValues, ACommaSeparatesThem) {
    EXPECT_THAT(values("fsdp.wrap", {"root,module:Linear"}), ElementsAre("root", "module:Linear"));
    EXPECT_THAT(values("run.ranks", {"1,2,4"}), ElementsAre("1", "2", "4"));
}

TEST(SweepValues, ASemicolonSeparatesThoseWithCommas) {
    EXPECT_THAT(values("fsdp.wrap", {"root;module:Linear,ReLU"}), ElementsAre("root", "module:Linear,ReLU"));
    EXPECT_THAT(values("optimizer.milestones", {"10,20;30"}), ElementsAre("10,20", "30"));
}

TEST(SweepValues, ASemicolonAtTheEndMakesOneValue) {
    EXPECT_THAT(values("fsdp.wrap", {"module:Linear,ReLU;"}), ElementsAre("module:Linear,ReLU"));
}

TEST(SweepValues, AKeyGivenAgainHasOneValueEachTime) {
    EXPECT_THAT(values("fsdp.wrap", {"root", "module:Linear,ReLU"}),
                ElementsAre("root", "module:Linear,ReLU"));
}

TEST(SweepValues, BracketsKeepAList) {
    EXPECT_THAT(values("optimizer.betas", {"[0.9,0.95],[0.9,0.99]"}),
                ElementsAre("[0.9,0.95]", "[0.9,0.99]"));
}

TEST(SweepValues, ACommaThatMayBelongToAValueIsRefused) {
    EXPECT_THAT(refusal({{"fsdp.wrap", "module:Linear,ReLU"}}),
                AllOf(HasSubstr("fsdp.wrap"), HasSubstr("\"ReLU\""), HasSubstr("'module:Linear,ReLU;'")));
    EXPECT_THAT(refusal({{"optimizer.milestones", "30,60"}}),
                AllOf(HasSubstr("optimizer.milestones"), HasSubstr("'30,60;'")));
}

TEST(SweepValues, EachMustBeOneOfItsKey) {
    EXPECT_THAT(refusal({{"fsdp.wrap", "root,linear"}}),
                AllOf(HasSubstr("\"linear\""), HasSubstr("module:NAME")));
    EXPECT_THAT(refusal({{"run.ranks", "2,0"}}), AllOf(HasSubstr("run.ranks"), HasSubstr("1 to 65536")));
    EXPECT_THAT(refusal({{"run.ranks", "2,"}}), AllOf(HasSubstr("run.ranks"), HasSubstr("an integer")));
    EXPECT_THAT(refusal({{"fsdp.cpu_offload", "true,maybe"}}), HasSubstr("\"maybe\""));
    EXPECT_THAT(refusal({{"fsdp.warp", "root"}}), AllOf(HasSubstr("warp"), HasSubstr("did you mean wrap")));
    EXPECT_THAT(refusal({{"fdsp.wrap", "root"}}), AllOf(HasSubstr("fdsp"), HasSubstr("did you mean fsdp")));
}

TEST(SweepValues, OneGivenTwiceIsRefused) {
    EXPECT_THAT(refusal({{"fsdp.cpu_offload", "true,on"}}), AllOf(HasSubstr("\"on\""), HasSubstr("twice")));
    EXPECT_THAT(refusal({{"run.ranks", "2"}, {"run.ranks", "2"}}), HasSubstr("twice"));
}

TEST(SweepValues, KeysThatASweepSetsItselfAreRefused) {
    EXPECT_THAT(refusal({{"run.trace", "a.sqlite"}}), HasSubstr("-o FOLDER"));
    EXPECT_THAT(refusal({{"run.overwrite", "true"}}), HasSubstr("--overwrite"));
}

TEST(SweepValues, TooManyCombinationsAreRefused) {
    std::string seeds = "1";
    for (int i = 2; i <= 65; ++i) seeds += "," + std::to_string(i);
    EXPECT_THAT(refusal({{"run.seed", seeds}, {"run.steps", seeds}}), HasSubstr("4096"));  // 65 * 65 = 4225
}

TEST(SweepCombinations, AreAllWithTheLastKeyFastest) {
    EXPECT_THAT(
        names({{"fsdp.wrap", "root,module:Linear"}, {"run.steps", "2"}, {"fsdp.cpu_offload", "false,true"}}),
        ElementsAre("wrap=root,cpu_offload=false", "wrap=root,cpu_offload=true",
                    "wrap=module-Linear,cpu_offload=false", "wrap=module-Linear,cpu_offload=true"));
}

TEST(SweepCombinations, CarryTheSettingsThatDiffer) {
    const auto points = combinations(make_grid({{"run.ranks", "1,2"}, {"run.steps", "2"}}), "mlp");
    ASSERT_THAT(points, SizeIs(2));
    EXPECT_THAT(points[1].settings, ElementsAre(job::Override{"run.ranks", "2"}));
}

TEST(SweepCombinations, WithoutSeveralValuesThereIsOneWithTheJobsName) {
    EXPECT_THAT(names({{"run.steps", "2"}}), ElementsAre("mlp"));
}

TEST(SweepCombinations, AreNamedWithTheSectionWhereTwoKeysEndInTheSame) {
    EXPECT_THAT(names({{"model.type", "mlp,gpt"}, {"optimizer.type", "sgd;"}}),
                ElementsAre("type=mlp", "type=gpt"));
    EXPECT_THAT(names({{"data.type", "synthetic,text"}, {"optimizer.type", "sgd,adam"}}),
                ::testing::Contains("data.type=text,optimizer.type=adam"));
}

TEST(SweepCombinations, HaveUniqueNamesThatAFileCanHave) {
    EXPECT_THAT(names({{"data.path", "a/b,a:b"}}), ElementsAre("path=a-b", "path=a-b-2"));
    const std::string long_path(300, 'x');
    EXPECT_THAT(names({{"data.path", long_path + "1," + long_path + "2"}}), ElementsAre("run-1", "run-2"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::cli
