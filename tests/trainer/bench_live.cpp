// What telling a LiveBoard costs a rank: nanoseconds of a collective that is entered and left, and of a step.
// With `ranks` threads at a time, each for its own rank, in 3 groups in turn.
//
//   bench_live [RANKS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <vector>

#include "trainer/executor/live_board.h"

namespace {

using namespace shardscope::trainer;
using Clock = std::chrono::steady_clock;

constexpr int kRounds = 9, kCalls = 1'000'000;

// Nanoseconds of one call, the fastest of the rounds.
template <class Call>
double fastest(const Call& call) {
    double least = 1e18;
    for (int round = 0; round < kRounds; ++round) {
        const auto start = Clock::now();
        for (int i = 0; i < kCalls; ++i) call(i);
        const std::chrono::duration<double, std::nano> time = Clock::now() - start;
        least = std::min(least, time.count() / kCalls);
    }
    return least;
}

}  // namespace

int main(int argc, char** argv) {
    const int ranks = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
    std::vector<int> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    executor::LiveBoard board(all);
    std::vector<double> collective(all.size()), step(all.size());
    std::vector<std::thread> threads;
    for (const int rank : all) {
        threads.emplace_back([&, rank] {
            const shardscope::profiler::Ticks now = shardscope::profiler::ticks();  // a device knows it
            collective[static_cast<std::size_t>(rank)] = fastest([&](int i) {
                const plan::CommunicatorId group{i % 3};
                const executor::LiveCollective live =
                    board.collective(rank, group, i / 3, shardscope::traces::schema::Operation::all_gather);
                live.enter(now);
                live.leave(now);
            });
            step[static_cast<std::size_t>(rank)] = fastest([&](int i) { board.stepped(rank, i, i, i); });
        });
    }
    for (std::thread& thread : threads) thread.join();
    std::printf("{\"ranks\": %d, \"collective_ns\": %.1f, \"step_ns\": %.1f}\n", ranks,
                *std::max_element(collective.begin(), collective.end()),
                *std::max_element(step.begin(), step.end()));
}
