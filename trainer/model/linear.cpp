#include <cmath>
#include <utility>

#include "trainer/kernels/cost.h"
#include "trainer/model/layer_tools.h"
#include "trainer/model/layers.h"

namespace shardscope::trainer {

Linear::Linear(std::string attribute, int in, int out, bool bias, float normal_std)
    : Module("Linear", std::move(attribute)), in_(in), out_(out), bias_(bias) {
    const float bound = 1.0F / std::sqrt(static_cast<float>(in));
    const bool normal = normal_std > 0;
    add_parameter("weight", out, in,
                  normal ? Init{InitKind::normal, 0, normal_std} : Init{InitKind::uniform, -bound, bound});
    if (bias) {
        add_parameter("bias", out, 1, normal ? Init{} : Init{InitKind::uniform, -bound, bound});
    }
}

Linear::Linear(std::string attribute, const Parameter& tied)
    : Module("Linear", std::move(attribute)), in_(tied.width), out_(tied.rows), bias_(false), tied_(&tied) {}

std::vector<const Parameter*> Linear::shared_parameters() const {
    if (tied_) return {tied_};
    return {};
}

Tensor Linear::forward(Graph& graph, const Tensor& x) {
    const std::int64_t rows = x.elements() / in_;
    const bool train_weight = weight().trained;
    const bool train_bias = bias_ && parameters()[kBias].trained;
    const bool wanted = wants(graph, x, weight()) || (graph.tape.recording() && train_bias);
    Tensor y = output_of(graph, path + ".output", rows * out_, wanted);
    {
        const PlanBuilder::Range range(graph.builder, "aten::linear");
        std::vector<Arg> args = {y, x, graph.store.parameter(weight())};
        if (bias_) args.push_back(graph.store.parameter(parameters()[kBias]));
        check_output(graph, graph.kernel(Kernel::linear_forward, product_name(graph, "nt"), std::move(args),
                                         {rows, in_, out_},
                                         kernels::linear_forward_cost(rows, in_, out_, bias_).flops));
    }
    if (!wanted) return y;
    // The input is kept for the weight's gradient alone.
    graph.tape.node("AddmmBackward0", [this, &graph, saved = train_weight ? x : Tensor{}, from = x.value,
                                       rows, train_weight, train_bias, value = y.value] {
        Tensor dy = graph.tape.take_gradient(value);
        if (from >= 0) {
            Tensor dx = graph.activation(path + ".input.grad", rows * in_);
            graph.kernel(Kernel::linear_backward_input, product_name(graph, "nn"),
                         {dx, dy, graph.store.parameter(weight())}, {rows, in_, out_},
                         kernels::linear_backward_input_cost(rows, in_, out_).flops);
            graph.tape.accumulate(from, std::move(dx));
        }
        Tensor dw, db;
        if (train_weight) {
            dw = graph.gradient(weight());
            graph.kernel(Kernel::linear_backward_weight, product_name(graph, "tn"), {dw, dy, saved},
                         {rows, in_, out_}, kernels::linear_backward_weight_cost(rows, in_, out_).flops);
        }
        if (train_bias) {
            db = graph.gradient(parameters()[kBias]);
            graph.kernel(Kernel::linear_backward_bias, "column_sum", {db, dy}, {rows, out_},
                         kernels::linear_backward_bias_cost(rows, out_).flops);
        }
        dy = {};
        if (train_weight) graph.store.gradient_ready(weight(), std::move(dw));
        if (train_bias) graph.store.gradient_ready(parameters()[kBias], std::move(db));
    });
    return y;
}

}  // namespace shardscope::trainer
