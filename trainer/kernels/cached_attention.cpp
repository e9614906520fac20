// See cached_attention.h. A head's scores fit into the caches, so that each key and value is read once.
#include "trainer/kernels/cached_attention.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "trainer/kernels/elements.h"
#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {
namespace {

// One head of one token: `scores` has room for `seen` floats, `buffers` for three heads.
template <class T>
SHARDSCOPE_VECTOR_CLONES void attend(const T* query, const T* keys, std::size_t kv_row, std::size_t to_values,
                                     std::size_t seen, std::size_t d, float* scores, float* buffers, T* out) {
    const float scale = 1.0f / std::sqrt(static_cast<float>(d));
    const float* q = floats_of(query, d, buffers);
    for (std::size_t j = 0; j < seen; ++j) {
        const float* k = floats_of(keys + j * kv_row, d, buffers + d);
        scores[j] = scale * lane_sum(d, [=](std::size_t i) SHARDSCOPE_INLINE_LAMBDA { return q[i] * k[i]; });
    }
    softmax_row(scores, scores, seen);
    float* sum = buffers + 2 * d;
    std::memset(sum, 0, d * sizeof(float));
    for (std::size_t j = 0; j < seen; ++j) {
        const float* v = floats_of(keys + j * kv_row + to_values, d, buffers + d);
        const float p = scores[j];
        for (std::size_t i = 0; i < d; ++i) sum[i] += p * v[i];
    }
    for (std::size_t i = 0; i < d; ++i) store(sum[i], out[i]);
}

}  // namespace

template <class T>
void store_keys(const T* qkv, const std::int32_t* positions, T* cache, const CacheShape& s) {
    const auto row = static_cast<std::size_t>(s.row()), kv_row = static_cast<std::size_t>(s.kv_row());
    for (int b = 0; b < s.batch; ++b) {
        for (int r = 0; r < s.rows; ++r) {
            const std::size_t at =
                static_cast<std::size_t>(b) * static_cast<std::size_t>(s.rows) + static_cast<std::size_t>(r);
            const std::size_t place = static_cast<std::size_t>(b) * static_cast<std::size_t>(s.context) +
                                      static_cast<std::size_t>(positions[at]);
            std::memcpy(cache + place * kv_row, qkv + at * row + s.width, kv_row * sizeof(T));
        }
    }
}

template <class T>
void cached_attention_forward(const T* qkv, const T* cache, const std::int32_t* positions, T* out,
                              const CacheShape& s) {
    const auto d = static_cast<std::size_t>(s.head_width()), row = static_cast<std::size_t>(s.row());
    const auto kv_row = static_cast<std::size_t>(s.kv_row()), width = static_cast<std::size_t>(s.width);
    std::vector<float> memory(static_cast<std::size_t>(s.context) + 3 * d);
    for (int b = 0; b < s.batch; ++b) {
        const T* keys = cache + static_cast<std::size_t>(b) * static_cast<std::size_t>(s.context) * kv_row;
        for (int r = 0; r < s.rows; ++r) {
            const std::size_t at =
                static_cast<std::size_t>(b) * static_cast<std::size_t>(s.rows) + static_cast<std::size_t>(r);
            const auto seen = static_cast<std::size_t>(positions[at]) + 1;
            for (int h = 0; h < s.heads; ++h) {
                const std::size_t head = static_cast<std::size_t>(h) * d;
                const std::size_t key = static_cast<std::size_t>(h / s.group()) * d;
                attend(qkv + at * row + head, keys + key, kv_row, kv_row / 2, seen, d, memory.data() + 3 * d,
                       memory.data(), out + at * width + head);
            }
        }
    }
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define SHARDSCOPE_INSTANTIATE(T)                                                   \
    template void store_keys(const T*, const std::int32_t*, T*, const CacheShape&); \
    template void cached_attention_forward(const T*, const T*, const std::int32_t*, T*, const CacheShape&);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(float)
SHARDSCOPE_INSTANTIATE(Bf16)
SHARDSCOPE_INSTANTIATE(Fp16)

}  // namespace shardscope::trainer::kernels
