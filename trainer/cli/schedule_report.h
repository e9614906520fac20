// What schedule prints: only formatting. Times are in units, in which the costs of a chunk are given.
#pragma once

#include <string>
#include <vector>

#include "trainer/pipeline/compare.h"
#include "trainer/pipeline/replay.h"

namespace shardscope::trainer::cli {

// One schedule, replayed.
struct ScheduleView {
    const pipeline::ScheduleKind* kind = nullptr;  // null: of a file, not in the table
    std::string file;                              // "": made by name
    pipeline::Shape shape;
    pipeline::Costs costs;
    pipeline::Schedule schedule;  // lowered if that was requested
    pipeline::ScheduleReplay replay;
    std::vector<pipeline::ComparedSchedule> compared;  // empty if ranks have different numbers of stages
    bool shows_actions = false;
};

struct ScheduleComparison {
    pipeline::Shape shape;
    pipeline::Costs costs;
    std::vector<pipeline::ComparedSchedule> rows;
};

std::string schedule_table(const ScheduleView& view);
std::string schedule_json(const ScheduleView& view);
std::string comparison_table(const ScheduleComparison& compared);
std::string comparison_json(const ScheduleComparison& compared);
std::string comparison_csv(const ScheduleComparison& compared);

// The keys of JSON's two lists with their meanings, for --help and docs/pipeline.md.
std::string schedule_keys();
// The table of schedules: names, limits, closed forms and sources; in Markdown.
std::string schedule_page();

}  // namespace shardscope::trainer::cli
