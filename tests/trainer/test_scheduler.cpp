// Streams, events and meetings of the cpu executor: order is kept, and no worker is blocked.
#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "trainer/executor/scheduler.h"

namespace shardscope::trainer::executor {
namespace TEST_FILE {

class Journal {
  public:
    Work write(int entry) {
        return [this, entry](int) {
            const std::lock_guard lock(mutex_);
            entries_.push_back(entry);
        };
    }
    std::vector<int> entries() const { return entries_; }

  private:
    std::mutex mutex_;
    std::vector<int> entries_;
};

Work sleep_for_ms(int ms) {
    return [ms](int) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); };
}

TEST(Scheduler, AStreamKeepsItsOrder) {
    Scheduler scheduler(4, nullptr);
    const device::StreamIndex stream = scheduler.add_stream();
    Journal journal;
    for (int i = 0; i < 100; ++i) scheduler.enqueue(stream, Priority::compute, {}, journal.write(i));
    scheduler.wait_all();
    ASSERT_EQ(journal.entries().size(), 100U);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(journal.entries()[static_cast<std::size_t>(i)], i);
}

TEST(Scheduler, AnItemWaitsForEventsOfOtherStreams) {
    Scheduler scheduler(2, nullptr);
    const device::StreamIndex a = scheduler.add_stream(), b = scheduler.add_stream();
    Journal journal;
    const device::StreamEvent slow = scheduler.enqueue(a, Priority::compute, {}, [&](int) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        journal.write(1)(0);
    });
    scheduler.enqueue(b, Priority::communication, {slow}, journal.write(2));
    scheduler.wait_all();
    EXPECT_EQ(journal.entries(), (std::vector{1, 2}));
}

// Of one home; those of another, and others of the same, run beside them.
TEST(Scheduler, ExclusiveItemsTakeTurns) {
    Scheduler scheduler(4, nullptr);
    std::array<std::atomic<int>, 2> inside{};
    std::atomic<int> most = 0, done = 0;
    for (int i = 0; i < 40; ++i) {
        const int home = i % 2;
        scheduler.enqueue(
            scheduler.add_stream(home), Priority::compute, {},
            [&, home](int) {
                const int now = ++inside[static_cast<std::size_t>(home)];
                for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
                }
                std::this_thread::sleep_for(std::chrono::microseconds(200));
                --inside[static_cast<std::size_t>(home)];
                ++done;
            },
            true);
    }
    scheduler.wait_all();
    EXPECT_EQ(done, 40);
    EXPECT_EQ(most, 1);
}

TEST(Scheduler, AnExclusiveItemDoesNotHoldUpOthersOfItsHome) {
    Scheduler scheduler(2, nullptr);
    std::promise<void> go;
    const device::StreamIndex a = scheduler.add_stream(0), b = scheduler.add_stream(0),
                              c = scheduler.add_stream(0);
    Journal journal;
    scheduler.enqueue(
        a, Priority::compute, {}, [&](int) { go.get_future().wait(); }, true);
    scheduler.enqueue(b, Priority::compute, {}, journal.write(2), true);
    scheduler.enqueue(c, Priority::compute, {}, [&](int) {
        journal.write(1)(0);
        go.set_value();
    });
    scheduler.wait_all();
    EXPECT_EQ(journal.entries(), (std::vector{1, 2}));
}

TEST(Scheduler, AnEventHappensOnceItsItemIsDone) {
    Scheduler scheduler(1, nullptr);
    const device::StreamIndex stream = scheduler.add_stream();
    std::atomic<bool> done = false;
    const device::StreamEvent event =
        scheduler.enqueue(stream, Priority::compute, {}, [&](int) { done = true; });
    scheduler.wait(event);
    EXPECT_TRUE(done);
    EXPECT_TRUE(scheduler.happened(event));
    EXPECT_TRUE(scheduler.happened({})) << "the empty event has always happened";
    EXPECT_FALSE(scheduler.happened({stream, event.sequence + 1}));
}

TEST(Scheduler, CommunicationIsTakenBeforeCopiesBeforeCompute) {
    Scheduler scheduler(1, nullptr);
    const device::StreamIndex busy = scheduler.add_stream(), compute = scheduler.add_stream(),
                              copy = scheduler.add_stream(), communication = scheduler.add_stream();
    Journal journal;
    scheduler.enqueue(busy, Priority::compute, {}, sleep_for_ms(20));
    scheduler.enqueue(compute, Priority::compute, {}, journal.write(3));
    scheduler.enqueue(copy, Priority::copy, {}, journal.write(2));
    scheduler.enqueue(communication, Priority::communication, {}, journal.write(1));
    scheduler.wait_all();
    EXPECT_EQ(journal.entries(), (std::vector{1, 2, 3}));
}

// One worker, four ranks: if an arrival blocked the worker, the others could never arrive.
TEST(Scheduler, AMeetingOfMoreRanksThanWorkersTakesPlace) {
    constexpr int kRanks = 4;
    Scheduler scheduler(1, nullptr);
    std::vector<device::StreamIndex> streams;
    for (int rank = 0; rank < kRanks; ++rank) streams.push_back(scheduler.add_stream());
    auto meeting = std::make_shared<Meeting>(kRanks);
    std::atomic<int> parts = 0, completions = 0, after = 0;
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
        meeting->set_part(rank, [&](int) { ++parts; });
        meeting->on_part_complete(
            rank, [&](profiler::Ticks arrived, profiler::Ticks done, profiler::Ticks last, int) {
                EXPECT_EQ(parts, kRanks);
                EXPECT_LE(arrived, done);
                EXPECT_LE(done, last);
                ++completions;
            });
        if (rank == 3) scheduler.enqueue(streams[rank], Priority::compute, {}, sleep_for_ms(10));
        scheduler.enqueue_arrival(streams[rank], {}, meeting, rank);
        scheduler.enqueue(streams[rank], Priority::compute, {}, [&](int) {
            EXPECT_EQ(completions, kRanks) << "a stream went on before the collective was complete";
            ++after;
        });
    }
    scheduler.wait_all();
    EXPECT_EQ(after, kRanks);
}

// Two workers, each busy for one rank, and a collective of both. The worker that is free first does its own
// rank's part, leaves the other part to the worker that is still busy for that rank, and continues with its
// own rank.
TEST(Scheduler, APartIsLeftToTheWorkerThatIsBusyForItsRank) {
    Journal journal;
    Scheduler scheduler(2, nullptr);
    std::array<device::StreamIndex, 2> compute{}, communication{};
    for (int rank = 0; rank < 2; ++rank) {
        compute[static_cast<std::size_t>(rank)] = scheduler.add_stream(rank);
        communication[static_cast<std::size_t>(rank)] = scheduler.add_stream(rank);
    }
    std::latch both_busy(3), other_is_free(1), busy_is_free(1);  // 3: this thread, too
    scheduler.enqueue(compute[0], Priority::compute, {}, [&](int) {
        both_busy.arrive_and_wait();
        busy_is_free.wait();
    });
    scheduler.enqueue(compute[1], Priority::compute, {}, [&](int) {
        both_busy.arrive_and_wait();
        other_is_free.wait();
    });
    scheduler.enqueue(compute[1], Priority::compute, {}, journal.write(11));
    both_busy.arrive_and_wait();
    auto meeting = std::make_shared<Meeting>(2);
    meeting->set_part(0, journal.write(0));
    meeting->set_part(1, journal.write(1));
    scheduler.enqueue_arrival(communication[0], {}, meeting, 0);
    scheduler.enqueue_arrival(communication[1], {}, meeting, 1);
    other_is_free.count_down();
    // With nothing left for its own rank, the free worker does the other part, too; nothing waits for the
    // busy one.
    scheduler.wait(scheduler.last(communication[0]));
    EXPECT_EQ(journal.entries(), (std::vector{1, 11, 0}));
    busy_is_free.count_down();
    scheduler.wait_all();
}

TEST(Scheduler, AFailureReachesEveryWaitingHost) {
    Scheduler scheduler(2, nullptr);
    const device::StreamIndex stream = scheduler.add_stream();
    std::atomic<bool> go = false;
    scheduler.enqueue(stream, Priority::compute, {}, [&](int) {
        while (!go) std::this_thread::yield();
        throw std::runtime_error("a kernel failed");
    });
    const device::StreamEvent never = scheduler.enqueue(stream, Priority::compute, {}, [](int) {});
    go = true;
    EXPECT_THROW(scheduler.wait(never), std::runtime_error);
    EXPECT_THROW(scheduler.wait_all(), std::runtime_error);
    EXPECT_THROW(scheduler.enqueue(stream, Priority::compute, {}, [](int) {}), std::runtime_error);
}

// Every host waits only for its own item, and none is forgotten.
TEST(Scheduler, ManyHostsWaitAtTheSameTime) {
    Scheduler scheduler(2, nullptr);
    constexpr int kHosts = 8, kItems = 200;
    std::vector<device::StreamIndex> streams;
    for (int host = 0; host < kHosts; ++host) streams.push_back(scheduler.add_stream());
    std::atomic<int> done = 0;
    std::vector<std::thread> hosts;
    for (const device::StreamIndex stream : streams) {
        hosts.emplace_back([&, stream] {
            for (int i = 0; i < kItems; ++i) {
                const device::StreamEvent event =
                    scheduler.enqueue(stream, Priority::compute, {}, [&](int) { ++done; });
                scheduler.wait(event);
                EXPECT_TRUE(scheduler.happened(event));
            }
        });
    }
    for (std::thread& host : hosts) host.join();
    EXPECT_EQ(done, kHosts * kItems);
}

TEST(Scheduler, AWorkerThatCannotStartIsTheConstructorsFailure) {
    const auto start = [](int worker) {
        if (worker == 1) throw std::bad_alloc();
    };
    EXPECT_THROW(Scheduler(3, start), std::bad_alloc);
}

// One worker: if it slept during the transfer, the other stream's work would come after it.
TEST(Scheduler, ATransferTakesItsTimeWithoutAWorker) {
    Scheduler scheduler(1, nullptr);
    const device::StreamIndex communication = scheduler.add_stream(), compute = scheduler.add_stream();
    Journal journal;
    auto meeting = std::make_shared<Meeting>(1, std::chrono::milliseconds(20));
    meeting->set_part(0, journal.write(1));
    const auto start = std::chrono::steady_clock::now();
    const device::StreamEvent gathered = scheduler.enqueue_arrival(communication, {}, meeting, 0);
    scheduler.enqueue(compute, Priority::compute, {}, journal.write(2));
    scheduler.enqueue(compute, Priority::compute, {gathered}, journal.write(3));
    scheduler.wait_all();
    EXPECT_EQ(journal.entries(), (std::vector{1, 2, 3}));
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(20));
    EXPECT_TRUE(scheduler.happened(gathered));
}

// A collective between processes: a worker begins it, another thread ends it, and no worker waits meanwhile.
TEST(Scheduler, WorkThatEndsElsewhereBlocksItsStreamAndNoWorker) {
    Scheduler scheduler(1, {});
    const device::StreamIndex communication = scheduler.add_stream(), compute = scheduler.add_stream();
    std::atomic<bool> begun = false, computed = false, after = false;
    const device::StreamEvent ended =
        scheduler.enqueue_elsewhere(communication, {}, [&](int) { begun = true; });
    scheduler.enqueue(communication, Priority::copy, {}, [&](int) { after = true; });
    scheduler.wait(scheduler.enqueue(compute, Priority::compute, {}, [&](int) { computed = true; }));
    EXPECT_TRUE(begun);
    EXPECT_TRUE(computed);
    EXPECT_FALSE(scheduler.happened(ended));
    EXPECT_FALSE(after);
    std::thread elsewhere([&] { scheduler.end_elsewhere(communication); });
    scheduler.wait_all();
    elsewhere.join();
    EXPECT_TRUE(after);
}

TEST(Scheduler, SleepsWhileOnlyWorkElsewhereIsInProgress) {
    Scheduler scheduler(2, {});
    const device::StreamIndex communication = scheduler.add_stream(), compute = scheduler.add_stream();
    EXPECT_TRUE(scheduler.resting());
    const device::StreamEvent ended = scheduler.enqueue_elsewhere(communication, {}, [](int) {});
    device::Waits waits;
    waits.add(ended);
    scheduler.enqueue(compute, Priority::compute, waits, [&](int) { EXPECT_FALSE(scheduler.resting()); });
    while (!scheduler.resting()) std::this_thread::yield();
    EXPECT_FALSE(scheduler.happened(ended));
    scheduler.end_elsewhere(communication);
    scheduler.wait_all();
    while (!scheduler.resting()) std::this_thread::yield();
}

TEST(Scheduler, WorkThatEndsElsewhereMayEndWhileItBegins) {
    Scheduler scheduler(2, {});
    const device::StreamIndex stream = scheduler.add_stream();
    int count = 0;
    for (int i = 0; i < 1000; ++i) {
        scheduler.enqueue_elsewhere(stream, {}, [&](int) { scheduler.end_elsewhere(stream); });
        scheduler.enqueue(stream, Priority::compute, {}, [&](int) { ++count; });
    }
    scheduler.wait_all();
    EXPECT_EQ(count, 1000);
}

// No worker is woken to begin what follows: a worker that sleeps would be late.
TEST(Scheduler, WhatEndsElsewhereBeginsTheNextThere) {
    Scheduler scheduler(1, {});
    const device::StreamIndex stream = scheduler.add_stream(), other = scheduler.add_stream();
    std::promise<void> begun;
    scheduler.enqueue_elsewhere(stream, {}, [&](int worker) {
        EXPECT_EQ(worker, 0);
        begun.set_value();
    });
    begun.get_future().wait();
    while (!scheduler.resting()) std::this_thread::yield();  // the worker is still returning
    std::vector<std::thread::id> threads;
    const auto note = [&](int worker) {
        EXPECT_EQ(worker, -1);
        threads.push_back(std::this_thread::get_id());
    };
    const device::StreamEvent second = scheduler.enqueue_elsewhere(stream, {}, note);
    device::Waits waits;
    waits.add(second);
    scheduler.enqueue_elsewhere(other, waits, note);
    for (const device::StreamIndex next : {stream, stream, other}) scheduler.end_elsewhere(next);
    scheduler.wait_all();
    EXPECT_EQ(threads, std::vector(2, std::this_thread::get_id()));
    EXPECT_TRUE(scheduler.resting());
}

TEST(Scheduler, WhatFailsAsItBeginsElsewhereFailsTheRun) {
    Scheduler scheduler(1, {});
    const device::StreamIndex stream = scheduler.add_stream();
    scheduler.enqueue_elsewhere(stream, {}, [](int) {});
    while (!scheduler.resting()) std::this_thread::yield();
    scheduler.enqueue_elsewhere(stream, {}, [](int) { throw std::runtime_error("no memory for it"); });
    scheduler.end_elsewhere(stream);
    EXPECT_THROW(scheduler.wait_all(), std::runtime_error);
}

TEST(Waits, ForAStreamTheLatestEventCounts) {
    device::Waits waits;
    EXPECT_TRUE(waits.empty());
    waits.add({});      // ran immediately
    waits.add({3, 0});  // so did this
    EXPECT_TRUE(waits.empty());
    waits.add({3, 7});
    waits.add({5, 1});
    waits.add({3, 4});
    ASSERT_EQ(waits.events().size(), 2U);
    EXPECT_EQ(waits.events()[0].sequence, 7U);
    for (device::StreamIndex stream = 10; stream < 8 + plan::kStreams; ++stream) waits.add({stream, 1});
    EXPECT_THROW(waits.add({100, 1}), std::logic_error) << "those of one rank at most";
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::executor
