#include "trainer/sharding/fsdp.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace shardscope::trainer {

namespace {

constexpr std::int64_t kFloat = sizeof(float);
constexpr std::size_t kMaxInflightAllGathers = 2;  // PyTorch's limit
constexpr EventId kQueueSlots = 8;

using Wrapped = std::pair<FullyShardedDataParallel*, std::vector<const Parameter*>>;

// Every wrapper with the parameters that are nearest to it, in the order of the tree.
void collect(Module& module, std::size_t current, std::vector<Wrapped>& wrapped) {
    if (auto* wrapper = dynamic_cast<FullyShardedDataParallel*>(&module)) {
        current = wrapped.size();
        wrapped.emplace_back(wrapper, std::vector<const Parameter*>{});
    }
    for (const Parameter& parameter : module.parameters()) wrapped[current].second.push_back(&parameter);
    for (const auto& child : module.children()) collect(*child, current, wrapped);
}

}  // namespace

FullyShardedDataParallel::FullyShardedDataParallel(std::unique_ptr<Module> inner)
    : Module("FullyShardedDataParallel", inner->attribute()) {
    add_child(std::move(inner));
}

Tensor FullyShardedDataParallel::forward(Graph& graph, const Tensor& input) {
    const PlanBuilder::Scope scope(graph.builder, graph.builder.phase(), id, unit);
    const PlanBuilder::Range range(graph.builder, "FullyShardedDataParallel.forward");
    engine->pre_forward(graph, *this);
    Tensor output = call(graph, inner(), input);
    engine->post_forward(graph, *this);
    return output;
}

Fsdp::Fsdp(const ModuleTree& tree, const OptimizerSection& optimizer, const FsdpSection& options, int ranks)
    : Parallelism(optimizer),
      options_(options),
      ranks_(ranks),
      unit_of_(tree.parameters.size(), -1),
      place_of_(tree.parameters.size(), 0),
      offset_of_(tree.parameters.size(), 0) {
    std::vector<Wrapped> wrapped;
    collect(*tree.root, 0, wrapped);
    for (auto& [wrapper, parameters] : wrapped) {
        wrapper->engine = this;
        wrapper->is_root = wrapper == tree.root.get();
        if (parameters.empty()) continue;
        const int id = static_cast<int>(units_.size());
        wrapper->unit = id;
        Unit unit;
        unit.parameters = parameters;
        for (std::size_t place = 0; place < parameters.size(); ++place) {
            const auto p = static_cast<std::size_t>(parameters[place]->id);
            unit_of_[p] = id;
            place_of_[p] = place;
            offset_of_[p] = unit.elements;
            unit.elements += parameters[place]->elements;
        }
        unit.shard = (unit.elements + ranks - 1) / ranks;
        unit.padded = unit.shard * ranks;
        const std::string name = wrapper->path.empty() ? "root" : wrapper->path;
        unit.slot = optimizer_.add_slot(persistent_, name + " flat_param", unit.shard, id, wrapper->id);
        persistent_.push_back({name + " flat_param (unsharded)", MemoryCategory::unsharded_parameters,
                               MemorySpace::device, unit.padded * kFloat, id, wrapper->id});
        unit.full = static_cast<BufferId>(persistent_.size() - 1);
        infos_.push_back({wrapper->id, name, unit.elements, unit.padded, unit.shard});
        units_.push_back(std::move(unit));
    }
}

int Fsdp::unit_of(const Parameter& parameter) const {
    return unit_of_[static_cast<std::size_t>(parameter.id)];
}

EventId Fsdp::lasting_events() const {
    return kQueueSlots;
}

std::string Fsdp::state_key() const {
    return Parallelism::state_key() + fmt::format(" {} queued frees", free_events_.size());
}

void Fsdp::setup(PlanBuilder& builder) {
    optimizer_.allocate_parameters(builder);
    for (std::size_t u = 0; u < units_.size(); ++u) {
        const Unit& unit = units_[u];
        const PlanBuilder::Scope scope(builder, Phase::setup, infos_[u].module, static_cast<int>(u));
        const Arg shard = builder.whole(optimizer_.slot(unit.slot).parameter);
        builder.memset(shard);  // padding stays zero
        for (const Parameter* parameter : unit.parameters) {
            initialize(builder, *parameter, shard, offset_of_[static_cast<std::size_t>(parameter->id)],
                       unit.shard);
        }
    }
}

void Fsdp::begin_step(PlanBuilder& builder) {
    Parallelism::begin_step(builder);
    post_forward_order_.clear();
}

void Fsdp::end_step() {
    for (std::size_t u = 0; u < units_.size(); ++u) {
        if (units_[u].gathered)
            throw std::logic_error("unit " + infos_[u].name + " is still gathered after the step");
    }
    if (free_events_.size() > static_cast<std::size_t>(kQueueSlots)) {
        throw std::logic_error("the all-gather limiter's queue has outgrown its event slots");
    }
    EventId slot = 0;
    for (EventId& event : free_events_) {
        if (event != slot) builder().carry(event, slot);
        event = slot++;
    }
    Parallelism::end_step();
}

// --- parameters and gradients, as kernels see them ---------------------------------------------------------

Arg Fsdp::parameter(const Parameter& parameter) {
    const auto p = static_cast<std::size_t>(parameter.id);
    return {at(unit_of_[p]).full, offset_of_[p] * kFloat, parameter.elements * kFloat};
}

Tensor Fsdp::new_gradient(const Parameter& parameter) {
    return builder().new_tensor(parameter.path + ".grad", MemoryCategory::unsharded_gradients,
                                parameter.elements * kFloat);
}

void Fsdp::gradient_ready(const Parameter& parameter, Tensor gradient) {
    const auto p = static_cast<std::size_t>(parameter.id);
    at(unit_of_[p]).gradients[place_of_[p]] = std::move(gradient);
}

// --- gather and free
// -----------------------------------------------------------------------------------------

void Fsdp::rate_limiter() {
    if (!options_.limit_all_gathers || free_events_.size() < kMaxInflightAllGathers) return;
    const PlanBuilder::Range range(builder(), "FullyShardedDataParallel.rate_limiter");
    builder().host_wait(free_events_.front());
    free_events_.pop_front();
}

void Fsdp::unshard(int id) {
    Unit& unit = at(id);
    if (unit.gathered) return;
    const PlanBuilder::Scope scope(builder(), builder().phase(), module_of(id), id);
    const PlanBuilder::Range range(builder(), "_unshard");
    rate_limiter();
    builder().allocate(unit.full, Stream::unshard);
    const Arg full = builder().whole(unit.full);
    builder().collective(Operation::all_gather, full, builder().whole(optimizer_.slot(unit.slot).parameter),
                         full.bytes, (unit.padded - unit.elements) * kFloat, false, Stream::unshard);
    unit.ready = builder().new_event();
    builder().record(unit.ready, Stream::unshard);
    unit.gathered = true;
}

void Fsdp::wait_unsharded(int id) {
    builder().wait(at(id).ready, Stream::compute);
}

void Fsdp::reshard(int id) {
    Unit& unit = at(id);
    builder().free(unit.full);
    unit.gathered = false;
    if (!options_.limit_all_gathers) return;
    const EventId freed = builder().new_event();
    builder().record(freed, Stream::compute);
    free_events_.push_back(freed);
}

// --- hooks
// ---------------------------------------------------------------------------------------------------

void Fsdp::pre_forward(Graph& graph, FullyShardedDataParallel& wrapper) {
    const PlanBuilder::Range range(builder(), "FullyShardedDataParallel._pre_forward");
    if (wrapper.is_root)
        builder().order(Stream::compute, Stream::unshard);  // the optimizer has written the shards
    if (wrapper.unit < 0) return;
    const int id = wrapper.unit;
    {
        const PlanBuilder::Range inner(builder(), "_pre_forward_unshard");
        unshard(id);
        wait_unsharded(id);
    }
    at(id).gradients.assign(at(id).parameters.size(), {});
    // The flat parameter is split into views here; the backward of that concatenates their gradients, once
    // all of them are there, and then the post-backward hook runs.
    auto flat = std::make_shared<Tensor>();
    graph.tape.node("", [this, id, flat] {
        const PlanBuilder::Range hook(builder(), "FullyShardedDataParallel._post_backward_hook",
                                      module_of(id));
        post_backward(id, *flat);
        *flat = {};
    });
    graph.tape.node("SplitWithSizesBackward0", [this, id, flat] { *flat = concatenate_gradients(id); });
}

void Fsdp::post_forward(Graph& graph, FullyShardedDataParallel& wrapper) {
    const PlanBuilder::Range range(builder(), "FullyShardedDataParallel._post_forward");
    if (wrapper.unit < 0) return;
    const int id = wrapper.unit;
    if (!wrapper.is_root) reshard(id);  // the backward starts with the root, so it stays
    post_forward_order_.push_back(id);
    at(id).awaits_backward = true;
    graph.tape.node("", [this, id] {
        const PlanBuilder::Range hook(builder(), "FullyShardedDataParallel._pre_backward_hook",
                                      module_of(id));
        pre_backward(id);
    });
}

void Fsdp::pre_backward(int id) {
    at(id).awaits_backward = false;
    unshard(id);
    wait_unsharded(id);
    if (options_.backward_prefetch == BackwardPrefetch::pre) {
        const PlanBuilder::Range range(builder(), "FullyShardedDataParallel._pre_backward_prefetch");
        prefetch(id);
    }
}

// Unshards the unit whose forward ended just before this one's, the next that the backward will want; not if
// its backward has been (after the root's, which ends last, there is nothing to want).
void Fsdp::prefetch(int id) {
    const auto place = std::find(post_forward_order_.begin(), post_forward_order_.end(), id);
    if (place == post_forward_order_.begin()) return;
    const int target = *std::prev(place);
    if (at(target).awaits_backward) unshard(target);
}

Tensor Fsdp::concatenate_gradients(int id) {
    Unit& unit = at(id);
    Tensor flat =
        builder().new_tensor(infos_[static_cast<std::size_t>(id)].name + " flat_param.grad (unsharded)",
                             MemoryCategory::unsharded_gradients, unit.padded * kFloat);
    std::vector<Arg> args = {{flat.view.buffer, 0, unit.elements * kFloat}};
    for (const Tensor& gradient : unit.gradients) args.push_back(gradient);
    builder().kernel(Kernel::cat, "cat_array_batched_copy", std::move(args), {});
    if (unit.padded > unit.elements) {
        builder().memset({flat.view.buffer, unit.elements * kFloat, (unit.padded - unit.elements) * kFloat});
    }
    unit.gradients.clear();
    return flat;
}

void Fsdp::post_backward(int id, const Tensor& flat_gradient) {
    Unit& unit = at(id);
    reshard(id);
    if (options_.backward_prefetch == BackwardPrefetch::post) {
        const PlanBuilder::Range range(builder(), "FullyShardedDataParallel._post_backward_prefetch");
        prefetch(id);
    }
    builder().order(Stream::compute, Stream::post_backward);
    const BufferId shard = optimizer_.slot(unit.slot).gradient;
    builder().allocate(shard, Stream::post_backward);
    builder().collective(Operation::reduce_scatter, builder().whole(shard), flat_gradient,
                         flat_gradient.bytes(), (unit.padded - unit.elements) * kFloat, true,
                         Stream::post_backward);
}

void Fsdp::end_backward() {
    builder().order(Stream::post_backward, Stream::compute);
}

}  // namespace shardscope::trainer
