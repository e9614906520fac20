#include "trainer/model/mlp.h"

#include <algorithm>
#include <string>
#include <utility>

#include "trainer/kernels/cost.h"
#include "trainer/model/tensor_parallel.h"

namespace shardscope::trainer::model {

namespace {

std::unique_ptr<Sequential> make_net(int layers, int width, bool bias, kernels::ActivationKind activation,
                                     bool fused, int tensor) {
    std::vector<std::unique_ptr<Module>> net;
    for (int i = 0; i < layers; ++i) {
        if (i > 0) net.push_back(std::make_unique<Activation>(std::to_string(net.size()), activation));
        const bool is_activated = i + 1 < layers;
        const bool second = i % 2 == 1, paired = second || i + 1 < layers;
        auto linear =
            std::make_unique<Linear>(std::to_string(net.size()), width, width, bias, 0.0F,
                                     fused && is_activated ? activation : kernels::ActivationKind::none,
                                     !paired  ? TensorCut{}
                                     : second ? second_of_pair(tensor)
                                              : first_of_pair(tensor));
        if (paired && !second) linear->enter_tensor_region_of(tensor);
        linear->is_layer = tensor == 1 || !second;  // a pair stays together
        net.push_back(std::move(linear));
    }
    return std::make_unique<Sequential>("net", std::move(net));
}

}  // namespace

Mlp::Mlp(int layers, int width, bool bias, kernels::ActivationKind activation, bool fused, int tensor)
    : Module("MLP", "") {
    add_child(make_net(layers, width, bias, activation, fused, tensor));
}

plan::Tensor Mlp::forward(Graph& graph, const plan::Tensor& input) {
    return call(graph, child(0), to_dtype(graph, input, graph.dtype));
}

plan::Tensor mse_loss(Graph& graph, const plan::Tensor& output, const plan::Tensor& target) {
    const std::int64_t n = output.elements();
    plan::Tensor loss =
        graph.builder.new_tensor("loss", plan::MemoryCategory::other, std::max<std::int64_t>(n, 2));
    {
        const plan::PlanBuilder::Range range(graph.builder, "aten::mse_loss");
        graph
            .kernel(plan::Kernel::mse_forward, "mse_loss_forward", {loss, output, target}, {n},
                    kernels::mse_forward_cost(n).flops)
            .kernel()
            .dtype = plan::DType::fp32;
    }
    if (!graph.tape.recording() || output.value < 0) return loss;
    graph.tape.node("MseLossBackward0", [&graph, output, target, n] {
        plan::Tensor dout = graph.activation("output.grad", n, plan::DType::fp32);
        graph
            .kernel(plan::Kernel::mse_backward, "mse_loss_backward", {dout, output, target}, {n},
                    kernels::mse_backward_cost(n).flops)
            .kernel()
            .dtype = plan::DType::fp32;
        graph.tape.accumulate(output.value, std::move(dout));
    });
    return loss;
}

}  // namespace shardscope::trainer::model
