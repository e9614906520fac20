// See memory_words.h.
#include "viewer/panels/memory/memory_words.h"

#include <cstdlib>

#include <fmt/core.h>

#include "viewer/draw/format.h"
#include "viewer/model/rank_steps.h"

namespace shardscope::viewer::panels {

using traces::analysis::RankMemory;
using traces::schema::MemorySpace;

std::string moment(const traces::store::Trace& trace, traces::store::RankIndex rank, std::int64_t time) {
    if (const traces::store::Step* step = model::step_at(trace, rank, time)) {
        return fmt::format("in step {}, {} after its start", step->number,
                           draw::format_duration(static_cast<double>(time - step->start)));
    }
    return fmt::format("at {}", draw::format_duration(static_cast<double>(time)));
}

std::string prediction(const traces::store::Trace& trace, const RankMemory& memory) {
    if (memory.predicted_peak_bytes < 0)  // other tools store none
        return trace.config_value("import.format").empty() ? "No prediction is stored." : "";
    const auto compared = [&](std::int64_t predicted) {
        const std::int64_t off = memory.peak_bytes - predicted;
        if (off == 0) return std::string("exact");
        const bool shows = std::abs(off) >= (1 << 20) / 100;  // visible in MiB with two decimals
        return "off by " + (shows ? draw::format_mb(off) : draw::format_count(off) + " bytes");
    };
    const std::string whole = draw::format_mb(memory.predicted_peak_bytes);
    const std::string where = memory.predicted_where.empty() ? "" : " (" + memory.predicted_where + ")";
    if (memory.prediction_applies)
        return fmt::format("Predicted {}, {}{}.", whole, compared(memory.predicted_peak_bytes), where);
    if (memory.predicted_of_steps < 0) return fmt::format("Predicted {}, of the whole run{}.", whole, where);
    const std::string since =
        memory.predicted_step ? fmt::format("from step {} on", *memory.predicted_step) : "in the whole run";
    return fmt::format("Predicted for these steps {}, {}; {} {}{}.",
                       draw::format_mb(memory.predicted_of_steps), compared(memory.predicted_of_steps), whole,
                       since, where);
}

std::string other_facts(const RankMemory& memory) {
    std::string facts;
    if (memory.reserved_bytes > 0)
        facts += fmt::format("  Reserved at most {}.", draw::format_mb(memory.reserved_bytes));
    for (const traces::analysis::SpacePeak& space : memory.other_spaces)
        facts += fmt::format("  {}: at most {}.",
                             space.space == MemorySpace::pinned ? "Pinned memory"
                             : space.space == MemorySpace::disk ? "Files"
                                                                : "Host memory",
                             draw::format_size(space.peak_bytes));
    return facts;
}

std::int64_t alignment(const traces::store::Trace& here, traces::store::RankIndex here_rank,
                       const traces::store::Trace& there, traces::store::RankIndex there_rank) {
    for (const traces::store::Step& step : model::steps_of(here, here_rank)) {
        for (const traces::store::Step& same : model::steps_of(there, there_rank)) {
            if (same.number == step.number) return step.start - same.start;
        }
    }
    return here.first_ns - there.first_ns;
}

}  // namespace shardscope::viewer::panels
