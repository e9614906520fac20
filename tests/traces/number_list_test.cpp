// Lists of numbers: written as people write them, read also as PyTorch writes them.
#include "traces/store/number_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardscope::traces::store {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NumberList, ReadsBackWhatItWrites) {
    const std::vector<std::int64_t> numbers = {0, 1, 3, 4, 5, 9};
    EXPECT_EQ(number_list(numbers), "0,1,3-5,9");
    EXPECT_THAT(numbers_of_list(number_list(numbers)), ElementsAre(0, 1, 3, 4, 5, 9));
}

TEST(NumberList, IsReadAsSourcesWriteIt) {
    EXPECT_THAT(numbers_of_list("0-3,8"), ElementsAre(0, 1, 2, 3, 8));
    EXPECT_THAT(numbers_of_list("[4, 0, 12]"), ElementsAre(0, 4, 12));
    EXPECT_THAT(numbers_of_list("7"), ElementsAre(7));
    for (const char* other : {"", "[0, 1, ...]", "3-1", "0-99999999", "a", "-1", "1,,2"})
        EXPECT_THAT(numbers_of_list(other), IsEmpty()) << other;
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::store
