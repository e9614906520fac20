// Steps of two runs on one axis.
#include "viewer/timeline/step_alignment.h"

#include <vector>

#include <gtest/gtest.h>

namespace shardscope::viewer::timeline {
namespace TEST_FILE {

using traces::store::Step;

Step step(std::int64_t number, std::int64_t start, std::int64_t end) {
    Step made;
    made.number = number;
    made.start = start;
    made.end = end;
    return made;
}

TEST(StepAlignment, EachStepBeginsWhereTheOtherDoes) {
    const std::vector<Step> here{step(0, 100, 200), step(1, 200, 300), step(2, 300, 400)};
    const std::vector<Step> there{step(0, 1000, 1150), step(1, 1150, 1210), step(2, 1210, 1310)};
    const StepAlignment alignment(here, there, 0);
    ASSERT_TRUE(alignment.has_steps());
    const AlignedParts all = alignment.parts({0, 500}, 10);
    EXPECT_TRUE(all.each_step);
    ASSERT_EQ(all.parts.size(), 3U);
    // Step 0 is longer there: 50 ns have no room. What is before it moves with it.
    EXPECT_EQ(all.parts[0].here, (model::TimeRange{0, 200}));
    EXPECT_EQ(all.parts[0].shift, 100 - 1000);
    EXPECT_EQ(all.parts[0].cut, 50);
    EXPECT_EQ(all.parts[0].longer, 50);
    // Step 1 is shorter: nothing follows it until step 2 begins.
    EXPECT_EQ(all.parts[1].here, (model::TimeRange{200, 260}));
    EXPECT_EQ(all.parts[1].shift, 200 - 1150);
    EXPECT_EQ(all.parts[1].longer, -40);
    EXPECT_EQ(all.parts[1].cut, 0);
    EXPECT_EQ(all.parts[2].here, (model::TimeRange{300, 500}));
    EXPECT_EQ(all.parts[2].longer, 0);
    EXPECT_EQ(all.parts[2].length, 100);
}

TEST(StepAlignment, ShowsOnlyWhatIsVisible) {
    const std::vector<Step> here{step(0, 100, 200), step(1, 200, 300)};
    const std::vector<Step> there{step(0, 0, 40), step(1, 40, 80)};
    const StepAlignment alignment(here, there, 0);
    EXPECT_TRUE(alignment.parts({150, 190}, 10).parts.empty());  // the gap after the shorter step 0
    const auto inside = alignment.parts({110, 120}, 10).parts;
    ASSERT_EQ(inside.size(), 1U);
    EXPECT_EQ(inside[0].here, (model::TimeRange{110, 120}));
    EXPECT_EQ(StepAlignment(there, here, 0).parts({0, 30}, 10).parts[0].cut, 0);  // its end is not in sight
    EXPECT_EQ(StepAlignment(there, here, 0).parts({0, 40}, 10).parts[0].cut, 60);
    const auto before = alignment.parts({0, 50}, 10).parts;
    ASSERT_EQ(before.size(), 1U);
    EXPECT_EQ(before[0].shift, 100);
    EXPECT_EQ(alignment.parts({400, 500}, 10).parts.front().step, 1);
}

TEST(StepAlignment, OfManyStepsTheFirstInSightIsAligned) {
    std::vector<Step> here, there;
    for (int i = 0; i < 100; ++i) {
        here.push_back(step(i, i * 10, i * 10 + 10));
        there.push_back(step(i, i * 20, i * 20 + 20));
    }
    const AlignedParts many = StepAlignment(here, there, 0).parts({95, 1000}, 20);
    EXPECT_FALSE(many.each_step);
    ASSERT_EQ(many.parts.size(), 1U);
    EXPECT_EQ(many.parts[0].step, 10);
    EXPECT_EQ(many.parts[0].shift, -100);
    EXPECT_EQ(many.parts[0].here, (model::TimeRange{95, 1000}));
}

TEST(StepAlignment, NumbersThatAreMissingOrOutOfOrderArePassedOver) {
    const std::vector<Step> here{step(0, 0, 10), step(1, 10, 20), step(2, 20, 30), step(5, 30, 40)};
    const std::vector<Step> there{step(7, 0, 10), step(2, 10, 20), step(0, 20, 30), step(5, 30, 40)};
    const auto parts = StepAlignment(here, there, 0).parts({0, 50}, 10).parts;
    ASSERT_EQ(parts.size(), 2U);  // 2 begins before 0 there
    EXPECT_EQ(parts[0].step, 0);
    EXPECT_EQ(parts[1].step, 5);
    const StepAlignment none({here.data(), 1}, {there.data(), 1}, 7);
    EXPECT_FALSE(none.has_steps());
    EXPECT_EQ(none.parts({0, 50}, 10).parts.front().shift, 7);
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::timeline
