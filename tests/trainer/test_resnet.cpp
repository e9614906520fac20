// ResNets: the published numbers of parameters and multiply-adds, PyTorch's names, and what a step keeps.
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/image_models.h"
#include "tests/trainer/model_testing.h"

namespace shardscope::trainer::model {
namespace TEST_FILE {

using ::testing::Contains;
using ::testing::Not;

using testing::job_of_images;
using testing::matmul_flops;

// Those of torchvision's models of the same names.
TEST(ResNet, HasThePublishedNumberOfParameters) {
    EXPECT_EQ(testing::elements(testing::tree_of(job_of_images("name = 'resnet18'"))), 11'689'512);
    EXPECT_EQ(testing::elements(testing::tree_of(job_of_images("name = 'resnet34'"))), 21'797'672);
    EXPECT_EQ(testing::elements(testing::tree_of(job_of_images("name = 'resnet50'"))), 25'557'032);
    EXPECT_EQ(testing::elements(testing::tree_of(job_of_images("name = 'resnet101'"))), 44'549'160);
    EXPECT_EQ(testing::elements(testing::tree_of(job_of_images("name = 'resnet152'"))), 60'192'808);
}

// 4.1 billion for an image of 224 x 224 pixels with the stride in the middle convolution; of the backward's
// two gradients the first convolution needs one.
TEST(ResNet, NeedsThePublishedMultiplyAdds) {
    const job::Job job = job_of_images("name = 'resnet50'", "batch = 2");
    ModuleTree tree = testing::tree_of(job);
    const testing::Pass pass = testing::write_pass(tree, job);
    const std::int64_t biases = 2 * 1000;  // of the head, added by its matmul
    const std::int64_t forward = (matmul_flops(pass, plan::Phase::forward) - biases) / 2 / 2;
    EXPECT_EQ(forward, 4'089'184'256);
    const std::int64_t first = std::int64_t{112} * 112 * 49 * 3 * 64;
    EXPECT_EQ(matmul_flops(pass, plan::Phase::backward) / 2 / 2, 2 * forward - first);
}

TEST(ResNet, HasPyTorchsNames) {
    const ModuleTree tree = testing::tree_of(job_of_images("name = 'resnet50'"));
    std::set<std::string> modules, buffers;
    for (const Module* module : tree.modules) modules.insert(module->path + ":" + module->class_name());
    for (const ModuleBuffer* buffer : tree.buffers) buffers.insert(buffer->path);
    for (const char* name : {"conv1:Conv2d", "bn1:BatchNorm2d", "relu:ReLU", "maxpool:MaxPool2d",
                             "layer1:Sequential", "layer1.0:Bottleneck", "layer1.0.conv3:Conv2d",
                             "layer1.0.downsample.0:Conv2d", "layer1.0.downsample.1:BatchNorm2d",
                             "layer4.2.bn3:BatchNorm2d", "avgpool:AdaptiveAvgPool2d", "fc:Linear"})
        EXPECT_THAT(modules, Contains(name));
    EXPECT_THAT(modules, Not(Contains("layer1.1.downsample:Sequential")));
    EXPECT_EQ(tree.buffers.size(), 2 * 53U);
    EXPECT_THAT(buffers, Contains("layer2.0.downsample.1.running_var"));
    EXPECT_EQ(tree.buffers[1]->value, 1);
}

// Each convolution keeps its input and each batch norm its own; ReLU and the residual are written over what
// they read, and the gradients of all parameters are ready once.
TEST(ResNet, KeepsWhatPyTorchSaves) {
    const job::Job job = job_of_images("name = 'resnet18'\nwidth = 4", "image = 32\nbatch = 2\nclasses = 10");
    ModuleTree tree = testing::tree_of(job);
    const testing::Pass pass = testing::write_pass(tree, job);
    EXPECT_EQ(pass.dangling(), 0);
    EXPECT_EQ(pass.ready.size(), tree.parameters.size());
    for (const auto& [path, times] : pass.ready) EXPECT_EQ(times, 1) << path;
    std::int64_t in_place = 0;
    for (const plan::Op* op : pass.all(plan::Kernel::relu_forward))
        in_place += op->args[0].buffer == op->args[1].buffer ? 1 : 0;
    EXPECT_EQ(in_place, 17);
    for (const plan::Op* op : pass.all(plan::Kernel::add)) EXPECT_EQ(op->args[0].buffer, op->args[1].buffer);
    EXPECT_EQ(pass.count(plan::Kernel::add), 8);
    EXPECT_EQ(pass.count(plan::Kernel::batch_norm_forward), 20);

    const testing::Pass evaluation = testing::write_pass(tree, job, {.backward = false, .training = false});
    EXPECT_EQ(evaluation.count(plan::Kernel::batch_norm_evaluate), 20);
    EXPECT_EQ(evaluation.count(plan::Kernel::batch_norm_forward), 0);
}

TEST(ResNet, RefusesABatchWithoutVariance) {
    const std::string small = "image = 17\nbatch = 1\nclasses = 10";
    EXPECT_THAT([&] { make_model(job_of_images("name = 'resnet18'", small)); },
                ::testing::ThrowsMessage<job::JobError>(::testing::HasSubstr(
                    "job.toml:6: data.batch: the last batch norm of a resnet18 has one pixel per image of 17 "
                    "pixels and one image per batch")));
    EXPECT_NO_THROW(make_model(job_of_images("name = 'resnet18'", "image = 33\nbatch = 1\nclasses = 10")));
    EXPECT_NO_THROW(
        make_model(job_of_images("name = 'resnet18'", "image = 4096\nbatch = 1048576")));  // 2^34 pixels
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::model
