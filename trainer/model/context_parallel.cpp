#include "trainer/model/context_parallel.h"

#include <array>
#include <utility>

#include "trainer/kernels/cost.h"
#include "trainer/model/layer_tools.h"

namespace shardscope::trainer::model {

namespace {

constexpr int kAllKeys = 0;  // not a step of the ring, which count from 1

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
    std::array<std::int64_t, 6> dims(int step) const {
        return {graph_.samples, rows_, shape_.heads, shape_.width, shape_.kv_heads, step};
    }
    // Pairs of a query and a key that it sees, as many on each rank: of all keys, or in a step of the ring.
    std::int64_t pairs(int step) const {
        if (step == kAllKeys) return kernels::pairs_of(shape_.context, shape_.causal) / graph_.context;
        return step == 1 ? kernels::pairs_of(rows_, shape_.causal) : rows_ * rows_ / (shape_.causal ? 2 : 1);
    }

    plan::Tensor own_keys(const plan::Tensor& qkv) const {
        plan::Tensor own = activation(".kv", kv_elements(), qkv.dtype);
        copy_columns(graph_, own, from_column(qkv, width()), tokens(), kv_row_, kv_row_, width() + kv_row_,
                     qkv.dtype);
        return own;
    }
    plan::Tensor join_gradients(const plan::Tensor& dq, const plan::Tensor& dkv) const {
        const std::int64_t row = width() + kv_row_;
        plan::Tensor dqkv = activation(".qkv.grad", tokens() * row, graph_.dtype);
        copy_columns(graph_, dqkv, dq, tokens(), width(), row, width(), dq.dtype);
        copy_columns(graph_, from_column(dqkv, width()), dkv, tokens(), kv_row_, row, kv_row_, dkv.dtype);
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
        plan::Op& op = graph_.builder.cast("cast", narrow, graph_.dtype, wide, wide.dtype, wide.elements());
        if (output) check_output(graph_, op);
        return narrow;
    }

    // An output, fp32, and the logarithms of its sums.
    struct Result {
        plan::Tensor y, lse;
    };
    Result attend(const plan::Tensor& qkv, const plan::Tensor& kv, int step) const {
        Result result{activation(".attention", tokens() * width(), plan::DType::fp32), of_rows(".logsumexp")};
        plan::Op& op = graph_.kernel(
            plan::Kernel::context_attention_forward, "flash_forward", {result.y, result.lse, qkv, kv},
            dims(step),
            kernels::context_attention_forward_flops(graph_.samples, pairs(step), width(), shape_.heads));
        if (graph_.dtype == plan::DType::fp32) check_output(graph_, op);
        return result;
    }
    // What a backward reads: the gradient of y, and what the forward has kept.
    struct Kept {
        const plan::Tensor &dy, &qkv, &y, &lse;
    };
    plan::Tensor query_gradients() const {
        return activation(".q.grad", tokens() * width(), plan::DType::fp32);
    }
    // Returns the gradient of the keys and values, fp32.
    plan::Tensor attend_backward(const plan::Tensor& dq, const Kept& kept, const plan::Tensor& kv,
                                 int step) const {
        plan::Tensor dkv = activation(".kv.grad", kv.elements(), plan::DType::fp32);
        const plan::Tensor delta = of_rows(".delta");
        graph_.kernel(plan::Kernel::context_attention_backward, "flash_backward",
                      {dq, dkv, delta, kept.dy, kept.qkv, kv, kept.y, kept.lse}, dims(step),
                      kernels::context_attention_backward_flops(graph_.samples, pairs(step), rows_, width(),
                                                                shape_.heads));
        return dkv;
    }

    // --- allgather ---
    plan::Tensor gathered(const plan::Tensor& qkv) const {
        plan::Tensor kv = activation(".kv of all ranks", kv_elements() * graph_.context, qkv.dtype);
        collective(plan::Operation::all_gather, kv, own_keys(qkv));
        return kv;
    }
    plan::Tensor backward(const Kept& kept, const plan::Tensor& kv) const {
        const plan::Tensor dq = query_gradients();
        plan::Tensor dkv = narrowed(attend_backward(dq, kept, kv, kAllKeys), ".kv.grad");
        const plan::Tensor own = activation(".kv.grad", kv_elements(), dkv.dtype);
        collective(plan::Operation::reduce_scatter, own, dkv);
        dkv = {};
        return join_gradients(dq, own);
    }

    // --- ring ---
    // What is under way from the previous rank.
    struct Message {
        plan::Tensor tensor;
        plan::EventId event = -1;
    };
    // Sends what the compute stream has written to the next rank; the previous one sends the same.
    Message exchange(const plan::Tensor& own, const char* name) const {
        plan::PlanBuilder& builder = graph_.builder;
        builder.order(plan::Stream::compute, plan::Stream::ring_send);
        builder.send_on(own);
        Message message{builder.new_tensor(path_ + name, plan::MemoryCategory::activations, own.elements(),
                                           own.dtype, plan::Stream::ring_receive),
                        builder.new_event()};
        builder.receive_on(message.tensor);
        builder.record(message.event, plan::Stream::ring_receive);
        return message;
    }
    plan::Tensor arrived(Message message) const {
        if (message.tensor) graph_.builder.wait(message.event, plan::Stream::compute);
        return std::move(message.tensor);
    }
    Result ring(const plan::Tensor& qkv) const {
        Result result;
        plan::Tensor kv = own_keys(qkv);
        for (int step = 1; step <= graph_.context; ++step) {
            Message next;
            if (step < graph_.context) next = exchange(kv, ".kv");
            Result part = attend(qkv, kv, step);
            if (step == 1) {
                result = std::move(part);
            } else {
                graph_.kernel(plan::Kernel::attention_merge, "attention_merge",
                              {result.y, result.lse, part.y, part.lse},
                              {graph_.samples, rows_, shape_.heads, shape_.width}, 4 * result.y.elements());
            }
            part = {};
            kv = arrived(std::move(next));
        }
        return result;
    }
    plan::Tensor ring_backward(const Kept& kept) const {
        const plan::Tensor dq = query_gradients();
        plan::Tensor kv = own_keys(kept.qkv);
        Message sum;
        for (int step = 1; step <= graph_.context; ++step) {
            Message next;
            if (step < graph_.context) next = exchange(kv, ".kv");
            plan::Tensor dkv = attend_backward(dq, kept, kv, step);
            if (step > 1) {
                const plan::Tensor before = arrived(std::exchange(sum, {}));
                const std::int64_t n = dkv.elements();
                graph_.kernel(plan::Kernel::accumulate, "elementwise_add", {before, dkv}, {n}, n)
                    .kernel()
                    .dtype = plan::DType::fp32;
                dkv = before;
            }
            sum = exchange(dkv, ".kv.grad");
            dkv = {};
            kv = arrived(std::move(next));
        }
        return join_gradients(dq, arrived(std::move(sum)));
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
    plan::Tensor kv = graph.ring ? plan::Tensor() : attention.gathered(qkv);
    Attention::Result result = graph.ring ? attention.ring(qkv) : attention.attend(qkv, kv, kAllKeys);
    plan::Tensor y = attention.narrowed(std::exchange(result.y, {}), ".attention", true);
    if (!wants(graph, qkv)) return y;
    y.value = graph.tape.new_value();
    graph.tape.node("ScaledDotProductFlashAttentionBackward0",
                    [&graph, attention, qkv, kv, lse = std::move(result.lse), saved = y] {
                        const plan::Tensor dy = graph.tape.take_gradient(saved.value);
                        const Attention::Kept kept{dy, qkv, saved, lse};
                        graph.tape.accumulate(qkv.value, graph.ring ? attention.ring_backward(kept)
                                                                    : attention.backward(kept, kv));
                    });
    return y;
}

}  // namespace shardscope::trainer::model
