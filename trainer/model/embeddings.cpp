#include <utility>

#include "trainer/kernels/cost.h"
#include "trainer/model/context_parallel.h"
#include "trainer/model/layer_tools.h"
#include "trainer/model/layers.h"
#include "trainer/model/tensor_parallel.h"
#include "trainer/model/vocabulary_parallel.h"

namespace shardscope::trainer::model {

namespace {

constexpr Init kTableInit{InitKind::normal, 0, 0.02F};  // GPT-2's, and initializer_range of Llama

}  // namespace

Embedding::Embedding(std::string attribute, int entries, int width, int tensor)
    : Module("Embedding", std::move(attribute)),
      entries_(vocabulary_share(entries, tensor)),
      width_(width),
      tensor_(tensor) {
    add_parameter("weight", entries, width, kTableInit, first_of_pair(tensor));
}

plan::Tensor Embedding::forward(Graph& graph, const plan::Tensor& tokens) {
    const std::int64_t rows = tokens.bytes() / size_of(plan::DType::int32);
    const bool wanted = graph.tape.recording() && parameters()[kWeight].trained;
    plan::Tensor y = output_of(graph, path + ".output", rows * width_, wanted);
    LocalTokens parts;
    {
        const plan::PlanBuilder::Range range(graph.builder, "aten::embedding");
        if (tensor_ > 1) parts = local_tokens(graph, tokens, entries_, true);
        check_output(graph, graph.kernel(plan::Kernel::embedding_forward, "embedding_forward",
                                         {y, tensor_ > 1 ? parts.inside : tokens,
                                          graph.store.parameter(parameters()[kWeight])},
                                         {rows, width_}));
        if (tensor_ > 1) {
            zero_other_rows(graph, y, parts.local, width_, entries_);
            y = leave_tensor_region(graph, y);
        }
    }
    if (!wanted) return y;
    graph.tape.node("EmbeddingBackward0", [this, &graph, tokens = tensor_ > 1 ? parts.inside : tokens, parts,
                                           rows, value = y.value] {
        graph.tape.weight_work(
            [this, &graph, dy = graph.tape.take_gradient(value), tokens, parts, rows]() mutable {
                if (tensor_ > 1) {
                    dy = gather_gradient(graph, dy);
                    // In place: whatever else reads it has done so.
                    zero_other_rows(graph, dy, parts.local, width_, entries_);
                }
                plan::Tensor dtable = graph.gradient(parameters()[kWeight]);
                graph.kernel(plan::Kernel::embedding_backward, "embedding_backward", {dtable, dy, tokens},
                             {rows, width_, entries_},
                             kernels::embedding_backward_cost(rows, entries_, width_).flops);
                dy = {};
                graph.store.gradient_ready(parameters()[kWeight], std::move(dtable));
            });
    });
    return y;
}

PositionEmbedding::PositionEmbedding(std::string attribute, int context, int width)
    : Module("Embedding", std::move(attribute)), context_(context), width_(width) {
    add_parameter("weight", context, width, kTableInit);
}

plan::Tensor PositionEmbedding::forward(Graph& graph, const plan::Tensor& x) {
    const std::int64_t rows = x.elements() / width_, context = own_tokens(graph, context_);
    const std::int64_t own_rows = graph.sequence ? rows : 0;
    const std::int64_t batch = (graph.sequence ? rows * graph.tensor : rows) / context;
    plan::Arg table = graph.store.parameter(parameters()[kWeight]);
    plan::Tensor own_table, positions;
    if (graph.cached && !graph.cached->prefill) {
        plan::Tensor of_positions = output_of(graph, path + ".output", rows * width_, false);
        const plan::PlanBuilder::Range range(graph.builder, "aten::embedding");
        graph.kernel(plan::Kernel::embedding_forward, "embedding_forward",
                     {of_positions, graph.cached->positions, table}, {rows, width_});
        return add(graph, x, of_positions);
    }
    if (graph.context > 1) {  // the rows of the rank's own tokens
        positions = own_positions(graph, context_);
        own_table = graph.activation(path + ".own rows", context * width_);
        take_own_rows(graph, own_table, positions, table, width_, graph.dtype);
        table = own_table;
    }
    plan::Tensor y =
        output_of(graph, path + ".output", rows * width_, wants(graph, x, parameters()[kWeight]));
    {
        const plan::PlanBuilder::Range range(graph.builder, "aten::embedding");
        check_output(graph,
                     graph.kernel(plan::Kernel::position_forward, "position_forward", {y, x, table},
                                  {batch, context, width_, own_rows},
                                  kernels::position_embedding_forward_cost(rows, context, width_).flops));
    }
    own_table = {};
    if (y.value < 0) return y;
    const bool train = parameters()[kWeight].trained;
    graph.tape.node("EmbeddingBackward0", [this, &graph, rows, context, own_rows, batch, train, positions,
                                           from = x.value, value = y.value] {
        plan::Tensor dy = graph.tape.take_gradient(value);
        const auto table_gradient = [this, &graph, rows, context, own_rows, batch,
                                     positions](const plan::Tensor& gradient) {
            plan::Tensor dtable = graph.gradient(parameters()[kWeight]);
            const bool cut = graph.context > 1;
            plan::Tensor own =
                cut ? graph.activation(path + ".own rows.grad", context * width_) : plan::Tensor();
            graph.kernel(plan::Kernel::position_backward, "position_backward", {cut ? own : dtable, gradient},
                         {batch, context, width_, context, own_rows},
                         kernels::position_embedding_backward_cost(rows, context, width_).flops);
            if (cut) {
                graph.kernel(plan::Kernel::embedding_backward, "embedding_backward", {dtable, own, positions},
                             {context, width_, context_},
                             kernels::embedding_backward_cost(context, context_, width_).flops);
            }
            return dtable;
        };
        if (train && graph.tape.defers_weights()) {
            graph.tape.weight_work([this, &graph, dy, table_gradient] {
                graph.store.gradient_ready(parameters()[kWeight], table_gradient(dy));
            });
            return graph.tape.accumulate(from, std::move(dy));
        }
        plan::Tensor dtable;
        if (train) dtable = table_gradient(dy);
        graph.tape.accumulate(from, std::move(dy));  // the addition passes the gradient on as it is
        if (train) graph.store.gradient_ready(parameters()[kWeight], std::move(dtable));
    });
    return y;
}

}  // namespace shardscope::trainer::model
