// Activations, the gate of SwiGLU, dropout.
#include <string_view>
#include <utility>

#include "trainer/kernels/cost.h"
#include "trainer/kernels/random.h"
#include "trainer/model/layer_tools.h"
#include "trainer/model/layers.h"
#include "trainer/plan/kernel_table.h"

namespace shardscope::trainer::model {

namespace {

// What a Plan needs to know about an activation.
struct ActivationRow {
    const char *module, *range, *backward_range;
    plan::Kernel forward, backward;
    kernels::Cost (*forward_cost)(kernels::Count);
    kernels::Cost (*backward_cost)(kernels::Count);
    bool keeps_result;
};

const ActivationRow& row_of(kernels::ActivationKind kind) {
    static constexpr ActivationRow kRows[] = {
        {},  // none
#define ACTIVATION(name, Formula, module, kept, ...) \
    {#module,                                        \
     "aten::" #name,                                 \
     #Formula "Backward0",                           \
     plan::Kernel::name##_forward,                   \
     plan::Kernel::name##_backward,                  \
     kernels::name##_forward_cost,                   \
     kernels::name##_backward_cost,                  \
     std::string_view(#kept) == "y"},
#include "trainer/kernels/activations.def"
#undef ACTIVATION
    };
    return kRows[static_cast<std::size_t>(kind)];
}

// An elementwise kernel on n elements: on those of the rows that exist.
plan::Op& elementwise(Graph& graph, plan::Kernel kernel, std::string_view name, std::vector<plan::Arg> args,
                      std::int64_t n, const Routed& routed, kernels::Cost (*cost)(kernels::Count)) {
    if (!routed.counts) return graph.kernel(kernel, name, std::move(args), {n}, cost(n).flops);
    const std::int64_t features = n / routed.rows, expected = routed.expected * features;
    const auto operands = static_cast<std::int64_t>(args.size());
    args.push_back(routed.counts);
    plan::Op& op = graph.kernel(kernel, name, std::move(args), {n, features}, cost(expected).flops);
    op.bytes = operands * expected * size_of(graph.dtype);
    return op;
}

}  // namespace

Activation::Activation(std::string attribute, kernels::ActivationKind kind, bool in_place)
    : Module(row_of(kind).module, std::move(attribute)), kind_(kind), in_place_(in_place) {}

plan::Tensor Activation::forward(Graph& graph, const plan::Tensor& x) {
    const ActivationRow& row = row_of(kind_);
    const std::int64_t n = x.elements();
    plan::Tensor y = take_activated(graph, x);
    if (y) {
        y.value = wants(graph, x) ? graph.tape.new_value() : -1;
    } else {
        if (in_place_) {
            y = x;
            y.value = wants(graph, x) ? graph.tape.new_value() : -1;
        } else {
            y = output_of(graph, path + ".output", n, wants(graph, x));
        }
        const plan::PlanBuilder::Range range(graph.builder, row.range);
        plan::Op& op = elementwise(graph, row.forward, kernel_info(row.forward).name, {y, x}, n, graph.routed,
                                   row.forward_cost);
        if (!graph.routed.counts) check_output(graph, op);
    }
    if (y.value < 0) return y;
    graph.tape.node(row.backward_range, [this, &graph, &row, kept = row.keeps_result ? y : x, n,
                                         routed = graph.routed, from = x.value, value = y.value] {
        plan::Tensor dy = graph.tape.take_gradient(value);
        plan::Tensor dx = graph.activation(path + ".input.grad", n);
        elementwise(graph, row.backward, kernel_info(row.backward).name, {dx, dy, kept}, n, routed,
                    row.backward_cost);
        graph.tape.accumulate(from, std::move(dx));
    });
    return y;
}

plan::Tensor silu_mul(Graph& graph, const std::string& path, const plan::Tensor& gate,
                      const plan::Tensor& up) {
    const std::int64_t n = gate.elements();
    plan::Tensor y = output_of(graph, path + ".activation", n, wants(graph, gate) || wants(graph, up));
    {
        const plan::PlanBuilder::Range range(graph.builder, "aten::silu_mul");
        plan::Op& op = elementwise(graph, plan::Kernel::silu_mul_forward, "silu_mul_forward", {y, gate, up},
                                   n, graph.routed, kernels::silu_mul_forward_cost);
        if (!graph.routed.counts) check_output(graph, op);
    }
    if (y.value < 0) return y;
    graph.tape.node("SiluMulBackward0", [&graph, path, gate, up, n, routed = graph.routed, value = y.value] {
        plan::Tensor dy = graph.tape.take_gradient(value);
        plan::Tensor dgate = graph.activation(path + ".gate.grad", n);
        plan::Tensor dup = graph.activation(path + ".up.grad", n);
        elementwise(graph, plan::Kernel::silu_mul_backward, "silu_mul_backward", {dgate, dup, dy, gate, up},
                    n, routed, kernels::silu_mul_backward_cost);
        graph.tape.accumulate(gate.value, std::move(dgate));
        graph.tape.accumulate(up.value, std::move(dup));
    });
    return y;
}

plan::Tensor Dropout::forward(Graph& graph, const plan::Tensor& x) {
    if (!graph.training || p_ == 0) return x;
    const std::int64_t n = x.elements();
    const auto key = static_cast<std::int64_t>(kernels::stream_of(path));
    const std::int64_t part = graph.sequence ? 1 : 0;
    const std::int64_t sequence =
        graph.context > 1 ? n * (graph.sequence ? graph.tensor : 1) / graph.samples : 0;
    plan::Tensor y = output_of(graph, path + ".output", n, wants(graph, x));
    {
        const plan::PlanBuilder::Range range(graph.builder, "aten::dropout");
        graph
            .kernel(plan::Kernel::dropout_forward, "dropout_forward", {y, x}, {n, key, part, sequence},
                    kernels::dropout_cost(n).flops)
            .kernel()
            .scalars = {p_};
    }
    if (y.value < 0) return y;
    graph.tape.node("NativeDropoutBackward0",
                    [this, &graph, n, key, part, sequence, from = x.value, value = y.value] {
                        plan::Tensor dy = graph.tape.take_gradient(value);
                        plan::Tensor dx = graph.activation(path + ".input.grad", n);
                        graph
                            .kernel(plan::Kernel::dropout_backward, "dropout_backward", {dx, dy},
                                    {n, key, part, sequence}, kernels::dropout_cost(n).flops)
                            .kernel()
                            .scalars = {p_};
                        graph.tape.accumulate(from, std::move(dx));
                    });
    return y;
}

}  // namespace shardscope::trainer::model
