// See attention_plain.h. When a warp's lanes stand for positions, each computes a whole dot product of two
// rows; when they stand for features, all lanes take the same position, and pass around the shares that each
// has computed.
#include <algorithm>
#include <cmath>

#include "trainer/cuda/attention_plain.h"
#include "trainer/cuda/blocks.h"

namespace shardscope::trainer::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;

template <class T>
__device__ inline float product(const T* a, const T* b, int d) {
    float sum = 0.0f;
    for (int e = 0; e < d; ++e) sum = fmaf(to_float(a[e]), to_float(b[e]), sum);
    return sum;
}

// The row that this warp owns, counted over the launch; negative if it has none.
__device__ inline std::int64_t own_row(std::int64_t rows) {
    const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
    return row < rows ? row : -1;
}

// A query and the keys and values that it attends to.
template <class T>
struct Query {
    std::int64_t row;  // of [B,H,T]
    int here, last;    // its position, and the last that it sees
    HeadOffsets at;
    const T *q, *k, *v;

    __device__ Query(const T* qkv, std::int64_t row_of_query, const AttentionSizes& s)
        : row(row_of_query),
          here(static_cast<int>(row % s.context)),
          last(s.last_seen(here)),
          at(offsets_of(s, static_cast<int>(row / s.context) / s.heads,
                        static_cast<int>(row / s.context) % s.heads)),
          q(qkv + at.query + here * s.row),
          k(qkv + at.key),
          v(qkv + at.value) {}
    __device__ float score(int key, const AttentionSizes& s) const {
        return product(q, k + key * s.row, s.d) * s.scale;
    }
};

// The probabilities [B,H,T,T], as the forward keeps them.
template <class T>
struct Stored {
    T* probabilities;

    __device__ void keep(const Query<T>& query, float largest, float sum, const AttentionSizes& s) const {
        const float inverse = 1.0f / sum;
        for (int j = static_cast<int>(threadIdx.x % 32); j < s.context; j += 32) {
            const float p = j <= query.last ? expf(query.score(j, s) - largest) * inverse : 0.0f;
            probabilities[query.row * s.context + j] = rounded<T>(p);
        }
    }
    __device__ float operator()(std::int64_t row, int key, const T* /*q*/, const T* /*k*/,
                                const AttentionSizes& s) const {
        return to_float(probabilities[row * s.context + key]);
    }
};

// The probabilities, computed again from lse [B,H,T], the logarithm of a row's sum of e^score.
struct Recomputed {
    float* lse;

    __device__ void keep(const Query<float>& query, float largest, float sum,
                         const AttentionSizes& /*s*/) const {
        if (threadIdx.x % 32 == 0) lse[query.row] = largest + logf(sum);
    }
    __device__ float operator()(std::int64_t row, int /*key*/, const float* q, const float* k,
                                const AttentionSizes& s) const {
        return expf(product(q, k, s.d) * s.scale - lse[row]);
    }
};

// sum over keys j of share(j) * rows[j][e], for e of the lanes from e = lane on; each share is computed by
// one lane and passed around. put(e, total) is called for e < d.
template <class T, class Share, class Put>
__device__ inline void add_shares(const T* rows, int last, const AttentionSizes& s, Share share_of, Put put) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    for (int e = lane; e - lane < s.d; e += 32) {  // all lanes take part: each computes some of the shares
        float total = 0.0f;
        for (int j = 0; j <= last; j += 32) {
            const float share = j + lane <= last ? share_of(j + lane) : 0.0f;
            for (int other = 0; other < 32 && j + other <= last; ++other) {
                const float of_other = __shfl_sync(kAllLanes, share, other);
                if (e < s.d) total = fmaf(of_other, to_float(rows[(j + other) * s.row + e]), total);
            }
        }
        if (e < s.d) put(e, total);
    }
}

template <class T, class Probability>
__global__ void __launch_bounds__(kThreads)
    attention_forward_plain(const T* qkv, T* out, Probability p, AttentionSizes s) {
    const std::int64_t row = own_row(static_cast<std::int64_t>(s.batch) * s.heads * s.context);
    if (row < 0) return;
    const Query<T> query(qkv, row, s);
    const int lane = static_cast<int>(threadIdx.x % 32);
    float largest = -INFINITY;
    for (int j = lane; j <= query.last; j += 32) largest = fmaxf(largest, query.score(j, s));
    largest = warp_max(largest);
    float sum = 0.0f;
    for (int j = lane; j <= query.last; j += 32) sum += expf(query.score(j, s) - largest);
    sum = warp_sum(sum);
    p.keep(query, largest, sum, s);
    __syncwarp();  // all lanes read what the warp's lanes stored
    T* const to = out + query.at.out + static_cast<std::int64_t>(query.here) * s.width;
    add_shares(
        query.v, query.last, s, [&](int j) { return p(row, j, query.q, query.k + j * s.row, s); },
        [&](int e, float total) { to[e] = rounded<T>(total); });
}

// dq of heads [first, first + heads) of all B H, and for each of their rows delta = sum of p dp.
template <class T, class Probability>
__global__ void __launch_bounds__(kThreads)
    attention_backward_queries_plain(const T* dout, const T* qkv, Probability p, T* dqkv, float* deltas,
                                     int first, int heads, AttentionSizes s) {
    const std::int64_t local = own_row(static_cast<std::int64_t>(heads) * s.context);
    if (local < 0) return;
    const Query<T> query(qkv, static_cast<std::int64_t>(first) * s.context + local, s);
    const int lane = static_cast<int>(threadIdx.x % 32);
    const T* const go = dout + query.at.out + static_cast<std::int64_t>(query.here) * s.width;
    const auto probability = [&](int j) { return p(query.row, j, query.q, query.k + j * s.row, s); };
    const auto gradient = [&](int j) { return product(go, query.v + j * s.row, s.d); };

    float delta = 0.0f;
    for (int j = lane; j <= query.last; j += 32) delta = fmaf(probability(j), gradient(j), delta);
    delta = warp_sum(delta);
    if (lane == 0) deltas[local] = delta;
    T* const to = dqkv + query.at.query + query.here * s.row;
    add_shares(
        query.k, query.last, s, [&](int j) { return probability(j) * (gradient(j) - delta); },
        [&](int e, float total) { to[e] = rounded<T>(total * s.scale); });
}

// dk and dv of key heads [first, first + heads) of all B G; the deltas of their query heads are ready.
template <class T, class Probability>
__global__ void __launch_bounds__(kThreads)
    attention_backward_keys_plain(const T* dout, const T* qkv, Probability p, T* dqkv, const float* deltas,
                                  int first, int heads, AttentionSizes s) {
    const std::int64_t local = own_row(static_cast<std::int64_t>(heads) * s.context);
    if (local < 0) return;
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int key = static_cast<int>(local % s.context);
    const int key_head = first + static_cast<int>(local / s.context);
    const int b = key_head / s.kv_heads, first_head = key_head % s.kv_heads * s.group;
    const HeadOffsets at = offsets_of(s, b, first_head);
    const T *own_key = qkv + at.key + key * s.row, *own_value = qkv + at.value + key * s.row;
    const float* const own_deltas = deltas + (local / s.context) * s.group * s.context;

    for (int e = lane; e - lane < s.d; e += 32) {  // all lanes take part: each computes some of the shares
        float dk = 0.0f, dv = 0.0f;
        for (int member = 0; member < s.group; ++member) {
            const HeadOffsets from = offsets_of(s, b, first_head + member);
            const T *q = qkv + from.query, *go = dout + from.out;
            for (int i = s.first_seeing(key); i < s.context; i += 32) {
                const int mine = i + lane;
                const bool there = mine < s.context;
                const std::int64_t place = static_cast<std::int64_t>(mine);
                const float share = there ? p(from.row + place, key, q + place * s.row, own_key, s) : 0.0f;
                const float ds =
                    there ? share * (product(go + place * s.width, own_value, s.d) -
                                     own_deltas[static_cast<std::int64_t>(member) * s.context + mine])
                          : 0.0f;
                for (int other = 0; other < 32 && i + other < s.context; ++other) {
                    const float p_other = __shfl_sync(kAllLanes, share, other);
                    const float ds_other = __shfl_sync(kAllLanes, ds, other);
                    if (e >= s.d) continue;
                    const std::int64_t query = i + other;
                    dk = fmaf(ds_other, to_float(q[query * s.row + e]), dk);
                    dv = fmaf(p_other, to_float(go[query * s.width + e]), dv);
                }
            }
        }
        if (e >= s.d) continue;
        dqkv[at.key + key * s.row + e] = rounded<T>(dk * s.scale);
        dqkv[at.value + key * s.row + e] = rounded<T>(dv);
    }
}

dim3 grid_of(std::int64_t rows) {
    return dim3(static_cast<unsigned>((rows + kWarps - 1) / kWarps));
}

template <class T, class Probability>
void launch_forward(const T* qkv, T* out, Probability p, const AttentionSizes& s, cudaStream_t stream) {
    launch(attention_forward_plain<T, Probability>, grid_of(std::int64_t{s.batch} * s.heads * s.context),
           dim3(kThreads), 0, stream, qkv, out, p, s);
}

// The backward only reads the memory that `p` points to. `deltas` has room for the query heads of `at_once`
// key heads.
template <class T, class Probability>
void launch_backward(const T* dout, const T* qkv, Probability p, T* dqkv, float* deltas, int at_once,
                     const AttentionSizes& s, cudaStream_t stream) {
    const int key_heads = s.batch * s.kv_heads;
    for (int first = 0; first < key_heads; first += at_once) {
        const int heads = std::min(at_once, key_heads - first);
        launch(attention_backward_queries_plain<T, Probability>,
               grid_of(std::int64_t{heads} * s.group * s.context), dim3(kThreads), 0, stream, dout, qkv, p,
               dqkv, deltas, first * s.group, heads * s.group, s);
        launch(attention_backward_keys_plain<T, Probability>, grid_of(std::int64_t{heads} * s.context),
               dim3(kThreads), 0, stream, dout, qkv, p, dqkv, static_cast<const float*>(deltas), first, heads,
               s);
    }
}

}  // namespace

template <class T>
void launch_plain_forward(const T* qkv, T* out, T* probabilities, const AttentionSizes& s,
                          cudaStream_t stream) {
    launch_forward(qkv, out, Stored<T>{probabilities}, s, stream);
}

template <class T>
void launch_plain_backward(const T* dout, const T* qkv, const T* probabilities, T* dqkv, float* scratch,
                           const AttentionSizes& s, cudaStream_t stream) {
    // The scratch has room for the deltas of max(T, H/G) heads, which limits the key heads (with their
    // groups) per round.
    launch_backward(dout, qkv, Stored<T>{const_cast<T*>(probabilities)}, dqkv, scratch,
                    std::max(s.context, s.group) / s.group, s, stream);
}

void launch_recomputed_forward(const float* qkv, float* out, float* lse, const AttentionSizes& s,
                               cudaStream_t stream) {
    launch_forward(qkv, out, Recomputed{lse}, s, stream);
}

void launch_recomputed_backward(const float* dout, const float* qkv, const float* lse, float* dqkv,
                                float* delta, const AttentionSizes& s, cudaStream_t stream) {
    launch_backward(dout, qkv, Recomputed{const_cast<float*>(lse)}, dqkv, delta, s.batch * s.kv_heads, s,
                    stream);
}

template void launch_plain_forward(const float*, float*, float*, const AttentionSizes&, cudaStream_t);
template void launch_plain_forward(const Bf16*, Bf16*, Bf16*, const AttentionSizes&, cudaStream_t);
template void launch_plain_forward(const Fp16*, Fp16*, Fp16*, const AttentionSizes&, cudaStream_t);
template void launch_plain_backward(const float*, const float*, const float*, float*, float*,
                                    const AttentionSizes&, cudaStream_t);
template void launch_plain_backward(const Bf16*, const Bf16*, const Bf16*, Bf16*, float*,
                                    const AttentionSizes&, cudaStream_t);
template void launch_plain_backward(const Fp16*, const Fp16*, const Fp16*, Fp16*, float*,
                                    const AttentionSizes&, cudaStream_t);

}  // namespace shardscope::trainer::cuda
