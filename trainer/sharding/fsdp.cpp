#include "trainer/sharding/fsdp.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "trainer/model/selection.h"
#include "trainer/sharding/flat_unit.h"
#include "trainer/sharding/job_mesh.h"
#include "trainer/sharding/values.h"

namespace shardscope::trainer::sharding {

namespace {

constexpr std::size_t kMaxInflightAllGathers = 2;  // PyTorch's limit

}  // namespace

FullyShardedDataParallel::FullyShardedDataParallel(std::unique_ptr<model::Module> inner)
    : model::Module("FullyShardedDataParallel", inner->attribute()) {
    add_child(std::move(inner));
}

plan::Tensor FullyShardedDataParallel::forward(model::Graph& graph, const plan::Tensor& input) {
    const plan::PlanBuilder::Scope scope(graph.builder, graph.builder.phase(), id, engine->unit_of(*this));
    const plan::PlanBuilder::Range range(graph.builder, "FullyShardedDataParallel.forward");
    engine->pre_forward(graph, *this, input);
    plan::Tensor output = call(graph, inner(), input);
    engine->post_forward(graph, *this, output);
    return output;
}

Fsdp::Fsdp(const job::Job& job, const model::ModuleTree& tree)
    : Parallelism(job, mesh_of(job), tree),
      options_(job.fsdp),
      strategy_(traits(job.fsdp.sharding_strategy)),
      accumulation_sync_(job.train.accumulation_sync),
      // fully_shard has no limiter: its memory is reused in stream order.
      limits_(job.fsdp.limit_all_gathers && job.fsdp.layout != job::FsdpLayout::fsdp2),
      offload_(job.fsdp.cpu_offload),
      optimizer_on_host_(job.memory.offload.optimizer),
      divisor_(job.data_ranks() * job.train.accumulation),
      unit_of_(tree.parameters.size(), -1) {
    if (offload_ || optimizer_on_host_) optimizer_.keep_gradients();
    UnitOptions options;
    options.mesh = mesh_;
    options.param = dtype_of(job.precision.param);
    options.reduce = dtype_of(job.precision.reduce);
    options.shards = strategy_.shards;
    options.lean = options_.layout == job::FsdpLayout::lean;
    options.aligned = options_.layout == job::FsdpLayout::fsdp1;
    options.keeps_replicas = options_.layout == job::FsdpLayout::fsdp2;
    frees_copies_ = !options.shards && options.param != plan::DType::fp32;
    const std::vector<WrappedModule> wrapped = parameters_by_wrapper(tree);
    const std::vector<bool> frees = frees_after_forward(job, tree, wrapped);
    for (std::size_t w = 0; w < wrapped.size(); ++w) {
        const auto& [wrapper, parameters, name] = wrapped[w];
        wrapper->engine = this;
        wrapper->is_root = wrapper == tree.root.get();
        if (parameters.empty()) continue;
        const int id = static_cast<int>(units_.size());
        wrapper->units.push_back(id);
        for (const model::Parameter* p : parameters) unit_of_[static_cast<std::size_t>(p->id)] = id;
        options.experts = parameters.front()->is_cut(plan::Group::expert);
        // What is frozen has no optimizer.
        options.keeps_shard = optimizer_on_host_ && std::any_of(parameters.begin(), parameters.end(),
                                                                [](const auto* p) { return p->trained; });
        options.offload = offload_ || options.keeps_shard;
        options.files = options.offload ? optimizer_.files() : nullptr;
        State state;
        state.is_root = wrapper->is_root;
        state.frees_after_forward = frees[w];
        state.stays_after_forward = stays_after_forward(state);
        if (options_.layout == job::FsdpLayout::fsdp2) {
            state.unit =
                std::make_unique<GroupUnit>(options, *this, pending_, wrapper->id, name, id, parameters);
        } else {
            state.unit = std::make_unique<FlatUnit>(options, *this, wrapper->id, name, id, parameters);
        }
        prepares_ = prepares_ || state.unit->prepares();
        infos_.push_back(state.unit->info());
        units_.push_back(std::move(state));
    }
    optimizer_.declare_ring(persistent_);
    trained_slots_.resize(units_.size());
    for (std::size_t s = 0; s < optimizer_.slots().size(); ++s) {
        const OptimizerSlot& slot = optimizer_.slot(s);
        if (slot.trained()) trained_slots_[static_cast<std::size_t>(slot.unit)].push_back(s);
    }
    // The program gives fully_shard the order (set_modules_to_forward_prefetch).
    if (options_.layout == job::FsdpLayout::fsdp2) {
        for (std::size_t u = 0; u < units_.size(); ++u) pre_forward_order_.push_back(static_cast<int>(u));
        order_known_ = true;
    }
    // With lean, the unit whose forward ends last (except the root's) is the first that the backward needs.
    if (options.lean) {
        const int last = last_to_end(*tree.root);
        if (last >= 0) at(last).stays_after_forward = true;
    }
}

// For each wrapper what the strategy says, or the last rule of fsdp.unit that selects it.
std::vector<bool> Fsdp::frees_after_forward(const job::Job& job, const model::ModuleTree& tree,
                                            const std::vector<WrappedModule>& wrapped) const {
    const bool kept = options_.reshard_after_forward == job::Reshard::no;
    std::vector<bool> frees(wrapped.size(), strategy_.frees_after_forward && !kept);
    const std::string place = where(job, "fsdp.unit");
    for (const job::UnitRule& rule : options_.unit) {
        const auto chosen = selected(*tree.root, rule.units, place, "fsdp.unit");
        bool found = false;
        for (std::size_t w = 0; w < wrapped.size(); ++w) {
            if (!chosen.contains(&wrapped[w].wrapper->inner())) continue;
            found = true;
            frees[w] = rule.reshard_after_forward;
        }
        if (found) continue;
        throw job::JobError(
            fmt::format("{}fsdp.unit: {} selects modules, but none of them is a unit; fsdp.wrap is {}", place,
                        to_text(rule.units), to_text(options_.wrap)));
    }
    return frees;
}

bool Fsdp::stays_after_forward(const State& state) const {
    const bool root_stays = state.is_root && options_.reshard_after_forward != job::Reshard::yes;
    return !frees_copies_ && (root_stays || !state.frees_after_forward);
}

// Inside no_sync, a strategy that keeps parameters after the forward also keeps them after the backward, but
// FSDP2 frees them after every backward.
bool Fsdp::stays_after_backward(const State& state) const {
    return options_.layout != job::FsdpLayout::fsdp2 && !frees_copies_ && !synchronizes_ &&
           !state.frees_after_forward;
}

int Fsdp::unit_of(const model::Parameter& parameter) const {
    return unit_of_[static_cast<std::size_t>(parameter.id)];
}

// A strategy that frees only in the backward leaves one free per unit to the next step.
plan::EventId Fsdp::lasting_events() const {
    return static_cast<plan::EventId>(units_.size() + kMaxInflightAllGathers);
}

std::string Fsdp::state_key() const {
    return Parallelism::state_key() + fmt::format(" {} queued frees{}", free_events_.size(),
                                                  options_.forward_prefetch && order_known_ ? " order" : "");
}

void Fsdp::setup(plan::PlanBuilder& builder) {
    for (std::size_t u = 0; u < units_.size(); ++u) {
        const plan::PlanBuilder::Scope scope(builder, plan::Phase::setup, infos_[u].module,
                                             static_cast<int>(u));
        units_[u].unit->setup(builder, options_.sync_module_states);
    }
    if (!optimizer_on_host_) return;
    const plan::EventId copied = builder.new_event();  // the states of rank 0
    builder.record(copied, plan::Stream::compute);
    builder.host_wait(copied);
    optimizer_.copy_parameters(builder);
}

void Fsdp::begin_step(plan::PlanBuilder& builder) {
    Parallelism::begin_step(builder);
    for (State& state : units_) state.unit->begin_step();
    if (by_schedule()) wait_for_optimizer();
}

void Fsdp::begin_micro_batch(MicroBatch micro) {
    begin_backward(micro);
    order_known_ = !pre_forward_order_.empty();
    post_forward_order_.clear();
    for (State& state : units_) {
        state.awaits_backward = false;
        state.leaves_nodes_of = -1;
    }
}

void Fsdp::begin_backward(MicroBatch micro) {
    Parallelism::begin_backward(micro);
    synchronizes_ = micro.last() || accumulation_sync_;
    for (std::size_t u = 0; u < units_.size(); ++u)
        units_[u].unit->begin_micro_batch(reduces(static_cast<int>(u)));
}

void Fsdp::end_step() {
    for (std::size_t u = 0; u < units_.size(); ++u) {
        if (units_[u].unit->gathered() && strategy_.shards)
            throw std::logic_error("unit " + infos_[u].name + " is still gathered after the step");
    }
    order_known_ = true;
    carry_free_events();
    Parallelism::end_step();
}

void Fsdp::end_evaluation() {
    for (std::size_t u = 0; u < units_.size(); ++u) {
        if (units_[u].unit->gathered()) reshard(static_cast<int>(u));
        units_[u].unit->end_backward();
    }
    Parallelism::end_evaluation();
}

void Fsdp::carry_free_events() {
    if (free_events_.size() > static_cast<std::size_t>(lasting_events())) {
        throw std::logic_error("the all-gather limiter's queue has outgrown its event slots");
    }
    plan::EventId slot = 0;
    for (plan::EventId& event : free_events_) {
        if (event != slot) builder().carry(event, slot);
        event = slot++;
    }
}

// --- parameters and gradients, as kernels see them ---------------------------------------------------------

plan::Arg Fsdp::parameter(const model::Parameter& parameter) {
    return unit_with(parameter).parameter(parameter);
}

plan::Tensor Fsdp::new_gradient(const model::Parameter& parameter) {
    return unit_with(parameter).new_gradient(builder(), parameter);
}

void Fsdp::gradient_ready(const model::Parameter& parameter, plan::Tensor gradient) {
    unit_with(parameter).gradient_ready(builder(), parameter, std::move(gradient));
}

// --- gather and free ---------------------------------------------------------------------------------------

std::vector<int> Fsdp::units_of(const FullyShardedDataParallel& wrapper) const {
    std::vector<int> units = wrapper.units;
    if (mesh_.pipeline > 1) {
        std::erase_if(units, [&](int unit) {
            return std::find(stage_units_.begin(), stage_units_.end(), unit) == stage_units_.end();
        });
    }
    return units;
}

int Fsdp::unit_of(const FullyShardedDataParallel& wrapper) const {
    const std::vector<int> units = units_of(wrapper);
    return units.empty() ? -1 : units.front();
}

// Gathers read the shards that it has written.
void Fsdp::wait_for_optimizer() {
    builder().order(plan::Stream::compute, plan::Stream::unshard);
    if (prepares_) builder().order(plan::Stream::compute, plan::Stream::pre_unshard);
}

void Fsdp::rate_limiter() {
    if (!limits_ || evaluating_ || free_events_.size() < kMaxInflightAllGathers) return;
    const plan::PlanBuilder::Range range(builder(), "FullyShardedDataParallel.rate_limiter");
    builder().host_wait(free_events_.front());
    free_events_.pop_front();
}

void Fsdp::unshard(int id) {
    if (unit(id).gathered()) return;
    const plan::PlanBuilder::Scope scope(builder(), builder().phase(), module_of(id), id);
    const plan::PlanBuilder::Range range(builder(), "_unshard");
    unit(id).prepare_gather(builder());
    if (strategy_.shards) rate_limiter();
    unit(id).gather(builder());
    const int next = by_schedule() ? -1 : next_unit(id);
    if (next >= 0 && !unit(next).gathered()) unit(next).read_ahead(builder());
}

// The unit that is gathered after this one, as far as the order is known.
int Fsdp::next_unit(int id) {
    const bool forward = evaluating_ || builder().phase() == plan::Phase::forward;
    const std::vector<int>& order = forward ? pre_forward_order_ : post_forward_order_;
    const auto place = std::find(order.begin(), order.end(), id);
    if (place == order.end()) return -1;
    if (forward) return std::next(place) == order.end() ? -1 : *std::next(place);
    return place == order.begin() ? -1 : *std::prev(place);
}

void Fsdp::reshard(int id) {
    unit(id).release(builder());
    if (!limits_ || evaluating_ || !strategy_.shards) return;
    const plan::EventId freed = builder().new_event();
    builder().record(freed, plan::Stream::compute);
    free_events_.push_back(freed);
}

// --- forward -----------------------------------------------------------------------------------------------

void Fsdp::pre_forward(model::Graph& graph, FullyShardedDataParallel& wrapper, const plan::Tensor& input) {
    if (builder().muted()) return;
    const plan::PlanBuilder::Range range(builder(), "FullyShardedDataParallel._pre_forward");
    if (wrapper.is_root && !by_schedule()) wait_for_optimizer();
    for (const int id : units_of(wrapper)) {
        const plan::PlanBuilder::Scope scope(builder(), builder().phase(), module_of(id), id);
        before_forward(graph, id, input);
    }
}

void Fsdp::before_forward(model::Graph& graph, int id, const plan::Tensor& input) {
    if (!at(id).in_backward || by_schedule()) {
        const plan::PlanBuilder::Range inner(builder(), "_pre_forward_unshard");
        unshard(id);
        unit(id).wait_gathered(builder());
    }
    if (!order_known_ && !evaluating_ && builder().phase() == plan::Phase::forward)
        pre_forward_order_.push_back(id);
    // In a forward that will be recomputed the tape is paused: the recomputation leaves the nodes.
    if (graph.tape.recording() && !std::exchange(at(id).has_backward_nodes, false)) {
        // FSDP2's hook runs when the gradients of the inputs are ready; without any, it runs after the
        // backward.
        if (options_.layout == job::FsdpLayout::fsdp2 && input.value < 0)
            at(id).ends_with_backward = true;
        else
            leave_backward_nodes(graph, id);
    }
    if (const int next = std::exchange(at(id).leaves_nodes_of, -1); next >= 0) {
        const plan::PlanBuilder::Scope scope(builder(), builder().phase(), module_of(next), next);
        leave_backward_nodes(graph, next);
    }
    // fully_shard also prefetches in a forward that is recomputed, unless the unit's backward has begun.
    const bool first = builder().phase() == plan::Phase::forward;
    const bool again = options_.layout == job::FsdpLayout::fsdp2 && !at(id).in_backward;
    if (options_.forward_prefetch && order_known_ && !evaluating_ && !by_schedule() && (first || again))
        prefetch_forward(graph, id);
}

// The flat parameter is split into views here. The backward of that split concatenates their gradients once
// all of them have arrived, and then the post-backward hook runs. A unit without gradients is only freed.
void Fsdp::leave_backward_nodes(model::Graph& graph, int id) {
    plan::Tape& tape = graph.tape;
    tape.node("", [this, id, &tape] { tape.weight_work([this, id] { run_post_backward_hook(id); }); });
    if (!unit(id).trained()) return;
    tape.node(
        "SplitWithSizesBackward0",
        [this, id, &tape] { tape.weight_work([this, id] { unit(id).concatenate_gradients(builder()); }); },
        false);
}

void Fsdp::run_post_backward_hook(int id) {
    const plan::PlanBuilder::Range hook(builder(),
                                        unit(id).trained()
                                            ? "FullyShardedDataParallel._post_backward_hook"
                                            : "FullyShardedDataParallel._post_backward_reshard_only_hook",
                                        module_of(id));
    post_backward(id);
}

void Fsdp::prefetch_forward(model::Graph& graph, int id) {
    const auto place = std::find(pre_forward_order_.begin(), pre_forward_order_.end(), id);
    if (place == pre_forward_order_.end() || std::next(place) == pre_forward_order_.end()) return;
    const plan::PlanBuilder::Range range(builder(), "FullyShardedDataParallel._pre_forward_prefetch");
    const int next = *std::next(place);
    unshard(next);
    // FSDP1's unshard makes the views, whose node is thus older than those of the module that runs now: the
    // unit's gradients are joined and reduced after that module's backward.
    if (options_.layout != job::FsdpLayout::fsdp1) return;
    at(next).has_backward_nodes = true;
    if (!graph.tape.recording()) {
        at(id).leaves_nodes_of = next;
        return;
    }
    const plan::PlanBuilder::Scope scope(builder(), builder().phase(), module_of(next), next);
    leave_backward_nodes(graph, next);
}

void Fsdp::post_forward(model::Graph& graph, FullyShardedDataParallel& wrapper, const plan::Tensor& output) {
    const std::vector<int> units = units_of(wrapper);
    if (!builder().muted()) {
        const plan::PlanBuilder::Range range(builder(), "FullyShardedDataParallel._post_forward");
        if (wrapper.is_root) pending_.free_gathered(builder());  // no copy-out follows that would free it
        for (const int id : units) free_after_forward(id);
    }
    if (output.value < 0) return;
    for (const int id : units) {
        const plan::PlanBuilder::Scope scope(builder(), builder().phase(), module_of(id), id);
        graph.tape.hook([this, id] {
            const plan::PlanBuilder::Range hook(builder(), "FullyShardedDataParallel._pre_backward_hook",
                                                module_of(id));
            pre_backward(id);
        });
    }
}

void Fsdp::free_after_forward(int id) {
    // fully_shard frees nothing in a forward that is recomputed: the backward needs it soon.
    if (options_.layout == job::FsdpLayout::fsdp2 && builder().phase() == plan::Phase::recompute) return;
    // The backward starts with the root, so the root's parameters stay.
    if (!by_schedule() && (evaluating_ ? !at(id).is_root : !at(id).stays_after_forward)) reshard(id);
    if (builder().phase() == plan::Phase::forward) {
        post_forward_order_.push_back(id);
        at(id).awaits_backward = true;
    }
}

// --- backward ----------------------------------------------------------------------------------------------

void Fsdp::pre_backward(int id) {
    at(id).awaits_backward = false;
    at(id).in_backward = true;
    unshard(id);
    unit(id).wait_gathered(builder());
    if (options_.backward_prefetch == job::BackwardPrefetch::pre && !by_schedule()) {
        const plan::PlanBuilder::Range range(builder(), "FullyShardedDataParallel._pre_backward_prefetch");
        prefetch_backward(id);
    }
}

// Unshards the unit whose forward ended just before this one's, which the backward needs next; not if its
// backward is over (after the root's, which ends last, nothing is needed).
void Fsdp::prefetch_backward(int id) {
    const auto place = std::find(post_forward_order_.begin(), post_forward_order_.end(), id);
    if (place == post_forward_order_.begin() || place == post_forward_order_.end()) return;
    const int target = *std::prev(place);
    if (at(target).awaits_backward) unshard(target);
}

void Fsdp::post_backward(int id) {
    at(id).in_backward = false;
    if (!by_schedule() && unit(id).gathered() && !stays_after_backward(at(id))) reshard(id);
    if (options_.backward_prefetch == job::BackwardPrefetch::post && !by_schedule()) {
        const plan::PlanBuilder::Range range(builder(), "FullyShardedDataParallel._post_backward_prefetch");
        prefetch_backward(id);
    }
    if (!unit(id).trained()) return;
    // What ends with the backward is reduced then.
    if (reduces(id) && !at(id).ends_with_backward) {
        unit(id).reduce(builder(), divisor_);
        if (optimizer_on_host_) gradients_leave(id);
    } else {
        unit(id).keep_gradients(builder());
    }
}

void Fsdp::gradients_leave(int id) {
    const plan::EventId arrived = builder().new_event();
    builder().record(arrived, plan::Stream::post_backward);
    optimizer_.arrive(builder(), trained_slots_[static_cast<std::size_t>(id)], arrived, micro_.last());
}

void Fsdp::end_backward() {
    // As fully_shard's final callback of the root does, in the order of the modules.
    for (std::size_t u = 0; u < units_.size(); ++u) {
        if (!std::exchange(units_[u].ends_with_backward, false)) continue;
        const plan::PlanBuilder::Scope scope(builder(), plan::Phase::backward, infos_[u].module,
                                             static_cast<int>(u));
        run_post_backward_hook(static_cast<int>(u));
    }
    if (synchronizes_) builder().order(plan::Stream::post_backward, plan::Stream::compute);
    if (synchronizes_ && offload_) {  // the host's optimizer reads the copy
        const plan::EventId done = builder().new_event();
        builder().record(done, plan::Stream::compute);
        builder().host_wait(done);
    }
    for (std::size_t u = 0; u < units_.size(); ++u) {
        units_[u].unit->end_backward();
        // Reshards what was gathered for a backward that did not come.
        if (units_[u].unit->gathered() && !stays_after_backward(units_[u])) reshard(static_cast<int>(u));
    }
}

}  // namespace shardscope::trainer::sharding
