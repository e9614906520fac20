// A job whose ranks compute on the processor (PyTorch without a GPU, collectives by Gloo or MPI) in the form
// of a job on devices: each outermost operator is a kernel that its thread carries out, each collective a
// communication event.
#pragma once

#include <string_view>

#include "traces/store/columns/trace.h"

namespace shardscope::trainer::lift {

// Whether nothing ran on a device, and threads of Gloo or MPI carried out collectives.
bool ran_on_hosts(const traces::store::Trace& trace);

// Calls of the converted trace, by name (RuntimeCalls::name).
inline constexpr std::string_view kHostOperator = "host operator";
inline constexpr std::string_view kHostCollective = "host collective";
inline constexpr std::string_view kHostWait = "host wait";

// The converted trace. An operator's call is its fixed overhead, which the trace's smallest operators show,
// and its kernel the rest of its time. A collective's call lasts until the library's thread begins; where the
// calling thread does nothing until the collective ends, it waits. What Gloo carries out as a sum of the
// whole buffer although a reduce_scatter was requested keeps the requested operation. Memory of the host
// counts as the device's; allocations of the library's threads, whose frees PyTorch does not record, are
// omitted.
traces::store::Trace as_device_trace(const traces::store::Trace& trace);

// Whether the converted trace's gathers and reductions of FSDP stop the calling thread until they end.
bool collectives_block(const traces::store::Trace& converted);

}  // namespace shardscope::trainer::lift
