#include "trainer/pipeline/rows.h"

#include <algorithm>
#include <string>

#include <fmt/core.h>

#include "trainer/pipeline/walk.h"

namespace shardscope::trainer::pipeline {
namespace {

constexpr std::int64_t kNsOfUnit = 1'000'000;

void describe_rank(int rank, traces::store::EventSink& sink) {
    traces::schema::RankRow row;
    row.rank = row.device = row.pipeline = rank;
    row.global_pid = traces::schema::global_pid(rank + 1);
    row.global_tid = traces::schema::global_tid(rank + 1, rank + 1);
    row.device_name = "a schedule's replay";
    sink.add(row);
    sink.add(traces::schema::ProcessRow{row.global_pid, rank + 1, "shardscope-train"});
    sink.add(traces::schema::ThreadRow{row.global_tid, fmt::format("rank {} host", rank), rank});
}

}  // namespace

std::vector<traces::schema::ScheduleRow> schedule_rows(const Schedule& schedule, int place, int rank) {
    std::vector<traces::schema::ScheduleRow> rows;
    for (const Action& action : schedule.actions[static_cast<std::size_t>(place)]) {
        rows.push_back({.rank = rank,
                        .position = static_cast<int>(rows.size()),
                        .stage = action.stage,
                        .kind = std::string(letters_of(action.kind)),
                        .micro_batch = has_micro_batch(action.kind) ? action.micro_batch : -1,
                        .with_next = action.with_next});
    }
    return rows;
}

std::int64_t replayed_ns(const Costs& costs, std::int64_t ticks) {
    const std::int64_t units = ticks / costs.scale;
    return units * kNsOfUnit + ticks % costs.scale * kNsOfUnit / costs.scale;
}

void write_replay(const Schedule& schedule, const ScheduleReplay& replay, traces::store::EventSink& sink) {
    const auto ns = [&](std::int64_t ticks) { return replayed_ns(replay.costs, ticks); };
    for (int rank = 0; rank < schedule.ranks(); ++rank) describe_rank(rank, sink);
    for (int rank = 0; rank < schedule.ranks(); ++rank)
        for (const traces::schema::ScheduleRow& row : schedule_rows(schedule, rank, rank)) sink.add(row);
    for (int rank = 0; rank < schedule.ranks(); ++rank) {
        const std::int64_t thread = traces::schema::global_tid(rank + 1, rank + 1);
        const auto range = [&](const std::string& name, std::int64_t start, std::int64_t end) {
            traces::schema::RangeRow row;
            row.start = ns(start);
            row.end = ns(end);
            row.text = sink.intern("PP:" + name);
            row.global_tid = thread;
            sink.add(row);
        };
        const std::vector<Action>& actions = schedule.actions[static_cast<std::size_t>(rank)];
        std::int64_t free = 0;
        for (const ReplayedCell& cell : replay.ranks[static_cast<std::size_t>(rank)].cells) {
            const std::span<const Action> own = cell_at(actions, cell.at);
            if (const std::int64_t posted = std::max(free, cell.computed); posted < cell.begin) {
                // What another place computes; the other action of a pair may read what this one has.
                const auto waits = std::find_if(own.begin(), own.end(), [&](const Action& action) {
                    const auto other = awaited(schedule, action);
                    return other && schedule.rank_of_stage[static_cast<std::size_t>(other->stage)] != rank;
                });
                if (waits != own.end()) {
                    Action receive = *waits;
                    receive.kind = receive.kind == ActionKind::forward ? ActionKind::recv_forward
                                                                       : ActionKind::recv_backward;
                    range(text_of(receive), posted, cell.begin);
                }
            }
            range(cell_text(own), cell.begin, cell.end);
            free = cell.end;
        }
        sink.add(traces::schema::StepRow{rank, 0, 0, ns(replay.makespan), thread});
    }
}

}  // namespace shardscope::trainer::pipeline
