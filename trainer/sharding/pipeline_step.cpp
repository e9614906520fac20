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

// The FSDP units of each stage. One is gathered and freed with its stage, so two stages cannot share it.
std::vector<std::vector<int>> units_by_stage(const job::Job& job, const Stages& stages,
                                             const Parallelism& parallelism) {
    std::vector<std::vector<int>> units;
    std::map<int, int> stage_of;
    for (int stage = 0; stage < stages.count(); ++stage) {
        std::set<int> own;
        for (const model::Parameter* parameter : stages.parameters_of(stage))
            if (const int unit = parallelism.unit_of(*parameter); unit >= 0) own.insert(unit);
        units.emplace_back(own.begin(), own.end());
        if (job.parallel.mode != job::ParallelMode::fsdp) continue;  // buckets
        for (const int unit : own) {
            const auto [found, is_new] = stage_of.try_emplace(unit, stage);
            if (is_new) continue;
            throw job::JobError(fmt::format(
                "{}fsdp.wrap: the unit {} has parameters of stages {} and {}, which are gathered at "
                "different times; wrap the layers, as module:Block does, or set parallel.virtual_stages to 1",
                where(job, "fsdp.wrap"), parallelism.units()[static_cast<std::size_t>(unit)].name,
                found->second, stage));
        }
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
      units_(units_by_stage(context_.job, context_.stages, context_.parallelism)) {}

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
            for (const int unit : units_[static_cast<std::size_t>(stage)])
                context_.parallelism.gather_unit(unit);
            return;
        case Kind::reshard:
            for (const int unit : units_[static_cast<std::size_t>(stage)])
                context_.parallelism.free_unit(unit);
            return;
        case Kind::reduce_grad:  // the stage's last backward has done it
        case Kind::wait_reduce_grad:
            return;
        case Kind::backward_input:
            return backward(stage, micro, true);
        case Kind::backward_weight:
            begin_backward(stage);
            taken(in_flight_, key)->tape.weights();
            return;
    }
}

// A schedule may take the micro-batches in another order: the stage's last backward, or W, reduces.
void PipelineStep::begin_backward(int stage) {
    context_.parallelism.begin_backward(at(backwards_[stage]++));
}

plan::Tensor PipelineStep::take(Messages& from, const Key& key) {
    Message message = taken(from, key);
    if (message.event >= 0) context_.builder.wait(message.event, plan::Stream::compute);
    return std::move(message.tensor);
}

// The first stage reads the batch; the place that has both ends keeps its target for the last stage.
plan::Tensor PipelineStep::load_input(int micro_batch) {
    const bool both = holds(context_.stages.count() - 1);
    const plan::PlanBuilder::Scope scope(context_.builder, plan::Phase::data, -1, -1);
    Workload::Batch batch =
        context_.workload.load_batch(context_.builder, context_.job, {.input = true, .target = both});
    if (both) targets_[micro_batch] = std::move(batch.target);
    return std::move(batch.input);
}

plan::Tensor PipelineStep::take_target(int micro_batch) {
    if (holds(0)) return taken(targets_, micro_batch);
    const plan::PlanBuilder::Scope scope(context_.builder, plan::Phase::data, -1, -1);
    return context_.workload.load_batch(context_.builder, context_.job, {.input = false, .target = true})
        .target;
}

void PipelineStep::forward(int stage, int micro_batch) {
    plan::PlanBuilder& builder = context_.builder;
    const Key key{stage, micro_batch};
    context_.parallelism.begin_micro_batch(at(micro_batch));
    context_.parallelism.begin_stage(units_[static_cast<std::size_t>(stage)]);
    auto own = std::make_unique<InFlight>(context_);
    own->graph.finite_flag = context_.finite_flag;
    own->graph.stage = context_.stages.ranges[static_cast<std::size_t>(stage)];
    plan::Tensor input;
    if (context_.stages.is_first(stage)) {
        input = load_input(micro_batch);
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
    if (!of_input) begin_backward(stage);
    std::unique_ptr<InFlight> own = taken(in_flight_, key);
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
    builder.order(plan::Stream::compute, plan::Stream::send);
    builder.send(tensor, context_.stages.place_of(to_stage));
    Message& message = sent[{stage, micro_batch}];
    message = {tensor, builder.new_event()};
    builder.record(message.event, plan::Stream::send);
}

void PipelineStep::receive(int stage, int micro_batch, int from_stage, Messages& into) {
    plan::PlanBuilder& builder = context_.builder;
    const bool forward = from_stage < stage;
    const plan::PlanBuilder::Scope scope(builder, forward ? plan::Phase::forward : plan::Phase::backward, -1,
                                         -1);
    Message message;
    message.tensor = builder.new_tensor(
        forward ? fmt::format("input of stage {}", stage) : fmt::format("output.grad of stage {}", stage),
        plan::MemoryCategory::activations, model::elements_between_layers(context_.job),
        dtype_of(context_.job.precision.param), plan::Stream::receive);
    builder.receive(message.tensor, context_.stages.place_of(from_stage));
    message.event = builder.new_event();
    builder.record(message.event, plan::Stream::receive);
    into[{stage, micro_batch}] = std::move(message);
}

void PipelineStep::wait_for_send(Messages& sent, const Key& key) {
    context_.builder.wait(sent.at(key).event, plan::Stream::compute);
    sent.erase(key);
}

plan::Tensor PipelineStep::evaluate() {
    plan::PlanBuilder& builder = context_.builder;
    plan::Tensor result;
    std::vector<Key> sends;
    for (const int stage : context_.stages.schedule.stages_of(context_.place)) {
        plan::Tape tape(builder);
        tape.set_recording(false);
        model::Graph graph = context_.new_graph(tape);
        graph.training = false;
        graph.stage = context_.stages.ranges[static_cast<std::size_t>(stage)];
        plan::Tensor input;
        if (context_.stages.is_first(stage)) {
            input = load_input(0);
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
