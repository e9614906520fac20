// The cost of each kernel: floating-point operations (a multiplication and an addition are two; exp, division
// and square root count as one each) and the bytes that it must read and write once. The Plan stores both
// with its operations. Sizes in elements of fp32 (4 bytes); tokens and targets are 4 bytes too. Everything is
// constexpr and thread safe.
#pragma once

#include <cstdint>

namespace shardscope::trainer::kernels {

struct Cost {
    std::int64_t flops = 0;
    std::int64_t bytes = 0;
};

constexpr Cost operator+(Cost a, Cost b) {
    return {a.flops + b.flops, a.bytes + b.bytes};
}
constexpr bool operator==(Cost a, Cost b) {
    return a.flops == b.flops && a.bytes == b.bytes;
}

using Count = std::int64_t;

// c[m,n] += a[m,k] b[k,n]: 2mnk operations, three matrices.
constexpr Cost matrix_product_cost(Count m, Count n, Count k) {
    return {2 * m * n * k, 4 * (m * k + k * n + m * n)};
}

constexpr Cost linear_forward_cost(Count rows, Count in, Count out, bool bias) {
    return matrix_product_cost(rows, out, in) + (bias ? Cost{rows * out, 4 * out} : Cost{});
}
// The weights take a byte each; a multiplication scales each element of the result.
constexpr Cost int8_linear_forward_cost(Count rows, Count in, Count out, bool bias) {
    return {linear_forward_cost(rows, in, out, bias).flops + rows * out,
            4 * rows * (in + out) + in * out + 4 * out * (bias ? 2 : 1)};
}
constexpr Cost linear_backward_input_cost(Count rows, Count in, Count out) {
    return matrix_product_cost(rows, in, out);
}
constexpr Cost linear_backward_weight_cost(Count rows, Count in, Count out) {
    return matrix_product_cost(out, in, rows);
}
constexpr Cost linear_backward_bias_cost(Count rows, Count out) {
    return {rows * out, 4 * (rows * out + out)};
}

#define ACTIVATION(name, formula, module, kept, forward, backward) \
    constexpr Cost name##_forward_cost(Count n) {                  \
        return {(forward)*n, 4 * 2 * n};                           \
    }                                                              \
    constexpr Cost name##_backward_cost(Count n) {                 \
        return {(backward)*n, 4 * 3 * n};                          \
    }
#include "trainer/kernels/activations.def"
#undef ACTIVATION

// A matmul that also computes the activation moves no more bytes than the matmul alone, except for the sum
// that GELU's backward needs, if that is kept.
constexpr Cost linear_relu_forward_cost(Count rows, Count in, Count out, bool bias) {
    return linear_forward_cost(rows, in, out, bias) + Cost{relu_forward_cost(rows * out).flops, 0};
}
constexpr Cost linear_gelu_forward_cost(Count rows, Count in, Count out, bool bias, bool keeps_sum) {
    return linear_forward_cost(rows, in, out, bias) +
           Cost{gelu_forward_cost(rows * out).flops, keeps_sum ? 4 * rows * out : 0};
}

// The sigmoid takes 4 (negate, exp, add, divide), the two multiplications 2.
constexpr Cost silu_mul_forward_cost(Count n) {
    return {6 * n, 4 * 3 * n};
}
constexpr Cost silu_mul_backward_cost(Count n) {
    return {12 * n, 4 * 5 * n};
}
// Forward and backward alike: the random numbers are not counted.
constexpr Cost dropout_cost(Count n) {
    return {n, 4 * 2 * n};
}

constexpr Cost add_cost(Count n) {
    return {n, 4 * 3 * n};
}
constexpr Cost copy_cost(Count n) {
    return {0, 4 * 2 * n};
}
constexpr Cost sum_ranks_cost(Count ranks, Count n) {
    return {ranks * n, 4 * (ranks + 1) * n};
}

constexpr Cost layer_norm_forward_cost(Count rows, Count cols) {
    return {8 * rows * cols, 4 * (2 * rows * cols + 2 * cols + 2 * rows)};
}
constexpr Cost layer_norm_backward_input_cost(Count rows, Count cols) {
    return {14 * rows * cols, 4 * (3 * rows * cols + cols + 2 * rows)};
}
constexpr Cost layer_norm_backward_parameters_cost(Count rows, Count cols) {
    return {5 * rows * cols, 4 * (2 * rows * cols + 2 * cols + 2 * rows)};
}

constexpr Cost rms_norm_forward_cost(Count rows, Count cols) {
    return {4 * rows * cols, 4 * (2 * rows * cols + cols + rows)};
}
// Both gradients: 7 operations per element for the input's, 2 for the weight's.
constexpr Cost rms_norm_backward_cost(Count rows, Count cols) {
    return {9 * rows * cols, 4 * (3 * rows * cols + 2 * cols + rows)};
}

// The forward of a convolution, and either of its two gradients: as many multiplications and additions each.
constexpr Count convolution_flops(Count places, Count depth, Count out) {
    return 2 * places * depth * out;
}
// A subtraction, a multiplication and the addition of the sums for mean and variance; then two for the
// result. The backward: two sums of products, then the two terms of the input's gradient.
constexpr Count batch_norm_forward_flops(Count rows, Count cols) {
    return 6 * rows * cols;
}
constexpr Count batch_norm_evaluate_flops(Count rows, Count cols) {
    return 2 * rows * cols;
}
constexpr Count batch_norm_backward_flops(Count rows, Count cols, bool input) {
    return (5 + (input ? 4 : 0)) * rows * cols;
}

constexpr Count batch_norm_statistics_flops(Count rows, Count cols) {
    return 4 * rows * cols;
}
constexpr Count batch_norm_gradient_sums_flops(Count rows, Count cols) {
    return 5 * rows * cols;
}
constexpr Count batch_norm_synced_backward_flops(Count rows, Count cols) {
    return 4 * rows * cols;
}

// A comparison for each logit.
constexpr Count top_one_flops(Count rows, Count classes) {
    return rows * classes;
}

// Softmax of each token's logits and the search for the k largest.
constexpr Cost choose_experts_cost(Count tokens, Count experts, Count k) {
    return {tokens * experts * (4 + k), 4 * tokens * (2 * experts + 2 * k)};
}
constexpr Cost choose_experts_backward_cost(Count tokens, Count experts, Count k) {
    return {tokens * (5 * experts + 6 * k), 4 * tokens * (2 * experts + 2 * k)};
}
// A multiplication and an addition for each element of a row.
constexpr Cost move_rows_cost(Count rows, Count width) {
    return {2 * rows * width, 4 * 2 * rows * width};
}

// Four multiplications and two additions rotate a pair of features.
constexpr Cost rotary_cost(Count rows, Count turned_heads, Count head_width) {
    return {3 * rows * turned_heads * head_width, 4 * 2 * rows * turned_heads * head_width};
}

// Pairs (query, key) that a causal head evaluates: 1 + 2 + … + context.
constexpr Count causal_pairs(Count context) {
    return context * (context + 1) / 2;
}
constexpr Count pairs_of(Count context, bool causal) {
    return causal ? causal_pairs(context) : context * context;
}

// Per head and pair 2d for the score, 2d for the output and 5 for scale and softmax (d = width / heads). Only
// the pairs that are needed are counted, not the half squares on the diagonal that are computed and
// discarded.
constexpr Cost attention_forward_cost(Count batch, Count context, Count width, Count heads,
                                      bool causal = true) {
    const Count pairs = pairs_of(context, causal);
    return {batch * pairs * (4 * width + 5 * heads),
            4 * batch * (4 * context * width + heads * context * context)};
}
// Twice the matmuls of the forward (dv, dp, dq, dk), and 4 per pair for the softmax's gradient.
constexpr Cost attention_backward_cost(Count batch, Count context, Count width, Count heads,
                                       bool causal = true) {
    const Count pairs = pairs_of(context, causal);
    return {batch * pairs * (8 * width + 4 * heads),
            4 * batch * (7 * context * width + heads * context * context)};
}

// The same matmuls, but one number per row instead of a row of probabilities. The backward recomputes
// each score: 2d more for it, and 3 for scale, difference and exp.
constexpr Cost fused_attention_forward_cost(Count batch, Count context, Count width, Count heads,
                                            bool causal = true) {
    return {attention_forward_cost(batch, context, width, heads, causal).flops,
            4 * batch * (4 * context * width + heads * context)};
}
constexpr Cost fused_attention_backward_cost(Count batch, Count context, Count width, Count heads,
                                             bool causal = true) {
    const Count pairs = pairs_of(context, causal);
    return {batch * pairs * (10 * width + 7 * heads) + 2 * batch * context * width,
            4 * batch * (8 * context * width + 3 * heads * context)};
}

// The same for some pairs, of the queries of a rank of a context group.
constexpr Count context_attention_forward_flops(Count batch, Count pairs, Count width, Count heads) {
    return batch * pairs * (4 * width + 5 * heads);
}
constexpr Count context_attention_backward_flops(Count batch, Count pairs, Count rows, Count width,
                                                 Count heads) {
    return batch * pairs * (10 * width + 7 * heads) + 2 * batch * rows * width;
}

constexpr Cost embedding_forward_cost(Count rows, Count width) {
    return {0, 4 * (rows + 2 * rows * width)};
}
constexpr Cost embedding_backward_cost(Count rows, Count entries, Count width) {
    return {rows * width, 4 * (rows + 3 * rows * width + entries * width)};
}
// For an input to which the position embedding is added.
constexpr Cost position_embedding_forward_cost(Count rows, Count context, Count width) {
    return {rows * width, 4 * (2 * rows * width + context * width)};
}
constexpr Cost position_embedding_backward_cost(Count rows, Count entries, Count width) {
    return {rows * width, 4 * (rows * width + entries * width)};
}

constexpr Cost cross_entropy_forward_cost(Count rows, Count classes) {
    return {4 * rows * classes, 4 * (2 * rows * classes + rows)};
}
constexpr Cost cross_entropy_backward_cost(Count rows, Count classes) {
    return {rows * classes, 4 * (2 * rows * classes + rows)};
}
constexpr Cost mse_forward_cost(Count n) {
    return {3 * n, 4 * 2 * n};
}
constexpr Cost mse_backward_cost(Count n) {
    return {2 * n, 4 * 3 * n};
}

constexpr Cost sgd_cost(Count n, bool momentum) {
    return momentum ? Cost{6 * n, 4 * 5 * n} : Cost{4 * n, 4 * 3 * n};
}
constexpr Cost adamw_cost(Count n) {
    return {14 * n, 4 * 7 * n};
}

// Each of `rank` vectors loses its parts along the ones before it, twice (a product and a sum for each
// number, two times), and is divided by its norm.
constexpr Count orthogonalize_flops(Count length, Count rank) {
    return length * rank * (3 + 4 * (rank - 1));
}

// The error's sum, its square and the sum of those, the comparison and the difference.
constexpr Count compress_signs_flops(Count n) {
    return 5 * n;
}

constexpr Cost random_cost(Count n) {
    return {0, 4 * n};
}

}  // namespace shardscope::trainer::kernels
