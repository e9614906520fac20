// Finding what a process has started.
#include "profiler/sampler/process_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/profiler/sampler/played_files.h"

namespace shardscope::profiler {
namespace TEST_FILE {

using ::testing::ElementsAre;

TEST(ProcessTree, has_the_children_of_every_thread) {
    const PlayedFiles played;
    played.write("/proc/10/task/10/children", "20 30 ");
    played.write("/proc/10/task/11/children", "40 ");
    played.write("/proc/30/task/30/children", "50 \n");
    played.write("/proc/60/task/60/children", "70 ");  // another's
    EXPECT_THAT(process_tree(played.files(), 10), ElementsAre(10, 20, 30, 40, 50));
    EXPECT_THAT(process_tree(played.files(), 20), ElementsAre(20));
}

TEST(ProcessTree, ends_where_processes_are_said_to_be_their_own_children) {
    const PlayedFiles played;
    played.write("/proc/10/task/10/children", "20 10 nonsense 30");
    played.write("/proc/20/task/20/children", "10");
    EXPECT_THAT(process_tree(played.files(), 10), ElementsAre(10, 20));
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
