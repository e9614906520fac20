// The layers that models are made of, each with its forward and, on the tape, its backward. Shapes:
// activations are row-major [rows, features]; a weight is [out, in] as in PyTorch; all fp32.
#pragma once

#include "trainer/model/module.h"

namespace shardscope::trainer {

class Linear final : public Module {
  public:
    // Starts as nn.Linear does, uniform in +-1/sqrt(in); a positive `normal_std` starts the weight as
    // normal(0, std) and the bias at 0, as GPT-2 does.
    Linear(std::string attribute, int in, int out, bool bias = true, float normal_std = 0);
    Tensor forward(Graph& graph, const Tensor& input) override;

  private:
    int in_, out_;
    bool bias_;
};

class ReLU final : public Module {
  public:
    explicit ReLU(std::string attribute) : Module("ReLU", std::move(attribute)) {}
    Tensor forward(Graph& graph, const Tensor& input) override;
};

class GELU final : public Module {
  public:
    explicit GELU(std::string attribute) : Module("GELU", std::move(attribute)) {}
    Tensor forward(Graph& graph, const Tensor& input) override;
};

class LayerNorm final : public Module {
  public:
    LayerNorm(std::string attribute, int width);
    Tensor forward(Graph& graph, const Tensor& input) override;

  private:
    int width_;
};

// Rows of a table, chosen by int32 tokens.
class Embedding final : public Module {
  public:
    Embedding(std::string attribute, int entries, int width);
    Tensor forward(Graph& graph, const Tensor& tokens) override;

  private:
    int entries_, width_;
};

// Adds row t of a table to the features at position t: the position embedding and its addition in one
// kernel. The input is the token embedding, [batch * context, width].
class PositionEmbedding final : public Module {
  public:
    PositionEmbedding(std::string attribute, int context, int width);
    Tensor forward(Graph& graph, const Tensor& input) override;

  private:
    int context_, width_;
};

// Scaled dot-product attention over [batch * context, 3 * width] queries, keys and values; each position sees
// itself and what stands before it. Keeps the probabilities [batch, heads, context, context].
class CausalSelfAttention final : public Module {
  public:
    CausalSelfAttention(std::string attribute, int context, int heads, int width, float projection_std);
    Tensor forward(Graph& graph, const Tensor& input) override;

  private:
    int context_, heads_, width_;
};

class Sequential final : public Module {
  public:
    Sequential(std::string attribute, std::vector<std::unique_ptr<Module>> modules);
    Tensor forward(Graph& graph, const Tensor& input) override;
};

// a + b with both gradients, outside any module: the residual.
Tensor add(Graph& graph, const Tensor& a, const Tensor& b);

}  // namespace shardscope::trainer
