// NCCL's calls, simulated on the streams of the simulated CUDA: a collective holds each member's stream until
// all have arrived, as its kernels do, or until the member's own communicator is aborted, which the others
// see as an error.
#pragma once

#include "trainer/cuda/nccl_library.h"

namespace played_nccl {

const shardscope::trainer::cuda::NcclLibrary& library();

// From now on every communicator reports this failure; 0: none does.
void set_async_error(int result);
// Calls that start communicators and wait for missing members end with an error.
void let_go_of_starts(bool now);
int starts_waiting();
// From now on a collective's call, once it has arrived, does not return to its caller; `false` lets all
// return.
void hold_calls(bool now);
int calls_held();
// The number of communicators that were aborted while a call used them.
int aborted_in_calls();
// The number of communicators that were made, and of those that were destroyed or aborted.
int made();
int gone();

}  // namespace played_nccl
