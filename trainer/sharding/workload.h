// What a Program trains: a model, and what surrounds it in a micro-batch. A job's own workload is made here;
// one that is lifted from a trace is in trainer/lift.
#pragma once

#include <memory>

#include "trainer/job/job.h"
#include "trainer/model/module.h"

namespace shardscope::trainer::sharding {

class Workload {
  public:
    struct Batch {
        plan::Tensor input, target;
    };
    // What of it the rank's device needs: of a pipeline, the first stage reads inputs and the last one
    // targets.
    struct BatchParts {
        bool input = true, target = true;
    };

    virtual ~Workload() = default;

    virtual std::unique_ptr<model::Module> model(const job::Job& job) = 0;
    // The model in its FSDP units: as the job's policy says, unless the workload knows them.
    virtual std::unique_ptr<model::Module> wrap(std::unique_ptr<model::Module> model, const job::Job& job);

    // The calls of one micro-batch, in this order. The loss's first 8 bytes are a double; none: the loss is
    // not read.
    virtual Batch load_batch(plan::PlanBuilder& builder, const job::Job& job, const BatchParts& parts) = 0;
    virtual plan::Tensor loss(model::Graph& graph, const job::Job& job, const plan::Tensor& output,
                              const plan::Tensor& target) = 0;
    // What the loop does after the optimizer's step, once per step.
    virtual void after_optimizer(plan::PlanBuilder& /*builder*/) {}
    // The loop's variables go out of scope: at the end of a step, and before each micro-batch.
    virtual void end_variables() {}
};

std::unique_ptr<Workload> workload_of_job();

}  // namespace shardscope::trainer::sharding
