#include "trainer/sharding/group_unit.h"

#include <stdexcept>
#include <utility>

#include "trainer/sharding/values.h"

namespace shardscope::trainer::sharding {

void GroupPending::free_gathered(plan::PlanBuilder& builder) {
    if (!gathered) return;
    for (const plan::Stream stream : {plan::Stream::pre_unshard, plan::Stream::unshard})
        builder.wait(copied_at, stream);
    gathered = {};
}

GroupUnit::GroupUnit(const UnitOptions& options, Parallelism& owner, GroupPending& pending, int module,
                     std::string name, int id, std::vector<const model::Parameter*> parameters)
    : FsdpUnit(options, {module, std::move(name)}, id, std::move(parameters)), pending_(pending) {
    const std::int64_t shards = options.parts();
    for (const model::Parameter* p : parameters_) {
        const std::int64_t rows = (p->rows + shards - 1) / shards;
        pieces_.push_back({info_.shard_elements, rows * p->width});
        info_.shard_elements += pieces_.back().elements;
        info_.elements += p->elements();
    }
    gradients_.resize(parameters_.size());
    info_.padded_elements = info_.shard_elements * shards;
    info_.gather_bytes = padded_bytes(options.param);
    shard_ = owner.declare(buffer(" shards", plan::MemoryCategory::parameters, shard_bytes(plan::DType::fp32),
                                  options.space_of_shards()));
    gradient_ = owner.declare(buffer(" shards.grad", plan::MemoryCategory::gradients,
                                     shard_bytes(plan::DType::fp32), options.space()));
    keep_shard(owner);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        const model::Parameter& p = *parameters_[i];
        Piece& piece = pieces_[i];
        piece.full = owner.declare({p.path + " (unsharded)", plan::MemoryCategory::unsharded_parameters,
                                    plan::MemorySpace::device,
                                    piece.elements * shards * size_of(options.param), id, info_.module});
        OptimizerSlot slot;
        slot.name = p.path;
        slot.unit = id;
        slot.module = module;
        slot.space = options.space();
        slot.elements = slot.per_rank = piece.elements;
        slot.along = options.shard_group();
        slot.segments = {{p.id, 0, p.elements(), p.trained, !p.is_vector(), p.is_cut(plan::Group::tensor)}};
        slot.parameter = {shard_, piece.first * kFloat, piece.elements * kFloat};
        slot.gradient = {gradient_, piece.first * kFloat, piece.elements * kFloat};
        set_on_device(slot, piece.first, piece.elements);
        owner.add_slot(std::move(slot));
    }
}

void GroupUnit::setup(plan::PlanBuilder& builder, bool sync_module_states) {
    const plan::Stream stream = options_.stream();
    allocate_shard(builder);
    const plan::Arg shard = new_shard(builder);
    if (!sync_module_states) builder.memset(shard, stream);  // padding stays zero
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        const Piece& piece = pieces_[i];
        const plan::Arg own{shard.buffer, shard.offset + piece.first * kFloat, piece.elements * kFloat};
        if (!sync_module_states) {
            Parallelism::initialize(builder, *parameters_[i], own, 0, piece.elements, stream);
            continue;
        }
        const plan::PlanBuilder::Range range(builder, "_sync_module_states");
        const plan::Tensor whole =
            builder.new_tensor(parameters_[i]->path + " module states", plan::MemoryCategory::communication,
                               piece.elements * options_.parts());
        builder.memset(whole);
        Parallelism::initialize(builder, *parameters_[i], whole, 0, 0);
        builder.order(plan::Stream::compute, plan::Stream::unshard);
        builder.collective({.operation = plan::Operation::broadcast,
                            .group = options_.data_group(),
                            .padding = whole.bytes() - parameters_[i]->elements() * kFloat},
                           whole, whole, whole.bytes(), plan::Stream::unshard);
        builder.order(plan::Stream::unshard, plan::Stream::compute);
        builder.memcpy(
            own, {whole.view.buffer, 0, own.bytes, own.bytes, options_.shard_group()},
            options_.offload ? traces::schema::kCopyDeviceToHost : traces::schema::kCopyDeviceToDevice);
    }
    end_new_shard(builder);
}

// --- gather and free ---------------------------------------------------------------------------------------

// Converts this rank's pieces, where their type is not the gather's, then copies them into their place in its
// buffer.
void GroupUnit::prepare_gather(plan::PlanBuilder& builder) {
    constexpr plan::Stream kStream = plan::Stream::pre_unshard;
    const std::int64_t n = info_.shard_elements;
    plan::Arg from = shard_to_copy(builder);
    plan::Tensor on_device, converted;
    if (options_.param != plan::DType::fp32 && !options_.keeps_shard) {
        if (options_.offload) {
            on_device = builder.new_tensor(info_.name + " shards (on the device)",
                                           plan::MemoryCategory::parameters, n, plan::DType::fp32, kStream);
            builder.memcpy(on_device, from, traces::schema::kCopyHostToDevice, kStream);
            end_copy(builder);
            from = on_device;
        }
        converted = builder.new_tensor(info_.name + " shards (low precision)",
                                       plan::MemoryCategory::communication, n, options_.param, kStream);
        builder.cast("_foreach_copy_", converted, options_.param, from, plan::DType::fp32, n, kStream);
        on_device = {};
        from = converted;
    }
    gather_buffer_ =
        builder.new_tensor(info_.name + " all_gather output", plan::MemoryCategory::communication,
                           info_.padded_elements, options_.param, kStream);
    const std::int64_t bytes = shard_bytes(options_.param);
    const bool from_host = options_.offload && !options_.keeps_shard && !converted;
    builder.memcpy({gather_buffer_.view.buffer, 0, bytes, bytes, options_.shard_group()}, from,
                   from_host ? traces::schema::kCopyHostToDevice : traces::schema::kCopyDeviceToDevice,
                   kStream);
    if (from_host) end_copy(builder);
    prepared_ = builder.new_event();
    builder.record(prepared_, kStream);
}

void GroupUnit::gather(plan::PlanBuilder& builder) {
    gathered_ = true;
    copied_out_ = false;
    constexpr plan::Stream kStream = plan::Stream::unshard;
    builder.wait(std::exchange(prepared_, -1), kStream);
    const std::int64_t bytes = shard_bytes(options_.param);
    builder.collective({.operation = plan::Operation::all_gather,
                        .dtype = options_.param,
                        .group = options_.shard_group(),
                        .padding = padding_bytes(options_.param)},
                       gather_buffer_, {gather_buffer_.view.buffer, 0, bytes, bytes, options_.shard_group()},
                       gather_buffer_.bytes(), kStream);
    ready_ = builder.new_event();
    builder.record(ready_, kStream);
}

std::vector<plan::Segment> GroupUnit::piece_segments() const {
    std::vector<plan::Segment> segments;
    for (std::size_t i = 0; i < pieces_.size(); ++i)
        segments.push_back({parameters_[i]->id, pieces_[i].first, pieces_[i].elements});
    return segments;
}

void GroupUnit::wait_gathered(plan::PlanBuilder& builder) {
    if (copied_out_) return;
    copied_out_ = true;
    pending_.free_gathered(builder);
    builder.wait(ready_, plan::Stream::compute);
    const plan::PlanBuilder::Range range(builder, "FSDP::all_gather_copy_out");
    std::vector<plan::Arg> args = {gather_buffer_};
    for (const Piece& piece : pieces_) {
        builder.allocate(piece.full, plan::Stream::compute);
        args.push_back(builder.whole(piece.full));
    }
    plan::KernelOp& op =
        builder
            .kernel(plan::Kernel::chunk_split, "split_with_sizes_copy", std::move(args), {options_.parts()})
            .kernel();
    op.dtype = options_.param;
    op.segments = builder.add_segments(piece_segments());
    pending_.copied_at = builder.new_event();
    builder.record(pending_.copied_at, plan::Stream::compute);
    pending_.gathered = std::exchange(gather_buffer_, {});
    if (builder.phase() != plan::Phase::forward) pending_.free_gathered(builder);
}

void GroupUnit::release(plan::PlanBuilder& builder) {
    gathered_ = false;
    if (!copied_out_) {  // gathered ahead, but not used
        gather_buffer_ = {};
        return;
    }
    copied_out_ = false;
    for (const Piece& piece : pieces_) builder.free(piece.full);
}

plan::Arg GroupUnit::parameter(const model::Parameter& parameter) const {
    return {pieces_[place_of(parameter)].full, 0, parameter.elements() * size_of(options_.param)};
}

// --- gradients ---------------------------------------------------------------------------------------------

namespace {

void add(plan::PlanBuilder& builder, const plan::Tensor& sum, const plan::Tensor& more) {
    const std::int64_t n = sum.elements();
    builder.kernel(plan::Kernel::accumulate, "elementwise_add", {sum, more}, {n, input_dim(more.dtype)}, n)
        .kernel()
        .dtype = sum.dtype;
}

}  // namespace

plan::Tensor GroupUnit::new_gradient(plan::PlanBuilder& builder, const model::Parameter& parameter) {
    return builder.new_tensor(parameter.path + ".grad", plan::MemoryCategory::unsharded_gradients,
                              parameter.elements(), options_.param);
}

// Once all uses of a parameter are summed, autograd adds the sum to the kept gradient, in place, whose type
// may be wider. It converts the sum as it accumulates it if the reduction's type is narrower, or wider and
// the gradient is to be kept; in a backward that reduces, the copy-in converts to a wider type.
void GroupUnit::gradient_ready(plan::PlanBuilder& builder, const model::Parameter& parameter,
                               plan::Tensor gradient) {
    Gradient& own = gradients_[place_of(parameter)];
    if (own.made) {
        add(builder, own.made, gradient);
    } else {
        own.made = std::move(gradient);
    }
    if (++own.uses < parameter.users) return;
    own.uses = 0;
    const bool narrows = size_of(options_.reduce) < size_of(own.made.dtype);
    if (narrows || (!reduces_ && !own.kept))
        own.made = in_reduce_type(builder, parameter, std::move(own.made));
    if (own.kept) {
        add(builder, own.kept, std::exchange(own.made, {}));
    } else if (!reduces_) {
        own.kept = std::exchange(own.made, {});
    }
}

plan::Tensor GroupUnit::in_reduce_type(plan::PlanBuilder& builder, const model::Parameter& parameter,
                                       plan::Tensor gradient) const {
    if (gradient.dtype == options_.reduce) return gradient;
    const std::int64_t n = gradient.elements();
    plan::Tensor converted = builder.new_tensor(
        parameter.path + ".grad (to reduce)", plan::MemoryCategory::unsharded_gradients, n, options_.reduce);
    builder.cast("cast", converted, options_.reduce, gradient, gradient.dtype, n);
    return converted;
}

void GroupUnit::reduce(plan::PlanBuilder& builder, int divisor) {
    if (pending_.reduced) {
        builder.wait(pending_.reduced_at, plan::Stream::compute);
        pending_.reduced = {};
    }
    // Gradients of a single backward are converted by the copy-in.
    std::vector<plan::Tensor> gradients;
    gradients.reserve(gradients_.size());
    for (Gradient& own : gradients_) {
        if (own.kept && own.made) throw std::logic_error(info_.name + " has a gradient that is not summed");
        gradients.push_back(std::move(own.kept ? own.kept : own.made));
        own = {};
    }
    for (std::size_t i = 0; i < gradients.size(); ++i) {
        if (parameters_[i]->partial_gradient && gradients[i])
            Parallelism::sum_over_tensor_group(builder, gradients[i], gradients[i].dtype);
    }
    plan::Tensor input =
        builder.new_tensor(info_.name + " reduce_scatter input", plan::MemoryCategory::communication,
                           info_.padded_elements, options_.reduce);
    {
        const plan::PlanBuilder::Range range(builder, "FSDP::post_backward_rs_copy_in");
        std::vector<plan::Arg> args = {input};
        std::vector<plan::Segment> segments;
        bool gaps = false;
        plan::DType type = options_.reduce;
        for (std::size_t i = 0; i < pieces_.size(); ++i) {
            gaps = gaps || !gradients[i];
            if (!gradients[i]) continue;
            type = gradients[i].dtype;
            args.push_back(gradients[i]);
            segments.push_back({parameters_[i]->id, pieces_[i].first, pieces_[i].elements});
        }
        if (gaps) builder.memset(input);  // for frozen parameters
        plan::KernelOp& op = builder
                                 .kernel(plan::Kernel::chunk_cat, "chunk_cat", std::move(args),
                                         {options_.parts(), input_dim(type)})
                                 .kernel();
        op.dtype = options_.reduce;
        op.segments = builder.add_segments(std::move(segments));
    }
    gradients.clear();
    reduce_scatter(builder, input, divisor);
    held_.clear();  // frees an offloaded shard's device copy immediately
    pending_.reduced = std::move(input);
    pending_.reduced_at = builder.new_event();
    builder.record(pending_.reduced_at, plan::Stream::post_backward);
}

void GroupUnit::end_backward() {
    FsdpUnit::end_backward();
    pending_ = {};
}

}  // namespace shardscope::trainer::sharding
