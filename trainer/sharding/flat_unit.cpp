#include "trainer/sharding/flat_unit.h"

#include <algorithm>
#include <utility>

namespace shardscope::trainer::sharding {

namespace {

constexpr std::int64_t kAlignment = 16;  // bytes

std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

}  // namespace

FlatUnit::FlatUnit(const UnitOptions& options, Parallelism& owner, int module, std::string name, int id,
                   std::vector<const model::Parameter*> parameters)
    : FsdpUnit(options, {module, std::move(name)}, id, std::move(parameters)) {
    OptimizerSlot slot;
    slot.name = info_.name + " flat_param";
    slot.unit = id;
    slot.module = module;
    slot.space = options.space();
    const std::int64_t alignment = options.aligned ? kAlignment / size_of(options.param) : 1;
    std::int64_t end = 0;
    for (const model::Parameter* p : parameters_) {
        offsets_.push_back(round_up(end, alignment));
        slot.segments.push_back({p->id, offsets_.back(), p->elements(), p->trained, !p->is_vector(),
                                 p->is_cut(plan::Group::tensor)});
        end = offsets_.back() + p->elements();
        info_.elements += p->elements();
    }
    const std::int64_t shards = options.parts();
    info_.padded_elements =
        round_up(end, options.aligned && !options.shards ? options.mesh.size(options.data_group()) : shards);
    info_.shard_elements = info_.padded_elements / shards;
    info_.gather_bytes = padded_bytes(options.param);
    shard_ = owner.declare(buffer(" flat_param", plan::MemoryCategory::parameters,
                                  shard_bytes(plan::DType::fp32), options.space_of_shards()));
    gradient_ = owner.declare(buffer(" flat_param.grad", plan::MemoryCategory::gradients,
                                     shard_bytes(plan::DType::fp32), options.space()));
    full_ = owner.declare(buffer(" flat_param (unsharded)", plan::MemoryCategory::unsharded_parameters,
                                 padded_bytes(options.param)));
    slot.elements = std::min(end, info_.shard_elements);
    slot.per_rank = shards > 1 ? info_.shard_elements : 0;
    slot.parameter = {shard_, 0, shard_bytes(plan::DType::fp32)};
    slot.gradient = {gradient_, 0, shard_bytes(plan::DType::fp32)};
    slot.along = options.shard_group();
    keep_shard(owner);
    set_on_device(slot, 0, info_.shard_elements);
    owner.add_slot(std::move(slot));
}

void FlatUnit::setup(plan::PlanBuilder& builder, bool sync_module_states) {
    const plan::Stream stream = options_.stream();
    allocate_shard(builder);
    const plan::Arg shard = new_shard(builder);
    if (!sync_module_states) {
        builder.memset(shard, stream);  // padding stays zero
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            Parallelism::initialize(builder, *parameters_[i], shard, offsets_[i],
                                    options_.parts() > 1 ? info_.shard_elements : 0, stream);
        }
        return end_new_shard(builder);
    }
    // Every rank gets the whole of rank 0's values and keeps its shard of them.
    const plan::PlanBuilder::Range range(builder, "_sync_module_states");
    const plan::Tensor whole = builder.new_tensor(info_.name + " module states",
                                                  plan::MemoryCategory::communication, info_.padded_elements);
    builder.memset(whole);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        Parallelism::initialize(builder, *parameters_[i], whole, offsets_[i], 0);
    }
    builder.order(plan::Stream::compute, plan::Stream::unshard);
    builder.collective({.operation = plan::Operation::broadcast,
                        .group = options_.data_group(),
                        .padding = padding_bytes(plan::DType::fp32)},
                       whole, whole, whole.bytes(), plan::Stream::unshard);
    builder.order(plan::Stream::unshard, plan::Stream::compute);
    builder.memcpy(
        shard, own_part(whole.view.buffer, plan::DType::fp32),
        options_.offload ? traces::schema::kCopyDeviceToHost : traces::schema::kCopyDeviceToDevice);
    end_new_shard(builder);
}

// --- gather and free ---------------------------------------------------------------------------------------

bool FlatUnit::prepares() const {
    return FsdpUnit::prepares() && !(options_.lean && !options_.offload);
}

// The device copy of an offloaded shard, and the shard converted to the type that is gathered.
void FlatUnit::prepare_gather(plan::PlanBuilder& builder) {
    if (always_whole() || !prepares()) return;
    constexpr plan::Stream kStream = plan::Stream::pre_unshard;
    plan::Arg from = shard_to_copy(builder);
    const std::int64_t n = info_.shard_elements;
    if (options_.offload) {
        on_device_ = builder.new_tensor(info_.name + " flat_param (on the device)",
                                        plan::MemoryCategory::parameters, n, plan::DType::fp32, kStream);
        builder.memcpy(on_device_, from, traces::schema::kCopyHostToDevice, kStream);
        end_copy(builder);
        from = on_device_;
    }
    if (options_.param != plan::DType::fp32 && options_.shards && !options_.lean) {
        low_precision_ = builder.new_tensor(info_.name + " flat_param (low precision)",
                                            plan::MemoryCategory::communication, n, options_.param, kStream);
        builder.cast("cast", low_precision_, options_.param, from, plan::DType::fp32, n, kStream);
        on_device_ = {};
    }
    prepared_ = builder.new_event();
    builder.record(prepared_, kStream);
}

void FlatUnit::gather(plan::PlanBuilder& builder) {
    gathered_ = true;
    if (always_whole()) return;
    constexpr plan::Stream kStream = plan::Stream::unshard;
    if (prepared_ >= 0) builder.wait(std::exchange(prepared_, -1), kStream);
    builder.allocate(full_, kStream);
    const plan::Arg full = builder.whole(full_);
    plan::Arg from = low_precision_ ? low_precision_.view
                     : on_device_   ? on_device_.view
                                    : builder.whole(options_.keeps_shard ? on_device_shard_ : shard_);
    if (options_.param != plan::DType::fp32 && !low_precision_ && !options_.keeps_shard) {
        // With lean, the shard is converted into its place; with NO_SHARD, that is all.
        const plan::Arg place = own_part(full_, options_.param);
        builder.cast("cast", place, options_.param, from, plan::DType::fp32, info_.shard_elements, kStream);
        from = place;
    }
    if (options_.shards) {
        builder.collective({.operation = plan::Operation::all_gather,
                            .dtype = options_.param,
                            .group = options_.shard_group(),
                            .padding = padding_bytes(options_.param)},
                           full, from, full.bytes, kStream);
    }
    low_precision_ = on_device_ = {};
    ready_ = builder.new_event();
    builder.record(ready_, kStream);
}

void FlatUnit::wait_gathered(plan::PlanBuilder& builder) {
    if (!always_whole()) builder.wait(ready_, plan::Stream::compute);
}

void FlatUnit::release(plan::PlanBuilder& builder) {
    gathered_ = false;
    if (!always_whole()) builder.free(full_);
}

plan::Arg FlatUnit::flat_slice(const model::Parameter& parameter, plan::BufferId flat,
                               plan::DType type) const {
    const std::int64_t size = size_of(type);
    return {flat, offsets_[place_of(parameter)] * size, parameter.elements() * size};
}

plan::Arg FlatUnit::parameter(const model::Parameter& parameter) const {
    return flat_slice(parameter, always_whole() ? shard_ : full_, options_.param);
}

// --- gradients ---------------------------------------------------------------------------------------------

// With NO_SHARD, all in fp32, the flat gradient is what the optimizer reads, unless one exists already.
plan::Tensor FlatUnit::new_flat_gradient(plan::PlanBuilder& builder) {
    if (always_whole() && options_.reduce == plan::DType::fp32 && !has_gradient_ && !kept_) {
        builder.allocate(gradient_, plan::Stream::compute);
        return {nullptr, builder.whole(gradient_), -1, plan::DType::fp32};
    }
    return builder.new_tensor(info_.name + " flat_param.grad (unsharded)",
                              plan::MemoryCategory::unsharded_gradients, info_.padded_elements,
                              options_.param);
}

plan::Tensor FlatUnit::new_gradient(plan::PlanBuilder& builder, const model::Parameter& parameter) {
    const std::size_t place = place_of(parameter);
    if (gradients_.empty()) gradients_.resize(parameters_.size());
    if (options_.lean && !gradients_[place] && !kept_) {
        if (!flat_gradient_) {
            flat_gradient_ = new_flat_gradient(builder);
            bool gaps = info_.padded_elements > info_.elements;
            for (const model::Parameter* p : parameters_) gaps = gaps || !p->trained;
            if (gaps) builder.memset(flat_gradient_);  // for padding and frozen parameters
        }
        return {flat_gradient_.storage, flat_slice(parameter, flat_gradient_.view.buffer, options_.param), -1,
                options_.param};
    }
    return builder.new_tensor(parameter.path + ".grad", plan::MemoryCategory::unsharded_gradients,
                              parameter.elements(), options_.param);
}

void FlatUnit::gradient_ready(plan::PlanBuilder& builder, const model::Parameter& parameter,
                              plan::Tensor gradient) {
    if (parameter.partial_gradient) Parallelism::sum_over_tensor_group(builder, gradient, gradient.dtype);
    plan::Tensor& present = gradients_[place_of(parameter)];
    const std::int64_t n = parameter.elements();
    plan::Tensor sum = present;
    if (options_.lean && !present && kept_) {  // adds to what earlier micro-batches left
        sum = {kept_.storage, flat_slice(parameter, kept_.view.buffer, options_.param), -1, options_.param};
    }
    if (sum) {
        builder.kernel(plan::Kernel::accumulate, "elementwise_add", {sum, gradient}, {n}, n).kernel().dtype =
            options_.param;
        present = std::move(sum);
    } else {
        present = std::move(gradient);
    }
}

void FlatUnit::concatenate_gradients(plan::PlanBuilder& builder) {
    if (options_.lean) {
        if (kept_) flat_gradient_ = std::exchange(kept_, {});
        gradients_.clear();
        return;
    }
    // What has no gradient (frozen parameters, padding) has zeros of its own, as in the backward of PyTorch's
    // split.
    std::vector<plan::Tensor> pieces;
    std::int64_t end = 0;
    const auto zeros_until = [&](std::int64_t element) {
        if (element == end) return;
        pieces.push_back(builder.new_tensor(info_.name + " zeros", plan::MemoryCategory::unsharded_gradients,
                                            element - end, options_.param));
        builder.memset(pieces.back());
    };
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        if (!gradients_[i]) continue;
        zeros_until(offsets_[i]);
        end = offsets_[i] + parameters_[i]->elements();
        pieces.push_back(std::move(gradients_[i]));
    }
    zeros_until(info_.padded_elements);
    gradients_.clear();
    flat_gradient_ = new_flat_gradient(builder);
    std::vector<plan::Arg> args = {flat_gradient_};
    args.insert(args.end(), pieces.begin(), pieces.end());
    builder.kernel(plan::Kernel::cat, "cat_array_batched_copy", std::move(args), {});
    pieces.clear();
    if (kept_) {
        const std::int64_t n = info_.padded_elements;
        builder.kernel(plan::Kernel::accumulate, "elementwise_add", {kept_, flat_gradient_}, {n}, n)
            .kernel()
            .dtype = options_.param;
        // The autograd engine holds what it has added until the post-backward hook returns.
        added_ = std::exchange(flat_gradient_, std::exchange(kept_, {}));
    }
}

void FlatUnit::keep_gradients(plan::PlanBuilder&) {
    kept_ = std::exchange(flat_gradient_, {});
    added_ = {};
}

void FlatUnit::reduce(plan::PlanBuilder& builder, int divisor) {
    const plan::Tensor added = std::exchange(added_, {});
    if (options_.shards) {
        reduce_scatter(builder, std::exchange(flat_gradient_, {}), divisor);
    } else {
        all_reduce(builder, divisor);
    }
}

void FlatUnit::all_reduce(plan::PlanBuilder& builder, int divisor) {
    constexpr plan::Stream kStream = plan::Stream::post_backward;
    const std::int64_t n = info_.padded_elements;
    builder.order(plan::Stream::compute, kStream);
    plan::Tensor full = std::exchange(flat_gradient_, {});
    const plan::Tensor computed = options_.lean ? plan::Tensor{} : full;  // the hook holds it
    bool has_place = has_gradient_ || full.view.buffer == gradient_;      // see new_flat_gradient()
    if (full.dtype != plan::DType::fp32 && options_.reduce == plan::DType::fp32 && !has_gradient_) {
        // The gradient that the optimizer reads is converted for the reduction.
        builder.allocate(gradient_, kStream);
        builder.cast("cast", builder.whole(gradient_), plan::DType::fp32, full, full.dtype, n, kStream);
        full = {nullptr, builder.whole(gradient_), -1, plan::DType::fp32};
        has_place = true;
    }
    full = to_reduce_type(builder, std::move(full));
    divide(builder, full, pre_divisor());
    builder.collective({.operation = plan::Operation::all_reduce,
                        .dtype = options_.reduce,
                        .group = options_.data_group(),
                        .divisor = divisor_of_sum(divisor)},
                       full, full, full.bytes(), kStream);
    divide(builder, full, static_cast<double>(divisor) / pre_divisor());
    const bool in_place = full.view.buffer == gradient_;
    if (in_place) {
        has_gradient_ = true;
        return;
    }
    plan::Arg target = builder.whole(gradient_);
    if (!has_place) builder.allocate(gradient_, kStream);
    if (full.dtype != plan::DType::fp32) {
        plan::Tensor wide;
        if (has_gradient_) {
            wide = builder.new_tensor(info_.name + " reduced gradients", plan::MemoryCategory::gradients, n,
                                      plan::DType::fp32, kStream);
            target = wide;
        }
        builder.cast("cast", target, plan::DType::fp32, full, full.dtype, n, kStream);
        full = wide;
    } else if (!has_gradient_) {
        builder.memcpy(target, full, traces::schema::kCopyDeviceToDevice, kStream);
    }
    if (has_gradient_) {
        builder.kernel(plan::Kernel::accumulate, "elementwise_add", {builder.whole(gradient_), full}, {n}, n,
                       kStream);
    }
    has_gradient_ = true;
}

}  // namespace shardscope::trainer::sharding
