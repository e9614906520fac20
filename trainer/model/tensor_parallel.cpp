#include "trainer/model/tensor_parallel.h"

#include <utility>

#include "trainer/kernels/cost.h"

namespace shardscope::trainer {

// On the compute stream: the next kernel needs the result.
void reduce_over_group(Graph& graph, const Tensor& x, Reduction reduction) {
    graph.builder.collective({.operation = Operation::all_reduce,
                              .dtype = x.dtype,
                              .group = Group::tensor,
                              .reduction = reduction},
                             x, x, x.bytes(), Stream::compute);
}

TensorCut first_of_pair(int ranks, std::vector<std::int64_t> sections) {
    if (ranks == 1) return {};
    return {Cut::rows, ranks, std::move(sections)};
}

TensorCut second_of_pair(int ranks) {
    if (ranks == 1) return {};
    return {Cut::columns, ranks, {}};
}

Tensor enter_tensor_region(Graph& graph, const Tensor& x, int ranks) {
    if (ranks == 1 || !graph.tape.recording() || x.value < 0) return x;
    Tensor inside = x;
    inside.value = graph.tape.new_value();
    graph.tape.node(
        "_CopyToModelParallelRegionBackward",
        [&graph, from = x.value, value = inside.value] {
            Tensor dx = graph.tape.take_gradient(value);
            reduce_over_group(graph, dx);
            graph.tape.accumulate(from, std::move(dx));
        },
        false);
    return inside;
}

void leave_tensor_region(Graph& graph, const Tensor& y, const Arg& bias, std::int64_t width) {
    reduce_over_group(graph, y);
    if (bias.buffer < 0) return;
    const std::int64_t rows = y.elements() / width;
    graph.kernel(Kernel::position_forward, "add_bias", {y, y, bias}, {rows, 1, width},
                 kernels::position_embedding_forward_cost(rows, 1, width).flops);
}

}  // namespace shardscope::trainer
