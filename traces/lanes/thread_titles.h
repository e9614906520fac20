// Short names for host threads that distinguish those of a rank: "main thread", "pt_autograd_0", "autograd",
// "python3 4242". Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "traces/store/columns/trace.h"

namespace shardscope::traces::lanes {

// By index into Trace::threads. A name in the trace is kept, except for the form "thread 4242 (python3)" that
// Kineto writes (libkineto, output_json.cpp): then the name in brackets is used. Such a thread is the main
// one if its number is that of its process (Linux: gettid(2)), and autograd's if it runs the backward of
// another thread's operators. Names that would be equal within a rank also get their numbers.
std::vector<std::string> thread_titles(const store::Trace& trace);

}  // namespace shardscope::traces::lanes
