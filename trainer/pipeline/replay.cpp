#include "trainer/pipeline/replay.h"

#include <algorithm>

#include "trainer/pipeline/walk.h"

namespace shardscope::trainer::pipeline {

namespace {

std::int64_t ticks_of(ActionKind kind, const Costs& costs) {
    switch (kind) {
        case ActionKind::forward:
            return costs.forward;
        case ActionKind::backward_input:
            return costs.input;
        case ActionKind::backward_weight:
            return costs.weight;
        case ActionKind::backward:
            return costs.backward();
        default:
            return 0;
    }
}

// The counts of chunks in flight need only the order of a rank's actions.
int peak_in_flight(const std::vector<Action>& own) {
    int now = 0, peak = 0;
    for (const Action& a : own) {
        if (a.kind == ActionKind::forward) peak = std::max(peak, ++now);
        if (ends_backward(a.kind)) --now;
    }
    return peak;
}

}  // namespace

std::int64_t ScheduleReplay::idle() const {
    std::int64_t sum = 0;
    for (const ReplayedRank& rank : ranks) sum += rank.idle();
    return sum;
}

std::int64_t ScheduleReplay::most_idle() const {
    std::int64_t most = 0;
    for (const ReplayedRank& rank : ranks) most = std::max(most, rank.idle());
    return most;
}

int ScheduleReplay::peak_in_flight() const {
    int peak = 0;
    for (const ReplayedRank& rank : ranks) peak = std::max(peak, rank.peak_in_flight);
    return peak;
}

Fraction ScheduleReplay::bubble() const {
    return Fraction::of(idle(), makespan * static_cast<std::int64_t>(ranks.size()));
}

ScheduleReplay replay(const Schedule& schedule, const Costs& costs) {
    ScheduleReplay result{.costs = costs};
    result.ranks.resize(schedule.actions.size());
    // When outputs and input gradients were computed, by stage and micro-batch.
    std::vector<std::int64_t> outputs(schedule.index(schedule.stages(), 0)), gradients(outputs.size());
    std::vector<std::int64_t> free_at(result.ranks.size());
    walk(schedule, [&](int rank, std::span<const Action> cell) {
        if (!is_compute(cell.front().kind)) return;
        ReplayedRank& own = result.ranks[static_cast<std::size_t>(rank)];
        std::int64_t& free = free_at[static_cast<std::size_t>(rank)];
        std::int64_t computed = 0, arrived = 0, ticks = 0;
        for (const Action& a : cell) {
            ticks += ticks_of(a.kind, costs);
            const auto other = awaited(schedule, a);
            if (!other) continue;
            const std::int64_t at = (other->kind == ActionKind::forward
                                         ? outputs
                                         : gradients)[schedule.index(other->stage, other->micro_batch)];
            const bool stays = schedule.rank_of_stage[static_cast<std::size_t>(other->stage)] == rank;
            computed = std::max(computed, at);
            arrived = std::max(arrived, at + (stays ? 0 : costs.transfer));
        }
        const std::int64_t begin = std::max(free, arrived);
        if (own.cells.empty()) {
            own.warm_up = begin;
        } else {
            const std::int64_t for_peer = std::max<std::int64_t>(0, std::min(computed, begin) - free);
            own.peer += for_peer;
            own.communication += begin - free - for_peer;
        }
        free = begin + ticks;
        own.busy += ticks;
        const std::vector<Action>& list = schedule.actions[static_cast<std::size_t>(rank)];
        own.cells.push_back({begin, free, computed, static_cast<std::size_t>(cell.data() - list.data())});
        result.makespan = std::max(result.makespan, free);
        for (const Action& a : cell) {
            const std::size_t i = schedule.index(a.stage, a.micro_batch);
            if (a.kind == ActionKind::forward) outputs[i] = free;
            if (gives_input_gradient(a.kind)) gradients[i] = free;
        }
    });
    for (std::size_t r = 0; r < result.ranks.size(); ++r) {
        result.ranks[r].drain = result.makespan - free_at[r];
        result.ranks[r].peak_in_flight = peak_in_flight(schedule.actions[r]);
    }
    return result;
}

}  // namespace shardscope::trainer::pipeline
