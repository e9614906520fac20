#include "trainer/model/tensor_parallel.h"

#include <algorithm>
#include <array>
#include <utility>

#include "trainer/kernels/cost.h"
#include "trainer/model/layer_tools.h"

namespace shardscope::trainer::model {

namespace {

// The collectives run on the compute stream: the next kernel needs their results.
void over_group(Graph& graph, plan::Operation operation, const plan::Tensor& output,
                const plan::Tensor& input) {
    graph.builder.collective({.operation = operation, .dtype = input.dtype, .group = plan::Group::tensor},
                             output, input, std::max(output.bytes(), input.bytes()), plan::Stream::compute);
}

plan::Tensor gathered(Graph& graph, const plan::Tensor& rows, const char* name) {
    plan::Tensor all = graph.activation(name, rows.elements() * graph.tensor, rows.dtype);
    over_group(graph, plan::Operation::all_gather, all, rows);
    return all;
}

plan::Tensor scattered(Graph& graph, const plan::Tensor& all, const char* name) {
    plan::Tensor rows = graph.activation(name, all.elements() / graph.tensor, all.dtype);
    over_group(graph, plan::Operation::reduce_scatter, rows, all);
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

WholeRun whole_run(const Parameter& parameter, std::int64_t element, int place) {
    const std::int64_t ranks = parameter.cut.ranks, all = parameter.elements();
    switch (parameter.cut.cut) {
        case Cut::none:
            return {element, all};
        case Cut::columns: {
            const std::int64_t row = element / parameter.width, column = element % parameter.width;
            return {(row * ranks + place) * parameter.width + column, (row + 1) * parameter.width};
        }
        case Cut::rows:
            break;
    }
    std::int64_t first = 0;  // of the section, in the part
    for (const std::int64_t rows : parameter.cut.sections) {
        const std::int64_t share = rows / ranks * parameter.width;
        if (element < first + share) return {first * ranks + place * share + element - first, first + share};
        first += share;
    }
    return {place * all + element, all};
}

void reduce_over_group(Graph& graph, const plan::Tensor& x, plan::Reduction reduction) {
    graph.builder.collective({.operation = plan::Operation::all_reduce,
                              .dtype = x.dtype,
                              .group = plan::Group::tensor,
                              .reduction = reduction},
                             x, x, x.bytes(), plan::Stream::compute);
}

plan::Tensor enter_tensor_region(Graph& graph, const plan::Tensor& x, int ranks) {
    if (ranks == 1) return x;
    plan::Tensor inside = graph.sequence ? gathered(graph, x, "gathered rows") : x;
    inside.value = -1;
    if (!graph.tape.recording() || x.value < 0) return inside;
    inside.value = graph.tape.new_value();
    graph.tape.node(
        graph.sequence ? "_GatherFromSequenceParallelRegionBackward" : "_CopyToModelParallelRegionBackward",
        [&graph, from = x.value, value = inside.value] {
            plan::Tensor dx = graph.tape.take_gradient(value);
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

plan::Tensor leave_tensor_region(Graph& graph, const plan::Tensor& y) {
    if (graph.sequence) {
        plan::Tensor rows = scattered(graph, y, "scattered rows");
        rows.value = y.value;
        return rows;
    }
    reduce_over_group(graph, y);
    return y;
}

plan::Tensor gather_gradient(Graph& graph, const plan::Tensor& dy) {
    return graph.sequence ? gathered(graph, dy, "gathered rows.grad") : dy;
}

plan::Tensor gather_kv_head(Graph& graph, const std::string& path, plan::Tensor qkv,
                            const SharedKvHead& head) {
    // Columns of the queries, of the keys and values that a rank has computed, and of those of the head.
    const std::int64_t queries = head.queries, whole = 2 * head.width, part = whole / head.ranks;
    const std::int64_t rows = qkv.elements() / (queries + part), bytes = rows * whole * size_of(qkv.dtype);
    const std::array<std::int64_t, 6> dims = {rows, queries + whole, part / 2, head.ranks, graph.tensor};
    const auto copy = [&graph, rows](const plan::Arg& to, std::int64_t to_row, const plan::Arg& from,
                                     std::int64_t from_row, std::int64_t count) {
        copy_columns(graph, to, from, rows, count, to_row, from_row, graph.dtype);
    };
    plan::Tensor y = output_of(graph, path + ".qkv", rows * (queries + whole), wants(graph, qkv));
    plan::Tensor own = graph.activation(path + ".kv", rows * part);
    copy(y, queries + whole, qkv, queries + part, queries);
    copy(own, part, from_column(qkv, queries), queries + part, part);
    const int value = std::exchange(qkv, {}).value;
    plan::Tensor parts = gathered(graph, own, "kv of all ranks");
    own = {};
    graph.kernel(plan::Kernel::take_kv_head, "take_kv_head", {from_column(y, queries), parts}, dims).bytes =
        2 * bytes;
    parts = {};
    if (y.value < 0) return y;
    graph.tape.node(
        "_AllGatherFromTensorParallelRegionBackward",
        [=, &graph, of_y = y.value] {
            plan::Tensor dy = graph.tape.take_gradient(of_y);
            plan::Tensor slopes = graph.activation("kv of all ranks.grad", rows * part * graph.tensor);
            graph
                .kernel(plan::Kernel::spread_kv_head, "spread_kv_head", {slopes, from_column(dy, queries)},
                        dims)
                .bytes = bytes + slopes.bytes();
            plan::Tensor dx = graph.activation(path + ".qkv.grad", rows * (queries + part));
            copy(dx, queries + part, dy, queries + whole, queries);
            dy = {};
            const plan::Tensor sums = scattered(graph, slopes, "kv.grad");
            slopes = {};
            copy(from_column(dx, queries), queries + part, sums, part, part);
            graph.tape.accumulate(value, std::move(dx));
        },
        false);
    return y;
}

void add_bias(Graph& graph, const plan::Tensor& y, const plan::Arg& bias, std::int64_t width) {
    const std::int64_t rows = y.elements() / width;
    graph.kernel(plan::Kernel::position_forward, "add_bias", {y, y, bias}, {rows, 1, width},
                 kernels::position_embedding_forward_cost(rows, 1, width).flops);
}

void mark_partial_gradients(Module& root) {
    for (Parameter& p : root.parameters())
        p.partial_gradient = p.is_cut(plan::Group::expert) || (p.cut.cut == Cut::none && p.cut.ranks == 1);
    for (const auto& child : root.children()) mark_partial_gradients(*child);
}

}  // namespace shardscope::trainer::model
