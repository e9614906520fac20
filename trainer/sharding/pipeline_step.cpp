#include "trainer/sharding/pipeline_step.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>

#include <fmt/core.h>

#include "trainer/model/models.h"
#include "trainer/sharding/values.h"

namespace shardscope::trainer::sharding {

namespace {

using Kind = pipeline::ActionKind;

// The units of each stage of the place.
std::vector<std::vector<int>> units_by_stage(const Stages& stages, const Parallelism& parallelism,
                                             int place) {
    std::vector<std::vector<int>> units(static_cast<std::size_t>(stages.count()));
    for (const int stage : stages.schedule.stages_of(place)) {
        std::set<int> own;
        for (const model::Parameter* parameter : stages.parameters_of(stage))
            if (const int unit = parallelism.unit_of(*parameter); unit >= 0) own.insert(unit);
        units[static_cast<std::size_t>(stage)].assign(own.begin(), own.end());
    }
    return units;
}

// Takes what is kept for a micro-batch.
template <class Map>
typename Map::mapped_type taken(Map& from, const typename Map::key_type& key) {
    auto node = from.extract(key);
    if (node.empty()) throw std::logic_error("the schedule uses what the place does not hold yet");
    return std::move(node.mapped());
}

}  // namespace

PipelineStep::PipelineStep(Context context)
    : context_(std::move(context)),
      units_(units_by_stage(context_.stages, context_.parallelism, context_.place)),
      shared_(holds(0) && holds(context_.stages.count() - 1) ? context_.stages.tied() : nullptr) {}

void PipelineStep::train(const std::function<void(int, const plan::Tensor&)>& on_loss) {
    on_loss_ = on_loss;
    for (const pipeline::Action& action :
         context_.stages.schedule.actions[static_cast<std::size_t>(context_.place)]) {
        context_.builder.set_micro(action.micro_batch);
        const plan::PlanBuilder::Range range(context_.builder, "PP:" + text_of(action));
        carry_out(action);
    }
    if (!in_flight_.empty() || !inputs_.empty() || !gradients_.empty() || !sent_outputs_.empty() ||
        !sent_gradients_.empty())
        throw std::logic_error("the schedule ends before its last backward or message");
}

void PipelineStep::carry_out(const pipeline::Action& action) {
    const int stage = action.stage, micro = action.micro_batch;
    const Key key{stage, micro};
    switch (action.kind) {
        case Kind::forward:
            return forward(stage, micro);
        case Kind::backward:
            return backward(stage, micro, false);
        case Kind::send_forward:
            return send(stage, micro, in_flight_.at(key)->output, stage + 1, sent_outputs_);
        case Kind::send_backward: {
            // The backward has left it.
            const plan::Tensor gradient = std::move(sent_gradients_.at(key).tensor);
            return send(stage, micro, gradient, stage - 1, sent_gradients_);
        }
        case Kind::recv_forward:
            return receive(stage, micro, stage - 1, inputs_);
        case Kind::recv_backward:
            return receive(stage, micro, stage + 1, gradients_);
        case Kind::wait_send_forward:
            return wait_for_send(sent_outputs_, key);
        case Kind::wait_send_backward:
            return wait_for_send(sent_gradients_, key);
        case Kind::unshard:
            for (const int unit : units_[static_cast<std::size_t>(stage)]) {
                ++readers_[unit];
                context_.parallelism.gather_unit(unit);
            }
            return;
        case Kind::reshard:
            for (const int unit : units_[static_cast<std::size_t>(stage)])
                if (--readers_[unit] == 0) context_.parallelism.free_unit(unit);
            return;
        case Kind::reduce_grad:  // the stage's last backward has done it
        case Kind::wait_reduce_grad:
            return;
        case Kind::backward_input:
            return backward(stage, micro, true);
        case Kind::backward_weight:
            context_.parallelism.begin_stage(units_[static_cast<std::size_t>(stage)]);
            begin_backward(stage);
            taken(in_flight_, key)->tape.weights();
            return;
    }
}

// A schedule may take the micro-batches in another order: the stage's last backward, or W, reduces.
void PipelineStep::begin_backward(int stage) {
    const MicroBatch micro = at(backwards_[stage]++);
    const int last = context_.stages.count() - 1;
    const bool waits =
        (stage == 0 && backwards_[last] < micro.count) || (stage == last && backwards_[0] < micro.count);
    context_.parallelism.set_waiting(waits ? shared_ : nullptr);
    context_.parallelism.begin_backward(micro);
}

plan::Tensor PipelineStep::take(Messages& from, const Key& key) {
    Message message = taken(from, key);
    if (message.event >= 0) context_.builder.wait(message.event, plan::Stream::compute);
    return std::move(message.tensor);
}

// The first stage reads inputs and the last one targets, in the order of the micro-batches: what a forward
// needs is loaded with what earlier micro-batches will need.
Workload::Batch& PipelineStep::batch(int micro_batch) {
    const Workload::BatchParts parts{.input = holds(0), .target = holds(context_.stages.count() - 1)};
    plan::PlanBuilder& builder = context_.builder;
    const int now = builder.micro();
    for (; loaded_ <= micro_batch; ++loaded_) {
        builder.set_micro(loaded_);
        const plan::PlanBuilder::Scope scope(builder, plan::Phase::data, -1, -1);
        batches_[loaded_] = context_.workload.load_batch(builder, context_.job, parts);
    }
    builder.set_micro(now);
    return batches_.at(micro_batch);
}

plan::Tensor PipelineStep::take_input(int micro_batch) {
    plan::Tensor input = std::move(batch(micro_batch).input);
    if (!holds(context_.stages.count() - 1)) batches_.erase(micro_batch);
    return input;
}

plan::Tensor PipelineStep::take_target(int micro_batch) {
    plan::Tensor target = std::move(batch(micro_batch).target);
    batches_.erase(micro_batch);
    return target;
}

void PipelineStep::forward(int stage, int micro_batch) {
    plan::PlanBuilder& builder = context_.builder;
    const Key key{stage, micro_batch};
    context_.parallelism.begin_micro_batch(at(forwards_[stage]++));
    context_.parallelism.begin_stage(units_[static_cast<std::size_t>(stage)]);
    auto own = std::make_unique<InFlight>(context_);
    own->graph.finite_flag = context_.finite_flag;
    own->graph.stage = context_.stages.ranges[static_cast<std::size_t>(stage)];
    plan::Tensor input;
    if (context_.stages.is_first(stage)) {
        input = take_input(micro_batch);
    } else {
        input = take(inputs_, key);
        input.value = own->tape.new_value();
        own->tape.node("", [own = own.get(), value = input.value] {  // recorded first, so it runs last
            own->input_gradient = own->tape.take_gradient(value);
        });
    }
    plan::Tensor target;
    if (context_.stages.is_last(stage)) target = take_target(micro_batch);
    {
        const plan::PlanBuilder::Scope scope(builder, plan::Phase::forward, -1, -1);
        own->output = call(own->graph, *context_.tree.root, input);
        if (context_.stages.is_last(stage)) {
            on_loss_(micro_batch, context_.workload.loss(own->graph, context_.job, own->output, target));
        } else if (holds(stage + 1)) {
            inputs_[{stage + 1, micro_batch}].tensor = own->output;
        }
    }
    in_flight_[key] = std::move(own);
}

void PipelineStep::backward(int stage, int micro_batch, bool of_input) {
    const Key key{stage, micro_batch};
    context_.parallelism.begin_stage(units_[static_cast<std::size_t>(stage)]);
    if (!of_input) begin_backward(stage);
    std::unique_ptr<InFlight> own = taken(in_flight_, key);
    copies_activations_ = copies_activations_ || own->offload.copies();
    if (!context_.stages.is_last(stage)) {
        plan::Tensor gradient = take(gradients_, key);
        own->tape.accumulate(own->output.value, std::move(gradient));
    }
    if (of_input) {
        own->tape.backward_input();
        own->output = {};
    } else {
        own->tape.backward();
    }
    if (!context_.stages.is_first(stage)) {
        Messages& to = holds(stage - 1) ? gradients_ : sent_gradients_;
        to[holds(stage - 1) ? Key{stage - 1, micro_batch} : key].tensor = std::move(own->input_gradient);
    }
    if (of_input) in_flight_[key] = std::move(own);
}

void PipelineStep::send(int stage, int micro_batch, const plan::Tensor& tensor, int to_stage,
                        Messages& sent) {
    plan::PlanBuilder& builder = context_.builder;
    const plan::PlanBuilder::Scope scope(
        builder, to_stage > stage ? plan::Phase::forward : plan::Phase::backward, -1, -1);
    const int place = context_.stages.place_of(to_stage);
    builder.order(plan::Stream::compute, sending(place));
    builder.send(tensor, place, sending(place));
    Message& message = sent[{stage, micro_batch}];
    message = {tensor, builder.new_event()};
    builder.record(message.event, sending(place));
}

void PipelineStep::receive(int stage, int micro_batch, int from_stage, Messages& into) {
    plan::PlanBuilder& builder = context_.builder;
    const bool forward = from_stage < stage;
    const plan::PlanBuilder::Scope scope(builder, forward ? plan::Phase::forward : plan::Phase::backward, -1,
                                         -1);
    const int place = context_.stages.place_of(from_stage);
    Message message;
    message.tensor = builder.new_tensor(
        forward ? fmt::format("input of stage {}", stage) : fmt::format("output.grad of stage {}", stage),
        plan::MemoryCategory::activations, model::elements_between_layers(context_.job),
        dtype_of(context_.job.precision.param), receiving(place));
    builder.receive(message.tensor, place, receiving(place));
    message.event = builder.new_event();
    builder.record(message.event, receiving(place));
    into[{stage, micro_batch}] = std::move(message);
}

void PipelineStep::wait_for_send(Messages& sent, const Key& key) {
    context_.builder.wait(sent.at(key).event, plan::Stream::compute);
    sent.erase(key);
}

void PipelineStep::add_copied_gradients() {
    const Stages& stages = context_.stages;
    const model::Parameter* copied = stages.copied();
    const int first = stages.place_of(0), last = stages.place_of(stages.count() - 1);
    if (copied == nullptr || !copied->trained || (context_.place != first && context_.place != last)) return;
    const int peer = context_.place == first ? last : first;
    plan::PlanBuilder& builder = context_.builder;
    for (const OptimizerSlot& slot : context_.parallelism.optimizer().slots()) {
        if (!slot.holds(copied->id)) continue;
        const plan::PlanBuilder::Scope scope(builder, plan::Phase::backward, slot.module, slot.unit);
        const plan::PlanBuilder::Range range(builder, "embedding-grads-all-reduce");  // Megatron's name
        const plan::Tensor own{nullptr, slot.gradient, -1, plan::DType::fp32};
        const plan::Tensor other =
            builder.new_tensor(copied->path + ".grad of the other end", plan::MemoryCategory::communication,
                               slot.elements, plan::DType::fp32, receiving(peer));
        builder.order(plan::Stream::compute, sending(peer));
        builder.send(own, peer, sending(peer));
        builder.receive(other, peer, receiving(peer));
        builder.order(receiving(peer), plan::Stream::compute);
        builder.order(sending(peer), plan::Stream::compute);  // it reads what is added to
        builder.kernel(plan::Kernel::accumulate, "elementwise_add", {own, other}, {slot.elements},
                       slot.elements);
    }
}

plan::Tensor PipelineStep::evaluate() {
    plan::PlanBuilder& builder = context_.builder;
    plan::Tensor result;
    std::vector<Key> sends;
    for (const int stage : context_.stages.schedule.stages_of(context_.place)) {
        context_.parallelism.begin_stage(units_[static_cast<std::size_t>(stage)]);
        plan::Tape tape(builder);
        tape.set_recording(false);
        model::Graph graph = context_.new_graph(tape);
        graph.training = false;
        graph.stage = context_.stages.ranges[static_cast<std::size_t>(stage)];
        plan::Tensor input;
        if (context_.stages.is_first(stage)) {
            input = take_input(0);
        } else {
            if (!holds(stage - 1)) receive(stage, 0, stage - 1, inputs_);
            input = take(inputs_, {stage, 0});
        }
        plan::Tensor target;
        if (context_.stages.is_last(stage)) target = take_target(0);
        const plan::PlanBuilder::Scope scope(builder, plan::Phase::validation, -1, -1);
        const plan::Tensor output = call(graph, *context_.tree.root, input);
        if (context_.stages.is_last(stage)) {
            result = context_.workload.loss(graph, context_.job, output, target);
        } else if (holds(stage + 1)) {
            inputs_[{stage + 1, 0}].tensor = output;
        } else {
            send(stage, 0, output, stage + 1, sent_outputs_);
            sends.emplace_back(stage, 0);
        }
    }
    for (const Key& key : sends) wait_for_send(sent_outputs_, key);
    return result;
}

}  // namespace shardscope::trainer::sharding
