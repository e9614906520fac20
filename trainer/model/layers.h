// The layers that models are made of, each with its forward and, on the tape, its backward. Shapes:
// activations are row-major [rows, features] of the graph's element type; a weight is [out, in] as in
// PyTorch. A layer computes only the gradients that are wanted: none for a frozen parameter, and none for an
// input that does not depend on a trained parameter.
#pragma once

#include <cstdint>

#include "trainer/kernels/activation_kinds.h"
#include "trainer/model/module.h"

namespace shardscope::trainer::model {

class Linear final : public Module {
  public:
    // Starts as nn.Linear does, uniform in +-1/sqrt(in); a positive `normal_std` starts the weight as
    // normal(0, std) and the bias at 0, as GPT-2 does. With `fused` its kernel also computes the activation
    // and leaves it in Graph::activated; the next module must be that activation, a ReLU or GELU.
    // `cut`: this rank's part of a layer of a tensor group (tensor_parallel.h); `in` and `out` are those of
    // the whole layer. Cut by its columns, its output is summed over the group and not fused with an
    // activation.
    Linear(std::string attribute, int in, int out, bool bias = true, float normal_std = 0,
           kernels::ActivationKind fused = kernels::ActivationKind::none, const TensorCut& cut = {});
    // A head tied to the token embedding: no bias, and a weight [out, in] that another module owns.
    Linear(std::string attribute, const Parameter& tied, int tensor = 1);

    // The first of a pair without a parent that enters the region for it.
    void enter_tensor_region_of(int ranks) { enters_ = ranks; }

    plan::Tensor forward(Graph& graph, const plan::Tensor& input) override;
    std::vector<const Parameter*> shared_parameters() const override;

  private:
    const Parameter& weight() const { return tied_ ? *tied_ : parameters()[0]; }
    plan::Tensor output(Graph& graph, const plan::Tensor& input, bool wanted);
    plan::Tensor int8_output(Graph& graph, const plan::Tensor& input) const;
    void weight_gradients(Graph& graph, plan::Tensor dy, plan::Tensor saved, std::int64_t rows,
                          bool train_weight, bool train_bias);
    plan::Tensor activated_output(Graph& graph, const plan::Tensor& input, bool wanted);
    std::vector<plan::Arg> with_parameters(const Graph& graph, std::vector<plan::Arg> args) const;
    bool is_summed() const { return weight().cut.cut == Cut::columns; }

    std::int64_t in_ = 0, out_ = 0;  // on one rank of a tensor group
    bool bias_;
    kernels::ActivationKind fused_ = kernels::ActivationKind::none;
    const Parameter* tied_ = nullptr;
    int enters_ = 1;
};

// The head of a language model: [out, in] = [vocabulary, width], tied to the embedding's `table` or not.
struct HeadShape {
    int width = 0, vocabulary = 0;
    bool tied = false;
    int tensor = 1;
    float normal_std = 0;
};
std::unique_ptr<Linear> make_head(const HeadShape& shape, const Parameter& table);

// A module of the class that the activation's row names: ReLU, GELU.
class Activation final : public Module {
  public:
    // `in_place`: the result overwrites the input, as with inplace=True in PyTorch; only for an activation
    // whose backward reads the result.
    Activation(std::string attribute, kernels::ActivationKind kind, bool in_place = false);
    plan::Tensor forward(Graph& graph, const plan::Tensor& input) override;

  private:
    kernels::ActivationKind kind_;
    bool in_place_;
};

// Sets each feature to 0 with probability p while training and scales the others by 1 / (1 - p). The mask is
// a function of the run's seed, the module's path, the step, the rank and the element, so it is not kept: the
// backward and a recomputation compute it again.
class Dropout final : public Module {
  public:
    Dropout(std::string attribute, double p) : Module("Dropout", std::move(attribute)), p_(p) {}
    plan::Tensor forward(Graph& graph, const plan::Tensor& input) override;

  private:
    double p_;
};

// Layer normalisation (Ba, Kiros, Hinton: arXiv 1607.06450) of each row; mean and 1 / deviation stay fp32.
class LayerNorm final : public Module {
  public:
    LayerNorm(std::string attribute, int width);
    plan::Tensor forward(Graph& graph, const plan::Tensor& input) override;

  private:
    std::int64_t width_;
};

// y = x / sqrt(mean(x^2) + eps) * weight (Zhang, Sennrich: arXiv 1910.07467); 1 / root stays fp32.
class RMSNorm final : public Module {
  public:
    RMSNorm(std::string attribute, int width);
    plan::Tensor forward(Graph& graph, const plan::Tensor& input) override;

  private:
    std::int64_t width_;
};

// Looks up rows of a table by int32 tokens.
class Embedding final : public Module {
  public:
    // `tensor`: ranks of a tensor group that divide the entries (vocabulary_parallel.h).
    Embedding(std::string attribute, int entries, int width, int tensor = 1);
    plan::Tensor forward(Graph& graph, const plan::Tensor& tokens) override;

  private:
    std::int64_t entries_, width_;  // on one rank
    int tensor_;
};

// Adds row t of a table to the features at position t: the position embedding and its addition in one
// kernel. The input is the token embedding, [batch * context, width].
class PositionEmbedding final : public Module {
  public:
    PositionEmbedding(std::string attribute, int context, int width);
    plan::Tensor forward(Graph& graph, const plan::Tensor& input) override;

  private:
    std::int64_t context_, width_;
};

class Sequential final : public Module {
  public:
    Sequential(std::string attribute, std::vector<std::unique_ptr<Module>> modules);
    plan::Tensor forward(Graph& graph, const plan::Tensor& input) override;
};

// The following functions do not belong to a module.

// Calls the children of `parent`, each with the output of the one before it: all, or those of the graph's
// stage.
plan::Tensor call_in_order(Graph& graph, Module& parent, const plan::Tensor& input);
plan::Tensor call_stage(Graph& graph, Module& parent, const plan::Tensor& input);

// a + b with both gradients: the residual.
plan::Tensor add(Graph& graph, const plan::Tensor& a, const plan::Tensor& b);
// The same, written over a, which no backward reads.
plan::Tensor add_in_place(Graph& graph, const plan::Tensor& a, const plan::Tensor& b);

// silu(gate) * up with both gradients, where silu(x) = x sigmoid(x). The result is named `path`.activation.
plan::Tensor silu_mul(Graph& graph, const std::string& path, const plan::Tensor& gate,
                      const plan::Tensor& up);

// The tensor as fp32 or bf16: itself if it already has that type, else a converted copy (Tensor.to in
// PyTorch); the gradient is converted back.
plan::Tensor to_dtype(Graph& graph, const plan::Tensor& tensor, plan::DType dtype);

}  // namespace shardscope::trainer::model
