// checkpoint.keep: which checkpoints stay in a folder, and what is the best after a run continues.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/checkpoint_testing.h"
#include "trainer/checkpoint/files.h"
#include "trainer/checkpoint/keep.h"

namespace shardscope::trainer::checkpoint {
namespace TEST_FILE {

using namespace testing;

using ::testing::ElementsAre;

class CheckpointKeep : public ::testing::Test {
  protected:
    void save(std::int64_t step) {
        const auto folder = std::filesystem::path(folder_.string()) / step_folder_name(step);
        std::filesystem::create_directories(folder);
        put(folder / "manifest.json", "{}");
    }
    std::vector<std::int64_t> left() const {
        std::vector<std::int64_t> steps = saved_steps(folder_.string());
        std::sort(steps.begin(), steps.end());
        return steps;
    }
    void train(CheckpointKeeper& keeper, std::int64_t step, double loss) {
        keeper.validated(step, loss);
        save(step);
        keeper.saved(step);
    }
    TemporaryFolder folder_;
};

TEST_F(CheckpointKeep, KeepsTheNewest) {
    CheckpointKeeper keeper(folder_.string(), {.last = 2}, false);
    save(90);  // another continuation's, of a later step
    for (const std::int64_t step : {10, 20, 30, 40}) {
        save(step);
        keeper.saved(step);
    }
    EXPECT_THAT(left(), ElementsAre(30, 40, 90));
    EXPECT_FALSE(keeper.best());
    EXPECT_FALSE(std::filesystem::exists(folder_ / "best"));
}

TEST_F(CheckpointKeep, KeepsTheBestAndTheNewest) {
    CheckpointKeeper keeper(folder_.string(), {.best = true}, false);
    train(keeper, 10, 3.0);
    train(keeper, 20, 2.5);
    EXPECT_THAT(left(), ElementsAre(20));
    train(keeper, 30, 2.75);
    train(keeper, 40, std::nan(""));
    EXPECT_THAT(left(), ElementsAre(20, 40));
    EXPECT_EQ(read_file(folder_ / "best"), "step-20 2.5\n");
    keeper.validated(45, 1.0);  // of a step that is not saved
    save(50);
    keeper.saved(50);
    EXPECT_EQ(keeper.best(), 20);
    EXPECT_THAT(left(), ElementsAre(20, 50));
}

TEST_F(CheckpointKeep, ARunThatContinuesKnowsTheBestSoFar) {
    {
        CheckpointKeeper keeper(folder_.string(), {.best = true}, false);
        train(keeper, 10, 2.0);
    }
    {
        CheckpointKeeper keeper(folder_.string(), {.best = true}, true);
        EXPECT_EQ(keeper.best(), 10);
        train(keeper, 20, 2.5);
        EXPECT_THAT(left(), ElementsAre(10, 20));
    }
    {
        CheckpointKeeper another(folder_.string(), {.best = true}, false);
        EXPECT_FALSE(another.best()) << "the best of another run";
    }
    for (const char* damaged : {"", "step-10", "step-10 x\n", "step-77 1.0\n", "here 1.0\n"}) {
        put(folder_ / "best", damaged);
        EXPECT_FALSE(CheckpointKeeper(folder_.string(), {.best = true}, true).best()) << damaged;
    }
}

TEST_F(CheckpointKeep, LeavesAllUnlessItIsAsked) {
    CheckpointKeeper keeper(folder_.string(), {}, false);
    train(keeper, 10, 2.0);
    train(keeper, 20, 1.0);
    EXPECT_THAT(left(), ElementsAre(10, 20));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::checkpoint
