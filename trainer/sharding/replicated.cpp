#include "trainer/sharding/replicated.h"

#include <algorithm>
#include <utility>

#include "trainer/kernels/random.h"
#include "trainer/sharding/values.h"

namespace shardscope::trainer {

Parallelism::Parallelism(const Job& job, Mesh mesh)
    : mesh_(mesh), optimizer_(job.optimizer, job.train.clip_norm, mesh) {}

void Parallelism::initialize(PlanBuilder& builder, const Parameter& parameter, const Arg& to,
                             std::int64_t first, std::int64_t per_rank, Stream stream) {
    const auto key = static_cast<std::int64_t>(kernels::stream_of(parameter.path));
    const Kernel kernel = parameter.init.kind == InitKind::normal    ? Kernel::init_normal
                          : parameter.init.kind == InitKind::uniform ? Kernel::init_uniform
                                                                     : Kernel::init_constant;
    const TensorCut& cut = parameter.cut;
    const auto part = [&](std::int64_t local, std::int64_t elements, std::int64_t step) {
        Op& op = builder.kernel(kernel, "initialize", {to},
                                {key, first + local, elements, per_rank, local * cut.ranks, step}, 0, stream);
        op.kernel().scalars = {parameter.init.a, parameter.init.b};
    };
    const std::int64_t all = parameter.elements();
    if (cut.cut == Cut::none) return part(0, all, 0);
    if (cut.cut == Cut::columns) return part(0, all, parameter.width);
    if (cut.sections.empty()) return part(0, all, all);
    std::int64_t local = 0;
    for (const std::int64_t rows : cut.sections) {
        const std::int64_t elements = rows / cut.ranks * parameter.width;
        part(local, elements, elements);
        local += elements;
    }
}

void Parallelism::sum_over_tensor_group(PlanBuilder& builder, const Arg& gradient, DType dtype) {
    builder.collective({.operation = Operation::all_reduce, .dtype = dtype, .group = Group::tensor}, gradient,
                       gradient, gradient.bytes, Stream::compute);
}

Replicated::Replicated(const Job& job, Mesh mesh, const ModuleTree& tree, bool shard_optimizer)
    : Parallelism(job, mesh),
      tree_(tree),
      alone_(job.parallel.mode == ParallelMode::none),
      parameter_args_(tree.parameters.size()),
      gradient_args_(tree.parameters.size()),
      has_gradient_(tree.parameters.size(), false),
      uses_left_(tree.parameters.size(), 0),
      sums_(tree.parameters.size()) {
    for (const Parameter* parameter : tree.parameters) {
        if (parameter->trained) trained_.push_back(parameter);
    }
    if (shard_optimizer) {
        one_slot();
    } else {
        for (const Parameter* p : tree.parameters) add_whole(*p);
    }
}

// A slot of one whole parameter, with buffers of its own.
void Replicated::add_whole(const Parameter& p) {
    const int owner = tree_.owners[static_cast<std::size_t>(p.id)];
    OptimizerSlot slot;
    slot.name = p.path;
    slot.elements = p.elements();
    slot.segments = {{p.id, 0, p.elements(), p.trained, !p.is_vector(), p.cut.cut != Cut::none}};
    slot.module = owner;
    slot.partial_gradient = p.partial_gradient && p.trained && alone_;
    slot.parameter =
        declare_whole({p.path, MemoryCategory::parameters, MemorySpace::device, bytes_of(p), -1, owner});
    parameter_arg(p) = slot.parameter;
    if (p.trained) {
        slot.gradient = declare_whole(
            {p.path + ".grad", MemoryCategory::gradients, MemorySpace::device, bytes_of(p), -1, owner});
        gradient_arg(p) = slot.gradient;
    }
    optimizer_.add_slot(persistent_, std::move(slot));
}

void Replicated::one_slot() {
    OptimizerSlot slot;
    slot.name = "flat";
    slot.module = 0;
    std::int64_t total = 0;
    for (const Parameter* p : trained_) {
        slot.segments.push_back(
            {p->id, total, p->elements(), true, !p->is_vector(), p->cut.cut != Cut::none});
        total += p->elements();
    }
    slot.elements = slot.per_rank = (total + mesh_.shard - 1) / mesh_.shard;
    const std::int64_t part = slot.per_rank * kFloat;
    flat_parameters_ = declare(
        {"flat parameters", MemoryCategory::parameters, MemorySpace::device, part * mesh_.shard, -1, 0});
    flat_gradients_ = declare(
        {"flat gradients", MemoryCategory::gradients, MemorySpace::device, part * mesh_.shard, -1, 0});
    for (const Segment& segment : slot.segments) {
        const auto p = static_cast<std::size_t>(segment.parameter);
        parameter_args_[p] = {flat_parameters_, segment.first * kFloat, segment.elements * kFloat};
        gradient_args_[p] = {flat_gradients_, segment.first * kFloat, segment.elements * kFloat};
    }
    slot.parameter = {flat_parameters_, 0, part, part};
    slot.gradient = {flat_gradients_, 0, part, part};
    optimizer_.add_slot(persistent_, std::move(slot));
    for (const Parameter* p : tree_.parameters) {
        if (!p->trained) add_whole(*p);  // frozen ones get buffers of their own
    }
}

void Replicated::setup(PlanBuilder& builder) {
    if (flat_parameters_ >= 0) {
        const PlanBuilder::Scope scope(builder, Phase::setup, 0, -1);
        builder.allocate(flat_parameters_, Stream::compute);
        builder.memset(builder.whole(flat_parameters_));  // padding stays zero
    }
    for (const Parameter* p : tree_.parameters) {
        const PlanBuilder::Scope scope(builder, Phase::setup, tree_.owners[static_cast<std::size_t>(p->id)],
                                       unit_of(*p));
        if (parameter_arg(*p).buffer != flat_parameters_)
            builder.allocate(parameter_arg(*p).buffer, Stream::compute);
        initialize(builder, *p, parameter_arg(*p), 0, 0);
    }
}

void Replicated::begin_step(PlanBuilder& builder) {
    Parallelism::begin_step(builder);
    has_gradient_.assign(has_gradient_.size(), false);
    flat_gradients_live_ = false;
}

void Replicated::begin_micro_batch(MicroBatch micro) {
    Parallelism::begin_micro_batch(micro);
    for (const Parameter* p : tree_.parameters) {
        uses_left_[static_cast<std::size_t>(p->id)] = p->users;
    }
}

Arg Replicated::parameter(const Parameter& parameter) {
    return parameter_arg(parameter);
}

// The first gradient of a step is written where the optimizer will read it; later ones are added to it.
Tensor Replicated::new_gradient(const Parameter& parameter) {
    if (has_gradient(parameter)) {
        return builder().new_tensor(parameter.path + ".grad (new)", MemoryCategory::gradients,
                                    parameter.elements());
    }
    const Arg& gradient = gradient_arg(parameter);
    if (gradient.buffer != flat_gradients_) {
        builder().allocate(gradient.buffer, Stream::compute);
    } else if (!flat_gradients_live_) {
        flat_gradients_live_ = true;
        builder().allocate(flat_gradients_, Stream::compute);
        const OptimizerSlot& slot = optimizer_.slot(0);
        const std::int64_t used = slot.segments.back().first + slot.segments.back().elements;
        const std::int64_t padding = slot.per_rank * mesh_.shard - used;
        if (padding > 0) builder().memset({flat_gradients_, used * kFloat, padding * kFloat});
    }
    return {nullptr, gradient, -1, DType::fp32};
}

// Gradients of several uses in one backward are summed first, then added to those of earlier micro-batches,
// as autograd does.
void Replicated::gradient_ready(const Parameter& parameter, Tensor gradient) {
    const auto id = static_cast<std::size_t>(parameter.id);
    const std::int64_t n = parameter.elements();
    const bool last = --uses_left_[id] == 0;
    const auto add = [&](const Arg& to, const Arg& from) {
        builder().kernel(Kernel::accumulate, "elementwise_add", {to, from}, {n}, n);
    };
    if (!has_gradient_[id]) {
        has_gradient_[id] = true;
    } else if (micro_.first()) {
        add(gradient_arg(parameter), gradient);
    } else {
        if (sums_[id]) add(sums_[id], gradient);
        Tensor sum = sums_[id] ? std::exchange(sums_[id], {}) : std::move(gradient);
        if (last) {
            add(gradient_arg(parameter), sum);
        } else {
            sums_[id] = std::move(sum);
        }
    }
    gradient = {};
    if (last) gradient_complete(parameter);
}

void Replicated::end_backward() {
    const int divisor = final_divisor();
    if (!micro_.last() || divisor == 1) return;
    for (const OptimizerSlot& slot : optimizer_.slots()) {
        if (!slot.trained()) continue;
        builder()
            .kernel(Kernel::scale, "aten::div_", {slot.gradient}, {slot.elements}, slot.elements)
            .kernel()
            .scalars = {1.0 / divisor};
    }
}

void Replicated::after_optimizer() {
    if (flat_parameters_ < 0 || mesh_.shard == 1) return;
    const PlanBuilder::Scope scope(builder(), Phase::optimizer, 0, -1);
    const PlanBuilder::Range range(builder(), "ZeroRedundancyOptimizer._sync_params");
    const OptimizerSlot& slot = optimizer_.slot(0);
    const std::int64_t used = slot.segments.back().first + slot.segments.back().elements;
    const Arg whole = builder().whole(flat_parameters_);
    builder().order(Stream::compute, Stream::unshard);
    builder().collective(
        {.operation = Operation::all_gather, .group = Group::shard, .padding = whole.bytes - used * kFloat},
        whole, slot.parameter, whole.bytes, Stream::unshard);
    builder().order(Stream::unshard, Stream::compute);
}

}  // namespace shardscope::trainer
