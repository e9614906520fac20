// Cross-entropy and mean squared error; see loss.h.
#include "trainer/kernels/loss.h"

#include <algorithm>
#include <cmath>

#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {

SHARDSCOPE_VECTOR_CLONES
void cross_entropy_forward(const float* logits, const std::int32_t* targets, float* probabilities,
                           double* mean, int rows, int classes, int counted, double smoothing) {
    const std::size_t n = static_cast<std::size_t>(classes);
    double total = 0.0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
        const float* row = logits + i * n;
        const bool counts = targets[i] >= 0;
        double logit = counts ? row[targets[i]] : 0;  // read before softmax_row may overwrite it
        if (smoothing > 0) {
            const double sum =
                lane_sum<double>(n, [=](std::size_t j) SHARDSCOPE_INLINE_LAMBDA { return row[j]; });
            logit = (1 - smoothing) * logit + smoothing * sum / static_cast<double>(n);
        }
        const SoftmaxTerms terms = softmax_row(row, probabilities + i * n, n);
        if (!counts) continue;
        total += std::log(static_cast<double>(terms.sum)) + static_cast<double>(terms.largest) - logit;
    }
    *mean = total / (counted > 0 ? counted : rows);
}

SHARDSCOPE_VECTOR_CLONES
void cross_entropy_backward(const float* probabilities, const std::int32_t* targets, float* dlogits, int rows,
                            int classes, int counted, double smoothing, float loss_scale) {
    const std::size_t n = static_cast<std::size_t>(classes);
    const auto of_each = static_cast<float>(smoothing / static_cast<double>(classes));
    const auto of_the_target = static_cast<float>(1 - smoothing) + of_each;
    const float share = loss_scale / static_cast<float>(counted > 0 ? counted : rows);
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
        const float* p = probabilities + i * n;
        float* gradient = dlogits + i * n;
        if (targets[i] < 0) {
            std::fill_n(gradient, n, 0.0f);
            continue;
        }
        const bool own = targets[i] < classes;
        const float of_target = own ? (p[targets[i]] - of_the_target) * share : 0.0f;
        for (std::size_t j = 0; j < n; ++j) gradient[j] = (p[j] - of_each) * share;
        if (own) gradient[targets[i]] = of_target;
    }
}

double top_one(const float* logits, const std::int32_t* targets, int rows, int classes) {
    int right = 0;
    for (int i = 0; i < rows; ++i, logits += classes)
        right += std::max_element(logits, logits + classes) - logits == targets[i] ? 1 : 0;
    return static_cast<double>(right) / rows;
}

SHARDSCOPE_VECTOR_CLONES
void mse_forward(const float* y, const float* target, double* mean, std::size_t n) {
    const double sum = lane_sum<double>(n, [=](std::size_t i) SHARDSCOPE_INLINE_LAMBDA {
        const double d = static_cast<double>(y[i]) - static_cast<double>(target[i]);
        return d * d;
    });
    *mean = sum / static_cast<double>(n);
}

SHARDSCOPE_VECTOR_CLONES
void mse_backward(const float* y, const float* target, float* dy, std::size_t n, float loss_scale) {
    const float factor = static_cast<float>(2.0 / static_cast<double>(n)) * loss_scale;
    for (std::size_t i = 0; i < n; ++i) dy[i] = (y[i] - target[i]) * factor;
}

}  // namespace shardscope::trainer::kernels
