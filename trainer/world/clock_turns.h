// Compares the processes' clocks with rank 0's, one process after another so that none disturbs another's
// round trips. Used on the World's thread only.
#pragma once

#include <cstdint>
#include <functional>

#include "profiler/base/clock.h"
#include "trainer/world/world.h"

namespace shardscope::trainer::world {

// Rank 0's part: gives the turns.
class ClockTurns {
  public:
    // `give_turn(rank)` notifies that rank; `end()` reports that all have measured.
    ClockTurns(int ranks, std::function<void(int rank)> give_turn, std::function<void()> end);

    void ready();         // one process is ready, rank 0 included; the first turn is given when all are
    void done(int rank);  // that rank has measured

  private:
    int ranks_;
    int ready_ = 0, turn_ = 0;
    std::function<void(int rank)> give_turn_;
    std::function<void()> end_;
};

// The part of another rank: its round trips, of which the shortest is the most accurate.
class ClockMeasurement {
  public:
    // The turn has come; ask rank 0 for its time.
    void begin();
    // Takes rank 0's answer; returns whether to ask again.
    bool answer(profiler::MonotonicTime of_rank_0);
    const ClockOffset& result() const { return result_; }

  private:
    void ask();

    int left_ = 0;
    profiler::MonotonicTime asked_{0};
    std::int64_t shortest_ns_ = 0;
    ClockOffset result_;
};

}  // namespace shardscope::trainer::world
