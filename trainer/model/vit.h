// A vision transformer (Dosovitskiy et al., "An image is worth 16x16 words": arXiv 2010.11929): patches of
// the image through one convolution, a learned token before them, position embeddings, the blocks of a GPT
// with attention to all, a last layer norm, and a Linear head on the first token. It has the parameters of
// torchvision's; GELU is its tanh form, the epsilon of norms 1e-5, and blocks start as GPT-2's.
#pragma once

#include "trainer/kernels/activation_kinds.h"
#include "trainer/model/module.h"

namespace shardscope::trainer::model {

struct VitShape {
    int layers = 12, heads = 12, width = 768;
    int patch = 16;  // pixels of a side
    int image = 224, channels = 3;
    int classes = 1000;
    double dropout = 0;
    bool fused_attention = false;  // scores are never stored as a whole
    kernels::ActivationKind activation = kernels::ActivationKind::gelu;
    bool fused_activation = false;  // the matmul before an activation computes it too
};

class Vit final : public Module {
  public:
    explicit Vit(const VitShape& shape);
    // fp32 images [batch, image, image, channels] to logits [batch, classes].
    plan::Tensor forward(Graph& graph, const plan::Tensor& images) override;

  private:
    int context_, width_;  // tokens of an image; features of each
};

}  // namespace shardscope::trainer::model
