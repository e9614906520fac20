// Copies and fills of memory by kind: what offload, input batches and logging move, how fast, and how much of
// it nothing hid. Definition: docs/definitions.md, "Copies". Times in nanoseconds.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct CopyStats {
    std::string_view name;  // "Memcpy HtoD", "Memset"; lives as long as the trace
    std::int64_t count = 0, bytes = 0, total = 0, longest = 0;
    // Part of the union of these copies outside all kernels of the rank; of files, only while its host waits.
    std::int64_t exposed = 0;

    // Bytes over the sum of durations; 0: no duration.
    double gbps() const { return total > 0 ? static_cast<double>(bytes) / static_cast<double>(total) : 0; }
};

Fields<CopyStats> copy_fields();

struct RankCopies {
    int rank = 0;
    std::vector<CopyStats> copies;  // by total, largest first; then by name
    // Part of the union of its reads and writes of files that is exposed: less than the sum of both kinds'
    // where they run together.
    std::int64_t file_waits = 0;
};

struct CopiesReport {
    std::vector<RankCopies> ranks;
};

CopiesReport copies_report(const store::Trace& trace, const Selection& selection = {});

// The events that one row of the report counts, in order of start. The selection should name the rank.
std::vector<std::uint32_t> copy_events(const store::Trace& trace, const Selection& selection,
                                       std::string_view name);

}  // namespace shardscope::traces::analysis
