#include "trainer/model/bert.h"

#include <string>
#include <utility>

#include "trainer/model/attention.h"
#include "trainer/model/gpt.h"

namespace shardscope::trainer::model {

namespace {

constexpr float kBertStd = 0.02F;  // initializer_range of the released configurations

}  // namespace

BertLayer::BertLayer(std::string attribute, const BertShape& shape)
    : Module("BertLayer", std::move(attribute)) {
    add_child(std::make_unique<SelfAttention>("attention", AttentionShape{.context = shape.context,
                                                                          .heads = shape.heads,
                                                                          .kv_heads = shape.heads,
                                                                          .width = shape.width,
                                                                          .projection_std = kBertStd,
                                                                          .dropout = shape.dropout,
                                                                          .fused = shape.fused_attention,
                                                                          .causal = false,
                                                                          .tensor = shape.tensor}));
    add_child(std::make_unique<LayerNorm>("norm_1", shape.width));
    add_child(std::make_unique<FeedForward>("feed_forward",
                                            FeedForwardShape{.width = shape.width,
                                                             .hidden = shape.feed_forward,
                                                             .projection_std = kBertStd,
                                                             .dropout = shape.dropout,
                                                             .activation = shape.activation,
                                                             .fused_activation = shape.fused_activation,
                                                             .tensor = shape.tensor}));
    add_child(std::make_unique<LayerNorm>("norm_2", shape.width));
}

plan::Tensor BertLayer::forward(Graph& graph, const plan::Tensor& input) {
    const plan::Tensor x = call(graph, child(1), add(graph, input, call(graph, child(0), input)));
    return call(graph, child(3), add(graph, x, call(graph, child(2), x)));
}

Bert::Bert(const BertShape& shape) : Module("Bert", "") {
    auto embedding =
        std::make_unique<Embedding>("token_embedding", shape.vocabulary, shape.width, shape.tensor);
    const Parameter& table = embedding->parameters().front();
    add_child(std::move(embedding));
    add_child(std::make_unique<PositionEmbedding>("position_embedding", shape.context, shape.width));
    add_child(std::make_unique<LayerNorm>("embedding_norm", shape.width));
    if (shape.dropout > 0) add_child(std::make_unique<Dropout>("dropout", shape.dropout));
    for (int i = 0; i < shape.layers; ++i)
        add_layer(std::make_unique<BertLayer>("layers." + std::to_string(i), shape));
    add_child(std::make_unique<Linear>("transform", shape.width, shape.width, true, kBertStd));
    add_child(std::make_unique<Activation>(std::string(name_of(shape.activation)), shape.activation));
    add_child(std::make_unique<LayerNorm>("norm", shape.width));
    add_child(make_head({.width = shape.width,
                         .vocabulary = shape.vocabulary,
                         .tied = shape.tied,
                         .tensor = shape.tensor,
                         .normal_std = kBertStd},
                        table));
}

plan::Tensor Bert::forward(Graph& graph, const plan::Tensor& tokens) {
    return call_stage(graph, *this, tokens);
}

}  // namespace shardscope::trainer::model
