// What the rules of advice look at: the other analyses' results, computed once, and helpers to speak of them.
// Internal to the room. Times in us where the name says so, else nanoseconds; sizes in bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/advice.h"
#include "traces/analysis/collectives.h"
#include "traces/analysis/critical_path.h"
#include "traces/analysis/idle.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/memory.h"
#include "traces/analysis/overlap.h"
#include "traces/analysis/summary.h"
#include "traces/analysis/units.h"

namespace shardscope::traces {

struct AdviceFacts {
    AdviceFacts(const Trace& trace, const Selection& selection);

    const Trace& trace;
    Selection selection;
    ExecutionSummary summary;
    OverlapReport overlap;
    UnitsReport units;
    IdleReport idle;
    KernelsReport kernels;
    MemoryReport memory;
    CollectivesReport collectives;
    CriticalPathReport path;
    // Mean window of a kept step, over the ranks that have one. 0: there is none, or the trace holds no
    // device work (a memory snapshot): then no rule about the time of a step finds evidence.
    double step_us = 0;

    std::string_view config(std::string_view key) const;
    bool ours() const { return !config("parallel.mode").empty(); }  // the run of a job file

    // The rank with the highest peak; null where no allocation is known.
    const RankMemory* highest_peak() const;
    std::int64_t at_peak(const RankMemory& rank, MemoryCategory category) const {
        return rank.at_peak[static_cast<std::size_t>(category)];
    }

    // Nanoseconds summed over all kept steps of all ranks, as us per step of one rank.
    double per_step_us(std::int64_t ns) const;
    double percent_of_step(double us) const { return step_us > 0 ? 100 * us / step_us : 0; }
    // Of the job's critical path, or of the one rank's.
    double on_path_us(PathKind kind) const;

    // "The critical path's what-if foretells …": with the time of a kind scaled; empty where that changes the
    // step by less than half a percent.
    std::string expect(PathKind kind, double factor, std::string_view in_words) const;
};

std::string us_text(double us);              // "1,234.5 us", "12.3 ms"
std::string bytes_text(std::int64_t bytes);  // "1.5 MB" of 2^20 bytes
std::string percent_text(double percent);    // "12.3 %"
std::string shown(std::string_view name);    // a name of the trace, in quotation marks

// The rules' functions, by subject.
std::span<const AdviceRule> time_rules();
std::span<const AdviceRule> memory_rules();
std::span<const AdviceRule> sharding_rules();

}  // namespace shardscope::traces
