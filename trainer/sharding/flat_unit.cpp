#include "trainer/sharding/flat_unit.h"

#include <algorithm>
#include <utility>

namespace shardscope::trainer {

namespace {

constexpr std::int64_t kAlignment = 16;  // bytes

std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

}  // namespace

FlatUnit::FlatUnit(const UnitOptions& options, Parallelism& owner, int module, std::string name, int id,
                   std::vector<const Parameter*> parameters)
    : FsdpUnit(options, {module, std::move(name)}, id, std::move(parameters)) {
    OptimizerSlot slot;
    slot.name = info_.name + " flat_param";
    slot.unit = id;
    slot.module = module;
    slot.space = options.space();
    const std::int64_t alignment = options.aligned ? kAlignment / size_of(options.param) : 1;
    std::int64_t end = 0;
    for (const Parameter* p : parameters_) {
        offsets_.push_back(round_up(end, alignment));
        slot.segments.push_back(
            {p->id, offsets_.back(), p->elements(), p->trained, !p->is_vector(), p->cut.cut != Cut::none});
        end = offsets_.back() + p->elements();
        info_.elements += p->elements();
    }
    const std::int64_t shards = options.mesh.shard;
    info_.padded_elements =
        round_up(end, options.aligned && !options.shards ? options.mesh.data_size() : shards);
    info_.shard_elements = info_.padded_elements / shards;
    info_.gather_bytes = padded_bytes(options.param);
    shard_ = owner.declare(
        buffer(" flat_param", MemoryCategory::parameters, shard_bytes(DType::fp32), options.space()));
    gradient_ = owner.declare(
        buffer(" flat_param.grad", MemoryCategory::gradients, shard_bytes(DType::fp32), options.space()));
    full_ = owner.declare(
        buffer(" flat_param (unsharded)", MemoryCategory::unsharded_parameters, padded_bytes(options.param)));
    slot.elements = std::min(end, info_.shard_elements);
    slot.per_rank = shards > 1 ? info_.shard_elements : 0;
    slot.parameter = {shard_, 0, shard_bytes(DType::fp32)};
    slot.gradient = {gradient_, 0, shard_bytes(DType::fp32)};
    owner.add_slot(std::move(slot));
}

void FlatUnit::setup(PlanBuilder& builder, bool sync_module_states) {
    const Stream stream = options_.stream();
    builder.allocate(shard_, stream);
    if (options_.offload && trained_) builder.allocate(gradient_, stream);
    const Arg shard = builder.whole(shard_);
    if (!sync_module_states) {
        builder.memset(shard, stream);  // padding stays zero
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            Parallelism::initialize(builder, *parameters_[i], shard, offsets_[i],
                                    options_.mesh.shard > 1 ? info_.shard_elements : 0, stream);
        }
        return;
    }
    // Every rank gets the whole of rank 0's values and keeps its shard of them.
    const PlanBuilder::Range range(builder, "_sync_module_states");
    const Tensor whole = builder.new_tensor(info_.name + " module states", MemoryCategory::communication,
                                            info_.padded_elements);
    builder.memset(whole);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        Parallelism::initialize(builder, *parameters_[i], whole, offsets_[i], 0);
    }
    builder.order(Stream::compute, Stream::unshard);
    builder.collective({.operation = Operation::broadcast,
                        .group = options_.mesh.all_data(),
                        .padding = padding_bytes(DType::fp32)},
                       whole, whole, whole.bytes(), Stream::unshard);
    builder.order(Stream::unshard, Stream::compute);
    builder.memcpy(
        shard, own_part(whole.view.buffer, DType::fp32),
        options_.offload ? traces::schema::kCopyDeviceToHost : traces::schema::kCopyDeviceToDevice);
}

// --- gather and free ---------------------------------------------------------------------------------------

bool FlatUnit::prepares() const {
    return FsdpUnit::prepares() && !(options_.lean && !options_.offload);
}

// The device copy of an offloaded shard, and the shard converted to the type that is gathered.
void FlatUnit::prepare_gather(PlanBuilder& builder) {
    if (always_whole() || !prepares()) return;
    constexpr Stream kStream = Stream::pre_unshard;
    Arg from = builder.whole(shard_);
    const std::int64_t n = info_.shard_elements;
    if (options_.offload) {
        on_device_ = builder.new_tensor(info_.name + " flat_param (on the device)",
                                        MemoryCategory::parameters, n, DType::fp32, kStream);
        builder.memcpy(on_device_, from, traces::schema::kCopyHostToDevice, kStream);
        from = on_device_;
    }
    if (options_.param != DType::fp32 && options_.shards && !options_.lean) {
        low_precision_ = builder.new_tensor(info_.name + " flat_param (low precision)",
                                            MemoryCategory::communication, n, options_.param, kStream);
        builder.kernel(Kernel::cast_to_bf16, "cast", {low_precision_, from}, {n}, 0, kStream);
        on_device_ = {};
    }
    prepared_ = builder.new_event();
    builder.record(prepared_, kStream);
}

void FlatUnit::gather(PlanBuilder& builder) {
    gathered_ = true;
    if (always_whole()) return;
    constexpr Stream kStream = Stream::unshard;
    if (prepared_ >= 0) builder.wait(std::exchange(prepared_, -1), kStream);
    builder.allocate(full_, kStream);
    const Arg full = builder.whole(full_);
    Arg from = low_precision_ ? low_precision_.view : on_device_ ? on_device_.view : builder.whole(shard_);
    if (options_.param != DType::fp32 && !low_precision_) {
        // With lean, the shard is converted into its place; with NO_SHARD, that is all.
        const Arg place = own_part(full_, options_.param);
        builder.kernel(Kernel::cast_to_bf16, "cast", {place, from}, {info_.shard_elements}, 0, kStream);
        from = place;
    }
    if (options_.shards) {
        builder.collective({.operation = Operation::all_gather,
                            .dtype = options_.param,
                            .group = Group::shard,
                            .padding = padding_bytes(options_.param)},
                           full, from, full.bytes, kStream);
    }
    low_precision_ = on_device_ = {};
    ready_ = builder.new_event();
    builder.record(ready_, kStream);
}

void FlatUnit::wait_gathered(PlanBuilder& builder) {
    if (!always_whole()) builder.wait(ready_, Stream::compute);
}

void FlatUnit::release(PlanBuilder& builder) {
    gathered_ = false;
    if (!always_whole()) builder.free(full_);
}

Arg FlatUnit::flat_slice(const Parameter& parameter, BufferId flat, DType type) const {
    const std::int64_t size = size_of(type);
    return {flat, offsets_[place_of(parameter)] * size, parameter.elements() * size};
}

Arg FlatUnit::parameter(const Parameter& parameter) const {
    return flat_slice(parameter, always_whole() ? shard_ : full_, options_.param);
}

// --- gradients ---------------------------------------------------------------------------------------------

// With NO_SHARD, all in fp32, the flat gradient is what the optimizer reads, unless one exists already.
Tensor FlatUnit::new_flat_gradient(PlanBuilder& builder) {
    if (always_whole() && options_.reduce == DType::fp32 && !has_gradient_ && !kept_) {
        builder.allocate(gradient_, Stream::compute);
        return {nullptr, builder.whole(gradient_), -1, DType::fp32};
    }
    return builder.new_tensor(info_.name + " flat_param.grad (unsharded)",
                              MemoryCategory::unsharded_gradients, info_.padded_elements, options_.param);
}

Tensor FlatUnit::new_gradient(PlanBuilder& builder, const Parameter& parameter) {
    const std::size_t place = place_of(parameter);
    if (gradients_.empty()) gradients_.resize(parameters_.size());
    if (options_.lean && !gradients_[place] && !kept_) {
        if (!flat_gradient_) {
            flat_gradient_ = new_flat_gradient(builder);
            bool gaps = info_.padded_elements > info_.elements;
            for (const Parameter* p : parameters_) gaps = gaps || !p->trained;
            if (gaps) builder.memset(flat_gradient_);  // for padding and frozen parameters
        }
        return {flat_gradient_.storage, flat_slice(parameter, flat_gradient_.view.buffer, options_.param), -1,
                options_.param};
    }
    return builder.new_tensor(parameter.path + ".grad", MemoryCategory::unsharded_gradients,
                              parameter.elements(), options_.param);
}

void FlatUnit::gradient_ready(PlanBuilder& builder, const Parameter& parameter, Tensor gradient) {
    if (parameter.partial_gradient) Parallelism::sum_over_tensor_group(builder, gradient, gradient.dtype);
    Tensor& present = gradients_[place_of(parameter)];
    const std::int64_t n = parameter.elements();
    Tensor sum = present;
    if (options_.lean && !present && kept_) {  // adds to what earlier micro-batches left
        sum = {kept_.storage, flat_slice(parameter, kept_.view.buffer, options_.param), -1, options_.param};
    }
    if (sum) {
        builder.kernel(Kernel::accumulate, "elementwise_add", {sum, gradient}, {n}, n).kernel().dtype =
            options_.param;
        present = std::move(sum);
    } else {
        present = std::move(gradient);
    }
}

void FlatUnit::concatenate_gradients(PlanBuilder& builder) {
    if (options_.lean) {
        if (kept_) flat_gradient_ = std::exchange(kept_, {});
        gradients_.clear();
        return;
    }
    // What has no gradient (frozen parameters, padding) has zeros of its own, as in the backward of PyTorch's
    // split.
    std::vector<Tensor> pieces;
    std::int64_t end = 0;
    const auto zeros_until = [&](std::int64_t element) {
        if (element == end) return;
        pieces.push_back(builder.new_tensor(info_.name + " zeros", MemoryCategory::unsharded_gradients,
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
    std::vector<Arg> args = {flat_gradient_};
    args.insert(args.end(), pieces.begin(), pieces.end());
    builder.kernel(Kernel::cat, "cat_array_batched_copy", std::move(args), {});
    pieces.clear();
    if (kept_) {
        const std::int64_t n = info_.padded_elements;
        builder.kernel(Kernel::accumulate, "elementwise_add", {kept_, flat_gradient_}, {n}, n)
            .kernel()
            .dtype = options_.param;
        // The autograd engine holds what it has added until the post-backward hook returns.
        added_ = std::exchange(flat_gradient_, std::exchange(kept_, {}));
    }
}

void FlatUnit::keep_gradients(PlanBuilder&) {
    kept_ = std::exchange(flat_gradient_, {});
    added_ = {};
}

void FlatUnit::reduce(PlanBuilder& builder, int divisor) {
    const Tensor added = std::exchange(added_, {});
    if (options_.shards) {
        reduce_scatter(builder, std::exchange(flat_gradient_, {}), divisor);
    } else {
        all_reduce(builder, divisor);
    }
}

void FlatUnit::all_reduce(PlanBuilder& builder, int divisor) {
    constexpr Stream kStream = Stream::post_backward;
    const std::int64_t n = info_.padded_elements;
    builder.order(Stream::compute, kStream);
    Tensor full = std::exchange(flat_gradient_, {});
    const Tensor computed = options_.lean ? Tensor{} : full;          // the hook holds it
    bool has_place = has_gradient_ || full.view.buffer == gradient_;  // see new_flat_gradient()
    if (full.dtype != DType::fp32 && options_.reduce == DType::fp32 && !has_gradient_) {
        // The gradient that the optimizer reads is converted for the reduction.
        builder.allocate(gradient_, kStream);
        builder.kernel(Kernel::cast_to_fp32, "cast", {builder.whole(gradient_), full}, {n}, 0, kStream);
        full = {nullptr, builder.whole(gradient_), -1, DType::fp32};
        has_place = true;
    }
    full = to_reduce_type(builder, std::move(full));
    builder.collective({.operation = Operation::all_reduce,
                        .dtype = options_.reduce,
                        .group = options_.mesh.all_data(),
                        .divisor = divisor},
                       full, full, full.bytes(), kStream);
    const bool in_place = full.view.buffer == gradient_;
    if (in_place) {
        has_gradient_ = true;
        return;
    }
    Arg target = builder.whole(gradient_);
    if (!has_place) builder.allocate(gradient_, kStream);
    if (full.dtype != DType::fp32) {
        Tensor wide;
        if (has_gradient_) {
            wide = builder.new_tensor(info_.name + " reduced gradients", MemoryCategory::gradients, n,
                                      DType::fp32, kStream);
            target = wide;
        }
        builder.kernel(Kernel::cast_to_fp32, "cast", {target, full}, {n}, 0, kStream);
        full = wide;
    } else if (!has_gradient_) {
        builder.memcpy(target, full, traces::schema::kCopyDeviceToDevice, kStream);
    }
    if (has_gradient_) {
        builder.kernel(Kernel::accumulate, "elementwise_add", {builder.whole(gradient_), full}, {n}, n,
                       kStream);
    }
    has_gradient_ = true;
}

}  // namespace shardscope::trainer
