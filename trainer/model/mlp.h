// The MLP of the FSDP talk: Linear layers of one width with ReLU between, and mean-squared error.
#pragma once

#include "trainer/model/layers.h"

namespace shardscope::trainer {

class Mlp final : public Module {
  public:
    Mlp(int layers, int width, bool bias);
    Tensor forward(Graph& graph, const Tensor& input) override { return call(graph, child(0), input); }
};

Tensor mse_loss(Graph& graph, const Tensor& output, const Tensor& target);

}  // namespace shardscope::trainer
