// Helpers that the tests of trainer/pipeline share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainer/pipeline/check.h"
#include "trainer/pipeline/schedule_table.h"

namespace shardscope::trainer::pipeline {

// The schedule of that name.
inline Schedule made(std::string_view name, int p, int m, int v = 0) {
    const ScheduleKind& kind = *find_schedule(name);
    return make_schedule(kind, {p, m, v > 0 ? v : kind.fewest_chunks});
}

// The cells of a rank, separated by blanks.
inline std::string rank_text(const Schedule& schedule, int rank) {
    const std::vector<Action>& own = schedule.actions[static_cast<std::size_t>(rank)];
    std::string text;
    for (std::size_t at = 0; at < own.size(); at += cell_at(own, at).size())
        text += (at > 0 ? " " : "") + cell_text(cell_at(own, at));
    return text;
}

// A call for each shape up to p = 8 and m = 24, and v = 4, that a schedule takes.
template <class Call>
void for_each_shape(const ScheduleKind& kind, Call call) {
    for (const int p : {1, 2, 3, 4, 5, 8}) {
        for (const int m : {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24}) {
            for (int v = kind.fewest_chunks; v <= kind.most_chunks && v <= 4; ++v) {
                const Shape shape{p, m, v};
                if (refusal(kind, shape).empty()) call(shape);
            }
        }
    }
}

inline std::string to_string(const ScheduleKind& kind, const Shape& shape) {
    return std::string(kind.name) + " p " + std::to_string(shape.ranks) + " m " +
           std::to_string(shape.micro_batches) + " v " + std::to_string(shape.chunks);
}

// What a call refuses; "accepted" if nothing.
template <class Call>
std::string refused(Call call) {
    try {
        call();
    } catch (const ScheduleError& error) {
        return error.what();
    }
    return "accepted";
}

}  // namespace shardscope::trainer::pipeline
