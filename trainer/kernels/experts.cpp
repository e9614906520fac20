#include "trainer/kernels/experts.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "trainer/kernels/bf16.h"
#include "trainer/kernels/blas.h"
#include "trainer/kernels/linear.h"

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

float widened(float x) {
    return x;
}
float widened(Bf16 x) {
    return to_float(x);
}
void narrow(float x, float& y) {
    y = x;
}
void narrow(float x, Bf16& y) {
    y = to_bf16(x);
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

std::vector<float> widened(const Bf16* x, std::size_t n) {
    std::vector<float> wide(n);
    std::transform(x, x + n, wide.begin(), [](Bf16 value) { return to_float(value); });
    return wide;
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
void scatter_rows(const T* x, const T* kept, const float* weights, const std::int32_t* places, T* rows,
                  float* slopes, int choices, int k, int width) {
    const auto n = static_cast<std::size_t>(width);
    for (std::size_t c = 0; c < static_cast<std::size_t>(choices); ++c) {
        if (slopes) slopes[c] = 0;
        if (places[c] < 0) continue;
        const T* from = x + c / static_cast<std::size_t>(k) * n;
        const std::size_t at = static_cast<std::size_t>(places[c]) * n;
        if (slopes) {
            float sum = 0;
            for (std::size_t i = 0; i < n; ++i) sum += widened(from[i]) * widened(kept[at + i]);
            slopes[c] = sum;
        }
        if (!weights) {
            std::copy_n(from, n, rows + at);
            continue;
        }
        for (std::size_t i = 0; i < n; ++i) narrow(widened(from[i]) * weights[c], rows[at + i]);
    }
}

template <class T>
void gather_rows(const T* rows, const float* weights, const std::int32_t* places, T* y, int choices, int k,
                 int width) {
    const auto n = static_cast<std::size_t>(width), some = static_cast<std::size_t>(k);
    std::vector<float> sum(n);
    for (std::size_t t = 0; t < static_cast<std::size_t>(choices) / some; ++t) {
        std::fill(sum.begin(), sum.end(), 0.0F);
        for (std::size_t c = t * some; c < (t + 1) * some; ++c) {
            if (places[c] < 0) continue;
            const T* row = rows + static_cast<std::size_t>(places[c]) * n;
            const float weight = weights ? weights[c] : 1.0F;
            for (std::size_t i = 0; i < n; ++i) sum[i] += widened(row[i]) * weight;
        }
        for (std::size_t i = 0; i < n; ++i) narrow(sum[i], y[t * n + i]);
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
    const std::size_t all = static_cast<std::size_t>(experts) * ins * outs;
    if constexpr (std::is_same_v<T, float>) {
        std::fill_n(dw, all, 0.0F);
        for_groups(counts, experts, [&](std::size_t row, int rows, std::size_t expert) {
            add_weight_gradient(dy + row * outs, x + row * ins, dw + expert * ins * outs, rows, in, out);
        });
    } else {
        std::vector<float> sums(all, 0.0F);
        for_groups(counts, experts, [&](std::size_t row, int rows, std::size_t expert) {
            const auto n = static_cast<std::size_t>(rows);
            const std::vector<float> a = widened(dy + row * outs, n * outs),
                                     b = widened(x + row * ins, n * ins);
            add_weight_gradient(a.data(), b.data(), sums.data() + expert * ins * outs, rows, in, out);
        });
        for (std::size_t i = 0; i < all; ++i) dw[i] = to_bf16(sums[i]);
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

}  // namespace shardscope::trainer::kernels
