// Kernels by name. Definition: docs/definitions.md, "Operators, kernels". Times in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct KernelStats {
    std::string_view name;  // lives as long as the trace
    bool communication = false;
    std::int64_t count = 0, total = 0, shortest = 0, longest = 0;
    double mean = 0, median = 0, p95 = 0;
    double share = 0;  // percentage of the time of all selected kernels of the rank
    // Means weighted by the durations of the events that record them; none: no event does.
    std::optional<double> blocks_per_sm, occupancy_percent;
};

Fields<KernelStats> kernel_fields();

struct RankKernels {
    int rank = 0;
    std::int64_t distinct = 0, count = 0, total = 0;  // including those beyond `most`
    std::vector<KernelStats> kernels;                 // by total, largest first; then by name
};

struct KernelsReport {
    std::vector<RankKernels> ranks;
};

// Compute and communication kernels, without copies and fills. `most`: maximum rows per rank; 0 all.
KernelsReport kernels_report(const store::Trace& trace, const Selection& selection = {},
                             std::size_t most = 0);

// The events that one row of the report counts, in order of start. The selection should name the rank.
std::vector<std::uint32_t> kernel_events(const store::Trace& trace, const Selection& selection,
                                         std::string_view name);

// A kernel's C++ name without return type and parameters: "void f<4>(int)" -> "f<4>".
std::string_view kernel_label(std::string_view name);

}  // namespace shardscope::traces::analysis
