// BERT (Devlin et al., "BERT: Pre-training of deep bidirectional transformers", 2018, arXiv:1810.04805):
// token and position embedding, a layer norm, layers of attention that sees the whole sequence and a
// feed-forward part with GELU, each followed by a layer norm of its sum with the residual, and the head that
// fills masked tokens: Linear, GELU, layer norm, a matmul with the token embedding. Weights start as
// normal(0, 0.02), biases at 0. Omitted are the embedding of segments with the prediction of the next
// sentence and its pooler (a sample is one segment, as in RoBERTa: arXiv:1907.11692), the bias of the last
// matmul, and dropout on the attention's probabilities.
#pragma once

#include "trainer/model/layers.h"

namespace shardscope::trainer::model {

struct BertShape {
    int layers = 0, heads = 0, width = 0;
    int feed_forward = 0;  // features inside the feed-forward part
    int context = 0, vocabulary = 0;
    double dropout = 0;
    bool tied = false;             // the head's weight is the token embedding's
    bool fused_attention = false;  // scores are never stored as a whole
    kernels::ActivationKind activation = kernels::ActivationKind::gelu;
    bool fused_activation = false;  // the matmul before a layer's activation computes it too
    int tensor = 1;                 // ranks of a tensor group
};

class BertLayer final : public Module {
  public:
    BertLayer(std::string attribute, const BertShape& shape);
    plan::Tensor forward(Graph& graph, const plan::Tensor& input) override;
};

class Bert final : public Module {
  public:
    explicit Bert(const BertShape& shape);
    // int32 tokens [batch * context] to logits [batch * context, vocabulary].
    plan::Tensor forward(Graph& graph, const plan::Tensor& tokens) override;
};

}  // namespace shardscope::trainer::model
