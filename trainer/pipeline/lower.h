// Lowering: a schedule of computations gets what PyTorch's runtime adds to one (_PipelineScheduleRuntime of
// PyTorch 2.15).
//
//   UNSHARD, RESHARD   FSDP gathers the parameters of the stages that are computed next (three: the current
//                      one and two ahead) and frees those of other stages before
//   REDUCE_GRAD        after the stage's last backward, with its wait
//   SEND, RECV         SEND after the computation whose result another rank needs, RECV on that rank after
//                      what it has done by then: both see their messages in one order and cannot deadlock
//   WAIT_SEND          that of an output after its backward, which proves that it was received; others last
#pragma once

#include "trainer/pipeline/schedule.h"

namespace shardscope::trainer::pipeline {

struct LowerOptions {
    bool fsdp = true;          // UNSHARD, RESHARD, REDUCE_GRAD
    int unsharded_stages = 3;  // gathered at a time
};

// `computes` has no transfers, and can run (check.h).
Schedule lower(const Schedule& computes, const LowerOptions& options = {});

// The schedule without what lowering adds.
Schedule computes_of(const Schedule& schedule);

}  // namespace shardscope::trainer::pipeline
