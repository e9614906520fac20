// What a Program trains: a model, and what surrounds it in a micro-batch. A job's own is made here; one that
// is lifted from a trace stands in trainer/lift.
#pragma once

#include <memory>

#include "trainer/job/job.h"
#include "trainer/model/module.h"

namespace shardscope::trainer {

class Workload {
  public:
    struct Batch {
        Tensor input, target;
    };

    virtual ~Workload() = default;

    virtual std::unique_ptr<Module> model(const Job& job) = 0;
    // The model in its FSDP units: as the job's policy says, unless the workload knows them.
    virtual std::unique_ptr<Module> wrap(std::unique_ptr<Module> model, const Job& job);

    // Of one micro-batch, in this order. The loss: its first 8 bytes are a double; none: nobody reads it.
    virtual Batch load_batch(PlanBuilder& builder, const Job& job) = 0;
    virtual Tensor loss(Graph& graph, const Job& job, const Tensor& output, const Tensor& target) = 0;
    // What the loop does behind the optimizer's step, once a step.
    virtual void after_optimizer(PlanBuilder& /*builder*/) {}
    // The loop's variables end: at the end of a step, and before each micro-batch.
    virtual void end_variables() {}
};

std::unique_ptr<Workload> workload_of_job();

}  // namespace shardscope::trainer
