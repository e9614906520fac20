// A column without any value takes no memory, and reads as without a value in every row.
#include "traces/store/columns/index_column.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardscope::traces::store {
namespace TEST_FILE {

using testing::ElementsAre;

TEST(IndexColumn, TakesNoMemoryUntilARowHasAValue) {
    IndexColumn column;
    column.reset(1'000'000);
    column.set(7, IndexColumn::kNone);
    EXPECT_EQ(column.size(), 1'000'000U);
    EXPECT_EQ(column[999'999], -1);
    EXPECT_EQ(column.memory(), 0U);
    column.set(7, 3);
    EXPECT_EQ(column[7], 3);
    EXPECT_EQ(column[8], -1);
    EXPECT_EQ(column.memory(), 4'000'000U);
}

TEST(IndexColumn, HasARowForEachRowOfItsTable) {
    IndexColumn column;
    EXPECT_TRUE(column.empty());
    column.reset(3);
    EXPECT_FALSE(column.empty());
    EXPECT_THAT(column.all(), ElementsAre(-1, -1, -1));
    column.set(1, 5);
    column.set(1, -1);
    column.set(2, 0);
    EXPECT_THAT(column.all(), ElementsAre(-1, -1, 0));
    column.reset(1);
    EXPECT_THAT(column.all(), ElementsAre(-1));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::store
