// Samples the stacks of a program's threads from inside it, for shardscope-record --sample where perf events
// are refused. The library is loaded into the program (LD_PRELOAD) and gives each thread a timer of its
// processor time, whose signal handler puts the stack into the ring (sample_ring.h).
#pragma once

namespace shardscope::profiler::preload {

// Whether this process belongs to a recording that wants samples. Any thread, also in a signal handler.
bool sampling();

}  // namespace shardscope::profiler::preload
