// The rules of the loss scale: torch.amp.GradScaler's and DeepSpeed's, and the lines of skipped steps.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/executor/loss_scaler.h"
#include "trainer/executor/run.h"

namespace shardscope::trainer::executor {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::StartsWith;

job::PrecisionSection dynamic(job::ScaleRule rule, double initial, std::int64_t interval,
                              int hysteresis = 1) {
    job::PrecisionSection options;
    options.param = job::Precision::fp16;
    options.scale_rule = rule;
    options.initial_scale = initial;
    options.growth_interval = interval;
    options.hysteresis = hysteresis;
    return options;
}

// The scale after each step of a path: 'x' is an overflow, '.' is none.
std::vector<double> scales(LossScaler& scaler, const std::string& path) {
    std::vector<double> after;
    for (const char step : path)
        after.push_back(scaler.update(static_cast<std::int64_t>(after.size()), step == 'x').after.scale);
    return after;
}

TEST(LossScaler, TorchHalvesAtAnOverflowAndDoublesAfterCleanStepsInARow) {
    LossScaler scaler(dynamic(job::ScaleRule::torch, 1024, 3));
    EXPECT_THAT(scales(scaler, "..x...."), ElementsAre(1024, 1024, 512, 512, 512, 1024, 1024));
    EXPECT_EQ(scaler.state().skipped, 1);
    EXPECT_THAT(scales(scaler, "..xx"), ElementsAre(1024, 2048, 1024, 512));  // counted from the growth on
}

// (iteration - latest overflow - 1) > 0 and divisible by the window, from iteration 0 and overflow -1: the
// growth is one step later than torch's, and then at every third step.
TEST(LossScaler, DeepspeedGrowsAtMultiplesOfItsWindow) {
    LossScaler scaler(dynamic(job::ScaleRule::deepspeed, 1024, 3));
    EXPECT_THAT(scales(scaler, "......."), ElementsAre(1024, 1024, 1024, 2048, 2048, 2048, 4096));
    EXPECT_THAT(scales(scaler, "x...."), ElementsAre(2048, 2048, 2048, 2048, 4096));
}

TEST(LossScaler, DeepspeedsFirstOverflowLowersOnlyItsHysteresis) {
    LossScaler scaler(dynamic(job::ScaleRule::deepspeed, 1024, 2, 2));
    EXPECT_THAT(scales(scaler, "xxx"), ElementsAre(1024, 512, 256));       // the next ones halve it at once
    EXPECT_THAT(scales(scaler, "...x"), ElementsAre(256, 256, 512, 512));  // a growth restores it
    EXPECT_EQ(scaler.state().hysteresis, 1);
}

TEST(LossScaler, AConstantScaleStaysAndSkipsNonetheless) {
    job::PrecisionSection options;
    options.param = job::Precision::fp16;
    options.loss_scale = 128;
    LossScaler scaler(options);
    const LossScaleStep step = scaler.update(0, true);
    EXPECT_TRUE(step.skipped);
    EXPECT_EQ(step.after.scale, 128);
    EXPECT_EQ(
        overflow_line(0, step),
        "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 128.0, which precision.loss_scale keeps");
}

TEST(LossScaler, AnOverflowAtTheSmallestScaleEndsTheRun) {
    LossScaler deepspeed(dynamic(job::ScaleRule::deepspeed, 2, 1000));
    deepspeed.update(0, true);
    try {
        deepspeed.update(1, true);
        FAIL();
    } catch (const RunError& error) {
        EXPECT_STREQ(error.what(),
                     "step 1: the gradients overflow, and the loss scale is 1 already, below which "
                     "precision.min_scale does not let it go; lower optimizer.lr or train in fp32 "
                     "(precision.param)");
    }
    LossScaler torch(dynamic(job::ScaleRule::torch, 0x1p-125, 2000));
    torch.update(0, true);  // 2^-126, the smallest normal float
    EXPECT_THAT([&] { torch.update(1, true); },
                ::testing::ThrowsMessage<RunError>(::testing::HasSubstr("below which it would underflow")));
}

TEST(LossScaler, GoesOnFromAState) {
    LossScaler first(dynamic(job::ScaleRule::torch, 1024, 3)), second = first;
    scales(first, "x..");
    second.go_on_from(first.state());
    EXPECT_EQ(scales(second, "."), scales(first, "."));
    EXPECT_EQ(second.state(), first.state());
}

TEST(LossScaler, ALineOfDeepspeedsHysteresis) {
    LossScaler scaler(dynamic(job::ScaleRule::deepspeed, 1024, 2, 2));
    EXPECT_EQ(overflow_line(3, scaler.update(0, true)),
              "OVERFLOW! Rank 3 Skipping step. Attempted loss scale: 1024.0, reducing hysteresis to 1");
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::executor
