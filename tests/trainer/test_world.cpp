// How the processes of a job work together as long as nothing fails.
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/base/clock.h"
#include "tests/trainer/world_helpers.h"
#include "trainer/world/own_addresses.h"

namespace shardscope::trainer::world {
namespace TEST_FILE {

using testing::Each;

std::string text_of(int rank) {
    return std::string(static_cast<std::size_t>(rank), static_cast<char>('a' + rank));
}

class WorldOfRanks : public ::testing::TestWithParam<int> {};

TEST_P(WorldOfRanks, GathersByRank) {
    std::vector<std::string> expected;
    expected.reserve(16);
    for (int rank = 0; rank < GetParam(); ++rank) expected.push_back(text_of(rank));
    const auto errors = run_worlds(GetParam(), [&](World& world) {
        EXPECT_EQ(world.ranks(), GetParam());
        for (int time = 0; time < 20; ++time) EXPECT_EQ(world.gather(text_of(world.rank())), expected);
    });
    EXPECT_THAT(errors, Each(""));
}

TEST_P(WorldOfRanks, BroadcastsWhatRank0Brings) {
    const auto errors = run_worlds(GetParam(), [&](World& world) {
        for (int time = 0; time < 20; ++time) {
            const std::string mine = std::to_string(100 * world.rank() + time);
            EXPECT_EQ(world.broadcast(mine), std::to_string(time));
            world.barrier();
        }
    });
    EXPECT_THAT(errors, Each(""));
}

INSTANTIATE_TEST_SUITE_P(Ranks, WorldOfRanks, testing::Values(1, 2, 3, 5, 16),
                         testing::PrintToStringParamName());

TEST(World, MembersAreTheSameOnAll) {
    std::mutex mutex;
    std::vector<std::vector<Member>> seen;
    const auto errors = run_worlds(4, [&](World& world) {
        EXPECT_EQ(world.hosts(), 1);
        const std::scoped_lock lock(mutex);
        seen.push_back(world.members());
    });
    EXPECT_THAT(errors, Each(""));
    for (const std::vector<Member>& members : seen) {
        ASSERT_EQ(members.size(), 4U);
        for (int rank = 0; rank < 4; ++rank) {
            const Member& member = members[static_cast<std::size_t>(rank)];
            EXPECT_EQ(member.pid, ::getpid());
            EXPECT_EQ(member.local_rank, rank);
            EXPECT_EQ(member.host, members[0].host);
            EXPECT_NE(member.host, "");
        }
    }
}

TEST(World, GathersLargeTexts) {
    constexpr std::size_t kBytes = 20U << 20U;
    const auto errors = run_worlds(3, [&](World& world) {
        const auto letter = static_cast<char>('a' + world.rank());
        const std::vector<std::string> all = world.gather(std::string(kBytes, letter));
        for (std::size_t rank = 0; rank < 3; ++rank) {
            EXPECT_EQ(all[rank].size(), kBytes);
            EXPECT_EQ(all[rank].find_first_not_of(static_cast<char>('a' + rank)), std::string::npos);
        }
    });
    EXPECT_THAT(errors, Each(""));
}

TEST(World, DeliversToRank0InEachSendersOrder) {
    constexpr int kTold = 500;
    std::map<int, std::vector<int>> told;  // indexed by sender
    const auto errors = run_worlds(3, [&](World& world) {
        if (world.rank() == 0) {
            world.on("number", [&](int from, std::string_view text) {
                told[from].push_back(std::stoi(std::string(text)));
            });
        }
        for (int number = 0; number < kTold; ++number) world.tell("number", std::to_string(number));
        world.barrier();
        if (world.rank() != 0) return;
        // Messages sent before the barrier have been delivered.
        EXPECT_EQ(told.size(), 3U);
        for (const auto& [from, numbers] : told) {
            ASSERT_EQ(numbers.size(), static_cast<std::size_t>(kTold));
            for (int number = 0; number < kTold; ++number)
                EXPECT_EQ(numbers[static_cast<std::size_t>(number)], number);
        }
    });
    EXPECT_THAT(errors, Each(""));
}

TEST(World, SendsToAllOthersFromRank0) {
    std::atomic<int> sum{0}, senders{0};
    const auto errors = run_worlds(4, [&](World& world) {
        world.on("step", [&](int from, std::string_view text) {
            sum += std::stoi(std::string(text));
            senders += from;
        });
        if (world.rank() == 0) {
            world.tell_all("step", "5");
            world.tell_all("step", "7");
        } else {
            EXPECT_THROW(world.tell_all("step", "9"), std::logic_error);
        }
        world.barrier();
    });
    EXPECT_THAT(errors, Each(""));
    EXPECT_EQ(sum, 3 * (5 + 7));
    EXPECT_EQ(senders, 0);
}

TEST(World, KeepsMessagesThatArriveBeforeTheirHandler) {
    std::vector<std::string> told;
    const auto errors = run_worlds(2, [&](World& world) {
        if (world.rank() == 1) {
            world.tell("early", "a");
            world.tell("other", "x");
            world.tell("early", "b");
        }
        world.barrier();  // both have arrived
        if (world.rank() == 0)
            world.on("early", [&](int from, std::string_view text) {
                told.push_back(std::to_string(from) + std::string(text));
            });
        world.barrier();
        world.tell("early", "c");
        world.barrier();
    });
    EXPECT_THAT(errors, Each(""));
    ASSERT_EQ(told.size(), 4U);
    EXPECT_EQ(told[0], "1a");
    EXPECT_EQ(told[1], "1b");
    EXPECT_THAT(std::vector<std::string>(told.begin() + 2, told.end()),
                testing::UnorderedElementsAre("0c", "1c"));
}

// On one host all processes read the same clock: the true offset is 0.
TEST(World, MeasuresTheClock) {
    const auto errors = run_worlds(4, [&](World& world) {
        for (int time = 0; time < 3; ++time) {
            const ClockOffset clock = world.measure_clock();
            EXPECT_LE(std::abs(clock.offset_ns), clock.uncertainty_ns);
            EXPECT_LT(clock.uncertainty_ns, 50'000'000);
            EXPECT_EQ(clock.uncertainty_ns == 0, world.rank() == 0);
            const std::int64_t age = profiler::MonotonicTime::now() - clock.at;
            EXPECT_GE(age, 0);
            EXPECT_LT(age, 20'000'000'000);
            world.barrier();
        }
    });
    EXPECT_THAT(errors, Each(""));
}

TEST(World, LeavesWhenAllHave) {
    std::atomic<int> worked{0};
    const auto errors = run_threads(make_places(3), [&](const Place& place) {
        World world(place, within(20));
        std::this_thread::sleep_for(std::chrono::milliseconds(30 * place.rank));
        ++worked;
        world.leave();
        EXPECT_EQ(worked, 3);
        world.leave();  // a second call has no effect
        EXPECT_FALSE(world.failed());
        EXPECT_THROW(world.barrier(), std::logic_error);
    });
    EXPECT_THAT(errors, Each(""));
}

TEST(World, TwoJobsDoNotMeet) {
    // Both get the same port: the second listens on a later one, and tokens show which job it belongs to.
    std::vector<Place> places = make_places(2), others = make_places(2);
    for (Place& place : others) {
        place.port = places[0].port;
        place.listen_fd = -1;
    }
    places.insert(places.end(), others.begin(), others.end());
    const auto errors = run_threads(places, [&](const Place& place) {
        World world(place, within(20));
        EXPECT_THAT(world.gather(place.token), Each(place.token));
        world.leave();
    });
    EXPECT_THAT(errors, Each(""));
}

TEST(World, FindsRank0ByAnyOfItsAddresses) {
    std::vector<Place> places = make_places(2);
    const Listener everywhere = Listener::on_ports(0, 1, false);
    for (Place& place : places) {
        place.master = own_addresses();
        place.port = everywhere.port();
        place.listen_fd = -1;
    }
    places[0].listen_fd = ::dup(everywhere.descriptor());
    const auto errors = run_threads(places, [&](const Place& place) {
        World world(place, within(20));
        world.leave();
    });
    EXPECT_THAT(errors, Each(""));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::world
