// ReLU, GELU, the gate of SwiGLU, dropout.
#include <utility>

#include "trainer/kernels/cost.h"
#include "trainer/kernels/random.h"
#include "trainer/model/layer_tools.h"
#include "trainer/model/layers.h"

namespace shardscope::trainer {

Tensor ReLU::forward(Graph& graph, const Tensor& x) {
    const std::int64_t n = x.elements();
    Tensor y = take_activated(graph, x);
    if (y) {
        y.value = wants(graph, x) ? graph.tape.new_value() : -1;
    } else {
        y = output_of(graph, path + ".output", n, wants(graph, x));
        const PlanBuilder::Range range(graph.builder, "aten::relu");
        check_output(graph, graph.kernel(Kernel::relu_forward, "relu_forward", {y, x}, {n},
                                         kernels::relu_forward_cost(n).flops));
    }
    if (y.value < 0) return y;
    graph.tape.node("ReluBackward0", [this, &graph, y, n, from = x.value] {  // PyTorch saves the result
        Tensor dy = graph.tape.take_gradient(y.value);
        Tensor dx = graph.activation(path + ".input.grad", n);
        graph.kernel(Kernel::relu_backward, "relu_backward", {dx, dy, y}, {n},
                     kernels::relu_backward_cost(n).flops);
        graph.tape.accumulate(from, std::move(dx));
    });
    return y;
}

Tensor GELU::forward(Graph& graph, const Tensor& x) {
    const std::int64_t n = x.elements();
    Tensor y = take_activated(graph, x);
    if (y) {
        y.value = wants(graph, x) ? graph.tape.new_value() : -1;
    } else {
        y = output_of(graph, path + ".output", n, wants(graph, x));
        const PlanBuilder::Range range(graph.builder, "aten::gelu");
        check_output(graph, graph.kernel(Kernel::gelu_forward, "gelu_forward", {y, x}, {n},
                                         kernels::gelu_forward_cost(n).flops));
    }
    if (y.value < 0) return y;
    graph.tape.node("GeluBackward0", [this, &graph, x, n, value = y.value] {
        Tensor dy = graph.tape.take_gradient(value);
        Tensor dx = graph.activation(path + ".input.grad", n);
        graph.kernel(Kernel::gelu_backward, "gelu_backward", {dx, dy, x}, {n},
                     kernels::gelu_backward_cost(n).flops);
        graph.tape.accumulate(x.value, std::move(dx));
    });
    return y;
}

Tensor silu_mul(Graph& graph, const std::string& path, const Tensor& gate, const Tensor& up) {
    const std::int64_t n = gate.elements();
    Tensor y = output_of(graph, path + ".activation", n, wants(graph, gate) || wants(graph, up));
    {
        const PlanBuilder::Range range(graph.builder, "aten::silu_mul");
        check_output(graph, graph.kernel(Kernel::silu_mul_forward, "silu_mul_forward", {y, gate, up}, {n},
                                         kernels::silu_mul_forward_cost(n).flops));
    }
    if (y.value < 0) return y;
    graph.tape.node("SiluMulBackward0", [&graph, path, gate, up, n, value = y.value] {
        Tensor dy = graph.tape.take_gradient(value);
        Tensor dgate = graph.activation(path + ".gate.grad", n);
        Tensor dup = graph.activation(path + ".up.grad", n);
        graph.kernel(Kernel::silu_mul_backward, "silu_mul_backward", {dgate, dup, dy, gate, up}, {n},
                     kernels::silu_mul_backward_cost(n).flops);
        graph.tape.accumulate(gate.value, std::move(dgate));
        graph.tape.accumulate(up.value, std::move(dup));
    });
    return y;
}

Tensor Dropout::forward(Graph& graph, const Tensor& x) {
    if (!graph.training || p_ == 0) return x;
    const std::int64_t n = x.elements();
    const auto key = static_cast<std::int64_t>(kernels::stream_of(path));
    Tensor y = output_of(graph, path + ".output", n, wants(graph, x));
    {
        const PlanBuilder::Range range(graph.builder, "aten::dropout");
        graph
            .kernel(Kernel::dropout_forward, "dropout_forward", {y, x}, {n, key},
                    kernels::dropout_cost(n).flops)
            .kernel()
            .scalars = {p_};
    }
    if (y.value < 0) return y;
    graph.tape.node("NativeDropoutBackward0", [this, &graph, n, key, from = x.value, value = y.value] {
        Tensor dy = graph.tape.take_gradient(value);
        Tensor dx = graph.activation(path + ".input.grad", n);
        graph
            .kernel(Kernel::dropout_backward, "dropout_backward", {dx, dy}, {n, key},
                    kernels::dropout_cost(n).flops)
            .kernel()
            .scalars = {p_};
        graph.tape.accumulate(from, std::move(dx));
    });
    return y;
}

}  // namespace shardscope::trainer
