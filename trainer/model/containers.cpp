// Modules that only call others, and the operations between modules.
#include <algorithm>
#include <utility>

#include "trainer/kernels/cost.h"
#include "trainer/model/activation_offload.h"
#include "trainer/model/layer_tools.h"
#include "trainer/model/layers.h"

namespace shardscope::trainer::model {

namespace {

// Of each sequence the row whose logits are wanted: the head computes no others.
plan::Tensor last_rows(Graph& graph, const plan::Tensor& x) {
    const std::int64_t rows = graph.samples * graph.cached->tokens;
    if (graph.cached->tokens == 1) return x;
    const std::int64_t width = x.elements() / rows;
    plan::Tensor last = output_of(graph, "last rows", graph.samples * width, false);
    const plan::PlanBuilder::Range range(graph.builder, "aten::index_select");
    graph.kernel(plan::Kernel::embedding_forward, "index_select", {last, graph.cached->last, x},
                 {graph.samples, width});
    return last;
}

}  // namespace

Sequential::Sequential(std::string attribute, std::vector<std::unique_ptr<Module>> modules)
    : Module("Sequential", std::move(attribute)) {
    children() = std::move(modules);
}

plan::Tensor Sequential::forward(Graph& graph, const plan::Tensor& input) {
    return call_stage(graph, *this, input);
}

plan::Tensor call_stage(Graph& graph, Module& parent, const plan::Tensor& input) {
    plan::Tensor x = input;
    const std::size_t end = std::min(graph.stage.end, parent.children().size());
    for (std::size_t i = graph.stage.first; i < end; ++i) {
        Module& child = *parent.children()[i];
        if (graph.cached && i + 1 == end) x = last_rows(graph, x);
        ActivationOffload* const offload = unwrapped(child).is_layer ? graph.offload : nullptr;
        if (offload) offload->begin_layer(child, x);
        x = call(graph, child, x);
        if (offload) offload->end_layer();
    }
    return x;
}

plan::Tensor call_in_order(Graph& graph, Module& parent, const plan::Tensor& input) {
    plan::Tensor x = input;
    for (const auto& module : parent.children()) x = call(graph, *module, x);
    return x;
}

namespace {

plan::Tensor add_into(Graph& graph, plan::Tensor y, const plan::Tensor& a, const plan::Tensor& b,
                      const char* name) {
    const std::int64_t n = a.elements();
    y.value = wants(graph, a) || wants(graph, b) ? graph.tape.new_value() : -1;
    {
        const plan::PlanBuilder::Range range(graph.builder, name);
        graph.kernel(plan::Kernel::add, "elementwise_add", {y, a, b}, {n}, kernels::add_cost(n).flops);
    }
    if (y.value < 0) return y;
    graph.tape.node(
        "AddBackward0",
        [&graph, left = a.value, right = b.value, value = y.value] {
            plan::Tensor dy = graph.tape.take_gradient(value);  // one tensor, shared by both operands
            graph.tape.accumulate(right, dy);
            graph.tape.accumulate(left, std::move(dy));
        },
        false);
    return y;
}

}  // namespace

plan::Tensor add(Graph& graph, const plan::Tensor& a, const plan::Tensor& b) {
    return add_into(graph, graph.activation("residual", a.elements()), a, b, "aten::add");
}

plan::Tensor add_in_place(Graph& graph, const plan::Tensor& a, const plan::Tensor& b) {
    return add_into(graph, a, a, b, "aten::add_");
}

namespace {

plan::Tensor cast(Graph& graph, const plan::Tensor& from, plan::DType dtype, std::string name) {
    const std::int64_t n = from.elements();
    plan::Tensor to = graph.activation(std::move(name), n, dtype);
    graph.builder.cast("cast", to, dtype, from, from.dtype, n);
    return to;
}

}  // namespace

plan::Tensor to_dtype(Graph& graph, const plan::Tensor& tensor, plan::DType dtype) {
    if (tensor.dtype == dtype) return tensor;
    plan::Tensor converted;
    {
        const plan::PlanBuilder::Range range(graph.builder, "aten::_to_copy");
        converted = cast(graph, tensor, dtype, "cast");
    }
    if (!wants(graph, tensor)) return converted;
    converted.value = graph.tape.new_value();
    graph.tape.node(
        "ToCopyBackward0",
        [&graph, to = tensor.value, dtype_of = tensor.dtype, value = converted.value] {
            const plan::Tensor gradient = graph.tape.take_gradient(value);
            graph.tape.accumulate(to, cast(graph, gradient, dtype_of, "cast.grad"));
        },
        false);
    return converted;
}

}  // namespace shardscope::trainer::model
