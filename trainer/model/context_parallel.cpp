#include "trainer/model/context_parallel.h"

#include <array>
#include <utility>

#include "trainer/kernels/cost.h"
#include "trainer/model/layer_tools.h"

namespace shardscope::trainer::model {

namespace {

// One attention: its sizes and what its kernels and collectives have in common. `shape` is that of one rank
// of a tensor group.
class Attention {
  public:
    Attention(Graph& graph, std::string path, const AttentionShape& shape)
        : graph_(graph),
          path_(std::move(path)),
          shape_(shape),
          rows_(own_tokens(graph, shape.context)),
          kv_row_(std::int64_t{2} * shape.kv_heads * (shape.width / shape.heads)) {}

    std::int64_t tokens() const { return graph_.samples * rows_; }
    std::int64_t width() const { return shape_.width; }
    std::int64_t kv_elements() const { return tokens() * kv_row_; }
    plan::Tensor activation(const char* name, std::int64_t elements, plan::DType dtype) const {
        return graph_.activation(path_ + name, elements, dtype);
    }
    plan::Tensor of_rows(const char* name) const {
        return activation(name, tokens() * shape_.heads, plan::DType::fp32);
    }
    std::array<std::int64_t, 6> dims() const {
        return {graph_.samples, rows_, shape_.heads, shape_.width, shape_.kv_heads, 0};
    }
    // Each rank has the same part of the pairs of a query and a key that it sees.
    std::int64_t pairs() const { return kernels::pairs_of(shape_.context, shape_.causal) / graph_.context; }

    // Columns of rows of q, k, v: the queries, or the keys and values.
    plan::Arg columns(const plan::Tensor& qkv, bool queries) const {
        plan::Arg part = qkv;
        const std::int64_t before = queries ? 0 : width() * size_of(qkv.dtype);
        part.offset += before;
        part.bytes -= before;
        return part;
    }
    void copy(const plan::Arg& to, const plan::Arg& from, std::int64_t count, std::int64_t to_row,
              std::int64_t from_row, plan::DType from_type) const {
        graph_.kernel(plan::Kernel::copy_columns, "copy_columns", {to, from},
                      {tokens(), count, to_row, from_row, input_dim(from_type)});
    }
    plan::Tensor own_keys(const plan::Tensor& qkv) const {
        plan::Tensor own = activation(".kv", kv_elements(), qkv.dtype);
        copy(own, columns(qkv, false), kv_row_, kv_row_, width() + kv_row_, qkv.dtype);
        return own;
    }
    plan::Tensor join_gradients(const plan::Tensor& dq, const plan::Tensor& dkv) const {
        const std::int64_t row = width() + kv_row_;
        plan::Tensor dqkv = activation(".qkv.grad", tokens() * row, graph_.dtype);
        copy(columns(dqkv, true), dq, width(), row, width(), dq.dtype);
        copy(columns(dqkv, false), dkv, kv_row_, row, kv_row_, dkv.dtype);
        return dqkv;
    }
    void collective(plan::Operation operation, const plan::Tensor& output, const plan::Tensor& input) const {
        const std::int64_t full = kv_elements() * graph_.context * size_of(input.dtype);
        graph_.builder.collective(
            {.operation = operation, .dtype = input.dtype, .group = plan::Group::context}, output, input,
            full, plan::Stream::compute);
    }
    // In the graph's type: itself, or a copy. An output is checked for values that are not finite.
    plan::Tensor narrowed(plan::Tensor wide, const char* name, bool output = false) const {
        if (wide.dtype == graph_.dtype) return wide;
        plan::Tensor narrow = activation(name, wide.elements(), graph_.dtype);
        plan::Op& op = graph_.kernel(plan::Kernel::cast_to_bf16, "cast", {narrow, wide}, {wide.elements()});
        if (output) check_output(graph_, op);
        return narrow;
    }

    std::pair<plan::Tensor, plan::Tensor> forward(const plan::Tensor& qkv, const plan::Tensor& kv) const {
        plan::Tensor y = activation(".attention", tokens() * width(), plan::DType::fp32);
        plan::Tensor lse = of_rows(".logsumexp");
        const std::int64_t flops =
            kernels::context_attention_forward_flops(graph_.samples, pairs(), width(), shape_.heads);
        plan::Op& op = graph_.kernel(plan::Kernel::context_attention_forward, "flash_forward",
                                     {y, lse, qkv, kv}, dims(), flops);
        if (graph_.dtype == plan::DType::fp32) check_output(graph_, op);
        return {std::move(y), std::move(lse)};
    }
    plan::Tensor backward(const plan::Tensor& dy, const plan::Tensor& qkv, const plan::Tensor& kv,
                          const plan::Tensor& y, const plan::Tensor& lse) const {
        plan::Tensor dq = activation(".q.grad", tokens() * width(), plan::DType::fp32);
        plan::Tensor dkv = activation(".kv.grad", kv.elements(), plan::DType::fp32);
        plan::Tensor delta = of_rows(".delta");
        const std::int64_t flops =
            kernels::context_attention_backward_flops(graph_.samples, pairs(), rows_, width(), shape_.heads);
        graph_.kernel(plan::Kernel::context_attention_backward, "flash_backward",
                      {dq, dkv, delta, dy, qkv, kv, y, lse}, dims(), flops);
        delta = {};
        dkv = narrowed(std::move(dkv), ".kv.grad");
        plan::Tensor own = activation(".kv.grad", kv_elements(), dkv.dtype);
        collective(plan::Operation::reduce_scatter, own, dkv);
        dkv = {};
        return join_gradients(dq, own);
    }

  private:
    Graph& graph_;
    std::string path_;
    AttentionShape shape_;
    std::int64_t rows_;    // tokens of a sample that the rank has
    std::int64_t kv_row_;  // elements of a token's keys and values
};

}  // namespace

plan::Tensor own_positions(Graph& graph, std::int64_t context) {
    const std::int64_t rows = own_tokens(graph, context);
    plan::Tensor positions =
        graph.builder.new_tensor("positions", plan::MemoryCategory::other, rows, plan::DType::int32);
    graph.kernel(plan::Kernel::context_positions, "context_positions", {positions}, {rows});
    return positions;
}

void take_own_rows(Graph& graph, const plan::Arg& rows, const plan::Tensor& positions, const plan::Arg& table,
                   std::int64_t width, plan::DType dtype) {
    graph
        .kernel(plan::Kernel::embedding_forward, "embedding_forward", {rows, positions, table},
                {positions.elements(), width})
        .kernel()
        .dtype = dtype;
}

// The names are those of PyTorch's flash attention.
plan::Tensor attend_in_context_group(Graph& graph, const std::string& path, const plan::Tensor& qkv,
                                     const AttentionShape& shape) {
    const Attention attention(graph, path, shape);
    const plan::PlanBuilder::Range range(graph.builder, "aten::_scaled_dot_product_flash_attention");
    plan::Tensor kv =
        attention.activation(".kv of all ranks", attention.kv_elements() * graph.context, qkv.dtype);
    attention.collective(plan::Operation::all_gather, kv, attention.own_keys(qkv));
    auto [wide, lse] = attention.forward(qkv, kv);
    plan::Tensor y = attention.narrowed(std::exchange(wide, {}), ".attention", true);
    if (!wants(graph, qkv)) return y;
    y.value = graph.tape.new_value();
    graph.tape.node("ScaledDotProductFlashAttentionBackward0",
                    [&graph, attention, qkv, kv, lse = std::move(lse), saved = y] {
                        const plan::Tensor dy = graph.tape.take_gradient(saved.value);
                        graph.tape.accumulate(qkv.value, attention.backward(dy, qkv, kv, saved, lse));
                    });
    return y;
}

}  // namespace shardscope::trainer::model
