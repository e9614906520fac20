// NCCL's calls played on the streams of the played CUDA: a collective holds each member's stream until all
// have come, as its kernels do, or until the member's own communicator is aborted, which the others see as an
// error.
#pragma once

#include "trainer/cuda/nccl_library.h"

namespace played_nccl {

const shardscope::trainer::cuda::NcclLibrary& library();

// From now on every communicator says that it has failed so; 0: none does.
void set_async_error(int result);
// Starts that wait for members who do not come end with an error.
void let_go_of_starts(bool now);
int starts_waiting();
// From now on a collective's call, once it has come, does not return to its caller; `false` lets all go on.
void hold_calls(bool now);
int calls_held();
// Communicators that were aborted while a call used them.
int aborted_in_calls();
// Communicators that were made, and those that were destroyed or aborted.
int made();
int gone();

}  // namespace played_nccl
