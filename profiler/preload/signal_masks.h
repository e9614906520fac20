// The signal by which a thread's timer reports (thread_timers.cpp), and what keeps it unblocked.
#pragma once

#include <signal.h>

namespace shardscope::profiler::preload {

// Ignored by default, so that it ends no program that resets its handlers; debuggers pass it on in silence,
// and programs expect it at any time (Go preempts by it for the same reasons).
inline constexpr int kTimerSignal = SIGURG;

// Lets the calling thread get the signal if it blocks nearly all signals.
void unblock_timer_signal();

// Finds the C library's functions while no signal handler can be running yet.
void prepare_signal_masks();

}  // namespace shardscope::profiler::preload
