#include "trainer/model/attention.h"

#include <algorithm>
#include <array>
#include <utility>

#include "trainer/kernels/attention.h"
#include "trainer/kernels/cost.h"
#include "trainer/model/context_parallel.h"
#include "trainer/model/layer_tools.h"
#include "trainer/model/layers.h"
#include "trainer/model/tensor_parallel.h"

namespace shardscope::trainer::model {

namespace {

constexpr float kProjectionStd = 0.02F;  // of the weights of queries, keys and values

}  // namespace

// --- rotary embedding ----------------------------------------------------------------------------------

plan::Tensor Rotary::make(Graph& graph) const {
    const plan::PlanBuilder::Range range(graph.builder, "rotary_table");
    if (graph.cached) {
        const std::int64_t rows = graph.samples * graph.cached->tokens;
        plan::Tensor own = graph.builder.new_tensor("rotary table", plan::MemoryCategory::other,
                                                    rows * head_width_, graph.buffer_dtype);
        plan::Op& op = graph.kernel(plan::Kernel::rotary_table, "rotary_table",
                                    {own, graph.cached->positions}, {rows, head_width_});
        op.kernel().dtype = graph.buffer_dtype;
        op.kernel().scalars = {base_};
        return own;
    }
    plan::Tensor table = graph.builder.new_tensor("rotary table", plan::MemoryCategory::other,
                                                  context_ * head_width_, graph.buffer_dtype);
    plan::Op& op = graph.kernel(plan::Kernel::rotary_table, "rotary_table", {table}, {context_, head_width_});
    op.kernel().dtype = graph.buffer_dtype;
    op.kernel().scalars = {base_};
    if (graph.context == 1) return table;
    const std::int64_t rows = own_tokens(graph, context_);
    plan::Tensor own = graph.builder.new_tensor("rotary table", plan::MemoryCategory::other,
                                                rows * head_width_, graph.buffer_dtype);
    const plan::Tensor positions = own_positions(graph, context_);
    const auto half_of = [](const plan::Tensor& whole, int half) {
        return plan::Arg{whole.view.buffer, half * whole.bytes() / 2, whole.bytes() / 2};
    };
    for (const int half : {0, 1}) {  // cosines and sines
        take_own_rows(graph, half_of(own, half), positions, half_of(table, half), head_width_ / 2,
                      graph.buffer_dtype);
    }
    return own;
}

plan::Tensor Rotary::turn(Graph& graph, const std::string& path, const plan::Tensor& x, int turned,
                          int heads) const {
    // With a cache each row has its own row of the table.
    const std::int64_t context =
        own_tokens(graph, context_) * (graph.cached ? std::int64_t{graph.samples} : 1);
    const std::int64_t batch = x.elements() / (context * heads * head_width_);
    const plan::Tensor angles = graph.shared;
    const std::array<std::int64_t, 6> dims = {batch, context,     turned,
                                              heads, head_width_, input_dim(angles.dtype)};
    const std::int64_t flops = kernels::rotary_cost(batch * context, turned, head_width_).flops;
    plan::Tensor y = output_of(graph, path + ".rotated", x.elements(), wants(graph, x));
    {
        const plan::PlanBuilder::Range range(graph.builder, "aten::rotary");
        graph.kernel(plan::Kernel::rotary_forward, "rotary_forward", {y, x, angles}, dims, flops);
    }
    if (y.value < 0) return y;
    graph.tape.node("RotaryBackward0", [&graph, path, angles, dims, flops, n = x.elements(), from = x.value,
                                        value = y.value] {
        plan::Tensor dy = graph.tape.take_gradient(value);
        plan::Tensor dx = graph.activation(path + ".rotated.grad", n);
        graph.kernel(plan::Kernel::rotary_backward, "rotary_backward", {dx, dy, angles}, dims, flops);
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
                                       kernels::ActivationKind::none,
                                       first_of_pair(shape.tensor, {shape.width, keys, keys})));
    add_child(std::make_unique<Linear>("projection", shape.width, shape.width, shape.bias,
                                       shape.projection_std, kernels::ActivationKind::none,
                                       second_of_pair(shape.tensor)));
    if (shape.dropout > 0) add_child(std::make_unique<Dropout>("dropout", shape.dropout));
    shape_.heads /= shape.tensor;
    shape_.kv_heads = std::max(shape.kv_heads / shape.tensor, 1);
    sharing_ = std::max(shape.tensor / shape.kv_heads, 1);
    shape_.width /= shape.tensor;
}

plan::Tensor SelfAttention::forward(Graph& graph, const plan::Tensor& x) {
    const plan::Tensor all = enter_tensor_region(graph, x, shape_.tensor);
    const std::int64_t batch = all.elements() / (outer_width_ * own_tokens(graph, shape_.context));
    plan::Tensor qkv = call(graph, child(0), all);
    if (sharing_ > 1) {
        qkv = gather_kv_head(graph, path, std::move(qkv),
                             {shape_.width, shape_.width / shape_.heads, sharing_});
    }
    if (shape_.rotary) {
        qkv = shape_.rotary->turn(graph, path + ".qkv", qkv, shape_.heads + shape_.kv_heads,
                                  shape_.heads + 2 * shape_.kv_heads);
    }
    if (graph.cached) store_keys(graph, qkv, batch);
    plan::Tensor y = graph.context > 1 ? attend_in_context_group(graph, path, qkv, shape_)
                     : graph.cached && !graph.cached->prefill ? attend_to_cache(graph, qkv, batch)
                     : shape_.fused                           ? attend_fused(graph, qkv, batch)
                                                              : attend(graph, qkv, batch);
    qkv = {};
    y = call(graph, child(1), y);
    return shape_.dropout > 0 ? call(graph, child(2), y) : y;
}

std::int64_t SelfAttention::keys_of_token() const {
    return std::int64_t{2} * shape_.kv_heads * (shape_.width / shape_.heads);
}

void SelfAttention::store_keys(Graph& graph, const plan::Tensor& qkv, std::int64_t batch) const {
    graph.kernel(plan::Kernel::store_keys, "store_keys",
                 {graph.cached->keys[static_cast<std::size_t>(id)], qkv, graph.cached->positions},
                 {batch, graph.cached->tokens, shape_.heads, shape_.width, shape_.kv_heads, shape_.context});
}

plan::Tensor SelfAttention::attend_to_cache(Graph& graph, const plan::Tensor& qkv, std::int64_t batch) {
    const std::int64_t tokens = graph.cached->tokens;
    plan::Tensor y = output_of(graph, path + ".attention", batch * tokens * shape_.width, false);
    const plan::PlanBuilder::Range range(graph.builder, "aten::scaled_dot_product_attention");
    // As many pairs as there are if the whole context is seen.
    graph.kernel(
        plan::Kernel::cached_attention_forward, "cached_attention",
        {y, qkv, graph.cached->keys[static_cast<std::size_t>(id)], graph.cached->positions},
        {batch, tokens, shape_.heads, shape_.width, shape_.kv_heads, shape_.context},
        kernels::context_attention_forward_flops(batch, tokens * shape_.context, shape_.width, shape_.heads));
    return y;
}

plan::Tensor SelfAttention::attend(Graph& graph, const plan::Tensor& qkv, std::int64_t batch) {
    const std::int64_t context = own_tokens(graph, shape_.context), heads = shape_.heads,
                       width = shape_.width;
    const std::array<std::int64_t, 6> dims = {batch, context,         heads,
                                              width, shape_.kv_heads, shape_.causal ? 0 : 1};
    plan::Tensor y = output_of(graph, path + ".attention", batch * context * width, wants(graph, qkv));
    const plan::PlanBuilder::Range range(graph.builder, "aten::scaled_dot_product_attention");
    plan::Tensor probabilities = graph.activation(path + ".probabilities", batch * heads * context * context);
    check_output(
        graph,
        graph.kernel(plan::Kernel::attention_forward, "attention_forward", {y, probabilities, qkv}, dims,
                     kernels::attention_forward_cost(batch, context, width, heads, shape_.causal).flops));
    if (y.value < 0) return y;
    graph.tape.node("ScaledDotProductAttentionBackward0", [this, &graph, qkv, probabilities, dims,
                                                           value = y.value] {
        plan::Tensor dy = graph.tape.take_gradient(value);
        plan::Tensor dqkv = graph.activation(path + ".qkv.grad", qkv.elements());
        const std::size_t floats = kernels::attention_backward_scratch(
            {static_cast<int>(dims[0]), shape_.context, shape_.width, shape_.heads, shape_.kv_heads});
        plan::Tensor scratch =
            graph.activation(path + ".scores.grad", static_cast<std::int64_t>(floats), plan::DType::fp32);
        graph.kernel(
            plan::Kernel::attention_backward, "attention_backward", {dqkv, scratch, dy, qkv, probabilities},
            dims, kernels::attention_backward_cost(dims[0], dims[1], dims[3], dims[2], shape_.causal).flops);
        scratch = {};
        graph.tape.accumulate(qkv.value, std::move(dqkv));
    });
    return y;
}

// The names are those of PyTorch's flash attention.
plan::Tensor SelfAttention::attend_fused(Graph& graph, const plan::Tensor& qkv, std::int64_t batch) {
    const std::int64_t context = own_tokens(graph, shape_.context), heads = shape_.heads,
                       width = shape_.width;
    const std::array<std::int64_t, 6> dims = {batch, context,         heads,
                                              width, shape_.kv_heads, shape_.causal ? 0 : 1};
    plan::Tensor y = output_of(graph, path + ".attention", batch * context * width, wants(graph, qkv));
    const plan::PlanBuilder::Range range(graph.builder, "aten::_scaled_dot_product_flash_attention");
    plan::Tensor lse = graph.activation(path + ".logsumexp", batch * heads * context, plan::DType::fp32);
    check_output(
        graph, graph.kernel(
                   plan::Kernel::fused_attention_forward, "flash_forward", {y, lse, qkv}, dims,
                   kernels::fused_attention_forward_cost(batch, context, width, heads, shape_.causal).flops));
    if (y.value < 0) return y;
    graph.tape.node("ScaledDotProductFlashAttentionBackward0", [this, &graph, qkv, lse, dims, saved = y] {
        plan::Tensor dy = graph.tape.take_gradient(saved.value);
        plan::Tensor dqkv = graph.activation(path + ".qkv.grad", qkv.elements());
        plan::Tensor delta =
            graph.activation(path + ".delta", dims[0] * dims[1] * dims[2], plan::DType::fp32);
        graph.kernel(
            plan::Kernel::fused_attention_backward, "flash_backward", {dqkv, delta, dy, qkv, saved, lse},
            dims,
            kernels::fused_attention_backward_cost(dims[0], dims[1], dims[3], dims[2], shape_.causal).flops);
        delta = {};
        graph.tape.accumulate(qkv.value, std::move(dqkv));
    });
    return y;
}

}  // namespace shardscope::trainer::model
