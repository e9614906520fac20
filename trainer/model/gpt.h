// GPT-2 (Radford et al., "Language models are unsupervised multitask learners", 2019): token and position
// embedding, blocks of layer norm, causal attention and a feed-forward part with GELU, a last layer norm, a
// linear head, cross-entropy. Initialised as in GPT-2: normal(0, 0.02), divided by the square root of the
// number of residual additions for projections that feed the residual, and biases 0. Dropout is where
// GPT-2 has it, except on the attention's probabilities.
#pragma once

#include "trainer/model/layers.h"
#include "trainer/model/mixture_of_experts.h"

namespace shardscope::trainer::model {

struct GptShape {
    int layers = 0, heads = 0, width = 0, context = 0, vocabulary = 0;
    double dropout = 0;
    bool tied = false;             // the head's weight is the token embedding's
    bool fused_attention = false;  // scores are never stored as a whole
    bool causal = true;
    kernels::ActivationKind activation = kernels::ActivationKind::gelu;
    bool fused_activation = false;  // the matmul before an activation computes it too
    int tensor = 1;                 // ranks of a tensor group
    ExpertsShape experts;           // in the place of feed-forward parts
};

// The initial standard deviation of projections that feed the residual, two in each layer.
float residual_std(int layers);

struct FeedForwardShape {
    int width = 0, hidden = 0;
    float projection_std = 0;  // of the weight that projects back to the width
    double dropout = 0;
    kernels::ActivationKind activation = kernels::ActivationKind::gelu;
    bool fused_activation = false;
    int tensor = 1;
};

class FeedForward final : public Module {
  public:
    FeedForward(std::string attribute, const FeedForwardShape& shape);
    plan::Tensor forward(Graph& graph, const plan::Tensor& input) override;

  private:
    int tensor_;
};

class GptBlock final : public Module {
  public:
    GptBlock(std::string attribute, const GptShape& shape);
    plan::Tensor forward(Graph& graph, const plan::Tensor& input) override;
};

class Gpt final : public Module {
  public:
    explicit Gpt(const GptShape& shape);
    // int32 tokens [batch * context] to logits [batch * context, vocabulary].
    plan::Tensor forward(Graph& graph, const plan::Tensor& tokens) override;
};

// Mean of -log p(target) over the `counted` positions whose target is not negative (0: over all positions);
// fp32 logits, int32 targets. `smoothing`: the
// share of the target that all classes get.
plan::Tensor cross_entropy_loss(Graph& graph, const plan::Tensor& logits, const plan::Tensor& targets,
                                std::int64_t counted = 0, double smoothing = 0);

// The backward of a cross-entropy that has kept its probabilities, as a node on the tape.
void record_cross_entropy_backward(Graph& graph, const plan::Tensor& logits,
                                   const plan::Tensor& probabilities, const plan::Tensor& targets,
                                   std::int64_t counted, double smoothing = 0);

}  // namespace shardscope::trainer::model
