// Reading what the kernel says.
#include "profiler/sampler/system_files.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/profiler/sampler/played_files.h"

namespace shardscope::profiler {
namespace TEST_FILE {

using ::testing::ElementsAre;

TEST(SystemFiles, reads_texts_and_numbers_and_says_why_it_cannot) {
    const PlayedFiles played;
    played.write("/sys/a", "  25000\n");
    played.write("/sys/b", "up\nmore\n");
    const SystemFiles& files = played.files();
    EXPECT_EQ(files.number("/sys/a"), 25000u);
    EXPECT_EQ(files.line("/sys/b"), "up");
    EXPECT_EQ(files.read("/sys/b"), "up\nmore\n");
    EXPECT_EQ(files.read("/sys/b", nullptr, 2), "up");
    int error = 0;
    EXPECT_FALSE(files.number("/sys/b", &error));
    EXPECT_EQ(error, EINVAL);
    EXPECT_FALSE(files.number("/sys/c", &error));
    EXPECT_EQ(error, ENOENT);
    EXPECT_FALSE(files.read("/sys", &error));  // a folder
    EXPECT_EQ(error, EISDIR);
    EXPECT_EQ(files.line("/sys/c"), "");
}

TEST(SystemFiles, lists_names_in_the_order_in_which_people_count) {
    const PlayedFiles played;
    for (const char* name : {"mlx5_10", "mlx5_2", "eth0", "mlx5_1"})
        played.write(std::string("/sys/") + name, "");
    EXPECT_THAT(played.files().names_in("/sys"), ElementsAre("eth0", "mlx5_1", "mlx5_2", "mlx5_10"));
    EXPECT_THAT(played.files().names_in("/none"), ElementsAre());
}

TEST(SystemFiles, know_what_a_link_points_to) {
    const PlayedFiles played;
    played.link("/sys/eth0/device", "../../../0000:17:00.1");
    played.link("/sys/one", "word");
    played.write("/sys/file", "");
    EXPECT_EQ(played.files().target_of("/sys/eth0/device"), "0000:17:00.1");
    EXPECT_EQ(played.files().target_of("/sys/one"), "word");
    EXPECT_EQ(played.files().target_of("/sys/file"), "");
}

TEST(NumberBehind, finds_the_whole_word_at_the_start_of_a_line) {
    constexpr const char* kText = "SwapFree: 1 kB\nMemFree2: 3 kB\nMemFree:  \t22 kB\nlast 7";
    EXPECT_EQ(number_behind(kText, "MemFree:"), 22u);
    EXPECT_EQ(number_behind(kText, "last"), 7u);
    EXPECT_FALSE(number_behind(kText, "MemFree"));
    EXPECT_FALSE(number_behind(kText, "Free:"));
    EXPECT_FALSE(number_behind("", "x"));
    EXPECT_FALSE(number_behind("x", "x"));
    EXPECT_FALSE(number_behind("x word", "x"));
}

TEST(CountOfList, counts_what_the_kernel_lists) {
    EXPECT_EQ(count_of_list("0-3,8"), 5);
    EXPECT_EQ(count_of_list("0\n"), 1);
    EXPECT_EQ(count_of_list(""), 0);
    EXPECT_EQ(count_of_list("0-x"), 0);
    EXPECT_EQ(count_of_list("3-1"), 0);
    EXPECT_EQ(count_of_list("0-99999999999"), 0);
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
