// A unit with a flat parameter, as FullyShardedDataParallel keeps it: all parameters one after the other,
// padded to a multiple of N and cut into N shards.
//
// Layout fsdp1: each parameter begins at a multiple of 16 bytes in the type that is gathered, and NO_SHARD,
// too, pads to a multiple of the ranks (as with use_orig_params). The flat parameter (W bytes) lives from
// unshard to reshard. In the backward there is one gradient per parameter (W together), then the flat
// gradient that they are concatenated into (W), which the reduce-scatter turns into the gradient's shard.
//
// Layout lean: gradients are written directly into the flat gradient (W in all), and a bf16 shard directly
// into its place in the flat parameter, which is gathered in place.
//
// NO_SHARD: the flat parameter is the shard; the flat gradient stays and is all-reduced in place.
#pragma once

#include "trainer/sharding/unit.h"

namespace shardscope::trainer::sharding {

class FlatUnit final : public FsdpUnit {
  public:
    // Declares the unit's persistent buffers and its slot.
    FlatUnit(const UnitOptions& options, Parallelism& owner, int module, std::string name, int id,
             std::vector<const model::Parameter*> parameters);

    void setup(plan::PlanBuilder& builder, bool sync_module_states) override;
    bool prepares() const override;
    void prepare_gather(plan::PlanBuilder& builder) override;
    void gather(plan::PlanBuilder& builder) override;
    void wait_gathered(plan::PlanBuilder& builder) override;
    void release(plan::PlanBuilder& builder) override;
    plan::Arg parameter(const model::Parameter& parameter) const override;
    plan::Tensor new_gradient(plan::PlanBuilder& builder, const model::Parameter& parameter) override;
    void gradient_ready(plan::PlanBuilder& builder, const model::Parameter& parameter,
                        plan::Tensor gradient) override;
    void concatenate_gradients(plan::PlanBuilder& builder) override;
    void keep_gradients(plan::PlanBuilder& builder) override;
    void reduce(plan::PlanBuilder& builder, int divisor) override;

  private:
    // NO_SHARD in fp32: kernels read the persistent parameter itself.
    bool always_whole() const { return !options_.shards && options_.param == plan::DType::fp32; }
    // The shard's place in the flat parameter; depends on the rank.
    plan::Arg own_part(plan::BufferId full, plan::DType type) const {
        return {full, 0, shard_bytes(type), shard_bytes(type), options_.shard_group()};
    }
    plan::Arg flat_slice(const model::Parameter& parameter, plan::BufferId flat, plan::DType type) const;
    plan::Tensor new_flat_gradient(plan::PlanBuilder& builder);
    void all_reduce(plan::PlanBuilder& builder, int divisor);

    std::vector<std::int64_t> offsets_;  // elements before each parameter
    plan::BufferId full_ = -1;
    // Used while a Plan is written.
    plan::Tensor low_precision_, on_device_;  // what a gather reads, until it is enqueued
    plan::EventId prepared_ = -1, ready_ = -1;
    std::vector<plan::Tensor> gradients_;  // one per parameter, until they are concatenated
    plan::Tensor flat_gradient_;           // of this backward; with lean, of this and the earlier ones
    plan::Tensor added_;                   // what this backward added to the earlier ones'
    plan::Tensor kept_;                    // gradient of earlier micro-batches, unreduced
};

}  // namespace shardscope::trainer::sharding
