#include "trainer/model/attention.h"

#include <stdexcept>
#include <utility>

#include "trainer/kernels/attention.h"
#include "trainer/kernels/cost.h"
#include "trainer/model/layer_tools.h"
#include "trainer/model/layers.h"
#include "trainer/model/tensor_parallel.h"

namespace shardscope::trainer {

namespace {

constexpr float kProjectionStd = 0.02F;  // of the weights of queries, keys and values

}  // namespace

// --- rotary embedding ----------------------------------------------------------------------------------

Tensor Rotary::make(Graph& graph) const {
    const PlanBuilder::Range range(graph.builder, "rotary_table");
    Tensor table = graph.builder.new_tensor("rotary table", MemoryCategory::other, context_ * head_width_,
                                            graph.buffer_dtype);
    Op& op = graph.kernel(Kernel::rotary_table, "rotary_table", {table}, {context_, head_width_});
    op.kernel().dtype = graph.buffer_dtype;
    op.kernel().scalars = {base_};
    return table;
}

Tensor Rotary::turn(Graph& graph, const std::string& path, const Tensor& x, int turned, int heads) const {
    const std::int64_t batch = x.elements() / (context_ * heads * head_width_);
    const Tensor angles = graph.shared;
    const std::array<std::int64_t, 6> dims = {batch, context_,    turned,
                                              heads, head_width_, input_dim(angles.dtype)};
    const std::int64_t flops = kernels::rotary_cost(batch * context_, turned, head_width_).flops;
    Tensor y = output_of(graph, path + ".rotated", x.elements(), wants(graph, x));
    {
        const PlanBuilder::Range range(graph.builder, "aten::rotary");
        graph.kernel(Kernel::rotary_forward, "rotary_forward", {y, x, angles}, dims, flops);
    }
    if (y.value < 0) return y;
    graph.tape.node("RotaryBackward0", [&graph, path, angles, dims, flops, n = x.elements(), from = x.value,
                                        value = y.value] {
        Tensor dy = graph.tape.take_gradient(value);
        Tensor dx = graph.activation(path + ".rotated.grad", n);
        graph.kernel(Kernel::rotary_backward, "rotary_backward", {dx, dy, angles}, dims, flops);
        graph.tape.accumulate(from, std::move(dx));
    });
    return y;
}

// --- attention -----------------------------------------------------------------------------------------

SelfAttention::SelfAttention(std::string attribute, const AttentionShape& shape)
    : Module(shape.causal ? "CausalSelfAttention" : "SelfAttention", std::move(attribute)),
      shape_(shape),
      outer_width_(shape.width) {
    const int head_width = shape.width / shape.heads;
    const int keys = shape.kv_heads * head_width, outputs = shape.width + 2 * keys;
    add_child(std::make_unique<Linear>("qkv", shape.width, outputs, shape.bias, kProjectionStd,
                                       ActivationKind::none,
                                       first_of_pair(shape.tensor, {shape.width, keys, keys})));
    add_child(std::make_unique<Linear>("projection", shape.width, shape.width, shape.bias,
                                       shape.projection_std, ActivationKind::none,
                                       second_of_pair(shape.tensor)));
    if (shape.dropout > 0) add_child(std::make_unique<Dropout>("dropout", shape.dropout));
    shape_.heads /= shape.tensor;
    shape_.kv_heads /= shape.tensor;
    shape_.width /= shape.tensor;
}

Tensor SelfAttention::forward(Graph& graph, const Tensor& x) {
    const Tensor all = enter_tensor_region(graph, x, shape_.tensor);
    const std::int64_t batch = all.elements() / (outer_width_ * shape_.context);
    Tensor qkv = call(graph, child(0), all);
    if (shape_.rotary) {
        qkv = shape_.rotary->turn(graph, path + ".qkv", qkv, shape_.heads + shape_.kv_heads,
                                  shape_.heads + 2 * shape_.kv_heads);
    }
    Tensor y = shape_.fused ? attend_fused(graph, qkv, batch) : attend(graph, qkv, batch);
    qkv = {};
    y = call(graph, child(1), y);
    return shape_.dropout > 0 ? call(graph, child(2), y) : y;
}

Tensor SelfAttention::attend(Graph& graph, const Tensor& qkv, std::int64_t batch) {
    const std::int64_t context = shape_.context, heads = shape_.heads, width = shape_.width;
    const std::array<std::int64_t, 6> dims = {batch, context,         heads,
                                              width, shape_.kv_heads, shape_.causal ? 0 : 1};
    Tensor y = output_of(graph, path + ".attention", batch * context * width, wants(graph, qkv));
    const PlanBuilder::Range range(graph.builder, "aten::scaled_dot_product_attention");
    Tensor probabilities = graph.activation(path + ".probabilities", batch * heads * context * context);
    check_output(
        graph,
        graph.kernel(Kernel::attention_forward, "attention_forward", {y, probabilities, qkv}, dims,
                     kernels::attention_forward_cost(batch, context, width, heads, shape_.causal).flops));
    if (y.value < 0) return y;
    graph.tape.node("ScaledDotProductAttentionBackward0", [this, &graph, qkv, probabilities, dims,
                                                           value = y.value] {
        Tensor dy = graph.tape.take_gradient(value);
        Tensor dqkv = graph.activation(path + ".qkv.grad", qkv.elements());
        const std::size_t floats = kernels::attention_backward_scratch(
            {static_cast<int>(dims[0]), shape_.context, shape_.width, shape_.heads, shape_.kv_heads});
        Tensor scratch =
            graph.activation(path + ".scores.grad", static_cast<std::int64_t>(floats), DType::fp32);
        graph.kernel(
            Kernel::attention_backward, "attention_backward", {dqkv, scratch, dy, qkv, probabilities}, dims,
            kernels::attention_backward_cost(dims[0], dims[1], dims[3], dims[2], shape_.causal).flops);
        scratch = {};
        graph.tape.accumulate(qkv.value, std::move(dqkv));
    });
    return y;
}

// The names are those of PyTorch's flash attention.
Tensor SelfAttention::attend_fused(Graph& graph, const Tensor& qkv, std::int64_t batch) {
    const std::int64_t context = shape_.context, heads = shape_.heads, width = shape_.width;
    const std::array<std::int64_t, 6> dims = {batch, context,         heads,
                                              width, shape_.kv_heads, shape_.causal ? 0 : 1};
    Tensor y = output_of(graph, path + ".attention", batch * context * width, wants(graph, qkv));
    const PlanBuilder::Range range(graph.builder, "aten::_scaled_dot_product_flash_attention");
    Tensor lse = graph.activation(path + ".logsumexp", batch * heads * context, DType::fp32);
    check_output(
        graph, graph.kernel(
                   Kernel::fused_attention_forward, "flash_forward", {y, lse, qkv}, dims,
                   kernels::fused_attention_forward_cost(batch, context, width, heads, shape_.causal).flops));
    if (y.value < 0) return y;
    graph.tape.node("ScaledDotProductFlashAttentionBackward0", [this, &graph, qkv, lse, dims, saved = y] {
        Tensor dy = graph.tape.take_gradient(saved.value);
        Tensor dqkv = graph.activation(path + ".qkv.grad", qkv.elements());
        Tensor delta = graph.activation(path + ".delta", dims[0] * dims[1] * dims[2], DType::fp32);
        graph.kernel(
            Kernel::fused_attention_backward, "flash_backward", {dqkv, delta, dy, qkv, saved, lse}, dims,
            kernels::fused_attention_backward_cost(dims[0], dims[1], dims[3], dims[2], shape_.causal).flops);
        delta = {};
        graph.tape.accumulate(qkv.value, std::move(dqkv));
    });
    return y;
}

}  // namespace shardscope::trainer
