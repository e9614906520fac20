// A byte-level GPT: token and position embedding, blocks of layer norm, causal attention and a feed-forward
// part with GELU, a last layer norm, a linear head, cross-entropy. Initialised as GPT-2.
#pragma once

#include "trainer/model/layers.h"

namespace shardscope::trainer {

inline constexpr int kByteVocabulary = 256;

struct GptShape {
    int layers = 0, heads = 0, width = 0, context = 0, vocabulary = kByteVocabulary;
};

class FeedForward final : public Module {
  public:
    FeedForward(std::string attribute, int width, float projection_std);
    Tensor forward(Graph& graph, const Tensor& input) override;
};

class Block final : public Module {
  public:
    Block(std::string attribute, const GptShape& shape);
    Tensor forward(Graph& graph, const Tensor& input) override;
};

class Gpt final : public Module {
  public:
    explicit Gpt(const GptShape& shape);
    Tensor forward(Graph& graph, const Tensor& tokens) override;
};

// Mean over all positions of -log p(target); int32 targets.
Tensor cross_entropy_loss(Graph& graph, const Tensor& logits, const Tensor& targets);

}  // namespace shardscope::trainer
