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

namespace shardscope::trainer {

class FlatUnit final : public FsdpUnit {
  public:
    // Declares the unit's persistent buffers and its slot.
    FlatUnit(const UnitOptions& options, Parallelism& owner, int module, std::string name, int id,
             std::vector<const Parameter*> parameters);

    void setup(PlanBuilder& builder, bool sync_module_states) override;
    bool prepares() const override;
    void prepare_gather(PlanBuilder& builder) override;
    void gather(PlanBuilder& builder) override;
    void wait_gathered(PlanBuilder& builder) override;
    void release(PlanBuilder& builder) override;
    Arg parameter(const Parameter& parameter) const override;
    Tensor new_gradient(PlanBuilder& builder, const Parameter& parameter) override;
    void gradient_ready(PlanBuilder& builder, const Parameter& parameter, Tensor gradient) override;
    void concatenate_gradients(PlanBuilder& builder) override;
    void keep_gradients(PlanBuilder& builder) override;
    void reduce(PlanBuilder& builder, int divisor) override;

  private:
    // NO_SHARD in fp32: kernels read the persistent parameter itself.
    bool always_whole() const { return !options_.shards && options_.param == DType::fp32; }
    // The shard's place in the flat parameter; depends on the rank.
    Arg own_part(BufferId full, DType type) const { return {full, 0, shard_bytes(type), shard_bytes(type)}; }
    Arg flat_slice(const Parameter& parameter, BufferId flat, DType type) const;
    Tensor new_flat_gradient(PlanBuilder& builder);
    void all_reduce(PlanBuilder& builder, int divisor);

    std::vector<std::int64_t> offsets_;  // elements before each parameter
    BufferId full_ = -1;
    // Used while a Plan is written.
    Tensor low_precision_, on_device_;  // what a gather reads, until it is enqueued
    EventId prepared_ = -1, ready_ = -1;
    std::vector<Tensor> gradients_;  // one per parameter, until they are concatenated
    Tensor flat_gradient_;           // of this backward; with lean, of this and the earlier ones
    Tensor added_;                   // what this backward added to the earlier ones'
    Tensor kept_;                    // gradient of earlier micro-batches, unreduced
};

}  // namespace shardscope::trainer
