#include <utility>

#include "trainer/kernels/cost.h"
#include "trainer/model/layer_tools.h"
#include "trainer/model/layers.h"

namespace shardscope::trainer::model {

namespace {

// One kernel gives both gradients, or, in a backward in two parts, one each. `run` takes the output's
// gradient.
template <class Run>
void run_in_parts(Graph& graph, plan::Tensor dy, bool input, bool weights, const Run& run) {
    if (!input || !weights || !graph.tape.defers_weights()) {
        if (input || !graph.tape.defers_weights()) return run(std::move(dy), input, weights);
        return graph.tape.weight_work([run, dy = std::move(dy)] { run(dy, false, true); });
    }
    run(dy, true, false);
    graph.tape.weight_work([run, dy = std::move(dy)] { run(dy, false, true); });
}

}  // namespace

LayerNorm::LayerNorm(std::string attribute, int width)
    : Module("LayerNorm", std::move(attribute)), width_(width) {
    add_parameter("weight", width, 1, {InitKind::constant, 1, 0});
    add_parameter("bias", width, 1, {});
}

plan::Tensor LayerNorm::forward(Graph& graph, const plan::Tensor& x) {
    const std::int64_t rows = x.elements() / width_;
    const bool train = parameters()[kWeight].trained;  // weight and bias are frozen together
    plan::Tensor y =
        output_of(graph, path + ".output", rows * width_, wants(graph, x, parameters()[kWeight]));
    plan::Tensor mean = graph.activation(path + ".mean", rows, plan::DType::fp32);
    plan::Tensor rstd = graph.activation(path + ".rstd", rows, plan::DType::fp32);
    {
        const plan::PlanBuilder::Range range(graph.builder, "aten::layer_norm");
        check_output(graph,
                     graph.kernel(plan::Kernel::layer_norm_forward, "layer_norm_forward",
                                  {y, mean, rstd, x, graph.store.parameter(parameters()[kWeight]),
                                   graph.store.parameter(parameters()[kBias])},
                                  {rows, width_}, kernels::layer_norm_forward_cost(rows, width_).flops));
    }
    if (y.value < 0) return y;
    graph.tape.node("NativeLayerNormBackward0", [this, &graph, x, mean, rstd, rows, train, value = y.value] {
        plan::Tensor dy = graph.tape.take_gradient(value);
        const auto run = [this, &graph, x, mean, rstd, rows](plan::Tensor gradient, bool input,
                                                             bool weights) {
            plan::Tensor dx, dgamma, dbeta;
            if (input) dx = graph.activation(path + ".input.grad", rows * width_);
            if (weights) {
                dgamma = graph.gradient(parameters()[kWeight]);
                dbeta = graph.gradient(parameters()[kBias]);
            }
            const kernels::Cost cost =
                (input ? kernels::layer_norm_backward_input_cost(rows, width_) : kernels::Cost{}) +
                (weights ? kernels::layer_norm_backward_parameters_cost(rows, width_) : kernels::Cost{});
            graph.kernel(
                plan::Kernel::layer_norm_backward, "layer_norm_backward",
                {dx, dgamma, dbeta, gradient, x, graph.store.parameter(parameters()[kWeight]), mean, rstd},
                {rows, width_}, cost.flops);
            gradient = {};
            if (input) graph.tape.accumulate(x.value, std::move(dx));
            if (!weights) return;
            graph.store.gradient_ready(parameters()[kWeight], std::move(dgamma));
            graph.store.gradient_ready(parameters()[kBias], std::move(dbeta));
        };
        run_in_parts(graph, std::move(dy), x.value >= 0, train, run);
    });
    return y;
}

RMSNorm::RMSNorm(std::string attribute, int width) : Module("RMSNorm", std::move(attribute)), width_(width) {
    add_parameter("weight", width, 1, {InitKind::constant, 1, 0});
}

plan::Tensor RMSNorm::forward(Graph& graph, const plan::Tensor& x) {
    const std::int64_t rows = x.elements() / width_;
    const bool train = parameters()[kWeight].trained;
    plan::Tensor y =
        output_of(graph, path + ".output", rows * width_, wants(graph, x, parameters()[kWeight]));
    plan::Tensor rstd = graph.activation(path + ".rstd", rows, plan::DType::fp32);
    {
        const plan::PlanBuilder::Range range(graph.builder, "aten::rms_norm");
        check_output(graph, graph.kernel(plan::Kernel::rms_norm_forward, "rms_norm_forward",
                                         {y, rstd, x, graph.store.parameter(parameters()[kWeight])},
                                         {rows, width_}, kernels::rms_norm_forward_cost(rows, width_).flops));
    }
    if (y.value < 0) return y;
    graph.tape.node("RmsNormBackward0", [this, &graph, x, rstd, rows, train, value = y.value] {
        plan::Tensor dy = graph.tape.take_gradient(value);
        const auto run = [this, &graph, x, rstd, rows](plan::Tensor gradient, bool input, bool weights) {
            plan::Tensor dx, dgamma;
            if (input) dx = graph.activation(path + ".input.grad", rows * width_);
            if (weights) dgamma = graph.gradient(parameters()[kWeight]);
            graph.kernel(plan::Kernel::rms_norm_backward, "rms_norm_backward",
                         {dx, dgamma, gradient, x, graph.store.parameter(parameters()[kWeight]), rstd},
                         {rows, width_}, kernels::rms_norm_backward_cost(rows, width_).flops);
            gradient = {};
            if (input) graph.tape.accumulate(x.value, std::move(dx));
            if (weights) graph.store.gradient_ready(parameters()[kWeight], std::move(dgamma));
        };
        run_in_parts(graph, std::move(dy), x.value >= 0, train, run);
    });
    return y;
}

}  // namespace shardscope::trainer::model
