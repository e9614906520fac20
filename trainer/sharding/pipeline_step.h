// A step as the ranks at one place of a pipeline do it: their actions of the schedule (trainer/pipeline), in
// its order, as operations.
//
//   F              the forward of a stage, with a tape of its own for the micro-batch
//   B              runs that tape backwards, which frees what it saved; a stage's last one reduces
//   I, W           the same in two parts: the gradient of the input, then those of the parameters
//   SEND, RECV     messages, on streams of their own, which the compute stream waits for
//   WAIT_SEND      the compute stream waits for the send; then what was sent may be freed
//   UNSHARD, RESHARD   the FSDP units of the stage are gathered and freed
//
// The trace shows each in a range with PyTorch's name, "PP:1F3".
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "trainer/model/activation_offload.h"
#include "trainer/sharding/parallelism.h"
#include "trainer/sharding/stages.h"
#include "trainer/sharding/workload.h"

namespace shardscope::trainer::sharding {

class PipelineStep {
  public:
    struct Context {
        plan::PlanBuilder& builder;
        const job::Job& job;
        Workload& workload;
        const model::ModuleTree& tree;
        Parallelism& parallelism;
        const Stages& stages;
        int place = 0;
        plan::Arg finite_flag;  // Graph::finite_flag
        std::function<model::Graph(plan::Tape&)> new_graph;
    };
    explicit PipelineStep(Context context);

    // The forwards and backwards of all micro-batches. `on_loss` gets those of the last stage, in their
    // order.
    void train(const std::function<void(int micro_batch, const plan::Tensor& loss)>& on_loss);
    // After the reductions: the place of the first stage and that of the last send each other the gradient of
    // the parameter that both have a copy of, and add what they receive. That is the all-reduce of Megatron's
    // embedding group.
    void add_copied_gradients();
    // One batch through the stages of this place, without a backward: its loss, from the place that has the
    // last stage.
    plan::Tensor evaluate();
    // Whether activations were copied to the host (memory.offload).
    bool copies_activations() const { return copies_activations_; }

  private:
    using Key = std::pair<int, int>;  // stage, micro-batch
    // A stage's micro-batch, from its forward to the end of its backward.
    struct InFlight {
        explicit InFlight(const Context& context)
            : tape(context.builder), graph(context.new_graph(tape)), offload(context.builder, tape) {
            if (context.job.memory.offload.activations) graph.offload = &offload;
        }
        plan::Tape tape;
        model::Graph graph;
        model::ActivationOffload offload;
        plan::Tensor output, input_gradient;
    };
    // A message, or what another stage of this place hands over.
    struct Message {
        plan::Tensor tensor;
        plan::EventId event = -1;  // it has been sent, or received; -1: no message
    };
    using Messages = std::map<Key, Message>;

    void carry_out(const pipeline::Action& action);
    void forward(int stage, int micro_batch);
    void backward(int stage, int micro_batch, bool of_input);
    void begin_backward(int stage);
    void send(int stage, int micro_batch, const plan::Tensor& tensor, int to_stage, Messages& sent);
    void receive(int stage, int micro_batch, int from_stage, Messages& into);
    void wait_for_send(Messages& sent, const Key& key);
    plan::Tensor take(Messages& from, const Key& key);
    Workload::Batch& batch(int micro_batch);
    plan::Tensor take_input(int micro_batch);
    plan::Tensor take_target(int micro_batch);
    // The streams of messages to and from another place.
    plan::Stream sending(int to) const { return is_next(to) ? plan::Stream::send : plan::Stream::send_back; }
    plan::Stream receiving(int from) const {
        return is_previous(from) ? plan::Stream::receive : plan::Stream::receive_back;
    }
    bool is_next(int place) const { return place == (context_.place + 1) % places(); }
    bool is_previous(int place) const { return context_.place == (place + 1) % places(); }
    int places() const { return context_.stages.schedule.ranks(); }
    bool holds(int stage) const { return context_.stages.place_of(stage) == context_.place; }
    MicroBatch at(int number) const { return {number, context_.stages.schedule.micro_batches}; }

    Context context_;
    std::function<void(int, const plan::Tensor&)> on_loss_;
    std::map<Key, std::unique_ptr<InFlight>> in_flight_;
    Messages inputs_, gradients_;  // of a stage's forward, and of its backward
    Messages sent_outputs_, sent_gradients_;
    std::map<int, Workload::Batch> batches_;  // by micro-batch: loaded and not yet taken
    bool copies_activations_ = false;
    int loaded_ = 0;                            // micro-batches of which the batch has been loaded
    std::vector<std::vector<int>> units_;       // by stage
    std::map<int, int> forwards_, backwards_;   // by stage: those that have begun
    std::map<int, int> readers_;                // by unit: gathered stages of the place that read it
    const model::Parameter* shared_ = nullptr;  // which the first and the last stage read, both on this place
};

}  // namespace shardscope::trainer::sharding
