#include <utility>

#include "trainer/kernels/cost.h"
#include "trainer/model/layer_tools.h"
#include "trainer/model/layers.h"

namespace shardscope::trainer::model {

namespace {

constexpr Init kTableInit{InitKind::normal, 0, 0.02F};  // GPT-2's, and initializer_range of Llama

}  // namespace

Embedding::Embedding(std::string attribute, int entries, int width)
    : Module("Embedding", std::move(attribute)), entries_(entries), width_(width) {
    add_parameter("weight", entries, width, kTableInit);
}

plan::Tensor Embedding::forward(Graph& graph, const plan::Tensor& tokens) {
    const std::int64_t rows = tokens.bytes() / size_of(plan::DType::int32);
    const bool wanted = graph.tape.recording() && parameters()[kWeight].trained;
    plan::Tensor y = output_of(graph, path + ".output", rows * width_, wanted);
    {
        const plan::PlanBuilder::Range range(graph.builder, "aten::embedding");
        check_output(graph,
                     graph.kernel(plan::Kernel::embedding_forward, "embedding_forward",
                                  {y, tokens, graph.store.parameter(parameters()[kWeight])}, {rows, width_}));
    }
    if (!wanted) return y;
    graph.tape.node("EmbeddingBackward0", [this, &graph, tokens, rows, value = y.value] {
        plan::Tensor dy = graph.tape.take_gradient(value);
        plan::Tensor dtable = graph.gradient(parameters()[kWeight]);
        graph.kernel(plan::Kernel::embedding_backward, "embedding_backward", {dtable, dy, tokens},
                     {rows, width_, entries_},
                     kernels::embedding_backward_cost(rows, entries_, width_).flops);
        dy = {};
        graph.store.gradient_ready(parameters()[kWeight], std::move(dtable));
    });
    return y;
}

PositionEmbedding::PositionEmbedding(std::string attribute, int context, int width)
    : Module("Embedding", std::move(attribute)), context_(context), width_(width) {
    add_parameter("weight", context, width, kTableInit);
}

plan::Tensor PositionEmbedding::forward(Graph& graph, const plan::Tensor& x) {
    const std::int64_t rows = x.elements() / width_;
    const std::int64_t batch = rows / context_;
    plan::Tensor y =
        output_of(graph, path + ".output", rows * width_, wants(graph, x, parameters()[kWeight]));
    {
        const plan::PlanBuilder::Range range(graph.builder, "aten::embedding");
        check_output(
            graph,
            graph.kernel(plan::Kernel::position_forward, "position_forward",
                         {y, x, graph.store.parameter(parameters()[kWeight])}, {batch, context_, width_},
                         kernels::position_embedding_forward_cost(rows, context_, width_).flops));
    }
    if (y.value < 0) return y;
    const bool train = parameters()[kWeight].trained;
    graph.tape.node("EmbeddingBackward0", [this, &graph, batch, train, from = x.value, value = y.value] {
        plan::Tensor dy = graph.tape.take_gradient(value);
        plan::Tensor dtable;
        if (train) {
            dtable = graph.gradient(parameters()[kWeight]);
            graph.kernel(plan::Kernel::position_backward, "position_backward", {dtable, dy},
                         {batch, context_, width_, context_},
                         kernels::position_embedding_backward_cost(batch * context_, context_, width_).flops);
        }
        graph.tape.accumulate(from, std::move(dy));  // the addition passes the gradient on as it is
        if (train) graph.store.gradient_ready(parameters()[kWeight], std::move(dtable));
    });
    return y;
}

}  // namespace shardscope::trainer::model
