#include "profiler/record/option_values.h"

#include <limits>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace shardscope::profiler {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(Sizes, are_powers_of_1024) {
    EXPECT_EQ(parse_bytes("4096"), 4096);
    EXPECT_EQ(parse_bytes("1B"), 1);
    EXPECT_EQ(parse_bytes("3k"), 3 * 1024);
    EXPECT_EQ(parse_bytes("500M"), 500ll << 20);
    EXPECT_EQ(parse_bytes("2GB"), 2ll << 30);
    EXPECT_EQ(parse_bytes("1.5GB"), 3ll << 29);
    EXPECT_EQ(parse_bytes("1T"), 1ll << 40);
}

TEST(Sizes, that_are_invalid_are_refused) {
    for (const char* text :
         {"", "M", "0", "-1", "1x", "1MM", "1 M", "inf", "nan", "1e99", "0.1", "99999999T"}) {
        EXPECT_THROW(parse_bytes(text), std::invalid_argument) << text;
    }
}

TEST(Steps, are_from_and_to) {
    constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
    EXPECT_THAT(parse_steps("100:103"), Pair(100, 103));
    EXPECT_THAT(parse_steps("7:7"), Pair(7, 7));
    EXPECT_THAT(parse_steps("7"), Pair(7, 7));
    EXPECT_THAT(parse_steps("7:"), Pair(7, kLast));
    EXPECT_THAT(parse_steps(":5"), Pair(0, 5));
}

TEST(Steps, that_are_invalid_are_refused) {
    for (const char* text :
         {"", ":", "a:b", "5:3", "-1:3", "1:2:3", "1-3", "1:2 ", "99999999999999999999:"}) {
        EXPECT_THROW(parse_steps(text), std::invalid_argument) << text;
    }
}

TEST(Ranks, are_numbers_and_ranges) {
    EXPECT_THAT(parse_ranks("0"), ElementsAre(Pair(0, 0)));
    EXPECT_THAT(parse_ranks("0,8-11,3"), ElementsAre(Pair(0, 0), Pair(8, 11), Pair(3, 3)));
}

TEST(Ranks, that_are_invalid_are_refused) {
    for (const char* text : {"", ",", "1,", "a", "3-1", "-1", "1-", "1--2", "1;2", "4294967296"}) {
        EXPECT_THROW(parse_ranks(text), std::invalid_argument) << text;
    }
    std::string many = "0";
    for (std::size_t i = 1; i < kMostRankRanges; ++i) many += ",0";
    EXPECT_EQ(parse_ranks(many).size(), kMostRankRanges);
    EXPECT_THROW(parse_ranks(many + ",0"), std::invalid_argument);
}

TEST(Signals, are_those_for_free_use) {
    EXPECT_EQ(parse_signal("USR2"), SIGUSR2);
    EXPECT_EQ(parse_signal("SIGUSR1"), SIGUSR1);
    EXPECT_EQ(parse_signal(std::to_string(SIGUSR2)), SIGUSR2);
    EXPECT_EQ(parse_signal("RTMIN+3"), SIGRTMIN + 3);
    for (const char* text : {"", "KILL", "TERM", "9", "0", "INT", "usr", "RTMIN+99", "RTMIN+"}) {
        EXPECT_THROW(parse_signal(text), std::invalid_argument) << text;
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
