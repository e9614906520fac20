// One FSDP unit: what is gathered, freed and reduced together. The engine (fsdp.h) decides when; a unit
// decides how, depending on its layout: flat_unit.h (fsdp1 and lean) or group_unit.h (fsdp2). This file has
// what all layouts share: where the shards live, what a shard needs before its gather, and the reduction of
// gradients.
//
// In the comments, W is the unit's bytes in fp32, N the number of ranks of a shard group.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/sharding/parallelism.h"

namespace shardscope::trainer::sharding {

// What all units of a job have in common.
struct UnitOptions {
    plan::Mesh mesh;
    plan::DType param = plan::DType::fp32, reduce = plan::DType::fp32;
    bool shards = true;  // false with NO_SHARD
    // Of experts that the ranks of an expert group divide: the other ranks with the same ones share the unit.
    bool experts = false;
    bool offload = false;  // shards and their gradients are on the host, which updates them
    // memory.offload: and the device has the shards, too, in the type that is gathered.
    bool keeps_shard = false;
    HostFiles* files = nullptr;  // memory.nvme: the shards are there; null: in memory
    bool lean = false;           // see flat_unit.h
    bool aligned = false;        // the same
    // What was all-reduced between the replicas is kept until the backward has ended (fully_shard).
    bool keeps_replicas = false;
    plan::MemorySpace space() const {
        return offload ? plan::MemorySpace::pinned : plan::MemorySpace::device;
    }
    plan::MemorySpace space_of_shards() const { return files ? plan::MemorySpace::disk : space(); }
    plan::Group shard_group() const { return experts ? plan::Group::expert_shard : plan::Group::shard; }
    plan::Group data_group() const { return experts ? plan::Group::expert_data : mesh.all_data(); }
    int parts() const { return mesh.size(shard_group()); }  // of the unit
    plan::Stream stream() const { return offload ? plan::Stream::host : plan::Stream::compute; }
};

class FsdpUnit {
  public:
    FsdpUnit(const UnitOptions& options, UnitInfo info, int id,
             std::vector<const model::Parameter*> parameters);
    virtual ~FsdpUnit() = default;
    FsdpUnit(const FsdpUnit&) = delete;
    FsdpUnit& operator=(const FsdpUnit&) = delete;

    const UnitInfo& info() const { return info_; }
    const std::vector<const model::Parameter*>& parameters() const { return parameters_; }
    bool trained() const { return trained_; }

    virtual void setup(plan::PlanBuilder& builder, bool sync_module_states) = 0;

    // A gather has three parts: what the shard needs, on the pre_unshard stream; the collective, on the
    // unshard stream; and, when the parameters are needed, the compute stream's wait for it.
    virtual void prepare_gather(plan::PlanBuilder& builder) = 0;
    virtual void gather(plan::PlanBuilder& builder) = 0;
    virtual void wait_gathered(plan::PlanBuilder& builder) = 0;
    virtual void release(plan::PlanBuilder& builder) = 0;
    bool gathered() const { return gathered_; }
    // Whether work on the pre_unshard stream precedes each gather.
    virtual bool prepares() const {
        return !options_.keeps_shard && (options_.offload || options_.param != plan::DType::fp32);
    }

    // memory.nvme: begins to read the shard, which a gather will copy, if there is room for it.
    void read_ahead(plan::PlanBuilder& builder) const;

    virtual plan::Arg parameter(const model::Parameter& parameter) const = 0;

    // In a backward, one or more gradients per parameter arrive; then they are put together, and reduced or
    // kept for the next micro-batch (no_sync). `divisor` divides the sum over ranks.
    virtual plan::Tensor new_gradient(plan::PlanBuilder& builder, const model::Parameter& parameter) = 0;
    virtual void gradient_ready(plan::PlanBuilder& builder, const model::Parameter& parameter,
                                plan::Tensor gradient) = 0;
    virtual void concatenate_gradients(plan::PlanBuilder& builder) = 0;
    virtual void keep_gradients(plan::PlanBuilder& builder) = 0;
    virtual void reduce(plan::PlanBuilder& builder, int divisor) = 0;
    // Called after the last reduction of the backward, once the compute stream waits for all of them.
    virtual void end_backward() {
        held_.clear();
        all_reduced_.clear();
    }

    void begin_step() { has_gradient_ = false; }
    // Whether the gradients of this micro-batch's backward will be reduced, not kept.
    void begin_micro_batch(bool reduces) { reduces_ = reduces; }

  protected:
    std::int64_t padded_bytes(plan::DType type) const { return info_.padded_elements * size_of(type); }
    std::int64_t shard_bytes(plan::DType type) const { return info_.shard_elements * size_of(type); }
    std::int64_t padding_bytes(plan::DType type) const {
        return (info_.padded_elements - info_.elements) * size_of(type);
    }
    std::size_t place_of(const model::Parameter& parameter) const;
    plan::Buffer buffer(const std::string& what, plan::MemoryCategory category, std::int64_t bytes,
                        plan::MemorySpace space = plan::MemorySpace::device) const {
        return {info_.name + what, category, space, bytes, id_, info_.module};
    }

    // With keeps_shard: declares the device's shard, and tells a slot where it has elements [first, first +
    // elements) of it.
    void keep_shard(Parallelism& owner);
    void set_on_device(OptimizerSlot& slot, std::int64_t first, std::int64_t elements) const;
    void allocate_shard(plan::PlanBuilder& builder);  // and what is allocated with it in set-up
    // Where set-up writes the shard's values, and the end of that.
    plan::Arg new_shard(plan::PlanBuilder& builder) const;
    void end_new_shard(plan::PlanBuilder& builder) const;
    // The shard for a copy to the device, which waits for a file; and the end of that.
    plan::Arg shard_to_copy(plan::PlanBuilder& builder) const;
    void end_copy(plan::PlanBuilder& builder) const;

    // `full` in the type of the reduction; converted on the post_backward stream if it has another type.
    plan::Tensor to_reduce_type(plan::PlanBuilder& builder, plan::Tensor full) const;
    // In fp16 a sum of many ranks' gradients may overflow where their mean does not, and small gradients
    // divided by all ranks at once become 0: as in PyTorch, about the root of the number divides before the
    // reduction, and the rest after it. The first of the two; 1 in other types, whose sums are divided once.
    int pre_divisor() const;
    void divide(plan::PlanBuilder& builder, const plan::Tensor& x, double divisor) const;
    // Of the collective itself.
    int divisor_of_sum(int divisor) const { return options_.reduce == plan::DType::fp16 ? 1 : divisor; }
    // Reduces `full` (padded_elements of type `type`, written on the compute stream) into the gradient's
    // shard; adds to what earlier micro-batches left there.
    void reduce_scatter(plan::PlanBuilder& builder, plan::Tensor gradient, int divisor);

    UnitOptions options_;
    UnitInfo info_;
    int id_;
    std::vector<const model::Parameter*> parameters_;
    bool trained_ = false;
    bool gathered_ = false;
    plan::BufferId shard_ = -1;                                // fp32; persistent
    plan::BufferId on_device_shard_ = -1, narrow_shard_ = -1;  // keeps_shard: see OptimizerSlot::on_device
    plan::BufferId gradient_ =
        -1;  // fp32; persistent if offloaded, else from the first reduction to zero_grad
    bool has_gradient_ = false;
    bool reduces_ = true;
    std::vector<plan::Tensor> all_reduced_;
    std::vector<plan::Tensor> held_;  // device memory that is referenced until the end of the backward
};

}  // namespace shardscope::trainer::sharding
