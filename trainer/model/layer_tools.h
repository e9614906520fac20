// Helpers of every layer's forward() and backward: whether a gradient is wanted, outputs, the finite check.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "trainer/model/module.h"

namespace shardscope::trainer::model {

// A module's own parameters are indexed by position: the weight first, the bias second.
inline constexpr std::size_t kWeight = 0;
inline constexpr std::size_t kBias = 1;

// Whether what is computed from `x` needs a gradient (requires_grad in PyTorch).
inline bool wants(const Graph& graph, const plan::Tensor& x) {
    return graph.tape.recording() && x.value >= 0;
}
inline bool wants(const Graph& graph, const plan::Tensor& x, const Parameter& parameter) {
    return graph.tape.recording() && (x.value >= 0 || parameter.trained);
}

// A new activation of graph.dtype, with an identity on the tape only if its gradient is wanted.
inline plan::Tensor output_of(Graph& graph, std::string name, std::int64_t elements, bool wanted) {
    plan::Tensor out = graph.activation(std::move(name), elements);
    if (wanted) out.value = graph.tape.new_value();
    return out;
}

// The rows of x from a column on, for a kernel that knows how long they are.
inline plan::Arg from_column(const plan::Tensor& x, std::int64_t column) {
    plan::Arg part = x;
    part.offset += column * size_of(x.dtype);
    part.bytes -= column * size_of(x.dtype);
    return part;
}

// Copies the first `count` columns of `rows` rows; from_type is that of `from`.
inline void copy_columns(const Graph& graph, const plan::Arg& to, const plan::Arg& from, std::int64_t rows,
                         std::int64_t count, std::int64_t to_row, std::int64_t from_row,
                         plan::DType from_type) {
    graph.kernel(plan::Kernel::copy_columns, "copy_columns", {to, from},
                 {rows, count, to_row, from_row, input_dim(from_type)});
}

// Makes the kernel check its first arg, a module's output, for values that are not finite
// (KernelOp::checks_output).
inline void check_output(const Graph& graph, plan::Op& op) {
    if (graph.finite_flag.buffer < 0) return;
    op.kernel().checks_output = true;
    op.args.push_back(graph.finite_flag);
}

// The activation of `x` if the matmul before it computed that (Graph::activated), else nothing.
inline plan::Tensor take_activated(Graph& graph, const plan::Tensor& x) {
    if (graph.activated.of != x.view.buffer) return {};
    return std::exchange(graph.activated, {}).output;
}

// A matmul kernel's name by its element type: "sgemm_nt", "bgemm_nt".
inline std::string matmul_name(const Graph& graph, std::string_view transposes) {
    const char* blas = graph.dtype == plan::DType::bf16   ? "bgemm_"
                       : graph.dtype == plan::DType::fp16 ? "hgemm_"
                                                          : "sgemm_";
    return blas + std::string(transposes);
}

}  // namespace shardscope::trainer::model
