#include "trainer/kernels/experts.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "trainer/kernels/blas.h"
#include "trainer/kernels/elements.h"
#include "trainer/kernels/elementwise.h"
#include "trainer/kernels/linear.h"
#include "trainer/kernels/vectorize.h"
#include "trainer/kernels/workspace.h"

namespace shardscope::trainer::kernels {

namespace {

void softmax(const float* logits, float* probabilities, std::size_t n) {
    const float most = *std::max_element(logits, logits + n);
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
        probabilities[i] = std::exp(logits[i] - most);
        sum += static_cast<double>(probabilities[i]);
    }
    for (std::size_t i = 0; i < n; ++i)
        probabilities[i] = static_cast<float>(static_cast<double>(probabilities[i]) / sum);
}

// Calls use(first row, rows, expert) for each group that has rows.
template <class Use>
void for_groups(std::span<const std::int32_t> counts, int experts, const Use& use) {
    std::size_t row = 0;
    for (std::size_t g = 0; g < counts.size(); ++g) {
        if (counts[g] > 0) use(row, counts[g], g % static_cast<std::size_t>(experts));
        row += static_cast<std::size_t>(counts[g]);
    }
}

// sum [out, in] += dy^T x
void add_weight_gradient(const float* dy, const float* x, float* sum, int rows, int in, int out) {
    Blas::get().sgemm(true, false, out, in, rows, 1.0F, dy, out, x, in, 1.0F, sum, in);
}

// The rows of a matmul as floats: themselves, or a copy in the workspace.
const float* as_floats(const float* x, std::size_t /*n*/, Purpose /*purpose*/) {
    return x;
}
template <Narrow T>
const float* as_floats(const T* x, std::size_t n, Purpose purpose) {
    float* const copy = workspace_of<float>(purpose, n);
    cast(x, copy, n);
    return copy;
}

}  // namespace

void choose_experts(const float* logits, float* weights, std::int32_t* chosen, float* probabilities,
                    int tokens, int experts, int k) {
    const auto all = static_cast<std::size_t>(experts), some = static_cast<std::size_t>(k);
    for (std::size_t t = 0; t < static_cast<std::size_t>(tokens); ++t) {
        float* p = probabilities + t * all;
        softmax(logits + t * all, p, all);
        double sum = 0;
        for (std::size_t j = 0; j < some; ++j) {
            const std::int32_t* const earlier = chosen + t * some;
            std::size_t best = all;
            for (std::size_t e = 0; e < all; ++e) {
                if (std::find(earlier, earlier + j, static_cast<std::int32_t>(e)) != earlier + j) continue;
                if (best == all || p[e] > p[best]) best = e;
            }
            chosen[t * some + j] = static_cast<std::int32_t>(best);
            weights[t * some + j] = p[best];
            sum += static_cast<double>(p[best]);
        }
        for (std::size_t j = 0; k > 1 && j < some; ++j)
            weights[t * some + j] = static_cast<float>(static_cast<double>(weights[t * some + j]) / sum);
    }
}

// With s = the sum of the chosen probabilities p: w = p / s, so dp = (dw - w . dw) / s.
void choose_experts_backward(const float* dweights, const std::int32_t* chosen, const float* probabilities,
                             const float* shares, float balance, float* dlogits, int tokens, int experts,
                             int k) {
    const auto all = static_cast<std::size_t>(experts), some = static_cast<std::size_t>(k);
    std::vector<double> dp(all);
    for (std::size_t t = 0; t < static_cast<std::size_t>(tokens); ++t) {
        const float* p = probabilities + t * all;
        const std::int32_t* own = chosen + t * some;
        const float* dw = dweights + t * some;
        for (std::size_t e = 0; e < all; ++e)
            dp[e] = shares ? static_cast<double>(balance) * static_cast<double>(shares[e]) : 0.0;
        double sum = k > 1 ? 0.0 : 1.0, mean = 0;
        if (k > 1) {
            for (std::size_t j = 0; j < some; ++j) sum += static_cast<double>(p[own[j]]);
            for (std::size_t j = 0; j < some; ++j)
                mean += static_cast<double>(p[own[j]]) / sum * static_cast<double>(dw[j]);
        }
        for (std::size_t j = 0; j < some; ++j)
            dp[static_cast<std::size_t>(own[j])] += (static_cast<double>(dw[j]) - mean) / sum;
        double dot = 0;
        for (std::size_t e = 0; e < all; ++e) dot += static_cast<double>(p[e]) * dp[e];
        for (std::size_t e = 0; e < all; ++e)
            dlogits[t * all + e] = static_cast<float>(static_cast<double>(p[e]) * (dp[e] - dot));
    }
}

void route(const std::int32_t* chosen, std::int32_t* places, std::int32_t* counts, float* shares,
           std::size_t choices, int experts, std::int32_t capacity) {
    std::vector<std::int32_t> wanted(static_cast<std::size_t>(experts), 0), next(wanted);
    for (std::size_t c = 0; c < choices; ++c) ++wanted[static_cast<std::size_t>(chosen[c])];
    std::int32_t row = 0;
    for (std::size_t e = 0; e < wanted.size(); ++e) {
        next[e] = row;
        counts[e] = capacity > 0 ? std::min(wanted[e], capacity) : wanted[e];
        if (shares) shares[e] = static_cast<float>(wanted[e]);
        row += counts[e];
        wanted[e] = row;  // from here on: the row behind its last
    }
    for (std::size_t c = 0; c < choices; ++c) {
        const auto e = static_cast<std::size_t>(chosen[c]);
        places[c] = next[e] < wanted[e] ? next[e]++ : -1;
    }
}

template <class T>
SHARDSCOPE_VECTOR_CLONES void scatter_rows(const T* x, const T* kept, const float* weights,
                                           const std::int32_t* places, T* rows, float* slopes, int choices,
                                           int k, int width) {
    const auto n = static_cast<std::size_t>(width);
    float* const buffers = workspace_of<float>(Purpose::rows, 2 * n);
    for (std::size_t c = 0; c < static_cast<std::size_t>(choices); ++c) {
        if (slopes) slopes[c] = 0;
        if (places[c] < 0) continue;
        const T* from = x + c / static_cast<std::size_t>(k) * n;
        const std::size_t at = static_cast<std::size_t>(places[c]) * n;
        if (slopes) {
            const float *a = floats_of(from, n, buffers), *b = floats_of(kept + at, n, buffers + n);
            float sum = 0;
            for (std::size_t i = 0; i < n; ++i) sum += a[i] * b[i];
            slopes[c] = sum;
        }
        if (!weights) {
            std::copy_n(from, n, rows + at);
            continue;
        }
        map(
            rows + at, n,
            [weight = weights[c]](float value) SHARDSCOPE_INLINE_LAMBDA { return value * weight; }, from);
    }
}

template <class T>
SHARDSCOPE_VECTOR_CLONES void gather_rows(const T* rows, const float* weights, const std::int32_t* places,
                                          T* y, int choices, int k, int width) {
    const auto n = static_cast<std::size_t>(width), some = static_cast<std::size_t>(k);
    float* const buffer = workspace_of<float>(Purpose::rows, n);
    for (std::size_t t = 0; t < static_cast<std::size_t>(choices) / some; ++t) {
        float* const sum = floats_for(y + t * n, buffer);
        std::fill_n(sum, n, 0.0F);
        for (std::size_t c = t * some; c < (t + 1) * some; ++c) {
            if (places[c] < 0) continue;
            const float* so_far = sum;
            map(
                sum, n,
                [weight = weights ? weights[c] : 1.0F](float before, float value)
                    SHARDSCOPE_INLINE_LAMBDA { return before + value * weight; },
                so_far, rows + static_cast<std::size_t>(places[c]) * n);
        }
        put(y + t * n, sum, n);
    }
}

template <class T>
void grouped_linear_forward(const T* x, const T* w, T* y, std::span<const std::int32_t> counts, int in,
                            int out, int experts) {
    const auto ins = static_cast<std::size_t>(in), outs = static_cast<std::size_t>(out);
    for_groups(counts, experts, [&](std::size_t row, int rows, std::size_t expert) {
        linear_forward(x + row * ins, w + expert * ins * outs, nullptr, y + row * outs, rows, in, out);
    });
}

template <class T>
void grouped_linear_backward_input(const T* dy, const T* w, T* dx, std::span<const std::int32_t> counts,
                                   int in, int out, int experts) {
    const auto ins = static_cast<std::size_t>(in), outs = static_cast<std::size_t>(out);
    for_groups(counts, experts, [&](std::size_t row, int rows, std::size_t expert) {
        linear_backward_input(dy + row * outs, w + expert * ins * outs, dx + row * ins, rows, in, out);
    });
}

// Sums of several groups stay in fp32 until the last.
template <class T>
void grouped_linear_backward_weight(const T* dy, const T* x, T* dw, std::span<const std::int32_t> counts,
                                    int in, int out, int experts) {
    const auto ins = static_cast<std::size_t>(in), outs = static_cast<std::size_t>(out);
    const std::size_t size = ins * outs;
    float* const buffer = !Narrow<T> ? nullptr : workspace_of<float>(Purpose::product, size);
    for (std::size_t e = 0; e < static_cast<std::size_t>(experts); ++e) {
        T* const own = dw + e * size;
        float* const sum = floats_for(own, buffer);
        std::fill_n(sum, size, 0.0F);
        for_groups(counts, experts, [&](std::size_t row, int rows, std::size_t expert) {
            if (expert != e) return;
            const auto n = static_cast<std::size_t>(rows);
            add_weight_gradient(as_floats(dy + row * outs, n * outs, Purpose::operand_a),
                                as_floats(x + row * ins, n * ins, Purpose::operand_b), sum, rows, in, out);
        });
        if constexpr (Narrow<T>) cast(sum, own, size);
    }
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define SHARDSCOPE_INSTANTIATE(T)                                                                            \
    template void scatter_rows(const T*, const T*, const float*, const std::int32_t*, T*, float*, int, int,  \
                               int);                                                                         \
    template void gather_rows(const T*, const float*, const std::int32_t*, T*, int, int, int);               \
    template void grouped_linear_forward(const T*, const T*, T*, std::span<const std::int32_t>, int, int,    \
                                         int);                                                               \
    template void grouped_linear_backward_input(const T*, const T*, T*, std::span<const std::int32_t>, int,  \
                                                int, int);                                                   \
    template void grouped_linear_backward_weight(const T*, const T*, T*, std::span<const std::int32_t>, int, \
                                                 int, int);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(float)
SHARDSCOPE_INSTANTIATE(Bf16)
SHARDSCOPE_INSTANTIATE(Fp16)

}  // namespace shardscope::trainer::kernels
