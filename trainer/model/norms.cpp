#include <utility>

#include "trainer/kernels/cost.h"
#include "trainer/model/layer_tools.h"
#include "trainer/model/layers.h"

namespace shardscope::trainer {

LayerNorm::LayerNorm(std::string attribute, int width)
    : Module("LayerNorm", std::move(attribute)), width_(width) {
    add_parameter("weight", width, 1, {InitKind::constant, 1, 0});
    add_parameter("bias", width, 1, {});
}

Tensor LayerNorm::forward(Graph& graph, const Tensor& x) {
    const std::int64_t rows = x.elements() / width_;
    const bool train = parameters()[kWeight].trained;  // weight and bias are frozen together
    Tensor y = output_of(graph, path + ".output", rows * width_, wants(graph, x, parameters()[kWeight]));
    Tensor mean = graph.activation(path + ".mean", rows, DType::fp32);
    Tensor rstd = graph.activation(path + ".rstd", rows, DType::fp32);
    {
        const PlanBuilder::Range range(graph.builder, "aten::layer_norm");
        check_output(graph,
                     graph.kernel(Kernel::layer_norm_forward, "layer_norm_forward",
                                  {y, mean, rstd, x, graph.store.parameter(parameters()[kWeight]),
                                   graph.store.parameter(parameters()[kBias])},
                                  {rows, width_}, kernels::layer_norm_forward_cost(rows, width_).flops));
    }
    if (y.value < 0) return y;
    graph.tape.node("NativeLayerNormBackward0", [this, &graph, x, mean, rstd, rows, train, value = y.value] {
        Tensor dy = graph.tape.take_gradient(value);
        Tensor dx, dgamma, dbeta;
        if (x.value >= 0) dx = graph.activation(path + ".input.grad", rows * width_);
        if (train) {
            dgamma = graph.gradient(parameters()[kWeight]);
            dbeta = graph.gradient(parameters()[kBias]);
        }
        const kernels::Cost cost =
            (dx ? kernels::layer_norm_backward_input_cost(rows, width_) : kernels::Cost{}) +
            (train ? kernels::layer_norm_backward_parameters_cost(rows, width_) : kernels::Cost{});
        graph.kernel(Kernel::layer_norm_backward, "layer_norm_backward",
                     {dx, dgamma, dbeta, dy, x, graph.store.parameter(parameters()[kWeight]), mean, rstd},
                     {rows, width_}, cost.flops);
        dy = {};
        graph.tape.accumulate(x.value, std::move(dx));
        if (!train) return;
        graph.store.gradient_ready(parameters()[kWeight], std::move(dgamma));
        graph.store.gradient_ready(parameters()[kBias], std::move(dbeta));
    });
    return y;
}

RMSNorm::RMSNorm(std::string attribute, int width) : Module("RMSNorm", std::move(attribute)), width_(width) {
    add_parameter("weight", width, 1, {InitKind::constant, 1, 0});
}

Tensor RMSNorm::forward(Graph& graph, const Tensor& x) {
    const std::int64_t rows = x.elements() / width_;
    const bool train = parameters()[kWeight].trained;
    Tensor y = output_of(graph, path + ".output", rows * width_, wants(graph, x, parameters()[kWeight]));
    Tensor rstd = graph.activation(path + ".rstd", rows, DType::fp32);
    {
        const PlanBuilder::Range range(graph.builder, "aten::rms_norm");
        check_output(graph, graph.kernel(Kernel::rms_norm_forward, "rms_norm_forward",
                                         {y, rstd, x, graph.store.parameter(parameters()[kWeight])},
                                         {rows, width_}, kernels::rms_norm_forward_cost(rows, width_).flops));
    }
    if (y.value < 0) return y;
    graph.tape.node("RmsNormBackward0", [this, &graph, x, rstd, rows, train, value = y.value] {
        Tensor dy = graph.tape.take_gradient(value);
        Tensor dx, dgamma;
        if (x.value >= 0) dx = graph.activation(path + ".input.grad", rows * width_);
        if (train) dgamma = graph.gradient(parameters()[kWeight]);
        graph.kernel(Kernel::rms_norm_backward, "rms_norm_backward",
                     {dx, dgamma, dy, x, graph.store.parameter(parameters()[kWeight]), rstd}, {rows, width_},
                     kernels::rms_norm_backward_cost(rows, width_).flops);
        dy = {};
        graph.tape.accumulate(x.value, std::move(dx));
        if (train) graph.store.gradient_ready(parameters()[kWeight], std::move(dgamma));
    });
    return y;
}

}  // namespace shardscope::trainer
