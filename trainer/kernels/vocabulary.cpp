#include "trainer/kernels/vocabulary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "trainer/kernels/elements.h"
#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {

void local_tokens(const std::int32_t* tokens, std::int32_t* local, std::int32_t* inside, std::size_t n,
                  std::int64_t first, int entries) {
    for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t place = tokens[i] - first;
        const bool own = tokens[i] >= 0 && place >= 0 && place < entries;
        local[i] = own ? static_cast<std::int32_t>(place) : tokens[i] < 0 ? -1 : entries;
        if (inside) inside[i] = own ? local[i] : 0;
    }
}

template <class T>
void zero_rows(T* y, const std::int32_t* local, int rows, int width, int entries) {
    for (int i = 0; i < rows; ++i) {
        if (local[i] >= 0 && local[i] < entries) continue;
        std::fill_n(y + static_cast<std::size_t>(i) * static_cast<std::size_t>(width), width, T{});
    }
}
template void zero_rows(float*, const std::int32_t*, int, int, int);
template void zero_rows(Bf16*, const std::int32_t*, int, int, int);
template void zero_rows(Fp16*, const std::int32_t*, int, int, int);

SHARDSCOPE_VECTOR_CLONES
void largest_logit(const float* logits, float* largest, int rows, int classes, int valid) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
        const float* row = logits + i * static_cast<std::size_t>(classes);
        float most = std::numeric_limits<float>::lowest();
        for (int j = 0; j < valid; ++j) most = std::max(most, row[j]);
        largest[i] = most;
    }
}

SHARDSCOPE_VECTOR_CLONES
void exp_logits(const float* logits, const float* largest, const std::int32_t* targets, float* exponentials,
                float* sums, float* target_logits, int rows, int classes, int valid) {
    const auto n = static_cast<std::size_t>(classes);
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
        const float* row = logits + i * n;
        float* out = exponentials + i * n;
        const float most = largest[i];
        const bool own = targets[i] >= 0 && targets[i] < valid;
        target_logits[i] = own ? row[targets[i]] - most : 0.0F;  // read before it may be overwritten
        double sum = 0;
        for (int j = 0; j < valid; ++j) {
            out[j] = exp_approximate(row[j] - most);
            sum += static_cast<double>(out[j]);
        }
        std::fill(out + valid, out + n, 0.0F);
        sums[i] = static_cast<float>(sum);
    }
}

SHARDSCOPE_VECTOR_CLONES
void vocabulary_loss(float* exponentials, const float* sums, const float* target_logits,
                     const std::int32_t* targets, double* mean, int rows, int classes, int counted) {
    const auto n = static_cast<std::size_t>(classes);
    double total = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
        const float scale = 1.0F / sums[i];
        float* row = exponentials + i * n;
        for (std::size_t j = 0; j < n; ++j) row[j] *= scale;
        if (targets[i] < 0) continue;
        total += std::log(static_cast<double>(sums[i])) - static_cast<double>(target_logits[i]);
    }
    *mean = total / (counted > 0 ? counted : rows);
}

}  // namespace shardscope::trainer::kernels
