// See memory_words.h.
#include "viewer/panels/memory_words.h"

#include <fmt/format.h>

#include "viewer/app/rank_steps.h"
#include "viewer/draw/format.h"

namespace shardscope::viewer {

using traces::MemorySpace;
using traces::RankMemory;

std::string moment(const traces::Trace& trace, int rank_index, std::int64_t time) {
    if (const traces::Step* step = step_at(trace, rank_index, time)) {
        return fmt::format("in step {}, {} after its start", step->number,
                           format_duration(static_cast<double>(time - step->start)));
    }
    return fmt::format("at {}", format_duration(static_cast<double>(time)));
}

std::string prediction(const traces::Trace& trace, const RankMemory& memory) {
    if (memory.predicted_peak_bytes < 0)  // no other tool stores one
        return trace.config_value("import.format").empty() ? "No prediction is stored." : "";
    const std::int64_t off = memory.peak_bytes - memory.predicted_peak_bytes;
    const std::string compared = !memory.prediction_applies ? "of the whole run"
                                 : off == 0                 ? "exact"
                                            : fmt::format("off by {} bytes", format_count(off));
    return fmt::format("Predicted {}, {}{}.", format_mb(memory.predicted_peak_bytes), compared,
                       memory.predicted_where.empty() ? "" : " (" + memory.predicted_where + ")");
}

std::string other_facts(const RankMemory& memory) {
    std::string facts;
    if (memory.reserved_bytes > 0)
        facts += fmt::format("  Reserved at most {}.", format_mb(memory.reserved_bytes));
    for (const traces::SpacePeak& space : memory.other_spaces)
        facts +=
            fmt::format("  {} memory: at most {}.", space.space == MemorySpace::pinned ? "Pinned" : "Host",
                        format_mb(space.peak_bytes));
    return facts;
}

std::int64_t alignment(const traces::Trace& here, int here_rank, const traces::Trace& there, int there_rank) {
    for (const traces::Step& step : steps_of(here, here_rank)) {
        for (const traces::Step& same : steps_of(there, there_rank)) {
            if (same.number == step.number) return step.start - same.start;
        }
    }
    return here.first_ns - there.first_ns;
}

}  // namespace shardscope::viewer
