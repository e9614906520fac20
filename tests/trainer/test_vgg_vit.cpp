// VGGs and vision transformers: the published numbers of parameters and multiply-adds, and their names.
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/image_models.h"
#include "tests/trainer/model_testing.h"

namespace shardscope::trainer::model {
namespace TEST_FILE {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::job_of_images;

std::int64_t parameters_of(const std::string& name) {
    return testing::elements(testing::tree_of(job_of_images("name = '" + name + "'")));
}

// Those of torchvision's models of the same names.
TEST(Vgg, HasThePublishedNumberOfParameters) {
    EXPECT_EQ(parameters_of("vgg11"), 132'863'336);
    EXPECT_EQ(parameters_of("vgg13"), 133'047'848);
    EXPECT_EQ(parameters_of("vgg16"), 138'357'544);
    EXPECT_EQ(parameters_of("vgg19"), 143'667'240);
}
TEST(Vit, HasThePublishedNumberOfParameters) {
    EXPECT_EQ(parameters_of("vit_b_16"), 86'567'656);
    EXPECT_EQ(parameters_of("vit_b_32"), 88'224'232);
    EXPECT_EQ(parameters_of("vit_l_16"), 304'326'632);
    EXPECT_EQ(parameters_of("vit_l_32"), 306'535'400);
}

// Of the forward's matmuls, without the additions of their biases.
std::int64_t multiply_adds(const std::string& name, std::int64_t biases) {
    const job::Job job = job_of_images("name = '" + name + "'", "batch = 2");
    ModuleTree tree = testing::tree_of(job);
    const testing::Pass pass = testing::write_pass(tree, job);
    EXPECT_EQ(pass.dangling(), 0);
    EXPECT_EQ(pass.ready.size(), tree.parameters.size());
    return (testing::matmul_flops(pass, plan::Phase::forward) / 2 - biases) / 2;
}

// 15.47 billion.
TEST(Vgg, NeedsThePublishedMultiplyAdds) {
    const std::int64_t of_pixels =
        2 * 64 * 224 * 224 + 2 * 128 * 112 * 112 + 3 * 256 * 56 * 56 + 3 * 512 * 28 * 28 + 3 * 512 * 14 * 14;
    EXPECT_EQ(multiply_adds("vgg16", of_pixels + 2 * 4096 + 1000), 15'470'264'320);
}

// 17.56 billion with the two matmuls of each attention.
TEST(Vit, NeedsThePublishedMultiplyAdds) {
    const std::int64_t tokens = 197, width = 768, layers = 12;
    const std::int64_t biases = 196 * width + layers * tokens * (3 + 1 + 4 + 1) * width + 1000;
    const std::int64_t attention = layers * 2 * tokens * tokens * width;
    EXPECT_EQ(multiply_adds("vit_b_16", biases) + attention, 17'563'828'224);
}

std::set<std::string> modules_of(const ModuleTree& tree) {
    std::set<std::string> modules;
    for (const Module* module : tree.modules) modules.insert(module->path + ":" + module->class_name());
    return modules;
}

TEST(Vgg, HasPyTorchsNames) {
    const std::set<std::string> modules = modules_of(testing::tree_of(job_of_images("name = 'vgg16'")));
    for (const char* name : {"features.0:Conv2d", "features.1:ReLU", "features.4:MaxPool2d",
                             "features.28:Conv2d", "features.30:MaxPool2d", "avgpool:AdaptiveAvgPool2d",
                             "classifier.0:Linear", "classifier.2:Dropout", "classifier.6:Linear"})
        EXPECT_THAT(modules, Contains(name));
}

TEST(Vit, RefusesPatchesThatAreNotWhole) {
    EXPECT_THAT([] { make_model(job_of_images("name = 'vit_b_16'", "image = 100")); },
                ::testing::ThrowsMessage<job::JobError>(HasSubstr(
                    "job.toml:5: data.image: 100 pixels are not whole patches of 16, which a vit_b_16 has")));
}

TEST(Vgg, RefusesImagesThatItPoolsAway) {
    EXPECT_THAT([] { make_model(job_of_images("name = 'vgg11'", "image = 31")); },
                ::testing::ThrowsMessage<job::JobError>(
                    HasSubstr("job.toml:5: data.image: 31 pixels are gone before the last pool of a vgg11")));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::model
