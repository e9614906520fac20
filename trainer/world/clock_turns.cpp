#include "trainer/world/clock_turns.h"

#include <limits>
#include <utility>

#include "profiler/base/clock.h"

namespace shardscope::trainer::world {

namespace {

constexpr int kRoundTrips = 32;

}  // namespace

ClockTurns::ClockTurns(int ranks, std::function<void(int rank)> give_turn, std::function<void()> end)
    : ranks_(ranks), give_turn_(std::move(give_turn)), end_(std::move(end)) {}

void ClockTurns::ready() {
    if (++ready_ < ranks_) return;
    ready_ = 0;
    turn_ = 0;
    done(0);
}

void ClockTurns::done(int rank) {
    if (rank != turn_) return;
    if (++turn_ == ranks_) {
        end_();
    } else {
        give_turn_(turn_);
    }
}

void ClockMeasurement::begin() {
    left_ = kRoundTrips;
    shortest_ns_ = std::numeric_limits<std::int64_t>::max();
    ask();
}

void ClockMeasurement::ask() {
    --left_;
    asked_ns_ = profiler::monotonic_ns();
}

bool ClockMeasurement::answer(std::int64_t rank_0_ns) {
    const std::int64_t trip_ns = profiler::monotonic_ns() - asked_ns_;
    if (trip_ns < shortest_ns_) {
        // Rank 0 read its clock at some time in between: at the middle, give or take half.
        shortest_ns_ = trip_ns;
        result_.at_ns = asked_ns_ + trip_ns / 2;
        result_.offset_ns = rank_0_ns - result_.at_ns;
        result_.uncertainty_ns = (trip_ns + 1) / 2;
    }
    if (left_ == 0) return false;
    ask();
    return true;
}

}  // namespace shardscope::trainer::world
