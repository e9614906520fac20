#include "trainer/model/llama.h"

#include <algorithm>
#include <string>
#include <utility>

#include "trainer/model/gpt.h"
#include "trainer/model/tensor_parallel.h"

namespace shardscope::trainer::model {

namespace {

constexpr float kLlamaStd = 0.02F;  // initializer_range of the published configurations

}  // namespace

int llama_feed_forward(int width) {
    const int multiple = width < 512 ? 16 : 256;
    const int exact = 8 * width / 3;
    return (exact + multiple - 1) / multiple * multiple;
}

SwiGLU::SwiGLU(std::string attribute, const LlamaShape& shape)
    : Module("SwiGLU", std::move(attribute)), dropout_(shape.dropout > 0), tensor_(shape.tensor) {
    const int hidden = shape.feed_forward;
    add_child(std::make_unique<Linear>("w1", shape.width, hidden, false, kLlamaStd,
                                       kernels::ActivationKind::none, first_of_pair(tensor_)));
    add_child(std::make_unique<Linear>("w3", shape.width, hidden, false, kLlamaStd,
                                       kernels::ActivationKind::none, first_of_pair(tensor_)));
    add_child(std::make_unique<Linear>("w2", hidden, shape.width, false, residual_std(shape.layers),
                                       kernels::ActivationKind::none, second_of_pair(tensor_)));
    if (dropout_) add_child(std::make_unique<Dropout>("dropout", shape.dropout));
}

plan::Tensor SwiGLU::forward(Graph& graph, const plan::Tensor& input) {
    plan::Tensor x = enter_tensor_region(graph, input, tensor_);
    plan::Tensor gate = call(graph, child(0), x);
    plan::Tensor up = call(graph, child(1), x);
    x = silu_mul(graph, path, gate, up);
    gate = up = {};
    x = call(graph, child(2), x);
    return dropout_ ? call(graph, child(3), x) : x;
}

LlamaBlock::LlamaBlock(std::string attribute, const LlamaShape& shape, const Rotary& rotary)
    : Module("LlamaBlock", std::move(attribute)) {
    add_child(std::make_unique<RMSNorm>("norm_1", shape.width));
    add_child(std::make_unique<SelfAttention>("attention",
                                              AttentionShape{.context = shape.context,
                                                             .heads = shape.heads,
                                                             .kv_heads = shape.kv_heads,
                                                             .width = shape.width,
                                                             .bias = false,
                                                             .projection_std = residual_std(shape.layers),
                                                             .dropout = shape.dropout,
                                                             .fused = shape.fused_attention,
                                                             .tensor = shape.tensor,
                                                             .rotary = rotary}));
    add_child(std::make_unique<RMSNorm>("norm_2", shape.width));
    if (shape.experts.experts == 0) {
        add_child(std::make_unique<SwiGLU>("feed_forward", shape));
        return;
    }
    add_child(std::make_unique<MixtureOfExperts>("feed_forward",
                                                 MixtureShape{.experts = shape.experts,
                                                              .width = shape.width,
                                                              .hidden = shape.feed_forward,
                                                              .gated = true,
                                                              .std = kLlamaStd,
                                                              .projection_std = residual_std(shape.layers),
                                                              .dropout = shape.dropout}));
}

plan::Tensor LlamaBlock::forward(Graph& graph, const plan::Tensor& input) {
    plan::Tensor x = add(graph, input, call(graph, child(1), call(graph, child(0), input)));
    return add(graph, x, call(graph, child(3), call(graph, child(2), x)));
}

Llama::Llama(const LlamaShape& shape)
    : Module("Llama", ""), rotary_(shape.context, shape.width / shape.heads, shape.rotary_base) {
    auto embedding =
        std::make_unique<Embedding>("token_embedding", shape.vocabulary, shape.width, shape.tensor);
    const Parameter& table = embedding->parameters().front();
    add_child(std::move(embedding));
    if (shape.dropout > 0) add_child(std::make_unique<Dropout>("dropout", shape.dropout));
    for (int i = 0; i < shape.layers; ++i)
        add_layer(std::make_unique<LlamaBlock>("blocks." + std::to_string(i), shape, rotary_));
    add_child(std::make_unique<RMSNorm>("norm", shape.width));
    add_child(make_head({.width = shape.width,
                         .vocabulary = shape.vocabulary,
                         .tied = shape.tied,
                         .tensor = shape.tensor,
                         .normal_std = kLlamaStd},
                        table));
}

plan::Tensor Llama::forward(Graph& graph, const plan::Tensor& tokens) {
    graph.shared = rotary_.make(graph);
    plan::Tensor logits = call_stage(graph, *this, tokens);
    graph.shared = {};
    return logits;
}

}  // namespace shardscope::trainer::model
