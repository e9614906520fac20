#include "trainer/model/tensor_parallel.h"

#include <algorithm>
#include <utility>

#include "trainer/kernels/cost.h"

namespace shardscope::trainer {

namespace {

// The collectives run on the compute stream: the next kernel needs their results.
void over_group(Graph& graph, Operation operation, const Tensor& output, const Tensor& input) {
    graph.builder.collective({.operation = operation, .dtype = input.dtype, .group = Group::tensor}, output,
                             input, std::max(output.bytes(), input.bytes()), Stream::compute);
}

Tensor gathered(Graph& graph, const Tensor& rows, const char* name) {
    Tensor all = graph.activation(name, rows.elements() * graph.tensor, rows.dtype);
    over_group(graph, Operation::all_gather, all, rows);
    return all;
}

Tensor scattered(Graph& graph, const Tensor& all, const char* name) {
    Tensor rows = graph.activation(name, all.elements() / graph.tensor, all.dtype);
    over_group(graph, Operation::reduce_scatter, rows, all);
    return rows;
}

}  // namespace

TensorCut first_of_pair(int ranks, std::vector<std::int64_t> sections) {
    if (ranks == 1) return {};
    return {Cut::rows, ranks, std::move(sections)};
}

TensorCut second_of_pair(int ranks) {
    if (ranks == 1) return {};
    return {Cut::columns, ranks, {}};
}

TensorCut whole_in_pair(int ranks) {
    return {Cut::none, ranks, {}};
}

void reduce_over_group(Graph& graph, const Tensor& x, Reduction reduction) {
    graph.builder.collective({.operation = Operation::all_reduce,
                              .dtype = x.dtype,
                              .group = Group::tensor,
                              .reduction = reduction},
                             x, x, x.bytes(), Stream::compute);
}

Tensor enter_tensor_region(Graph& graph, const Tensor& x, int ranks) {
    if (ranks == 1) return x;
    Tensor inside = graph.sequence ? gathered(graph, x, "gathered rows") : x;
    inside.value = -1;
    if (!graph.tape.recording() || x.value < 0) return inside;
    inside.value = graph.tape.new_value();
    graph.tape.node(
        graph.sequence ? "_GatherFromSequenceParallelRegionBackward" : "_CopyToModelParallelRegionBackward",
        [&graph, from = x.value, value = inside.value] {
            Tensor dx = graph.tape.take_gradient(value);
            if (graph.sequence) {
                dx = scattered(graph, dx, "rows.grad");
            } else {
                reduce_over_group(graph, dx);
            }
            graph.tape.accumulate(from, std::move(dx));
        },
        false);
    return inside;
}

Tensor leave_tensor_region(Graph& graph, const Tensor& y) {
    if (graph.sequence) {
        Tensor rows = scattered(graph, y, "scattered rows");
        rows.value = y.value;
        return rows;
    }
    reduce_over_group(graph, y);
    return y;
}

Tensor gather_gradient(Graph& graph, const Tensor& dy) {
    return graph.sequence ? gathered(graph, dy, "gathered rows.grad") : dy;
}

void add_bias(Graph& graph, const Tensor& y, const Arg& bias, std::int64_t width) {
    const std::int64_t rows = y.elements() / width;
    graph.kernel(Kernel::position_forward, "add_bias", {y, y, bias}, {rows, 1, width},
                 kernels::position_embedding_forward_cost(rows, 1, width).flops);
}

void mark_partial_gradients(Module& root) {
    for (Parameter& p : root.parameters()) p.partial_gradient = p.cut.cut == Cut::none && p.cut.ranks == 1;
    for (const auto& child : root.children()) mark_partial_gradients(*child);
}

}  // namespace shardscope::trainer
