// Every rank holds every parameter. On one rank this is plain training (mode none); ddp.h adds the averaging
// of gradients. With `parts` the parameters are consecutive in one buffer of so many parts, and so are their
// gradients. With a sharded optimizer (ZeRO stage 1) a rank updates its part of them, and the parts are
// gathered after the step.
#pragma once

#include "trainer/sharding/parallelism.h"

namespace shardscope::trainer::sharding {

class Replicated : public Parallelism {
  public:
    Replicated(const job::Job& job, plan::Mesh mesh, const model::ModuleTree& tree, int parts = 0);

    const std::vector<UnitInfo>& units() const override { return units_; }
    int unit_of(const model::Parameter&) const override { return -1; }
    void setup(plan::PlanBuilder& builder) override;
    void begin_step(plan::PlanBuilder& builder) override;
    void begin_micro_batch(MicroBatch micro) override;
    void begin_backward(MicroBatch micro) override;
    void end_backward() override;
    void after_optimizer() override;
    plan::Arg parameter(const model::Parameter& parameter) override;
    plan::Arg scales(const model::Parameter& parameter) const override {
        return scale_args_[static_cast<std::size_t>(parameter.id)];
    }
    plan::Tensor new_gradient(const model::Parameter& parameter) override;
    void gradient_ready(const model::Parameter& parameter, plan::Tensor gradient) override;

  protected:
    // The complete gradient of a parameter is enqueued: it includes all uses in this micro-batch and in
    // earlier ones.
    virtual void gradient_complete(const model::Parameter& parameter) {
        if (offload_) leave_device(parameter);
    }
    // With memory.offload a gradient goes to the host when its backward has completed it, and comes back to
    // be added to: leave_device() takes one that is not in a bucket; `from` is where a gradient is then.
    void leave_device(const model::Parameter& parameter);
    void copy_gradient_out(const model::Parameter& parameter, const plan::Arg& from);
    void arrive(const std::vector<const model::Parameter*>& parameters);  // after their copies
    void divide(const OptimizerSlot& slot, const plan::Arg& gradient, plan::Stream stream);
    // At the end of set-up: the parameters that the host updates.
    void copy_parameters_out(plan::PlanBuilder& builder);
    bool is_last_gradient(const model::Parameter& p) const { return micro_.last() && &p != waiting_; }
    // The divisor of the sum over micro-batches and ranks when the last backward has ended; 1: the sum is not
    // divided.
    virtual double final_divisor(const OptimizerSlot&) const { return micro_.count; }

    plan::Arg& parameter_arg(const model::Parameter& p) {
        return parameter_args_[static_cast<std::size_t>(p.id)];
    }
    plan::Arg& gradient_arg(const model::Parameter& p) {
        return gradient_args_[static_cast<std::size_t>(p.id)];
    }
    const plan::Arg& gradient_arg(const model::Parameter& p) const {
        return gradient_args_[static_cast<std::size_t>(p.id)];
    }
    bool has_gradient(const model::Parameter& p) const {
        return has_gradient_[static_cast<std::size_t>(p.id)];
    }
    // Of a parameter that has a slot of its own.
    std::size_t slot_of(const model::Parameter& p) const { return slot_of_[static_cast<std::size_t>(p.id)]; }
    const std::vector<const model::Parameter*>& trained() const { return trained_; }
    std::int64_t bytes_of(const model::Parameter& p) const {
        return p.elements() * size_of(plan::DType::fp32);
    }

    const model::ModuleTree& tree_;
    std::vector<UnitInfo> units_;
    plan::BufferId flat_parameters_ = -1, flat_gradients_ = -1;  // consecutive ones, in `parts_` parts
    int parts_;
    const bool offload_;  // memory.offload: the host has the optimizer, and gradients between backwards

  private:
    void add_whole(const model::Parameter& parameter);
    void bring_back(const model::Parameter& parameter);
    void one_slot();

    const bool alone_;  // nothing else reduces gradients: the optimizer sums those of a tensor group
    std::vector<const model::Parameter*> trained_;
    std::vector<plan::Arg> parameter_args_, gradient_args_;  // indexed by parameter id
    std::vector<plan::Arg> scale_args_;                      // indexed by parameter id
    std::vector<std::size_t> slot_of_;                       // indexed by parameter id
    std::vector<bool> has_gradient_;                         // in this step, indexed by parameter id
    std::vector<plan::EventId> left_at_;                     // of those on the host: when they came there
    std::vector<int> uses_left_;                             // in this backward, indexed by parameter id
    std::vector<plan::Tensor> sums_;                         // sums of the uses so far in this backward
    bool flat_gradients_live_ = false;
};

}  // namespace shardscope::trainer::sharding
