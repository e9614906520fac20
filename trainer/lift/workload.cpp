#include "trainer/lift/workload.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

#include "trainer/job/job.h"
#include "trainer/model/selection.h"
#include "trainer/sharding/wrap.h"

namespace shardscope::trainer::lift {

namespace {

// Writes items into a Plan; tracks which buffers and gradients are live.
class Player {
  public:
    Player(const LiftedStep& step, LiftedCosts costs, double batch_factor)
        : step_(step),
          costs_(costs),
          batch_factor_(batch_factor),
          parameters_(step.parameters.size(), nullptr),
          gradients_(step.parameters.size()),
          live_(step.buffers.size()),
          freed_(step.buffers.size(), false) {
        const auto look = [&](const std::vector<Item>& items) {
            for (const Item& item : items)
                if (item.kind == Item::Kind::free) freed_[static_cast<std::size_t>(item.index)] = true;
        };
        const auto both = [&](const Segment& segment) {
            look(segment.forward);
            look(segment.backward);
        };
        look(step.data);
        for (const Node& node : step.nodes)
            for (const Call& call : node.calls)
                for (const Segment& segment : call.own) both(segment);
        both(step.loss);
    }

    const LiftedStep& step() const { return step_; }
    const Node& node(int id) const { return step_.nodes[static_cast<std::size_t>(id)]; }
    void set_parameter(int id, const model::Parameter* parameter) {
        parameters_[static_cast<std::size_t>(id)] = parameter;
    }
    const model::Parameter* parameter(int id) const { return parameters_[static_cast<std::size_t>(id)]; }

    // Adds the host time of a range, which is not an item.
    void owes_range() { owed_ += costs_.operation_ns; }

    void play(plan::PlanBuilder& builder, model::ParameterStore* store, const std::vector<Item>& items) {
        if (builder.muted()) return;  // the rehearsal of a recomputation
        for (const Item& item : items) play(builder, store, item);
    }

    void begin_micro_batch() {
        owed_ = 0;
        needs_gradients_ = false;
        output_ = -1;
        std::fill(calls_.begin(), calls_.end(), 0);
        calls_.resize(step_.nodes.size(), 0);
    }
    // A module's input has a gradient once a module with parameters has been called before it.
    void called(const Node& node) { needs_gradients_ = needs_gradients_ || !node.parameters.empty(); }
    bool needs_gradients() const { return needs_gradients_; }
    std::size_t next_call(int node) { return calls_[static_cast<std::size_t>(node)]++; }

    // The last of `items` that stays live until the loop's variables go out of scope: probably the loss.
    plan::Tensor last_kept(const std::vector<Item>& items) const {
        for (auto item = items.rbegin(); item != items.rend(); ++item) {
            if (item->kind != Item::Kind::allocate) continue;
            const auto b = static_cast<std::size_t>(item->index);
            const bool on_device = step_.buffers[b].space == plan::MemorySpace::device;
            if (on_device && !freed_[b] && live_[b] &&
                live_[b].bytes() >= static_cast<std::int64_t>(sizeof(double)))
                return live_[b];
        }
        return {};
    }
    // A checkpointed module's forward leaves its output alone, which is probably what it allocated last.
    void keep_output(int node) {
        std::vector<int> allocated;
        collect(node, allocated);
        std::erase_if(allocated, [&](int buffer) { return !live_[static_cast<std::size_t>(buffer)]; });
        for (std::size_t i = 0; i + 1 < allocated.size(); ++i)
            live_[static_cast<std::size_t>(allocated[i])] = {};
        input_of_[node] = std::exchange(output_, -1);
        const std::vector<int> freed = freed_in(node);
        if (!allocated.empty() && std::binary_search(freed.begin(), freed.end(), allocated.back()))
            output_ = allocated.back();
    }
    // The recorded free of a module's output may be in its own backward, which now has the recomputed one:
    // what was kept goes with the backward of the next checkpointed module, whose input it was.
    void drop_input(int node) {
        if (const auto input = input_of_.find(node); input != input_of_.end() && input->second >= 0)
            live_[static_cast<std::size_t>(input->second)] = {};
    }
    // A recomputation makes the module's output again, which nothing uses: what is freed outside the module
    // goes.
    void drop_output(int node) {
        std::vector<int> allocated;
        collect(node, allocated);
        const std::vector<int> freed = freed_in(node);
        for (const int buffer : allocated)
            if (!std::binary_search(freed.begin(), freed.end(), buffer))
                live_[static_cast<std::size_t>(buffer)] = {};
    }
    void drop_all() {
        for (plan::Tensor& tensor : live_) tensor = {};
        for (plan::Tensor& tensor : gradients_) tensor = {};
    }

  private:
    void play(plan::PlanBuilder& builder, model::ParameterStore* store, const Item& item);
    void host(plan::PlanBuilder& builder, std::int64_t ns);
    // The buffers that a module's forward allocates, in order.
    void collect(int id, std::vector<int>& allocated) const {
        const Call& call = node(id).calls.front();
        for (std::size_t s = 0; s < call.own.size(); ++s) {
            for (const Item& item : call.own[s].forward)
                if (item.kind == Item::Kind::allocate) allocated.push_back(item.index);
            if (s < call.children.size()) collect(call.children[s], allocated);
        }
    }
    std::vector<int> freed_in(int node) const {
        std::vector<int> freed;
        collect_freed(node, freed);
        std::sort(freed.begin(), freed.end());
        return freed;
    }
    // The buffers that a module's forward and backward free.
    void collect_freed(int id, std::vector<int>& freed) const {
        for (const Call& call : node(id).calls) {
            for (const Segment& own : call.own)
                for (const std::vector<Item>* items : {&own.forward, &own.backward})
                    for (const Item& item : *items)
                        if (item.kind == Item::Kind::free) freed.push_back(item.index);
            for (const int child : call.children) collect_freed(child, freed);
        }
    }
    // Kernels, copies and activations grow with the batch.
    double scale(const Item& item) const {
        return batch_factor_ * (item.kind == Item::Kind::kernel ? costs_.kernel_factor : 1);
    }
    std::int64_t scaled(std::int64_t bytes) const {
        return batch_factor_ == 1 ? bytes : std::llround(static_cast<double>(bytes) * batch_factor_);
    }

    const LiftedStep& step_;
    const LiftedCosts costs_;
    const double batch_factor_;
    std::vector<const model::Parameter*> parameters_;
    std::vector<plan::Tensor> gradients_;  // by parameter, from its allocation until it is ready
    std::vector<plan::Tensor> live_;       // by buffer
    std::vector<bool> freed_;              // by buffer: freed before the step ends
    std::vector<std::size_t> calls_;       // by node, in this micro-batch
    std::map<int, int> input_of_;  // by checkpointed node: the buffer that the one before it kept, -1 none
    int output_ = -1;              // what the last checkpointed module kept, if its own backward frees it
    bool needs_gradients_ = false;
    std::int64_t owed_ = 0;  // host time of ranges, to subtract from that of later items
};

void Player::host(plan::PlanBuilder& builder, std::int64_t ns) {
    const std::int64_t left = ns - owed_;
    owed_ = std::max<std::int64_t>(0, -left);
    if (left > 0) builder.host_call(plan::HostCall::none, "host", {}).recorded_ns = left;
}

void Player::play(plan::PlanBuilder& builder, model::ParameterStore* store, const Item& item) {
    host(builder, std::llround(static_cast<double>(item.host_ns) * costs_.host_factor));
    const auto i = static_cast<std::size_t>(item.index);
    const std::int64_t took =
        std::max<std::int64_t>(1, std::llround(static_cast<double>(item.device_ns) * scale(item)));
    switch (item.kind) {
        case Item::Kind::allocate: {
            const LiftedBuffer& buffer = step_.buffers[i];
            const bool on_device = buffer.space == plan::MemorySpace::device;
            const std::int64_t bytes = buffer.grows ? scaled(buffer.bytes) : buffer.bytes;
            const plan::BufferId id = builder.new_buffer(
                {buffer.name, buffer.category, buffer.space, bytes, builder.unit(), builder.module()});
            builder.allocate(id, on_device ? plan::Stream::compute : plan::Stream::host);
            live_[i] = {std::make_shared<plan::Storage>(builder, id), builder.whole(id), -1,
                        plan::DType::fp32};
            return;
        }
        case Item::Kind::free:
            live_[i] = {};
            return;
        case Item::Kind::kernel:
            builder.kernel(plan::Kernel::none, item.name, {}, {}).recorded_ns = took;
            return;
        case Item::Kind::memcpy: {
            plan::Op& op = builder.memcpy({}, {}, item.copy_kind);
            op.bytes = scaled(item.bytes);
            op.recorded_ns = took;
            return;
        }
        case Item::Kind::memset: {
            plan::Op& op = builder.memset({});
            op.bytes = item.bytes;
            op.recorded_ns = took;
            return;
        }
        case Item::Kind::gradient:
            if (store) gradients_[i] = store->new_gradient(*parameters_[i]);
            return;
        case Item::Kind::ready:
            if (store) store->gradient_ready(*parameters_[i], std::exchange(gradients_[i], {}));
            return;
        case Item::Kind::wait: {
            const plan::EventId event = builder.new_event();
            builder.record(event, plan::Stream::compute);
            builder.host_wait(event);
            return;
        }
        case Item::Kind::host:
            return;
    }
}

class LiftedModule final : public model::Module {
  public:
    LiftedModule(Player& player, int node)
        : model::Module(player.node(node).class_name, player.node(node).attribute),
          player_(player),
          node_(node) {
        const Node& own = player.node(node);
        for (const int p : own.parameters) {
            const LiftedParameter& parameter = player.step().parameters[static_cast<std::size_t>(p)];
            const std::int64_t rows = parameter.rows > 0 ? parameter.rows : parameter.elements;
            add_parameter(parameter.name, rows, parameter.elements / rows, {});
        }
        for (std::size_t i = 0; i < own.parameters.size(); ++i) {
            parameters()[i].trained =
                player.step().parameters[static_cast<std::size_t>(own.parameters[i])].trained;
            player.set_parameter(own.parameters[i], &parameters()[i]);
        }
        for (const int child : own.children) add_child(std::make_unique<LiftedModule>(player, child));
    }

    std::vector<const model::Parameter*> shared_parameters() const override {
        std::vector<const model::Parameter*> shared;
        for (const int p : player_.node(node_).shared) shared.push_back(player_.parameter(p));
        return shared;
    }

    plan::Tensor forward(model::Graph& graph, const plan::Tensor& input) override {
        hand_on(graph, input.value);
        const Node& own = player_.node(node_);
        const std::size_t number = std::min(player_.next_call(node_), own.calls.size() - 1);
        player_.owes_range();
        const Call& recorded = own.calls[number];
        if (checkpointed && graph.tape.recording() && !graph.builder.muted())
            graph.tape.node(
                "", [this] { player_.drop_input(node_); }, false);
        segment(graph, recorded.own.front());
        for (std::size_t c = 0; c < recorded.children.size(); ++c) {
            const auto at = std::find(own.children.begin(), own.children.end(), recorded.children[c]) -
                            own.children.begin();
            plan::Tensor between;
            if (graph.tape.recording() && player_.needs_gradients()) between.value = graph.tape.new_value();
            hand_on(graph, call(graph, child(static_cast<std::size_t>(at)), between).value);
            segment(graph, recorded.own[c + 1]);
        }
        player_.called(own);
        if (checkpointed && !graph.builder.muted()) {
            if (graph.tape.recording()) {
                player_.drop_output(node_);
            } else {
                player_.keep_output(node_);
            }
        }
        // Wrappers need only the value's identity.
        return {nullptr, {}, graph.tape.recording() ? graph.tape.new_value() : -1, graph.dtype};
    }

  private:
    // A recorded backward does not say which tensor a gradient belongs to, but a checkpointed module asks for
    // one: an empty one is accumulated for it.
    static void hand_on(model::Graph& graph, int value) {
        if (value >= 0)
            graph.tape.node(
                "", [&tape = graph.tape, value] { tape.accumulate(value, {}); }, false);
    }
    void segment(model::Graph& graph, const Segment& own) {
        player_.play(graph.builder, nullptr, own.forward);
        if (own.backward.empty()) return;
        graph.tape.node("", [this, &graph, &own] {
            const plan::PlanBuilder::Range range(graph.builder, "nn.Module: " + name + " (backward)", id);
            player_.owes_range();
            player_.play(graph.builder, &graph.store, own.backward);
        });
    }

    Player& player_;
    const int node_;
};

// Wraps the units of the recorded run that are inside the root.
void wrap_units(model::Module& module, const LiftedStep& step, int node) {
    const std::vector<int>& children = step.nodes[static_cast<std::size_t>(node)].children;
    for (std::size_t c = 0; c < children.size(); ++c) {
        std::unique_ptr<model::Module>& slot = module.children()[c];
        wrap_units(*slot, step, children[c]);
        if (step.nodes[static_cast<std::size_t>(children[c])].unit)
            slot = std::make_unique<sharding::FullyShardedDataParallel>(std::move(slot));
    }
}

class LiftedWorkload final : public sharding::Workload {
  public:
    LiftedWorkload(const LiftedStep& step, LiftedCosts costs, bool units, double batch_factor)
        : player_(step, costs, batch_factor), costs_(costs), units_(units) {}

    std::unique_ptr<model::Module> model(const job::Job& job) override {
        auto model = std::make_unique<LiftedModule>(player_, 0);
        checkpoint_modules(*model, job.memory.activation_checkpointing,
                           where(job, "memory.activation_checkpointing"));
        return model;
    }
    std::unique_ptr<model::Module> wrap(std::unique_ptr<model::Module> model, const job::Job& job) override {
        if (!units_) return sharding::Workload::wrap(std::move(model), job);
        wrap_units(*model, player_.step(), 0);
        return std::make_unique<sharding::FullyShardedDataParallel>(std::move(model));
    }
    Batch load_batch(plan::PlanBuilder& builder, const job::Job& /*job*/,
                     const BatchParts& /*parts*/) override {
        player_.begin_micro_batch();
        player_.play(builder, nullptr, player_.step().data);
        return {};
    }
    plan::Tensor loss(model::Graph& graph, const job::Job& /*job*/, const plan::Tensor& /*output*/,
                      const plan::Tensor& /*target*/) override {
        const Segment& loss = player_.step().loss;
        player_.play(graph.builder, nullptr, loss.forward);
        if (!loss.backward.empty()) {
            graph.tape.node("", [this, &graph, &loss] {
                const plan::PlanBuilder::Range range(graph.builder, "loss (backward)");
                player_.owes_range();
                player_.play(graph.builder, &graph.store, loss.backward);
            });
        }
        return player_.last_kept(loss.forward);
    }
    void after_optimizer(plan::PlanBuilder& builder) override {
        if (costs_.optimizer_bytes > 0) {
            const plan::BufferId id =
                builder.new_buffer({"optimizer's own", traces::schema::MemoryCategory::other,
                                    traces::schema::MemorySpace::device, costs_.optimizer_bytes,
                                    builder.unit(), builder.module()});
            builder.allocate(id, plan::Stream::compute);
            const plan::Storage own(builder, id);  // gone at once
        }
        player_.play(builder, nullptr, player_.step().tail);
        if (costs_.step_ns > 0)
            builder.host_call(plan::HostCall::none, "host", {}).recorded_ns = costs_.step_ns;
    }
    void end_variables() override { player_.drop_all(); }

  private:
    Player player_;
    const LiftedCosts costs_;
    const bool units_;
};

}  // namespace

std::unique_ptr<sharding::Workload> workload_of(const LiftedStep& step, LiftedCosts costs, bool units,
                                                double batch_factor) {
    return std::make_unique<LiftedWorkload>(step, costs, units, batch_factor);
}

}  // namespace shardscope::trainer::lift
