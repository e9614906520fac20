#include "trainer/sharding/unit.h"

#include <algorithm>
#include <utility>

namespace shardscope::trainer::sharding {

FsdpUnit::FsdpUnit(const UnitOptions& options, UnitInfo info, int id,
                   std::vector<const model::Parameter*> parameters)
    : options_(options), info_(std::move(info)), id_(id), parameters_(std::move(parameters)) {
    trained_ = std::any_of(parameters_.begin(), parameters_.end(),
                           [](const model::Parameter* p) { return p->trained; });
}

void FsdpUnit::keep_shard(Parallelism& owner) {
    const std::int64_t bytes = shard_bytes(options_.param);
    const bool narrows = options_.keeps_shard && options_.param != plan::DType::fp32;
    if (options_.files) options_.files->add(shard_, shard_bytes(plan::DType::fp32), narrows ? bytes : 0);
    if (!options_.keeps_shard) return;
    on_device_shard_ =
        owner.declare(buffer(" shard (on the device)", plan::MemoryCategory::parameters, bytes));
    if (!narrows || options_.files) return;
    narrow_shard_ = owner.declare(buffer(" shard (low precision, host)", plan::MemoryCategory::parameters,
                                         bytes, plan::MemorySpace::pinned));
}

void FsdpUnit::set_on_device(OptimizerSlot& slot, std::int64_t first, std::int64_t elements) const {
    if (!options_.keeps_shard) return;
    const std::int64_t size = size_of(options_.param);
    slot.device_type = options_.param;
    slot.on_device = {on_device_shard_, first * size, elements * size};
    slot.narrow = {narrow_shard_, first * size, elements * size};
}

void FsdpUnit::allocate_shard(plan::PlanBuilder& builder) {
    builder.allocate(shard_, options_.stream());
    if (options_.offload && trained_) builder.allocate(gradient_, options_.stream());
    if (on_device_shard_ >= 0) builder.allocate(on_device_shard_, plan::Stream::pre_unshard);
    if (narrow_shard_ >= 0) builder.allocate(narrow_shard_, plan::Stream::host);
}

plan::Arg FsdpUnit::new_shard(plan::PlanBuilder& builder) const {
    return options_.files ? options_.files->fill(builder, shard_) : builder.whole(shard_);
}

// What the compute stream has copied to the host must be there.
void FsdpUnit::end_new_shard(plan::PlanBuilder& builder) const {
    if (!options_.files) return;
    const plan::EventId copied = builder.new_event();
    builder.record(copied, plan::Stream::compute);
    builder.host_wait(copied);
    options_.files->store(builder, shard_);
}

void FsdpUnit::read_ahead(plan::PlanBuilder& builder) const {
    if (!options_.files || options_.keeps_shard) return;
    const plan::PlanBuilder::Scope scope(builder, builder.phase(), info_.module, id_);
    options_.files->read_ahead(builder, shard_, false, true);
}

plan::Arg FsdpUnit::shard_to_copy(plan::PlanBuilder& builder) const {
    if (options_.keeps_shard) return builder.whole(on_device_shard_);
    return options_.files ? options_.files->load(builder, shard_, false) : builder.whole(shard_);
}

void FsdpUnit::end_copy(plan::PlanBuilder& builder) const {
    if (options_.files && !options_.keeps_shard)
        options_.files->let_go(builder, shard_, plan::Stream::pre_unshard);
}

std::size_t FsdpUnit::place_of(const model::Parameter& parameter) const {
    return static_cast<std::size_t>(std::find(parameters_.begin(), parameters_.end(), &parameter) -
                                    parameters_.begin());
}

plan::Tensor FsdpUnit::to_reduce_type(plan::PlanBuilder& builder, plan::Tensor full) const {
    if (full.dtype == options_.reduce) return full;
    plan::Tensor converted =
        builder.new_tensor(info_.name + " gradients to reduce", plan::MemoryCategory::communication,
                           full.elements(), options_.reduce, plan::Stream::post_backward);
    builder.cast("cast", converted, options_.reduce, full, full.dtype, full.elements(),
                 plan::Stream::post_backward);
    return converted;
}

int FsdpUnit::pre_divisor() const {
    if (options_.reduce != plan::DType::fp16) return 1;
    const int ranks = options_.mesh.size(options_.data_group());
    int factor = 1;
    while (ranks % factor == 0 && ranks / factor > factor) factor *= 2;
    return factor;
}

void FsdpUnit::divide(plan::PlanBuilder& builder, const plan::Tensor& x, double divisor) const {
    if (options_.reduce != plan::DType::fp16 || divisor == 1) return;
    plan::KernelOp& own = builder
                              .kernel(plan::Kernel::scale, "elementwise_div", {x}, {x.elements()},
                                      x.elements(), plan::Stream::post_backward)
                              .kernel();
    own.dtype = x.dtype;
    own.scalars = {1 / divisor};
}

// On the post_backward stream: conversion to the type of the reduction, reduce-scatter among the ranks that
// shard, all-reduce among those that replicate, conversion to fp32, addition to the gradient of earlier
// micro-batches, copy to the host. As in PyTorch's hook the gradient that was given, and its conversion, live
// until the end.
void FsdpUnit::reduce_scatter(plan::PlanBuilder& builder, plan::Tensor gradient, int divisor) {
    constexpr plan::Stream kStream = plan::Stream::post_backward;
    const std::int64_t shard = info_.shard_elements;
    builder.order(plan::Stream::compute, kStream);
    plan::Tensor full = to_reduce_type(builder, options_.lean ? std::move(gradient) : gradient);
    divide(builder, full, pre_divisor());
    // The result goes directly to its place if no conversion, addition or copy is needed.
    const bool adds = has_gradient_;
    const auto result = [&](plan::DType type) {
        if (type == plan::DType::fp32 && !adds && !options_.offload) {
            builder.allocate(gradient_, kStream);
            return plan::Tensor{nullptr, builder.whole(gradient_), -1, plan::DType::fp32};
        }
        return builder.new_tensor(info_.name + " reduced gradients", plan::MemoryCategory::gradients, shard,
                                  type, kStream);
    };
    plan::Tensor reduced = result(options_.reduce);
    const bool replicates = options_.mesh.replicas() > 1;
    builder.collective({.operation = plan::Operation::reduce_scatter,
                        .dtype = options_.reduce,
                        .group = options_.shard_group(),
                        .divisor = replicates ? 1 : divisor_of_sum(divisor),
                        .padding = padding_bytes(options_.reduce)},
                       reduced, full, full.bytes(), kStream);
    if (options_.lean) full = {};
    if (replicates) {
        builder.collective({.operation = plan::Operation::all_reduce,
                            .dtype = options_.reduce,
                            .group = plan::Group::replicate,
                            .divisor = divisor_of_sum(divisor)},
                           reduced, reduced, reduced.bytes(), kStream);
        if (options_.keeps_replicas) all_reduced_.push_back(reduced);
    }
    divide(builder, reduced, static_cast<double>(divisor) / pre_divisor());
    if (options_.reduce != plan::DType::fp32) {
        plan::Tensor wide = result(plan::DType::fp32);
        builder.cast("cast", wide, plan::DType::fp32, reduced, options_.reduce, shard, kStream);
        reduced = std::move(wide);
    }
    if (adds && !options_.offload) {
        builder.kernel(plan::Kernel::accumulate, "elementwise_add", {builder.whole(gradient_), reduced},
                       {shard}, shard, kStream);
    }
    if (options_.offload) {
        if (adds) {
            const plan::Tensor saved =
                builder.new_tensor(info_.name + " gradients so far", plan::MemoryCategory::gradients, shard,
                                   plan::DType::fp32, kStream);
            builder.memcpy(saved, builder.whole(gradient_), traces::schema::kCopyHostToDevice, kStream);
            builder.kernel(plan::Kernel::accumulate, "elementwise_add", {saved, reduced}, {shard}, shard,
                           kStream);
            reduced = saved;
        }
        builder.memcpy(builder.whole(gradient_), reduced, traces::schema::kCopyDeviceToHost, kStream);
        if (!options_.keeps_shard) held_.push_back(std::move(reduced));
    }
    has_gradient_ = true;
}

}  // namespace shardscope::trainer::sharding
