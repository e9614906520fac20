#include "trainer/sharding/replicated.h"

#include <algorithm>
#include <utility>

#include "trainer/kernels/random.h"
#include "trainer/sharding/values.h"

namespace shardscope::trainer::sharding {

Parallelism::Parallelism(const job::Job& job, plan::Mesh mesh, const model::ModuleTree& tree)
    : mesh_(mesh),
      optimizer_(job, mesh, tree.parameters.size()),
      module_buffers_(tree.buffers.begin(), tree.buffers.end()) {
    for (const model::ModuleBuffer* b : module_buffers_) {
        buffers_.push_back(declare_whole({b->path, plan::MemoryCategory::parameters,
                                          plan::MemorySpace::device, b->elements * kFloat, -1, b->module}));
    }
}

void Parallelism::set_up_buffers(plan::PlanBuilder& builder) {
    if (HostFiles* const files = optimizer_.files()) files->set_up(builder);
    for (const model::ModuleBuffer* b : module_buffers_) {
        const plan::PlanBuilder::Scope scope(builder, plan::Phase::setup, b->module, -1);
        const plan::Arg& to = buffer(*b);
        builder.allocate(to.buffer, plan::Stream::compute);
        builder.kernel(plan::Kernel::init_constant, "initialize", {to}, {0, 0, b->elements})
            .kernel()
            .scalars = {b->value};
    }
}

void Parallelism::initialize(plan::PlanBuilder& builder, const model::Parameter& parameter,
                             const plan::Arg& to, std::int64_t first, std::int64_t per_rank,
                             plan::Stream stream) {
    const auto key = static_cast<std::int64_t>(kernels::stream_of(parameter.path));
    const plan::Kernel kernel = parameter.init.kind == model::InitKind::normal ? plan::Kernel::init_normal
                                : parameter.init.kind == model::InitKind::uniform
                                    ? plan::Kernel::init_uniform
                                    : plan::Kernel::init_constant;
    const model::TensorCut& cut = parameter.cut;
    const auto part = [&](std::int64_t local, std::int64_t elements, std::int64_t step) {
        plan::Op& op =
            builder.kernel(kernel, "initialize", {to},
                           {key, first + local, elements, per_rank, local * cut.ranks, step}, 0, stream);
        op.kernel().scalars = {parameter.init.a, parameter.init.b};
        if (parameter.is_cut(plan::Group::expert)) op.kernel().along = plan::Group::expert_shard;
    };
    const std::int64_t all = parameter.elements();
    if (cut.cut == model::Cut::none) return part(0, all, 0);
    if (cut.cut == model::Cut::columns) return part(0, all, parameter.width);
    if (cut.sections.empty()) return part(0, all, all);
    std::int64_t local = 0;
    for (const std::int64_t rows : cut.sections) {
        const std::int64_t elements = rows / cut.ranks * parameter.width;
        part(local, elements, elements);
        local += elements;
    }
}

void Parallelism::sum_over_tensor_group(plan::PlanBuilder& builder, const plan::Arg& gradient,
                                        plan::DType dtype) {
    builder.collective(
        {.operation = plan::Operation::all_reduce, .dtype = dtype, .group = plan::Group::tensor}, gradient,
        gradient, gradient.bytes, plan::Stream::compute);
}

Replicated::Replicated(const job::Job& job, plan::Mesh mesh, const model::ModuleTree& tree, int parts)
    : Parallelism(job, mesh, tree),
      tree_(tree),
      parts_(parts),
      offload_(job.memory.offload.optimizer),
      alone_(job.parallel.mode == job::ParallelMode::none),
      parameter_args_(tree.parameters.size()),
      gradient_args_(tree.parameters.size()),
      scale_args_(tree.parameters.size()),
      slot_of_(tree.parameters.size(), 0),
      has_gradient_(tree.parameters.size(), false),
      left_at_(tree.parameters.size(), -1),
      uses_left_(tree.parameters.size(), 0),
      sums_(tree.parameters.size()) {
    if (offload_) optimizer_.keep_gradients();
    for (const model::Parameter* parameter : tree.held) {
        if (parameter->trained) trained_.push_back(parameter);
    }
    if (parts > 0) {
        one_slot();
    } else {
        for (const model::Parameter* p : tree.held) add_whole(*p);
    }
    optimizer_.declare_ring(persistent_);
}

// A slot of one whole parameter, with buffers of its own.
void Replicated::add_whole(const model::Parameter& p) {
    const int owner = tree_.owners[static_cast<std::size_t>(p.id)];
    OptimizerSlot slot;
    slot.name = p.path;
    slot.elements = p.elements();
    slot.segments = {{p.id, 0, p.elements(), p.trained, !p.is_vector(), p.is_cut(plan::Group::tensor)}};
    if (p.is_cut(plan::Group::expert)) slot.along = plan::Group::expert_shard;
    slot.module = owner;
    slot.partial_gradient = p.partial_gradient && p.trained && alone_ && !offload_;
    const auto declare_parameter = [&](std::string name, std::int64_t bytes) {
        return declare_whole(
            {std::move(name), plan::MemoryCategory::parameters, plan::MemorySpace::device, bytes, -1, owner});
    };
    if (p.stored == plan::DType::int8) {
        slot.parameter = declare_parameter(p.path + " (int8)", p.elements() * size_of(p.stored));
        scale_args_[static_cast<std::size_t>(p.id)] =
            declare_parameter(p.path + " (scales)", p.rows * kFloat);
    } else {
        slot.parameter = declare_parameter(p.path, bytes_of(p));
    }
    parameter_arg(p) = slot.parameter;
    if (p.trained) {
        slot.gradient = declare_whole({p.path + ".grad", plan::MemoryCategory::gradients,
                                       plan::MemorySpace::device, bytes_of(p), -1, owner});
        gradient_arg(p) = slot.gradient;
    }
    if (p.trained && offload_) {
        slot.space = plan::MemorySpace::pinned;
        slot.on_device = slot.parameter;
        HostFiles* const files = optimizer_.files();
        slot.parameter =
            declare_whole({p.path + " (host)", plan::MemoryCategory::parameters,
                           files ? plan::MemorySpace::disk : slot.space, bytes_of(p), -1, owner});
        if (files) files->add(slot.parameter.buffer, bytes_of(p));
        slot.gradient = declare_whole(
            {p.path + ".grad (host)", plan::MemoryCategory::gradients, slot.space, bytes_of(p), -1, owner});
    }
    slot_of_[static_cast<std::size_t>(p.id)] = optimizer_.add_slot(persistent_, std::move(slot));
}

void Replicated::one_slot() {
    OptimizerSlot slot;
    slot.name = "flat";
    slot.module = 0;
    std::int64_t total = 0;
    for (const model::Parameter* p : trained_) {
        slot.segments.push_back(
            {p->id, total, p->elements(), true, !p->is_vector(), p->is_cut(plan::Group::tensor)});
        total += p->elements();
    }
    slot.elements = slot.per_rank = (total + parts_ - 1) / parts_;
    const std::int64_t part = slot.per_rank * kFloat;
    flat_parameters_ = declare({"flat parameters", plan::MemoryCategory::parameters,
                                plan::MemorySpace::device, part * parts_, -1, 0});
    flat_gradients_ = declare(
        {"flat gradients", plan::MemoryCategory::gradients, plan::MemorySpace::device, part * parts_, -1, 0});
    for (const plan::Segment& segment : slot.segments) {
        const auto p = static_cast<std::size_t>(segment.parameter);
        parameter_args_[p] = {flat_parameters_, segment.first * kFloat, segment.elements * kFloat};
        gradient_args_[p] = {flat_gradients_, segment.first * kFloat, segment.elements * kFloat};
    }
    slot.parameter = {flat_parameters_, 0, part, part};
    slot.gradient = {flat_gradients_, 0, part, part};
    optimizer_.add_slot(persistent_, std::move(slot));
    for (const model::Parameter* p : tree_.held) {
        if (!p->trained) add_whole(*p);  // frozen ones get buffers of their own
    }
}

void Replicated::setup(plan::PlanBuilder& builder) {
    if (flat_parameters_ >= 0) {
        const plan::PlanBuilder::Scope scope(builder, plan::Phase::setup, 0, -1);
        builder.allocate(flat_parameters_, plan::Stream::compute);
        builder.memset(builder.whole(flat_parameters_));  // padding stays zero
    }
    for (const model::Parameter* p : tree_.held) {
        const plan::PlanBuilder::Scope scope(builder, plan::Phase::setup,
                                             tree_.owners[static_cast<std::size_t>(p->id)], unit_of(*p));
        if (parameter_arg(*p).buffer != flat_parameters_)
            builder.allocate(parameter_arg(*p).buffer, plan::Stream::compute);
        const plan::Arg scale = scales(*p);
        if (scale.buffer < 0) {
            initialize(builder, *p, parameter_arg(*p), 0, 0);
            continue;
        }
        builder.allocate(scale.buffer, plan::Stream::compute);
        builder.memset(parameter_arg(*p));  // until a checkpoint's values are there
        builder.memset(scale);
    }
    if (alone_) copy_parameters_out(builder);
}

void Replicated::copy_parameters_out(plan::PlanBuilder& builder) {
    for (const OptimizerSlot& slot : optimizer_.slots()) {
        if (slot.on_device.buffer < 0) continue;
        const plan::PlanBuilder::Scope scope(builder, plan::Phase::setup, slot.module, slot.unit);
        builder.allocate(slot.parameter.buffer, plan::Stream::compute);
        builder.allocate(slot.gradient.buffer, plan::Stream::host);
        HostFiles* const files = optimizer_.files();
        builder.memcpy(files ? files->fill(builder, slot.parameter.buffer) : slot.parameter, slot.on_device,
                       traces::schema::kCopyDeviceToHost);
        if (!files) continue;
        const plan::EventId copied = builder.new_event();
        builder.record(copied, plan::Stream::compute);
        builder.host_wait(copied);
        files->store(builder, slot.parameter.buffer);
    }
}

void Replicated::begin_step(plan::PlanBuilder& builder) {
    Parallelism::begin_step(builder);
    has_gradient_.assign(has_gradient_.size(), false);
    left_at_.assign(left_at_.size(), -1);
    flat_gradients_live_ = false;
}

void Replicated::begin_micro_batch(MicroBatch micro) {
    Parallelism::begin_micro_batch(micro);
    begin_backward(micro);
}

void Replicated::begin_backward(MicroBatch micro) {
    Parallelism::begin_backward(micro);
    for (const model::Parameter* p : tree_.held) {
        uses_left_[static_cast<std::size_t>(p->id)] = p->users;
    }
}

plan::Arg Replicated::parameter(const model::Parameter& parameter) {
    return parameter_arg(parameter);
}

// The first gradient of a step is written where the optimizer will read it; later ones are added to it.
plan::Tensor Replicated::new_gradient(const model::Parameter& parameter) {
    if (has_gradient(parameter)) {
        return builder().new_tensor(parameter.path + ".grad (new)", plan::MemoryCategory::gradients,
                                    parameter.elements());
    }
    const plan::Arg& gradient = gradient_arg(parameter);
    if (gradient.buffer != flat_gradients_) {
        builder().allocate(gradient.buffer, plan::Stream::compute);
    } else if (!flat_gradients_live_) {
        flat_gradients_live_ = true;
        builder().allocate(flat_gradients_, plan::Stream::compute);
        const OptimizerSlot& slot = optimizer_.slot(0);
        const std::int64_t used = slot.segments.back().first + slot.segments.back().elements;
        const std::int64_t padding = slot.per_rank * parts_ - used;
        if (padding > 0) builder().memset({flat_gradients_, used * kFloat, padding * kFloat});
    }
    return {nullptr, gradient, -1, plan::DType::fp32};
}

// Gradients of several uses in one backward are summed first, then added to those of earlier micro-batches,
// as autograd does.
void Replicated::gradient_ready(const model::Parameter& parameter, plan::Tensor gradient) {
    const auto id = static_cast<std::size_t>(parameter.id);
    const std::int64_t n = parameter.elements();
    const bool last = --uses_left_[id] == 0;
    const auto add = [&](const plan::Arg& to, const plan::Arg& from) {
        if (left_at_[id] >= 0 && to.buffer == gradient_arg(parameter).buffer) bring_back(parameter);
        builder().kernel(plan::Kernel::accumulate, "elementwise_add", {to, from}, {n}, n);
    };
    if (!has_gradient_[id]) {
        has_gradient_[id] = true;
    } else if (micro_.first()) {
        add(gradient_arg(parameter), gradient);
    } else {
        if (sums_[id]) add(sums_[id], gradient);
        plan::Tensor sum = sums_[id] ? std::exchange(sums_[id], {}) : std::move(gradient);
        if (last) {
            add(gradient_arg(parameter), sum);
        } else {
            sums_[id] = std::move(sum);
        }
    }
    gradient = {};
    if (last) gradient_complete(parameter);
}

// The ranks of a tensor group add up what they have divided, as they do without offload.
void Replicated::leave_device(const model::Parameter& parameter) {
    const plan::Arg& gradient = gradient_arg(parameter);
    if (is_last_gradient(parameter)) {
        divide(optimizer_.slot(slot_of(parameter)), gradient, plan::Stream::compute);
        if (alone_ && parameter.partial_gradient) sum_over_tensor_group(builder(), gradient);
    }
    builder().order(plan::Stream::compute, plan::Stream::post_backward);
    copy_gradient_out(parameter, gradient);
    builder().free(gradient.buffer);
    arrive({&parameter});
}

void Replicated::copy_gradient_out(const model::Parameter& parameter, const plan::Arg& from) {
    builder().memcpy(optimizer_.slot(slot_of(parameter)).gradient, from, traces::schema::kCopyDeviceToHost,
                     plan::Stream::post_backward);
}

void Replicated::arrive(const std::vector<const model::Parameter*>& parameters) {
    const plan::EventId event = builder().new_event();
    builder().record(event, plan::Stream::post_backward);
    std::vector<std::size_t> slots;
    for (const model::Parameter* p : parameters) {
        left_at_[static_cast<std::size_t>(p->id)] = event;
        slots.push_back(slot_of(*p));
    }
    optimizer_.arrive(builder(), std::move(slots), event, is_last_gradient(*parameters.front()));
}

void Replicated::bring_back(const model::Parameter& parameter) {
    const plan::Arg& gradient = gradient_arg(parameter);
    builder().allocate(gradient.buffer, plan::Stream::pre_unshard);
    builder().wait(std::exchange(left_at_[static_cast<std::size_t>(parameter.id)], -1),
                   plan::Stream::pre_unshard);
    builder().memcpy(gradient, optimizer_.slot(slot_of(parameter)).gradient,
                     traces::schema::kCopyHostToDevice, plan::Stream::pre_unshard);
    builder().order(plan::Stream::pre_unshard, plan::Stream::compute);
}

void Replicated::divide(const OptimizerSlot& slot, const plan::Arg& gradient, plan::Stream stream) {
    const double divisor = final_divisor(slot);
    if (divisor == 1) return;
    builder()
        .kernel(plan::Kernel::scale, "aten::div_", {gradient}, {slot.elements}, slot.elements, stream)
        .kernel()
        .scalars = {1.0 / divisor};
}

void Replicated::end_backward() {
    if (!micro_.last() || offload_) return;  // what has left the device was divided before
    for (const OptimizerSlot& slot : optimizer_.slots())
        if (slot.trained()) divide(slot, slot.gradient, plan::Stream::compute);
}

void Replicated::after_optimizer() {
    if (flat_parameters_ < 0 || mesh_.shard == 1) return;
    const plan::PlanBuilder::Scope scope(builder(), plan::Phase::optimizer, 0, -1);
    const plan::PlanBuilder::Range range(builder(), "ZeroRedundancyOptimizer._sync_params");
    const OptimizerSlot& slot = optimizer_.slot(0);
    const std::int64_t used = slot.segments.back().first + slot.segments.back().elements;
    const plan::Arg whole = builder().whole(flat_parameters_);
    builder().order(plan::Stream::compute, plan::Stream::unshard);
    builder().collective({.operation = plan::Operation::all_gather,
                          .group = plan::Group::shard,
                          .padding = whole.bytes - used * kFloat},
                         whole, slot.parameter, whole.bytes, plan::Stream::unshard);
    builder().order(plan::Stream::unshard, plan::Stream::compute);
}

}  // namespace shardscope::trainer::sharding
