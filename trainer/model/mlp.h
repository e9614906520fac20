// The MLP of the FSDP talk: Linear layers of one width with ReLU, or another activation, between them, and
// mean squared error.
#pragma once

#include "trainer/model/layers.h"

namespace shardscope::trainer::model {

class Mlp final : public Module {
  public:
    // fused: each Linear before an activation computes it too.
    // `tensor`: ranks of a tensor group, which share each pair of layers; an odd last layer is whole.
    Mlp(int layers, int width, bool bias, kernels::ActivationKind activation, bool fused, int tensor = 1);
    // From fp32 [rows, width] to [rows, width] of the graph's element type.
    plan::Tensor forward(Graph& graph, const plan::Tensor& input) override;
};

// fp32 output and target.
plan::Tensor mse_loss(Graph& graph, const plan::Tensor& output, const plan::Tensor& target);

}  // namespace shardscope::trainer::model
