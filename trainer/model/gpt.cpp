#include "trainer/model/gpt.h"

#include <cmath>
#include <string>
#include <utility>

#include "trainer/kernels/cost.h"
#include "trainer/model/attention.h"
#include "trainer/model/tensor_parallel.h"

namespace shardscope::trainer::model {

namespace {

constexpr float kGptStd = 0.02F;

}  // namespace

float residual_std(int layers) {
    return kGptStd / std::sqrt(2.0F * static_cast<float>(layers));
}

FeedForward::FeedForward(std::string attribute, const FeedForwardShape& shape)
    : Module("FeedForward", std::move(attribute)), tensor_(shape.tensor) {
    add_child(
        std::make_unique<Linear>("expand", shape.width, shape.hidden, true, kGptStd,
                                 shape.fused_activation ? shape.activation : kernels::ActivationKind::none,
                                 first_of_pair(shape.tensor)));
    add_child(std::make_unique<Activation>(std::string(name_of(shape.activation)), shape.activation));
    add_child(std::make_unique<Linear>("projection", shape.hidden, shape.width, true, shape.projection_std,
                                       kernels::ActivationKind::none, second_of_pair(shape.tensor)));
    if (shape.dropout > 0) add_child(std::make_unique<Dropout>("dropout", shape.dropout));
}

plan::Tensor FeedForward::forward(Graph& graph, const plan::Tensor& input) {
    return call_in_order(graph, *this, enter_tensor_region(graph, input, tensor_));
}

GptBlock::GptBlock(std::string attribute, const GptShape& shape) : Module("Block", std::move(attribute)) {
    add_child(std::make_unique<LayerNorm>("norm_1", shape.width));
    add_child(std::make_unique<SelfAttention>("attention",
                                              AttentionShape{.context = shape.context,
                                                             .heads = shape.heads,
                                                             .kv_heads = shape.heads,
                                                             .width = shape.width,
                                                             .projection_std = residual_std(shape.layers),
                                                             .dropout = shape.dropout,
                                                             .fused = shape.fused_attention,
                                                             .causal = shape.causal,
                                                             .tensor = shape.tensor}));
    add_child(std::make_unique<LayerNorm>("norm_2", shape.width));
    if (shape.experts.experts > 0) {
        add_child(std::make_unique<MixtureOfExperts>(
            "feed_forward", MixtureShape{.experts = shape.experts,
                                         .width = shape.width,
                                         .hidden = 4 * shape.width,
                                         .activation = shape.activation,
                                         .std = kGptStd,
                                         .projection_std = residual_std(shape.layers),
                                         .dropout = shape.dropout}));
        return;
    }
    add_child(std::make_unique<FeedForward>("feed_forward",
                                            FeedForwardShape{.width = shape.width,
                                                             .hidden = 4 * shape.width,
                                                             .projection_std = residual_std(shape.layers),
                                                             .dropout = shape.dropout,
                                                             .activation = shape.activation,
                                                             .fused_activation = shape.fused_activation,
                                                             .tensor = shape.tensor}));
}

plan::Tensor GptBlock::forward(Graph& graph, const plan::Tensor& input) {
    plan::Tensor x = add(graph, input, call(graph, child(1), call(graph, child(0), input)));
    return add(graph, x, call(graph, child(3), call(graph, child(2), x)));
}

Gpt::Gpt(const GptShape& shape) : Module("GPT", "") {
    auto embedding =
        std::make_unique<Embedding>("token_embedding", shape.vocabulary, shape.width, shape.tensor);
    const Parameter& table = embedding->parameters().front();
    add_child(std::move(embedding));
    add_child(std::make_unique<PositionEmbedding>("position_embedding", shape.context, shape.width));
    if (shape.dropout > 0) add_child(std::make_unique<Dropout>("dropout", shape.dropout));
    for (int i = 0; i < shape.layers; ++i)
        add_layer(std::make_unique<GptBlock>("blocks." + std::to_string(i), shape));
    add_child(std::make_unique<LayerNorm>("norm", shape.width));
    add_child(make_head({.width = shape.width,
                         .vocabulary = shape.vocabulary,
                         .tied = shape.tied,
                         .tensor = shape.tensor,
                         .normal_std = kGptStd},
                        table));
}

plan::Tensor Gpt::forward(Graph& graph, const plan::Tensor& tokens) {
    return call_stage(graph, *this, tokens);
}

void record_cross_entropy_backward(Graph& graph, const plan::Tensor& logits,
                                   const plan::Tensor& probabilities, const plan::Tensor& targets,
                                   std::int64_t counted, double smoothing) {
    const std::int64_t rows = targets.bytes() / size_of(plan::DType::int32), n = probabilities.elements();
    graph.tape.node("NllLossBackward0", [&graph, probabilities, targets, rows, n, counted, smoothing,
                                         value = logits.value] {
        const std::int64_t classes = n / rows;
        plan::Tensor dlogits = graph.activation("logits.grad", n, plan::DType::fp32);
        plan::KernelOp& own = graph
                                  .kernel(plan::Kernel::cross_entropy_backward, "cross_entropy_backward",
                                          {dlogits, probabilities, targets}, {rows, classes, counted},
                                          kernels::cross_entropy_backward_cost(rows, classes).flops)
                                  .kernel();
        own.dtype = plan::DType::fp32;
        own.scalars = {smoothing};
        graph.tape.accumulate(value, std::move(dlogits));
    });
}

plan::Tensor cross_entropy_loss(Graph& graph, const plan::Tensor& logits, const plan::Tensor& targets,
                                std::int64_t counted, double smoothing) {
    const std::int64_t rows = targets.bytes() / size_of(plan::DType::int32);
    const std::int64_t classes = logits.elements() / rows;
    const std::int64_t n = rows * classes;
    plan::Tensor loss = graph.builder.new_tensor("loss", plan::MemoryCategory::other, 1, plan::DType::fp64);
    plan::Tensor probabilities = graph.activation("probabilities", n, plan::DType::fp32);
    {
        const plan::PlanBuilder::Range range(graph.builder, "aten::cross_entropy_loss");
        plan::KernelOp& own = graph
                                  .kernel(plan::Kernel::cross_entropy_forward, "cross_entropy_forward",
                                          {loss, probabilities, logits, targets}, {rows, classes, counted},
                                          kernels::cross_entropy_forward_cost(rows, classes).flops)
                                  .kernel();
        own.dtype = plan::DType::fp32;
        own.scalars = {smoothing};
    }
    if (graph.tape.recording() && logits.value >= 0)
        record_cross_entropy_backward(graph, logits, probabilities, targets, counted, smoothing);
    return loss;
}

}  // namespace shardscope::trainer::model
