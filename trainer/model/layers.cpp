#include "trainer/model/layers.h"

#include <cmath>
#include <utility>

#include "trainer/kernels/cost.h"

namespace shardscope::trainer {

namespace {

constexpr float kGptStd = 0.02F;

// The lookups of these in forward and backward are by position: weight first, bias second.
constexpr std::size_t kWeight = 0;
constexpr std::size_t kBias = 1;

Tensor output_of(Graph& graph, std::string name, std::int64_t floats) {
    Tensor out = graph.activation(std::move(name), floats);
    out.value = graph.tape.new_value();
    return out;
}

}  // namespace

// --- Linear ------------------------------------------------------------------------------------------

Linear::Linear(std::string attribute, int in, int out, bool bias, float normal_std)
    : Module("Linear", std::move(attribute)), in_(in), out_(out), bias_(bias) {
    const float bound = 1.0F / std::sqrt(static_cast<float>(in));
    const bool normal = normal_std > 0;
    add_parameter("weight", std::int64_t{in} * out,
                  normal ? Init{InitKind::normal, 0, normal_std} : Init{InitKind::uniform, -bound, bound});
    if (bias) {
        add_parameter("bias", out, normal ? Init{} : Init{InitKind::uniform, -bound, bound});
    }
}

Tensor Linear::forward(Graph& graph, const Tensor& x) {
    const std::int64_t rows = x.floats() / in_;
    Tensor y = output_of(graph, path + ".output", rows * out_);
    {
        const PlanBuilder::Range range(graph.builder, "aten::linear");
        std::vector<Arg> args = {y, x, graph.store.parameter(parameters()[kWeight])};
        if (bias_) args.push_back(graph.store.parameter(parameters()[kBias]));
        graph.builder.kernel(Kernel::linear_forward, "sgemm_nt", std::move(args), {rows, in_, out_},
                             kernels::linear_forward_cost(rows, in_, out_, bias_).flops);
    }
    graph.tape.node("AddmmBackward0", [this, &graph, x, rows, value = y.value] {
        PlanBuilder& b = graph.builder;
        Tensor dy = graph.tape.take_gradient(value);
        if (x.value >= 0) {
            Tensor dx = graph.activation(path + ".input.grad", rows * in_);
            b.kernel(Kernel::linear_backward_input, "sgemm_nn",
                     {dx, dy, graph.store.parameter(parameters()[kWeight])}, {rows, in_, out_},
                     kernels::linear_backward_input_cost(rows, in_, out_).flops);
            graph.tape.accumulate(x.value, std::move(dx));
        }
        Tensor dw = graph.gradient(parameters()[kWeight]);
        b.kernel(Kernel::linear_backward_weight, "sgemm_tn", {dw, dy, x}, {rows, in_, out_},
                 kernels::linear_backward_weight_cost(rows, in_, out_).flops);
        Tensor db;
        if (bias_) {
            db = graph.gradient(parameters()[kBias]);
            b.kernel(Kernel::linear_backward_bias, "column_sum", {db, dy}, {rows, out_},
                     kernels::linear_backward_bias_cost(rows, out_).flops);
        }
        dy = {};
        graph.store.gradient_ready(parameters()[kWeight], std::move(dw));
        if (bias_) graph.store.gradient_ready(parameters()[kBias], std::move(db));
    });
    return y;
}

// --- ReLU, GELU ----------------------------------------------------------------------------------------

Tensor ReLU::forward(Graph& graph, const Tensor& x) {
    const std::int64_t n = x.floats();
    Tensor y = output_of(graph, path + ".output", n);
    {
        const PlanBuilder::Range range(graph.builder, "aten::relu");
        graph.builder.kernel(Kernel::relu_forward, "relu_forward", {y, x}, {n},
                             kernels::relu_forward_cost(n).flops);
    }
    graph.tape.node("ReluBackward0", [this, &graph, y, n, from = x.value] {  // PyTorch saves the result
        Tensor dy = graph.tape.take_gradient(y.value);
        Tensor dx = graph.activation(path + ".input.grad", n);
        graph.builder.kernel(Kernel::relu_backward, "relu_backward", {dx, dy, y}, {n},
                             kernels::relu_backward_cost(n).flops);
        graph.tape.accumulate(from, std::move(dx));
    });
    return y;
}

Tensor GELU::forward(Graph& graph, const Tensor& x) {
    const std::int64_t n = x.floats();
    Tensor y = output_of(graph, path + ".output", n);
    {
        const PlanBuilder::Range range(graph.builder, "aten::gelu");
        graph.builder.kernel(Kernel::gelu_forward, "gelu_forward", {y, x}, {n},
                             kernels::gelu_forward_cost(n).flops);
    }
    graph.tape.node("GeluBackward0", [this, &graph, x, n, value = y.value] {
        Tensor dy = graph.tape.take_gradient(value);
        Tensor dx = graph.activation(path + ".input.grad", n);
        graph.builder.kernel(Kernel::gelu_backward, "gelu_backward", {dx, dy, x}, {n},
                             kernels::gelu_backward_cost(n).flops);
        graph.tape.accumulate(x.value, std::move(dx));
    });
    return y;
}

// --- LayerNorm -----------------------------------------------------------------------------------------

LayerNorm::LayerNorm(std::string attribute, int width)
    : Module("LayerNorm", std::move(attribute)), width_(width) {
    add_parameter("weight", width, {InitKind::constant, 1, 0});
    add_parameter("bias", width, {});
}

Tensor LayerNorm::forward(Graph& graph, const Tensor& x) {
    const std::int64_t rows = x.floats() / width_;
    Tensor y = output_of(graph, path + ".output", rows * width_);
    Tensor mean = graph.activation(path + ".mean", rows);
    Tensor rstd = graph.activation(path + ".rstd", rows);
    {
        const PlanBuilder::Range range(graph.builder, "aten::layer_norm");
        graph.builder.kernel(Kernel::layer_norm_forward, "layer_norm_forward",
                             {y, mean, rstd, x, graph.store.parameter(parameters()[kWeight]),
                              graph.store.parameter(parameters()[kBias])},
                             {rows, width_}, kernels::layer_norm_forward_cost(rows, width_).flops);
    }
    graph.tape.node("NativeLayerNormBackward0", [this, &graph, x, mean, rstd, rows, value = y.value] {
        Tensor dy = graph.tape.take_gradient(value);
        Tensor dx = graph.activation(path + ".input.grad", rows * width_);
        Tensor dgamma = graph.gradient(parameters()[kWeight]);
        Tensor dbeta = graph.gradient(parameters()[kBias]);
        graph.builder.kernel(
            Kernel::layer_norm_backward, "layer_norm_backward",
            {dx, dgamma, dbeta, dy, x, graph.store.parameter(parameters()[kWeight]), mean, rstd},
            {rows, width_},
            (kernels::layer_norm_backward_input_cost(rows, width_) +
             kernels::layer_norm_backward_parameters_cost(rows, width_))
                .flops);
        dy = {};
        graph.tape.accumulate(x.value, std::move(dx));
        graph.store.gradient_ready(parameters()[kWeight], std::move(dgamma));
        graph.store.gradient_ready(parameters()[kBias], std::move(dbeta));
    });
    return y;
}

// --- embeddings ----------------------------------------------------------------------------------------

Embedding::Embedding(std::string attribute, int entries, int width)
    : Module("Embedding", std::move(attribute)), entries_(entries), width_(width) {
    add_parameter("weight", std::int64_t{entries} * width, {InitKind::normal, 0, kGptStd});
}

Tensor Embedding::forward(Graph& graph, const Tensor& tokens) {
    const std::int64_t rows = tokens.bytes() / static_cast<std::int64_t>(sizeof(std::int32_t));
    Tensor y = output_of(graph, path + ".output", rows * width_);
    {
        const PlanBuilder::Range range(graph.builder, "aten::embedding");
        graph.builder.kernel(Kernel::embedding_forward, "embedding_forward",
                             {y, tokens, graph.store.parameter(parameters()[kWeight])}, {rows, width_});
    }
    graph.tape.node("EmbeddingBackward0", [this, &graph, tokens, rows, value = y.value] {
        Tensor dy = graph.tape.take_gradient(value);
        Tensor dtable = graph.gradient(parameters()[kWeight]);
        graph.builder.kernel(Kernel::embedding_backward, "embedding_backward", {dtable, dy, tokens},
                             {rows, width_, entries_},
                             kernels::embedding_backward_cost(rows, entries_, width_).flops);
        dy = {};
        graph.store.gradient_ready(parameters()[kWeight], std::move(dtable));
    });
    return y;
}

PositionEmbedding::PositionEmbedding(std::string attribute, int context, int width)
    : Module("Embedding", std::move(attribute)), context_(context), width_(width) {
    add_parameter("weight", std::int64_t{context} * width, {InitKind::normal, 0, kGptStd});
}

Tensor PositionEmbedding::forward(Graph& graph, const Tensor& x) {
    const std::int64_t rows = x.floats() / width_;
    const std::int64_t batch = rows / context_;
    Tensor y = output_of(graph, path + ".output", rows * width_);
    {
        const PlanBuilder::Range range(graph.builder, "aten::embedding");
        graph.builder.kernel(Kernel::position_forward, "position_forward",
                             {y, x, graph.store.parameter(parameters()[kWeight])}, {batch, context_, width_},
                             kernels::position_embedding_forward_cost(rows, context_, width_).flops);
    }
    graph.tape.node("EmbeddingBackward0", [this, &graph, batch, from = x.value, value = y.value] {
        Tensor dy = graph.tape.take_gradient(value);
        Tensor dtable = graph.gradient(parameters()[kWeight]);
        graph.builder.kernel(
            Kernel::position_backward, "position_backward", {dtable, dy}, {batch, context_, width_, context_},
            kernels::position_embedding_backward_cost(batch * context_, context_, width_).flops);
        graph.tape.accumulate(from, std::move(dy));  // the addition passes the gradient on as it is
        graph.store.gradient_ready(parameters()[kWeight], std::move(dtable));
    });
    return y;
}

// --- attention -----------------------------------------------------------------------------------------

CausalSelfAttention::CausalSelfAttention(std::string attribute, int context, int heads, int width,
                                         float projection_std)
    : Module("CausalSelfAttention", std::move(attribute)), context_(context), heads_(heads), width_(width) {
    add_child(std::make_unique<Linear>("qkv", width, 3 * width, true, kGptStd));
    add_child(std::make_unique<Linear>("projection", width, width, true, projection_std));
}

Tensor CausalSelfAttention::forward(Graph& graph, const Tensor& x) {
    const std::int64_t rows = x.floats() / width_;
    const std::int64_t batch = rows / context_;
    Tensor qkv = call(graph, child(0), x);
    Tensor y = output_of(graph, path + ".attention", rows * width_);
    {
        const PlanBuilder::Range range(graph.builder, "aten::scaled_dot_product_attention");
        Tensor probabilities =
            graph.activation(path + ".probabilities", batch * heads_ * context_ * context_);
        graph.builder.kernel(Kernel::attention_forward, "attention_forward", {y, probabilities, qkv},
                             {batch, context_, heads_, width_},
                             kernels::attention_forward_cost(batch, context_, width_, heads_).flops);
        graph.tape.node("ScaledDotProductAttentionBackward0", [this, &graph, qkv, probabilities, rows, batch,
                                                               value = y.value] {
            Tensor dy = graph.tape.take_gradient(value);
            Tensor dqkv = graph.activation(path + ".qkv.grad", rows * 3 * width_);
            Tensor scratch = graph.activation(path + ".scores.grad", std::int64_t{context_} * context_);
            graph.builder.kernel(Kernel::attention_backward, "attention_backward",
                                 {dqkv, scratch, dy, qkv, probabilities}, {batch, context_, heads_, width_},
                                 kernels::attention_backward_cost(batch, context_, width_, heads_).flops);
            scratch = {};
            graph.tape.accumulate(qkv.value, std::move(dqkv));
        });
    }
    qkv = {};
    return call(graph, child(1), y);
}

// --- containers ------------------------------------------------------------------------------------------

Sequential::Sequential(std::string attribute, std::vector<std::unique_ptr<Module>> modules)
    : Module("Sequential", std::move(attribute)) {
    children() = std::move(modules);
}

Tensor Sequential::forward(Graph& graph, const Tensor& input) {
    Tensor x = input;
    for (const auto& module : children()) x = call(graph, *module, x);
    return x;
}

Tensor add(Graph& graph, const Tensor& a, const Tensor& b) {
    const std::int64_t n = a.floats();
    Tensor y = output_of(graph, "residual", n);
    {
        const PlanBuilder::Range range(graph.builder, "aten::add");
        graph.builder.kernel(Kernel::add, "elementwise_add", {y, a, b}, {n}, kernels::add_cost(n).flops);
    }
    graph.tape.node("AddBackward0", [&graph, left = a.value, right = b.value, value = y.value] {
        Tensor dy = graph.tape.take_gradient(value);  // one tensor, shared by both operands
        graph.tape.accumulate(right, dy);
        graph.tape.accumulate(left, std::move(dy));
    });
    return y;
}

}  // namespace shardscope::trainer
