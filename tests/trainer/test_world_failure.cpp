// What the processes of a job learn when one of them dies, hangs or fails.
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/world_helpers.h"
#include "trainer/world/hello.h"

namespace shardscope::trainer::world {
namespace TEST_FILE {

using testing::Each;
using Clock = std::chrono::steady_clock;

std::string process_on_host(pid_t pid) {
    return "(process " + std::to_string(pid) + " on host " + own_host_name() + ")";
}

// The error that a World throws when a process repeatedly waits for the others.
std::string wait_for_failure(World& world) {
    try {
        while (true) {
            world.barrier();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    } catch (const WorldFailure& failure) {
        EXPECT_TRUE(world.failed());
        return std::string(failure.failure().lost ? "lost: " : "failed: ") + failure.what();
    }
}

// The whole life of a process that only waits for the others.
std::string wait_in_world(const Place& place, double timeout_s) {
    World world(place, within(timeout_s));
    world.barrier();
    return wait_for_failure(world);
}

// A process that does nothing until it is killed.
std::string idle_in_world(const Place& place, double timeout_s) {
    World world(place, within(timeout_s));
    world.barrier();
    std::this_thread::sleep_for(std::chrono::minutes(1));
    return "";
}

TEST(WorldFailure, OneThatFailsEndsTheJobOnAll) {
    std::mutex mutex;
    std::vector<std::string> told;
    const auto errors = run_threads(make_places(5), [&](const Place& place) {
        World world(place, within(20));
        std::atomic<int> times{0};
        world.on_failure([&](const Failure& failure) {
            ++times;
            const std::scoped_lock lock(mutex);
            told.push_back(std::to_string(failure.rank) + " " + failure.reason);
        });
        EXPECT_FALSE(world.failed());
        world.barrier();
        if (place.rank == 3) world.fail({.rank = 3, .reason = "cannot write its trace"});
        EXPECT_EQ(wait_for_failure(world), "failed: rank 3 cannot write its trace");
        EXPECT_THROW(world.gather("again"), WorldFailure);
        EXPECT_THROW(world.broadcast("again"), WorldFailure);
        EXPECT_THROW(world.measure_clock(), WorldFailure);
        world.leave();  // no process waits for another any more
        EXPECT_EQ(times, 1);
        // A handler that is set late is called immediately.
        std::atomic<bool> late{false};
        world.on_failure([&](const Failure&) { late = true; });
        for (int i = 0; i < 1000 && !late; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        EXPECT_TRUE(late);
    });
    EXPECT_THAT(errors, Each(""));
    EXPECT_EQ(told.size(), 5U);
    EXPECT_THAT(told, Each("3 cannot write its trace"));
}

TEST(WorldFailure, TheFirstIsTheSameOnAll) {
    for (int time = 0; time < 10; ++time) {
        std::mutex mutex;
        std::vector<std::string> seen;
        const auto errors = run_threads(make_places(4), [&](const Place& place) {
            World world(place, within(20));
            world.barrier();
            world.fail({.rank = place.rank, .reason = "was the first"});
            const std::string failure = wait_for_failure(world);
            const std::scoped_lock lock(mutex);
            seen.push_back(failure);
        });
        EXPECT_THAT(errors, Each(""));
        EXPECT_THAT(seen, Each(seen[0]));
    }
}

TEST(WorldFailure, OneThatFailsAndEndsImmediatelyIsHeard) {
    for (const int failing : {0, 1}) {
        const std::vector<Place> places = make_places(3);
        const auto errors = run_threads(places, [&](const Place& place) {
            World world(place, within(20));
            world.barrier();
            if (place.rank == failing) return world.fail({.rank = failing, .reason = "is out of memory"});
            EXPECT_EQ(wait_for_failure(world),
                      "failed: rank " + std::to_string(failing) + " is out of memory");
        });
        EXPECT_THAT(errors, Each(""));
    }
}

// Another sees the end of a connection before rank 0 hears why it ended.
TEST(WorldFailure, WhatARankSaysGoesBeforeWhatOthersSeeOfIt) {
    for (const int failing : {0, 2}) {
        const auto errors = run_threads(make_places(3), [&](const Place& place) {
            World world(place, within(20));
            world.barrier();
            if (place.rank == 1)
                world.fail({.rank = failing, .reason = "is lost: its connection has ended", .lost = true});
            world.gather("");
            if (place.rank == failing) {
                std::this_thread::sleep_for(std::chrono::milliseconds(50));
                world.fail({.rank = failing, .reason = "is out of memory"});
            }
            EXPECT_EQ(wait_for_failure(world),
                      "failed: rank " + std::to_string(failing) + " is out of memory");
        });
        EXPECT_THAT(errors, Each(""));
    }
}

TEST(WorldFailure, WhatOthersSeeOfARankIsTheFailureIfItSaysNothing) {
    const auto errors = run_threads(make_places(3), [&](const Place& place) {
        World world(place, within(20));
        world.barrier();
        if (place.rank == 1)
            world.fail({.rank = 2, .reason = "is lost: its connection has ended", .lost = true});
        EXPECT_EQ(wait_for_failure(world), "lost: rank 2 is lost: its connection has ended");
    });
    EXPECT_THAT(errors, Each(""));
}

TEST(WorldFailure, AHandlerThatThrowsIsAFailure) {
    const auto errors = run_threads(make_places(3), [&](const Place& place) {
        World world(place, within(20));
        if (place.rank == 1)
            world.on("x", [](int, std::string_view) { throw std::runtime_error("no room"); });
        world.barrier();
        if (place.rank == 0) world.tell_all("x", "");
        EXPECT_EQ(wait_for_failure(world), "failed: rank 1 failed: no room");
    });
    EXPECT_THAT(errors, Each(""));
}

TEST(WorldFailure, AWorldThatIsNotLeftIsLost) {
    const auto errors = run_threads(make_places(3), [&](const Place& place) {
        World world(place, within(20));
        world.barrier();
        if (place.rank == 2) return;  // leaves as if an exception had been thrown
        EXPECT_EQ(wait_for_failure(world), "lost: rank 2 " + process_on_host(::getpid()) + " has ended");
    });
    EXPECT_THAT(errors, Each(""));
}

TEST(WorldFailure, AKilledProcessIsNamedImmediatelyOnAll) {
    const std::vector<Place> places = make_places(4);
    const ChildProcess victim([&] { return idle_in_world(places[2], 20); });
    const ChildProcess rank_1([&] { return wait_in_world(places[1], 20); });
    const ChildProcess rank_3([&] { return wait_in_world(places[3], 20); });
    const std::string expected = "lost: rank 2 " + process_on_host(victim.pid()) + " has ended";
    World world(places[0], within(20));
    world.barrier();
    const auto begin = Clock::now();
    victim.signal(SIGKILL);
    EXPECT_EQ(wait_for_failure(world), expected);
    EXPECT_EQ(rank_1.result(), expected);
    EXPECT_EQ(rank_3.result(), expected);
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
}

TEST(WorldFailure, AKilledRank0IsNamedImmediatelyByAll) {
    const std::vector<Place> places = make_places(3);
    const ChildProcess victim([&] { return idle_in_world(places[0], 20); });
    ::close(places[0].listen_fd);  // only the child uses it
    const ChildProcess rank_1([&] { return wait_in_world(places[1], 20); });
    const std::string expected = "lost: rank 0 " + process_on_host(victim.pid()) + " has ended";
    World world(places[2], within(20));
    world.barrier();
    victim.signal(SIGKILL);
    EXPECT_EQ(wait_for_failure(world), expected);
    EXPECT_EQ(rank_1.result(), expected);
}

TEST(WorldFailure, AStoppedProcessIsNamedAfterTheTimeoutAndLearnsItWhenItContinues) {
    constexpr double kTimeout = 1;
    const std::vector<Place> places = make_places(3);
    const ChildProcess victim([&] { return wait_in_world(places[2], kTimeout); });
    const ChildProcess rank_1([&] { return wait_in_world(places[1], kTimeout); });
    const std::string expected = "lost: rank 2 " + process_on_host(victim.pid()) +
                                 " has been silent for 1 s; it may be stopped, or its host may be down";
    {
        World world(places[0], within(kTimeout));
        world.barrier();
        const auto begin = Clock::now();
        victim.signal(SIGSTOP);
        EXPECT_EQ(wait_for_failure(world), expected);
        EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(900));
        EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
        EXPECT_EQ(rank_1.result(), expected);
    }
    victim.signal(SIGCONT);  // all others are gone
    EXPECT_EQ(victim.result(), expected);
}

TEST(WorldFailure, AStoppedRank0IsNamedByAllAndLearnsItWhenItContinues) {
    constexpr double kTimeout = 1;
    const std::vector<Place> places = make_places(3);
    const ChildProcess victim([&] { return wait_in_world(places[0], kTimeout); });
    ::close(places[0].listen_fd);
    const ChildProcess rank_1([&] { return wait_in_world(places[1], kTimeout); });
    const std::string expected = "lost: rank 0 " + process_on_host(victim.pid()) +
                                 " has been silent for 1 s; it may be stopped, or its host may be down";
    {
        World world(places[2], within(kTimeout));
        world.barrier();
        victim.signal(SIGSTOP);
        EXPECT_EQ(wait_for_failure(world), expected);
        EXPECT_EQ(rank_1.result(), expected);
    }
    victim.signal(SIGCONT);
    EXPECT_EQ(victim.result(), expected);
}

TEST(WorldFailure, AStopShorterThanTheTimeoutIsNotAFailure) {
    constexpr double kTimeout = 2;
    const std::vector<Place> places = make_places(3);
    const auto work = [&](const Place& place) -> std::string {
        World world(place, within(kTimeout));
        world.barrier();
        world.barrier();
        world.leave();
        return "left";
    };
    const ChildProcess rank_1([&] { return work(places[1]); });
    const ChildProcess rank_2([&] { return work(places[2]); });
    World world(places[0], within(kTimeout));
    world.barrier();
    rank_2.signal(SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    rank_2.signal(SIGCONT);
    world.barrier();
    world.leave();
    EXPECT_EQ(rank_1.result(), "left");
    EXPECT_EQ(rank_2.result(), "left");
}

TEST(WorldFailure, SilenceIsNotAFailureWithoutATimeout) {
    const std::vector<Place> places = make_places(2);
    const ChildProcess rank_1([&]() -> std::string {
        World world(places[1], within(0));
        world.barrier();
        world.leave();
        return "left";
    });
    World world(places[0], within(0));
    rank_1.signal(SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_FALSE(world.failed());
    rank_1.signal(SIGCONT);
    world.barrier();
    world.leave();
    EXPECT_EQ(rank_1.result(), "left");
}

TEST(WorldFailure, OneThatDiesWhileOthersLeaveIsStillLost) {
    const std::vector<Place> places = make_places(3);
    const ChildProcess victim([&] { return idle_in_world(places[2], 20); });
    const auto leave = [&](const Place& place) -> std::string {
        World world(place, within(20));
        world.barrier();
        world.leave();
        return world.failed() ? "failed" : "left";
    };
    const ChildProcess rank_1([&] { return leave(places[1]); });
    World world(places[0], within(20));
    world.barrier();
    std::thread kill([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        victim.signal(SIGKILL);
    });
    world.leave();
    kill.join();
    EXPECT_TRUE(world.failed());
    EXPECT_EQ(rank_1.result(), "failed");
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::world
