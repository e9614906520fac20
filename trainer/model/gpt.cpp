#include "trainer/model/gpt.h"

#include <cmath>
#include <string>
#include <utility>

#include "trainer/kernels/cost.h"

namespace shardscope::trainer {

namespace {

constexpr float kGptStd = 0.02F;

// Projections that feed the residual start smaller, by the number of residual additions (GPT-2).
float residual_std(int layers) {
    return kGptStd / std::sqrt(2.0F * static_cast<float>(layers));
}

}  // namespace

FeedForward::FeedForward(std::string attribute, int width, float projection_std)
    : Module("FeedForward", std::move(attribute)) {
    add_child(std::make_unique<Linear>("expand", width, 4 * width, true, kGptStd));
    add_child(std::make_unique<GELU>("gelu"));
    add_child(std::make_unique<Linear>("projection", 4 * width, width, true, projection_std));
}

Tensor FeedForward::forward(Graph& graph, const Tensor& input) {
    Tensor x = call(graph, child(0), input);
    x = call(graph, child(1), x);
    return call(graph, child(2), x);
}

Block::Block(std::string attribute, const GptShape& shape) : Module("Block", std::move(attribute)) {
    const float std = residual_std(shape.layers);
    add_child(std::make_unique<LayerNorm>("norm_1", shape.width));
    add_child(
        std::make_unique<CausalSelfAttention>("attention", shape.context, shape.heads, shape.width, std));
    add_child(std::make_unique<LayerNorm>("norm_2", shape.width));
    add_child(std::make_unique<FeedForward>("feed_forward", shape.width, std));
}

Tensor Block::forward(Graph& graph, const Tensor& input) {
    Tensor x = add(graph, input, call(graph, child(1), call(graph, child(0), input)));
    return add(graph, x, call(graph, child(3), call(graph, child(2), x)));
}

Gpt::Gpt(const GptShape& shape) : Module("GPT", "") {
    add_child(std::make_unique<Embedding>("token_embedding", shape.vocabulary, shape.width));
    add_child(std::make_unique<PositionEmbedding>("position_embedding", shape.context, shape.width));
    for (int i = 0; i < shape.layers; ++i)
        add_child(std::make_unique<Block>("blocks." + std::to_string(i), shape));
    add_child(std::make_unique<LayerNorm>("norm", shape.width));
    add_child(std::make_unique<Linear>("head", shape.width, shape.vocabulary, false, kGptStd));
}

Tensor Gpt::forward(Graph& graph, const Tensor& tokens) {
    Tensor x = tokens;
    for (const auto& module : children()) x = call(graph, *module, x);
    return x;
}

Tensor cross_entropy_loss(Graph& graph, const Tensor& logits, const Tensor& targets) {
    const std::int64_t rows = targets.bytes() / static_cast<std::int64_t>(sizeof(std::int32_t));
    const std::int64_t classes = logits.floats() / rows;
    const std::int64_t n = rows * classes;
    Tensor loss = graph.builder.new_tensor("loss", MemoryCategory::other, sizeof(double));
    Tensor probabilities = graph.activation("probabilities", n);
    {
        const PlanBuilder::Range range(graph.builder, "aten::cross_entropy_loss");
        graph.builder.kernel(Kernel::cross_entropy_forward, "cross_entropy_forward",
                             {loss, probabilities, logits, targets}, {rows, classes},
                             kernels::cross_entropy_forward_cost(rows, classes).flops);
    }
    graph.tape.node("NllLossBackward0",
                    [&graph, probabilities, targets, rows, classes, n, value = logits.value] {
                        Tensor dlogits = graph.activation("logits.grad", n);
                        graph.builder.kernel(Kernel::cross_entropy_backward, "cross_entropy_backward",
                                             {dlogits, probabilities, targets}, {rows, classes},
                                             kernels::cross_entropy_backward_cost(rows, classes).flops);
                        graph.tape.accumulate(value, std::move(dlogits));
                    });
    return loss;
}

}  // namespace shardscope::trainer
