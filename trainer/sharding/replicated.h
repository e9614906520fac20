// Every rank holds every parameter. On one rank this is plain training (mode none); ddp.h adds the averaging
// of gradients. With a sharded optimizer (ZeRO stage 1), the parameters are consecutive in one buffer and so
// are their gradients: a rank updates its part of them, and the parts are gathered after the step.
#pragma once

#include "trainer/sharding/parallelism.h"

namespace shardscope::trainer {

class Replicated : public Parallelism {
  public:
    Replicated(const Job& job, Mesh mesh, const ModuleTree& tree, bool shard_optimizer = false);

    const std::vector<UnitInfo>& units() const override { return units_; }
    int unit_of(const Parameter&) const override { return -1; }
    void setup(PlanBuilder& builder) override;
    void begin_step(PlanBuilder& builder) override;
    void begin_micro_batch(MicroBatch micro) override;
    void end_backward() override;
    void after_optimizer() override;
    Arg parameter(const Parameter& parameter) override;
    Tensor new_gradient(const Parameter& parameter) override;
    void gradient_ready(const Parameter& parameter, Tensor gradient) override;

  protected:
    // The complete gradient of a parameter is enqueued: it includes all uses in this micro-batch and in
    // earlier ones.
    virtual void gradient_complete(const Parameter&) {}
    // The divisor of the sum over micro-batches and ranks when the last backward has ended; 1: the sum is not
    // divided.
    virtual int final_divisor() const { return micro_.count; }

    Arg& parameter_arg(const Parameter& p) { return parameter_args_[static_cast<std::size_t>(p.id)]; }
    Arg& gradient_arg(const Parameter& p) { return gradient_args_[static_cast<std::size_t>(p.id)]; }
    const Arg& gradient_arg(const Parameter& p) const {
        return gradient_args_[static_cast<std::size_t>(p.id)];
    }
    bool has_gradient(const Parameter& p) const { return has_gradient_[static_cast<std::size_t>(p.id)]; }
    const std::vector<const Parameter*>& trained() const { return trained_; }
    std::int64_t bytes_of(const Parameter& p) const { return p.elements() * size_of(DType::fp32); }

    const ModuleTree& tree_;
    std::vector<UnitInfo> units_;

  private:
    void add_whole(const Parameter& parameter);
    void one_slot();

    const bool alone_;  // nothing else reduces gradients: the optimizer sums those of a tensor group
    std::vector<const Parameter*> trained_;
    std::vector<Arg> parameter_args_, gradient_args_;      // indexed by parameter id
    std::vector<bool> has_gradient_;                       // in this step, indexed by parameter id
    std::vector<int> uses_left_;                           // in this backward, indexed by parameter id
    std::vector<Tensor> sums_;                             // sums of the uses so far in this backward
    BufferId flat_parameters_ = -1, flat_gradients_ = -1;  // buffers of a sharded optimizer
    bool flat_gradients_live_ = false;
};

}  // namespace shardscope::trainer
