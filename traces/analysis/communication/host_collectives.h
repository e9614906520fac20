// Collectives that host threads carry out: Gloo's and MPI's, which PyTorch records as ranges
// ("gloo:all_reduce") on threads of the libraries. None of their work runs on a device. Times in nanoseconds.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/communication/matching.h"
#include "traces/schema/enums.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct HostCollective {
    std::int32_t range = -1;  // index into HostRanges
    std::uint16_t rank = 0;   // index into Trace::ranks
    schema::Operation operation = schema::Operation::other;
    std::int64_t start = 0, end = 0;
    std::int64_t bytes = 0;        // of the full buffer; 0 not known
    std::int64_t transfer_ns = 0;  // the shortest among the ranks; its own duration if it has no counterparts
    std::int32_t match = -1;       // the same number for all counterparts, starting at 0
    bool unmatched = false;        // the ranks have different counts of the operation
};

// In order of start. The k-th call of an operation on one rank matches the k-th on the others. A gather's
// range records only the rank's own part; the full buffer is taken from the "c10d::_allgather_base_" ranges,
// in order, if there are as many of them.
std::vector<HostCollective> host_collectives(const store::Trace& trace);

// The same for ranks whose devices did not communicate, limited to collectives that start in the selected
// steps and time. All ranks are included even if one is selected, since counterparts may be on others.
struct SelectedHostCollective {
    HostCollective collective;
    bool in_step = false;  // it starts in a kept step
};
std::vector<SelectedHostCollective> selected_host_collectives(const store::Trace& trace,
                                                              const TraceSteps& steps,
                                                              const Communications& on_devices,
                                                              const Selection& selection);

// The library that carries out a range's collective: "Gloo", "MPI"; empty: not a collective of the host.
std::string_view host_library(std::string_view range_name);

}  // namespace shardscope::traces::analysis
