// The MLP of the FSDP talk: Linear layers of one width with ReLU, or another activation, between them, and
// mean squared error.
#pragma once

#include "trainer/model/layers.h"

namespace shardscope::trainer {

class Mlp final : public Module {
  public:
    // fused: each Linear before an activation computes it too.
    // `tensor`: ranks of a tensor group, which share each pair of layers; an odd last layer is whole.
    Mlp(int layers, int width, bool bias, ActivationKind activation, bool fused, int tensor = 1);
    // From fp32 [rows, width] to [rows, width] of the graph's element type.
    Tensor forward(Graph& graph, const Tensor& input) override;
};

// fp32 output and target.
Tensor mse_loss(Graph& graph, const Tensor& output, const Tensor& target);

}  // namespace shardscope::trainer
