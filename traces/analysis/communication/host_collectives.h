// Collectives that host threads carry out: Gloo's and MPI's, which PyTorch records as ranges
// ("gloo:all_reduce") on their own threads. Nothing of them runs on a device. Times in nanoseconds.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/communication/matching.h"
#include "traces/schema/enums.h"

namespace shardscope::traces {

struct Trace;

struct HostCollective {
    std::int32_t range = -1;  // index into HostRanges
    std::uint16_t rank = 0;   // index into Trace::ranks
    Operation operation = Operation::other;
    std::int64_t start = 0, end = 0;
    std::int64_t bytes = 0;        // of the full buffer; 0 not known
    std::int64_t transfer_ns = 0;  // the shortest among the ranks; its own where it has no counterparts
    std::int32_t match = -1;       // the same number for all counterparts, from 0 on
    bool unmatched = false;        // the ranks' counts of the operation do not agree
};

// In order of start. The k-th of an operation on one rank is the k-th on the others. A gather's range took
// the rank's own part: the full buffer is that of "c10d::_allgather_base_", in order, where there are as
// many.
std::vector<HostCollective> host_collectives(const Trace& trace);

// The same of ranks on whose devices nothing communicated, where they start in the selected steps and time;
// all ranks' whatever rank is selected, since a counterpart may be another's.
struct SelectedHostCollective {
    HostCollective collective;
    bool in_step = false;  // it starts in a kept step
};
std::vector<SelectedHostCollective> selected_host_collectives(const Trace& trace, const TraceSteps& steps,
                                                              const Communications& on_devices,
                                                              const Selection& selection);

// Who carries a range's collective out, as people write it: "Gloo", "MPI"; empty: nobody on the host.
std::string_view host_library(std::string_view range_name);

}  // namespace shardscope::traces
