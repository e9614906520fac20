// Short names for host threads that tell those of a rank apart: "main thread", "pt_autograd_0", "autograd",
// "python3 4242". Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "traces/store/columns/trace.h"

namespace shardscope::viewer {

// By index into Trace::threads. A name that the trace gives stays, but for the form "thread 4242 (python3)",
// in which Kineto writes them (libkineto, output_json.cpp): of it the name in brackets is taken. Such a
// thread is the main one where its number is that of its process (Linux: gettid(2)), and one of autograd
// where it runs the backward of another one's operators. Two of a rank that would be called alike bear their
// numbers, too.
std::vector<std::string> thread_titles(const traces::Trace& trace);

}  // namespace shardscope::viewer
