#include "traces/report/memory_parts.h"

#include <algorithm>

#include <fmt/core.h>

#include "traces/report/text_table.h"
#include "traces/report/units.h"
#include "traces/store/grouped.h"

namespace shardscope::traces {

std::string counted_title(bool until_last_use, MemorySpace space) {
    return until_last_use ? fmt::format("Active {} memory (until the last stream has used it)", name(space))
                          : fmt::format("Allocated {} memory", name(space));
}

std::string counted_title(const MemoryReport& report) {
    const bool active = std::any_of(report.ranks.begin(), report.ranks.end(),
                                    [](const RankMemory& r) { return r.until_last_use; });
    return counted_title(active, report.space);
}

std::string since_step(const RankMemory& rank) {
    return rank.predicted_step ? fmt::format(" from step {} on", *rank.predicted_step) : " in the whole run";
}

std::string predicted_text(const RankMemory& rank) {
    const auto beside = [&](std::int64_t predicted) {
        const std::int64_t more = rank.peak_bytes - predicted;
        return more == 0 ? "the same"
                         : fmt::format("{}{} bytes", more > 0 ? "measured +" : "measured ", grouped(more));
    };
    const std::string whole = grouped(rank.predicted_peak_bytes);
    if (rank.prediction_applies)
        return fmt::format("predicted {} bytes ({})", whole, beside(rank.predicted_peak_bytes));
    if (rank.predicted_of_steps < 0) return fmt::format("predicted {} bytes (of the whole run)", whole);
    return fmt::format("predicted for the steps shown {} bytes ({}), {} bytes{}",
                       grouped(rank.predicted_of_steps), beside(rank.predicted_of_steps), whole,
                       since_step(rank));
}

std::string fragmentation_line(const RankMemory& rank) {
    if (!rank.fragmentation) return {};
    const Fragmentation& f = *rank.fragmentation;
    return fmt::format(
        "The allocator then had reserved {} MB in {}: {} MB free in {}, the largest {} MB;\n"
        "fragmentation of the free bytes {} %\n",
        mb(f.held_bytes), counted(f.segments, "segment", "segments"), mb(f.free_bytes),
        counted(f.free_blocks, "block", "blocks"), mb(f.largest_free), grouped(f.percent(), 1));
}

std::string spaces_and_failures(const RankMemory& rank) {
    std::string text;
    for (const SpacePeak& space : rank.other_spaces) {
        text +=
            fmt::format("Peak of {} memory: {} MB ({} bytes) at {} ms\n", name(space.space),
                        mb(space.peak_bytes), grouped(space.peak_bytes), milliseconds(space.peak_time_ns));
    }
    for (const MemoryFailure& failure : rank.failures)
        text += fmt::format("At {} ms: {}\n", milliseconds(failure.time_ns), printable(failure.text));
    return text;
}

std::string growth_text(const RankMemory& rank, std::size_t width) {
    if (!rank.growth) return {};
    const MemoryGrowth& g = *rank.growth;
    const std::string why =
        g.host_library.empty()
            ? "the trace has no frees of it; look for buffers or communicators that each step makes"
            : fmt::format(
                  "PyTorch does not record what {0}'s threads free, so this and the peak may be too high; "
                  "whether it is freed is unknown",
                  g.host_library);
    return paragraph(
        fmt::format("Communication memory grows in each of {} steps, from {} MB at the end of the "
                    "first to {} MB at the end of the last: {}.",
                    grouped(g.steps), mb(g.first_bytes), mb(g.last_bytes), why),
        width);
}

bool names_somebody(const std::vector<MemoryHolder>& holders) {
    return std::any_of(holders.begin(), holders.end(), [](const MemoryHolder& h) {
        return (h.bytes != 0 || h.predicted.value_or(0) != 0) && !h.name.starts_with('(');
    });
}

}  // namespace shardscope::traces
