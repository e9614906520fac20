#include "trainer/world/clock_turns.h"

#include <limits>
#include <utility>

namespace shardscope::trainer::world {

namespace {

using profiler::MonotonicTime;

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
    asked_ = MonotonicTime::now();
}

bool ClockMeasurement::answer(MonotonicTime of_rank_0) {
    const std::int64_t trip_ns = MonotonicTime::now() - asked_;
    if (trip_ns < shortest_ns_) {
        // Rank 0 read its clock at some time in between: at the middle, give or take half.
        shortest_ns_ = trip_ns;
        result_.at = MonotonicTime(asked_.ns + trip_ns / 2);
        result_.offset_ns = of_rank_0 - result_.at;
        result_.uncertainty_ns = (trip_ns + 1) / 2;
    }
    if (left_ == 0) return false;
    ask();
    return true;
}

}  // namespace shardscope::trainer::world
