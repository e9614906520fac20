#include "trainer/pipeline/compare.h"

namespace shardscope::trainer::pipeline {

std::int64_t messages_of(const Schedule& schedule) {
    std::int64_t boundaries = 0;
    for (std::size_t s = 1; s < schedule.rank_of_stage.size(); ++s)
        boundaries += schedule.rank_of_stage[s] != schedule.rank_of_stage[s - 1] ? 1 : 0;
    return 2 * boundaries * schedule.micro_batches;
}

std::vector<ComparedSchedule> compare_schedules(const Shape& shape, const Costs& costs,
                                                int interleaved_chunks) {
    std::vector<ComparedSchedule> rows;
    for (const ScheduleKind& kind : schedule_kinds()) {
        ComparedSchedule& row = rows.emplace_back();
        row.kind = &kind;
        row.chunks = kind.fewest_chunks == kind.most_chunks ? kind.fewest_chunks : interleaved_chunks;
        const Shape own{shape.ranks, shape.micro_batches, row.chunks};
        row.refused = refusal(kind, own);
        if (!row.refused.empty()) continue;
        // A chunk takes shape.chunks / row.chunks times the costs: ticks of 1 / row.chunks, as many times.
        Costs scaled = costs.times(shape.chunks);
        scaled.transfer = costs.transfer * row.chunks;
        scaled.scale = costs.scale * row.chunks;
        const Schedule schedule = make_schedule(kind, own);
        const ScheduleReplay replayed = replay(schedule, scaled);
        row.makespan = scaled.units(replayed.makespan);
        row.idle = scaled.units(replayed.most_idle());
        row.bubble = replayed.bubble();
        row.peak_in_flight = replayed.peak_in_flight();
        row.peak_micro_batches = Fraction::of(row.peak_in_flight, row.chunks);
        row.messages = messages_of(schedule);
    }
    return rows;
}

}  // namespace shardscope::trainer::pipeline
