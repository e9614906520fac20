// Llama (Touvron et al.: arXiv 2302.13971; "The Llama 3 herd of models": arXiv 2407.21783): token embedding,
// blocks of RMS norm, causal attention with rotary positions and grouped queries, and a feed-forward part
// with SwiGLU; a last RMS norm and a linear head; no biases. Weights start as normal(0, 0.02), those that
// feed the residual with a smaller deviation, as in GPT-2. Dropout, off in Llama, is where GPT-2 has it.
#pragma once

#include "trainer/model/attention.h"
#include "trainer/model/layers.h"
#include "trainer/model/mixture_of_experts.h"

namespace shardscope::trainer::model {

struct LlamaShape {
    int layers = 0, heads = 0, kv_heads = 0, width = 0, context = 0, vocabulary = 0;
    int feed_forward = 0;  // features between w1 and w2
    double rotary_base = 10000;
    double dropout = 0;
    bool tied = false;             // the head's weight is the token embedding's
    bool fused_attention = false;  // scores are never stored as a whole
    int tensor = 1;                // ranks of a tensor group
    ExpertsShape experts;          // in the place of feed-forward parts
};

// Two thirds of the 4 * width of a plain feed-forward part, because three matrices replace two, rounded up to
// a multiple of 256, or of 16 for widths below 512.
int llama_feed_forward(int width);

// w2(silu(w1(x)) * w3(x)) (Shazeer, "GLU variants improve transformer": arXiv 2002.05202).
class SwiGLU final : public Module {
  public:
    SwiGLU(std::string attribute, const LlamaShape& shape);
    plan::Tensor forward(Graph& graph, const plan::Tensor& input) override;

  private:
    bool dropout_;
    int tensor_;
};

class LlamaBlock final : public Module {
  public:
    LlamaBlock(std::string attribute, const LlamaShape& shape, const Rotary& rotary);
    plan::Tensor forward(Graph& graph, const plan::Tensor& input) override;
};

class Llama final : public Module {
  public:
    explicit Llama(const LlamaShape& shape);
    // int32 tokens [batch * context] to logits [batch * context, vocabulary].
    plan::Tensor forward(Graph& graph, const plan::Tensor& tokens) override;

  private:
    Rotary rotary_;
};

}  // namespace shardscope::trainer::model
