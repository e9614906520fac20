#include "trainer/sharding/optimizer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "traces/schema/enums.h"
#include "trainer/kernels/cost.h"
#include "trainer/sharding/values.h"

namespace shardscope::trainer::sharding {

namespace {

std::size_t count_trained(const OptimizerSlot& slot) {
    return static_cast<std::size_t>(
        std::count_if(slot.segments.begin(), slot.segments.end(),
                      [](const plan::Segment& segment) { return segment.trained; }));
}

plan::Stream stream_of(const OptimizerSlot& slot) {
    return slot.space == plan::MemorySpace::device ? plan::Stream::compute : plan::Stream::host;
}

plan::Arg part_of(const plan::Tensor& tensor, std::size_t first, std::size_t count) {
    return {tensor.view.buffer, static_cast<std::int64_t>(first) * kDouble,
            static_cast<std::int64_t>(count) * kDouble};
}

// One or more numbers per slot, in memory where the slots can write them.
plan::Tensor new_sums(plan::PlanBuilder& builder, const char* name, std::size_t count, bool on_host) {
    return builder.new_tensor(name, plan::MemoryCategory::other, static_cast<std::int64_t>(count),
                              plan::DType::fp64, on_host ? plan::Stream::host : plan::Stream::compute,
                              on_host ? plan::MemorySpace::pinned : plan::MemorySpace::device);
}

void copy_to_host(plan::PlanBuilder& builder, const plan::Arg& to, const plan::Arg& from) {
    builder.memcpy(to, from, traces::schema::kCopyDeviceToHost);
    const plan::EventId copied = builder.new_event();
    builder.record(copied, plan::Stream::compute);
    builder.host_wait(copied);
}

// Which of the sums belong to parameters of which the ranks of a tensor group, or of an expert group, have
// different elements: the first ones, and the last ones.
struct SumsOfParts {
    std::size_t cut = 0, experts = 0;
};

// Sums what the ranks of a shard group have computed for their parts; without shards, what those of an expert
// group have computed for their experts; those of cut parameters over the tensor group, whose ranks have
// computed the others alike; then all over the stages, if wanted. A shard group has whole expert groups.
void reduce_sums(plan::PlanBuilder& builder, const plan::Tensor& sums, std::size_t count,
                 const SumsOfParts& of, bool on_host, const plan::Mesh& mesh, bool all_stages) {
    const bool over_experts = mesh.shard == 1 && of.experts > 0;
    if (mesh.shard == 1 && of.cut == 0 && !over_experts && !all_stages) return;
    plan::Tensor device = sums;
    if (on_host) {
        device = new_sums(builder, "sums on the device", static_cast<std::size_t>(sums.elements()), false);
        builder.memcpy(device, sums, traces::schema::kCopyHostToDevice);
    }
    builder.order(plan::Stream::compute, plan::Stream::post_backward);
    const auto over = [&](plan::Group group, const plan::Arg& part) {
        builder.collective(
            {.operation = plan::Operation::all_reduce, .dtype = plan::DType::fp64, .group = group}, part,
            part, part.bytes, plan::Stream::post_backward);
    };
    if (mesh.shard > 1) over(plan::Group::shard, device);
    if (over_experts) over(plan::Group::expert, part_of(device, count - of.experts, of.experts));
    if (of.cut > 0) over(plan::Group::tensor, part_of(device, 0, of.cut));
    if (all_stages) over(plan::Group::pipeline, device);
    builder.order(plan::Stream::post_backward, plan::Stream::compute);
    if (on_host) copy_to_host(builder, sums, device);
}

}  // namespace

bool OptimizerSlot::of_experts() const {
    return along == plan::Group::expert_shard;
}

bool OptimizerSlot::trained() const {
    return std::any_of(segments.begin(), segments.end(), [](const plan::Segment& s) { return s.trained; });
}

bool OptimizerSlot::holds(int id) const {
    return std::any_of(segments.begin(), segments.end(),
                       [&](const plan::Segment& s) { return s.parameter == id; });
}

void OptimizerPlanner::set_copy(int parameter) {
    for (OptimizerSlot& slot : slots_) slot.is_copy = slot.is_copy || slot.holds(parameter);
}

std::string OptimizerPlanner::class_name() const {
    switch (type_) {
        case job::OptimizerType::sgd:
            return "SGD";
        case job::OptimizerType::adam:
            return "Adam";
        case job::OptimizerType::adamw:
            return "AdamW";
        case job::OptimizerType::lars:
            return "LARS";
        case job::OptimizerType::lamb:
            return "LAMB";
        case job::OptimizerType::onebit_adam:
            return "OnebitAdam";
        case job::OptimizerType::onebit_lamb:
            return "OnebitLamb";
        case job::OptimizerType::novograd:
            break;
    }
    return "NovoGrad";
}

std::string_view OptimizerPlanner::number_name() const {
    if (options_.type == job::OptimizerType::novograd) return "exp_avg_sq";
    return type_ == job::OptimizerType::onebit_lamb ? "lamb_coefficient" : "";
}

std::vector<std::string_view> OptimizerPlanner::state_names() const {
    std::vector<std::string_view> names = own_state_names();
    if (has_outer_momentum_) names.emplace_back("outer_momentum");
    return names;
}

std::vector<std::string_view> OptimizerPlanner::own_state_names() const {
    if (options_.type == job::OptimizerType::sgd && options_.momentum == 0) return {};
    if (options_.type == job::OptimizerType::sgd || options_.type == job::OptimizerType::lars)
        return {"momentum_buffer"};
    if (options_.type == job::OptimizerType::novograd) return {"exp_avg"};
    if (type_ == job::OptimizerType::onebit_lamb) return {"exp_avg", "exp_avg_sq", "exp_avg_sq_fresh"};
    return {"exp_avg", "exp_avg_sq"};
}

std::size_t OptimizerPlanner::add_slot(std::vector<plan::Buffer>& persistent, OptimizerSlot slot) {
    const bool on_device = slot.space == plan::MemorySpace::device;
    if (slot.trained() && files_) {
        files_->add_slot(persistent, slot, state_names().size());
    } else if (slot.trained()) {
        const auto declare = [&](std::string_view state, std::int64_t elements) {
            persistent.push_back({slot.name + "." + std::string(state), plan::MemoryCategory::optimizer_state,
                                  on_device ? plan::MemorySpace::device : plan::MemorySpace::host,
                                  elements * kFloat, slot.unit, slot.module});
            return static_cast<plan::BufferId>(persistent.size() - 1);
        };
        for (const std::string_view state : state_names())
            slot.state.push_back({declare(state, slot.elements), 0, slot.elements * kFloat});
        if (!number_name().empty()) slot.moments = declare(number_name(), std::ssize(slot.segments));
        if (is_onebit(type_)) onebit_.emplace(type_, options_, micro_batches_, mesh_, persistent, slot);
    }
    slots_.push_back(std::move(slot));
    return slots_.size() - 1;
}

void OptimizerPlanner::allocate_state(plan::PlanBuilder& builder) {
    for (const OptimizerSlot& slot : slots_) {
        const plan::PlanBuilder::Scope scope(builder, builder.phase(), slot.module, slot.unit);
        std::vector<plan::Arg> states = slot.state;
        if (slot.moments >= 0) states.push_back(builder.whole(slot.moments));
        for (const plan::Arg& state : states) {
            if (files_ && state.offset > 0) continue;  // slots share a file, which begins as zeros
            builder.allocate(state.buffer, stream_of(slot));
            if (!files_) builder.memset(state, stream_of(slot));
        }
    }
    has_state_ = true;
}

void OptimizerPlanner::need_state(plan::PlanBuilder& builder) {
    if (has_state_) return;
    const plan::PlanBuilder::Scope scope(builder, plan::Phase::optimizer, -1, -1);
    allocate_state(builder);
}

void OptimizerPlanner::zero_grad(plan::PlanBuilder& builder) {
    const plan::PlanBuilder::Range range(builder, "Optimizer.zero_grad#" + class_name() + ".zero_grad");
    if (!has_gradients_ || keep_gradients_) return;
    plan::BufferId freed = -1;  // slots of one unit may share a buffer
    for (const OptimizerSlot& slot : slots_) {
        if (!slot.trained() || slot.gradient.buffer == freed) continue;
        freed = slot.gradient.buffer;
        builder.free(freed);
    }
    has_gradients_ = false;
}

// The stages of a pipeline add up theirs, of which only the sum is wanted: all have as many numbers, zeros
// after the last.
plan::Tensor OptimizerPlanner::new_squares(plan::PlanBuilder& builder, std::size_t count,
                                           bool on_host) const {
    const bool stages = mesh_.pipeline > 1;
    plan::Tensor sums = new_sums(builder, "squares of gradients", stages ? parameters_ : count, on_host);
    if (stages) builder.memset(sums, on_host ? plan::Stream::host : plan::Stream::compute);
    return sums;
}

plan::Tensor OptimizerPlanner::squares_by_slot(plan::PlanBuilder& builder,
                                               const std::vector<const OptimizerSlot*>& slots,
                                               bool on_host) const {
    plan::Tensor sums = new_squares(builder, slots.size(), on_host);
    for (std::size_t i = 0; i < slots.size(); ++i) {
        const OptimizerSlot& slot = *slots[i];
        const plan::PlanBuilder::Scope of_slot(builder, plan::Phase::optimizer, slot.module, slot.unit);
        builder.kernel(plan::Kernel::sum_of_squares, "aten::_foreach_norm",
                       {part_of(sums, i, 1), slot.gradient}, {slot.elements}, 2 * slot.elements,
                       stream_of(slot));
    }
    const auto of_experts = static_cast<std::size_t>(std::count_if(
        slots.begin(), slots.end(), [](const OptimizerSlot* slot) { return slot->of_experts(); }));
    reduce_sums(builder, sums, slots.size(), {0, of_experts}, on_host, mesh_, mesh_.pipeline > 1);
    return sums;
}

// The squares of parameters that a tensor group cuts are summed over it; those of the others count once. The
// cut ones come first, those of experts last.
plan::Tensor OptimizerPlanner::squares_by_segment(plan::PlanBuilder& builder,
                                                  const std::vector<const OptimizerSlot*>& slots,
                                                  bool on_host) const {
    struct Part {
        const OptimizerSlot* slot;
        std::vector<plan::Segment> segments;
    };
    std::vector<Part> parts;
    std::size_t counts[2] = {0, 0};
    for (const bool cut : {true, false}) {
        for (const OptimizerSlot* slot : slots) {
            Part part{slot, {}};
            for (const plan::Segment& segment : slot->segments)
                if (segment.trained && segment.cut == cut) part.segments.push_back(segment);
            counts[cut ? 0 : 1] += part.segments.size();
            if (!part.segments.empty()) parts.push_back(std::move(part));
        }
    }
    plan::Tensor sums = new_squares(builder, counts[0] + counts[1], on_host);
    std::size_t first = 0;
    for (Part& part : parts) {
        const OptimizerSlot& slot = *part.slot;
        const plan::PlanBuilder::Scope of_slot(builder, plan::Phase::optimizer, slot.module, slot.unit);
        const plan::Arg out = part_of(sums, first, part.segments.size());
        first += part.segments.size();
        plan::Op& op =
            builder.kernel(plan::Kernel::segment_squares, "aten::_foreach_norm", {out, slot.gradient},
                           {slot.elements, slot.per_rank}, 2 * slot.elements, stream_of(slot));
        op.kernel().along = slot.along;
        op.kernel().segments = builder.add_segments(std::move(part.segments));
    }
    std::size_t of_experts = 0;
    for (const OptimizerSlot* slot : slots)
        if (slot->of_experts()) of_experts += count_trained(*slot);
    reduce_sums(builder, sums, counts[0] + counts[1], {counts[0], of_experts}, on_host, mesh_,
                mesh_.pipeline > 1);
    return sums;
}

bool OptimizerPlanner::on_host() const {
    return std::any_of(slots_.begin(), slots_.end(), [](const OptimizerSlot& slot) {
        return slot.trained() && slot.space != plan::MemorySpace::device;
    });
}

// GradScaler.unscale_, with ShardedGradScaler's reduction: the ranks hold different gradients.
plan::Tensor OptimizerPlanner::unscale(plan::PlanBuilder& builder) {
    const plan::PlanBuilder::Scope scope(builder, plan::Phase::optimizer, -1, -1);
    const plan::PlanBuilder::Range range(builder, "GradScaler.unscale_");
    const auto new_found = [&](bool host) {
        return builder.new_tensor("found inf", plan::MemoryCategory::other, 1, plan::DType::fp32,
                                  host ? plan::Stream::host : plan::Stream::compute,
                                  host ? plan::MemorySpace::pinned : plan::MemorySpace::device);
    };
    const bool host = on_host();
    plan::Tensor found = new_found(host);
    builder.memset(found, host ? plan::Stream::host : plan::Stream::compute);
    for (const OptimizerSlot& slot : slots_) {
        if (!slot.trained()) continue;
        const plan::PlanBuilder::Scope of_slot(builder, plan::Phase::optimizer, slot.module, slot.unit);
        builder.kernel(plan::Kernel::unscale, "aten::_amp_foreach_non_finite_check_and_unscale_",
                       {slot.gradient, found}, {slot.elements}, 2 * slot.elements, stream_of(slot));
    }
    if (mesh_.size(plan::Group::world) == 1) return found;
    if (host) {
        const plan::Tensor from = found;
        found = new_found(false);
        builder.memcpy(found, from, traces::schema::kCopyHostToDevice);
    }
    builder.order(plan::Stream::compute, plan::Stream::post_backward);
    builder.collective({.operation = plan::Operation::all_reduce,
                        .group = plan::Group::world,
                        .reduction = plan::Reduction::max},
                       found, found, found.bytes(), plan::Stream::post_backward);
    builder.order(plan::Stream::post_backward, plan::Stream::compute);
    return found;
}

// GradScaler.step, which reads it before it calls the optimizer's.
void OptimizerPlanner::read_overflow(plan::PlanBuilder& builder, const plan::Tensor& found) const {
    const plan::PlanBuilder::Scope scope(builder, plan::Phase::optimizer, -1, -1);
    const plan::PlanBuilder::Range range(builder, "GradScaler.step");
    plan::Tensor read = found;
    if (!on_host() || mesh_.size(plan::Group::world) > 1) {
        read = builder.new_tensor("found inf (host)", plan::MemoryCategory::other, 1, plan::DType::fp32,
                                  plan::Stream::host, plan::MemorySpace::pinned);
        copy_to_host(builder, read, found);
    }
    builder.host_call(plan::HostCall::read_overflow, "read_overflow", {read});
}

// torch.nn.utils.clip_grad_norm_ over all shards: one norm of all gradients, then one factor for them.
void OptimizerPlanner::clip(plan::PlanBuilder& builder) {
    if (!norm_wanted_) return;
    const bool clips = clip_norm_ > 0;
    const plan::PlanBuilder::Scope scope(builder, plan::Phase::optimizer, -1, -1);
    const plan::PlanBuilder::Range range(builder, clips ? "clip_grad_norm_" : "get_total_norm");
    std::vector<const OptimizerSlot*> trained, counted;
    const bool on_host = this->on_host();
    for (const OptimizerSlot& slot : slots_) {
        if (!slot.trained()) continue;
        trained.push_back(&slot);
        if (!slot.is_copy) counted.push_back(&slot);
    }
    std::stable_partition(counted.begin(), counted.end(),
                          [](const OptimizerSlot* slot) { return !slot->of_experts(); });
    const plan::Tensor sums = mesh_.tensor > 1 ? squares_by_segment(builder, counted, on_host)
                                               : squares_by_slot(builder, counted, on_host);
    const plan::Stream stream = on_host ? plan::Stream::host : plan::Stream::compute;
    const plan::MemorySpace space = on_host ? plan::MemorySpace::pinned : plan::MemorySpace::device;
    const plan::Tensor factor =
        builder.new_tensor("clip factor", plan::MemoryCategory::other, 1, plan::DType::fp32, stream, space);
    norm_ =
        builder.new_tensor("gradient norm", plan::MemoryCategory::other, 1, plan::DType::fp64, stream, space);
    norm_on_host_ = on_host;
    const std::int64_t count = sums.elements();
    builder.kernel(plan::Kernel::clip_factor, "clip_factor", {factor, norm_, sums}, {count}, count, stream)
        .kernel()
        .scalars = {clips ? clip_norm_ : std::numeric_limits<double>::infinity()};
    if (!clips) return;
    for (const OptimizerSlot* slot : trained) {
        const plan::PlanBuilder::Scope of_slot(builder, plan::Phase::optimizer, slot->module, slot->unit);
        builder.kernel(plan::Kernel::scale_by, "aten::_foreach_mul_", {slot->gradient, factor},
                       {slot->elements}, slot->elements, stream_of(*slot));
    }
}

void OptimizerPlanner::copy_norm(plan::PlanBuilder& builder, const plan::Arg& to) {
    if (!norm_) return;
    const plan::Stream stream = norm_on_host_ ? plan::Stream::host : plan::Stream::compute;
    builder.memcpy(to, norm_,
                   norm_on_host_ ? traces::schema::kCopyHostToHost : traces::schema::kCopyDeviceToHost,
                   stream);
    norm_ = {};
}

void OptimizerPlanner::step(plan::PlanBuilder& builder) {
    while (!arrivals_.empty()) take_arrival(builder);
    for (const OptimizerSlot& slot : slots_) {
        if (!slot.partial_gradient || !slot.trained()) continue;
        const plan::PlanBuilder::Scope scope(builder, plan::Phase::optimizer, slot.module, slot.unit);
        builder.collective({.operation = plan::Operation::all_reduce, .group = plan::Group::tensor},
                           slot.gradient, slot.gradient, slot.gradient.bytes, plan::Stream::compute);
    }
    if (exchanges_momentum()) {
        const plan::PlanBuilder::Range range(builder, "Optimizer.step#" + class_name() + ".step");
        onebit_->step(builder, slots_.front(), first_step_ + step_);
        has_gradients_ = true;
        return;
    }
    plan::Tensor found;
    if (scales_loss_) found = unscale(builder);
    clip(builder);
    if (found) read_overflow(builder, std::exchange(found, {}));
    const plan::PlanBuilder::Range range(builder, "Optimizer.step#" + class_name() + ".step");
    need_state(builder);
    const std::vector<SlotPart> parts = parts_of_slots();
    // LARS, LAMB and NovoGrad first compute norms of all parameters, over the shards of all ranks; those of
    // parameters that a tensor group cuts, over it.
    plan::Tensor norms;
    if (job::needs_norms(options_.type)) {
        std::size_t count = 0, cut = 0;
        bool on_host = false;
        for (const SlotPart& part : parts) {
            count += 2 * part.segments.size();
            if (mesh_.tensor > 1 && part.segments.front().cut) cut = count;
            on_host = on_host || part.slot->space != plan::MemorySpace::device;
        }
        const plan::PlanBuilder::Scope scope(builder, plan::Phase::optimizer, -1, -1);
        norms = new_sums(builder, "norms of parameters", count, on_host);
        for (const SlotPart& part : parts) compute_norms(builder, part, norms);
        reduce_sums(builder, norms, count, {.cut = cut}, on_host, mesh_, false);
    }
    const auto is_updated = [&](const OptimizerSlot& slot) {
        return updated_.contains(static_cast<std::size_t>(&slot - slots_.data()));
    };
    if (files_) {
        std::vector<std::size_t> left;
        for (std::size_t s = 0; s < slots_.size(); ++s)
            if (slots_[s].trained() && !updated_.contains(s)) left.push_back(s);
        update_slots(builder, left, {});
    }
    for (const SlotPart& part : parts) {
        if (!part.slot->trained() || is_updated(*part.slot)) continue;
        update(builder, part, norms);
        if (type_ == job::OptimizerType::onebit_lamb) average_ratios(builder, part, norms);
    }
    bool copied = false;
    for (const OptimizerSlot& slot : slots_) {
        if (!slot.trained() || slot.on_device.buffer < 0) continue;
        if (!is_updated(slot)) copy_to_device(builder, slot);
        copied = true;
    }
    if (copied) builder.order(plan::Stream::pre_unshard, plan::Stream::compute);
    updated_.clear();
    has_gradients_ = true;
}

// The slots, or, if norms are to be summed over a tensor group, first the cut segments of each and then the
// others.
std::vector<OptimizerPlanner::SlotPart> OptimizerPlanner::parts_of_slots() const {
    const bool cut_apart = job::needs_norms(options_.type) && mesh_.tensor > 1;
    std::vector<SlotPart> parts;
    std::size_t first = 0;
    const auto add = [&](const OptimizerSlot& slot, std::vector<plan::Segment> segments) {
        if (segments.empty()) return;
        const bool is_second = std::ssize(segments) < std::ssize(slot.segments) && !segments.front().cut;
        const std::size_t before = is_second ? slot.segments.size() - segments.size() : 0;
        parts.push_back({&slot, std::move(segments), first, before});
        first += 2 * parts.back().segments.size();
    };
    for (const bool cut : cut_apart ? std::vector<bool>{true, false} : std::vector<bool>{false}) {
        for (const OptimizerSlot& slot : slots_) {
            std::vector<plan::Segment> own;
            for (const plan::Segment& segment : slot.segments)
                if (!cut_apart || segment.cut == cut) own.push_back(segment);
            add(slot, std::move(own));
        }
    }
    return parts;
}

plan::Arg OptimizerPlanner::moments_of(const SlotPart& part) const {
    return {part.slot->moments, static_cast<std::int64_t>(part.first_moment) * kFloat,
            std::ssize(part.segments) * kFloat};
}

// What LARS, NovoGrad and LAMB compute before they update: the norms of parameter and gradient, or of the
// update.
void OptimizerPlanner::compute_norms(plan::PlanBuilder& builder, const SlotPart& part,
                                     const plan::Tensor& norms) {
    const OptimizerSlot& slot = *part.slot;
    const plan::PlanBuilder::Scope scope(builder, plan::Phase::optimizer, slot.module, slot.unit);
    const plan::Stream stream = stream_of(slot);
    const plan::Arg out = part_of(norms, part.first_norm, 2 * part.segments.size());
    if (!slot.trained()) {
        builder.memset(out, stream);
        return;
    }
    if (options_.type != job::OptimizerType::lamb) {
        const bool lars = options_.type == job::OptimizerType::lars;
        plan::Op& op = builder.kernel(plan::Kernel::lars_norms, lars ? "lars_norms" : "novograd_norms",
                                      {out, slot.parameter, slot.gradient}, {slot.elements, slot.per_rank},
                                      4 * slot.elements, stream);
        op.kernel().segments = builder.add_segments(part.segments);
        return;
    }
    const std::vector<plan::Arg> args = {out, slot.gradient, slot.parameter, slot.state[0], slot.state[1]};
    plan::Op& op =
        builder.kernel(plan::Kernel::lamb_update, "lamb_update", args, {slot.elements, slot.per_rank},
                       kernels::adamw_cost(slot.elements).flops, stream);
    op.kernel().segments = builder.add_segments(part.segments);
    op.kernel().scalars = {options_.betas[0], options_.betas[1], options_.eps, options_.weight_decay};
}

// Of LAMB's steps before 1-bit LAMB freezes the variance.
void OptimizerPlanner::average_ratios(plan::PlanBuilder& builder, const SlotPart& part,
                                      const plan::Tensor& norms) const {
    const OptimizerSlot& slot = *part.slot;
    const plan::PlanBuilder::Scope scope(builder, plan::Phase::optimizer, slot.module, slot.unit);
    builder.kernel(plan::Kernel::onebit_lamb_averages, "onebit_lamb_averages",
                   {moments_of(part), part_of(norms, part.first_norm, 2 * part.segments.size())},
                   {std::ssize(part.segments)}, 3 * std::ssize(part.segments));
}

void OptimizerPlanner::update(plan::PlanBuilder& builder, const SlotPart& part, const plan::Tensor& norms) {
    const OptimizerSlot& slot = *part.slot;
    const plan::PlanBuilder::Scope scope(builder, plan::Phase::optimizer, slot.module, slot.unit);
    std::vector<plan::Arg> args = {slot.parameter, slot.gradient};
    plan::Kernel kernel = plan::Kernel::sgd;
    const char* name = "sgd_step";
    std::array<double, 5> scalars{};
    const std::int64_t n = slot.elements;
    std::int64_t flops = kernels::adamw_cost(n).flops;
    const auto norms_of = [&](const SlotPart& of) {
        return part_of(norms, of.first_norm, 2 * of.segments.size());
    };
    switch (options_.type) {
        case job::OptimizerType::sgd:
            flops = kernels::sgd_cost(n, options_.momentum != 0).flops;
            scalars = {options_.momentum, options_.weight_decay, options_.nesterov ? 1.0 : 0.0};
            break;
        case job::OptimizerType::adam:
        case job::OptimizerType::adamw:
            kernel = options_.type == job::OptimizerType::adam ? plan::Kernel::adam : plan::Kernel::adamw;
            name = options_.type == job::OptimizerType::adam ? "adam_step" : "adamw_step";
            scalars = {options_.betas[0], options_.betas[1], options_.eps, options_.weight_decay};
            break;
        case job::OptimizerType::lars:
            kernel = plan::Kernel::lars;
            name = "lars_step";
            flops = kernels::sgd_cost(n, options_.momentum != 0).flops + n;
            scalars = {options_.momentum, options_.weight_decay, options_.trust_coefficient,
                       options_.nesterov ? 1.0 : 0.0};
            break;
        case job::OptimizerType::lamb:
            kernel = plan::Kernel::lamb;
            name = "lamb_step";
            flops = 2 * n;
            break;
        case job::OptimizerType::novograd:
            builder
                .kernel(plan::Kernel::novograd_moments, "novograd_moments",
                        {moments_of(part), norms_of(part)}, {std::ssize(part.segments)},
                        3 * std::ssize(part.segments), stream_of(slot))
                .kernel()
                .scalars = {options_.betas[1]};
            kernel = plan::Kernel::novograd;
            name = "novograd_step";
            flops = 6 * n;
            scalars = {options_.betas[0], options_.eps, options_.weight_decay};
            break;
        case job::OptimizerType::onebit_adam:
        case job::OptimizerType::onebit_lamb:
            break;  // the type is that of the warm-up
    }
    if (kernel != plan::Kernel::lamb) {
        const std::size_t own = slot.state.size() - (has_outer_momentum_ ? 1 : 0);
        for (std::size_t i = 0; i < own; ++i) args.push_back(slot.state[i]);
    }
    if (kernel == plan::Kernel::novograd) {
        args.push_back(moments_of(part));
    } else if (norms) {
        args.push_back(norms_of(part));
    }
    plan::Op& op = builder.kernel(kernel, name, std::move(args), {n, slot.per_rank}, flops, stream_of(slot));
    op.kernel().along = slot.along;
    op.kernel().scalars = scalars;
    op.kernel().segments = builder.add_segments(part.segments);
}

std::vector<StatePiece> OptimizerPlanner::pieces(int rank) const {
    std::vector<StatePiece> out;
    const std::vector<std::string_view> names = state_names();
    for (const OptimizerSlot& slot : slots_) {
        if (served_ && slot.trained()) continue;
        const std::int64_t begin = slot.per_rank > 0 ? mesh_.place(slot.along, rank) * slot.per_rank : 0;
        const std::int64_t end = begin + slot.elements;
        for (const plan::Segment& segment : slot.segments) {
            // The part of the segment that lies in [first, last) of the sequence; `whole` begins at `first`.
            const auto piece = [&](std::string_view state, const plan::Arg& whole, std::int64_t first,
                                   std::int64_t last) {
                const std::int64_t from = std::max(first, segment.first);
                const std::int64_t to = std::min(last, segment.first + segment.elements);
                if (from >= to) return;
                const plan::Arg where{whole.buffer, whole.offset + (from - first) * kFloat,
                                      (to - from) * kFloat};
                out.push_back(
                    {segment.parameter, std::string(state), from - segment.first, to - from, where});
            };
            // A strided parameter is a rank's own part of a buffer that the rank holds as a whole.
            if (slot.parameter.stride != 0) {
                piece("", slot.parameter, 0, segment.first + segment.elements);
            } else {
                piece("", slot.parameter, begin, end);
            }
            for (std::size_t i = 0; i < slot.state.size() && segment.trained; ++i) {
                piece(names[i], slot.state[i], begin, end);
            }
        }
    }
    if (number_name().empty()) return out;
    for (const SlotPart& part : parts_of_slots()) {
        plan::Arg where = moments_of(part);
        where.bytes = kFloat;
        for (const plan::Segment& segment : part.segments) {
            if (segment.trained)
                out.push_back({segment.parameter, std::string(number_name()), 0, 1, where, true});
            where.offset += kFloat;
        }
    }
    return out;
}

}  // namespace shardscope::trainer::sharding
