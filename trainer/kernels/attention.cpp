// Attention, head after head; see attention.h. The T x T matrices are processed in strips of rows; in causal
// attention a strip's matmuls stop at the diagonal, so about half of the square is never computed.
#include "trainer/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "trainer/kernels/attention_heads.h"
#include "trainer/kernels/blas.h"
#include "trainer/kernels/elements.h"
#include "trainer/kernels/vectorize.h"
#include "trainer/kernels/workspace.h"

namespace shardscope::trainer::kernels {
namespace {

constexpr int kStrip = 64;  // rows; the last strip may be shorter

// Rows [first, last) of a head's scores become probabilities in place: softmax over the visible positions, 0
// beyond.
SHARDSCOPE_VECTOR_CLONES
void softmax_strip(float* scores, int first, int last, int context, bool causal) {
    for (int t = first; t < last; ++t) {
        float* row = scores + static_cast<std::size_t>(t) * context;
        const std::size_t seen = static_cast<std::size_t>(causal ? t + 1 : context);
        softmax_row(row, row, seen);
        std::memset(row + seen, 0, (static_cast<std::size_t>(context) - seen) * sizeof(float));
    }
}

// Rows [first, last): the gradient of the probabilities becomes that of the scores, in place: ds = p (dp -
// sum of p dp). Beyond the visible positions p is 0, so ds is set to 0 as far as the strip's matmuls read it.
SHARDSCOPE_VECTOR_CLONES
void softmax_backward_strip(const float* probabilities, float* gradient, int first, int last, int context,
                            bool causal) {
    const auto read = static_cast<std::size_t>(causal ? last : context);
    for (int t = first; t < last; ++t) {
        const float* p = probabilities + static_cast<std::size_t>(t) * context;
        float* g = gradient + static_cast<std::size_t>(t) * context;
        const std::size_t seen = causal ? static_cast<std::size_t>(t) + 1 : read;
        const float sum = lane_sum(seen, [=](std::size_t j) SHARDSCOPE_INLINE_LAMBDA { return p[j] * g[j]; });
        for (std::size_t j = 0; j < seen; ++j) g[j] = p[j] * (g[j] - sum);
        std::memset(g + seen, 0, (read - seen) * sizeof(float));
    }
}

// Rows [first, last) of one head: p = softmax(q kᵀ / sqrt(d)), o = p v. `rounded` is applied to the strip of
// p before it is used (float: does nothing; Bf16: stores it and reads it back, so that the backward sees the
// same p).
template <class Rounded>
void forward_strip(ConstMatrix q, ConstMatrix k, ConstMatrix v, Matrix p, Matrix o, int first, int last,
                   int d, bool causal, Rounded rounded) {
    const Blas& blas = Blas::get();
    const float scale = 1.0f / std::sqrt(static_cast<float>(d));
    const int rows = last - first;
    const int seen = causal ? last : p.stride;
    blas.sgemm(false, true, rows, seen, d, scale, q.row(first), q.stride, k.data, k.stride, 0.0f,
               p.row(first), p.stride);
    softmax_strip(p.data, first, last, p.stride, causal);
    rounded(first, last);
    blas.sgemm(false, false, rows, d, seen, 1.0f, p.row(first), p.stride, v.data, v.stride, 0.0f,
               o.row(first), o.stride);
}

// dv = pᵀ do;  dp = do vᵀ;  ds as above;  dq = ds k / sqrt(d);  dk = dsᵀ q / sqrt(d). With `add_keys`, dk and
// dv are added to their contents. ds is [context, context].
void backward_head(ConstMatrix q, ConstMatrix k, ConstMatrix v, ConstMatrix go, ConstMatrix p, Matrix dq,
                   Matrix dk, Matrix dv, float* ds, int context, int d, bool causal, bool add_keys) {
    const Blas& blas = Blas::get();
    const float scale = 1.0f / std::sqrt(static_cast<float>(d));
    const float keep = add_keys ? 1.0f : 0.0f;
    for (int first = 0; first < context; first += kStrip) {  // strips of queries
        const int last = std::min(first + kStrip, context);
        const int rows = last - first, seen = causal ? last : context;
        float* strip = ds + static_cast<std::size_t>(first) * context;
        blas.sgemm(false, true, rows, seen, d, 1.0f, go.row(first), go.stride, v.data, v.stride, 0.0f, strip,
                   context);
        softmax_backward_strip(p.data, ds, first, last, context, causal);
        blas.sgemm(false, false, rows, d, seen, scale, strip, context, k.data, k.stride, 0.0f, dq.row(first),
                   dq.stride);
    }
    for (int first = 0; first < context; first += kStrip) {  // strips of keys; causal: seen from `first` on
        const int columns = std::min(first + kStrip, context) - first;
        const int from = causal ? first : 0;
        const int rows = context - from;
        const std::size_t corner = static_cast<std::size_t>(from) * context + first;
        blas.sgemm(true, false, columns, d, rows, scale, ds + corner, context, q.row(from), q.stride, keep,
                   dk.row(first), dk.stride);
        blas.sgemm(true, false, columns, d, rows, 1.0f, p.row(from) + first, context, go.row(from), go.stride,
                   keep, dv.row(first), dv.stride);
    }
}

// Where a head's probabilities start.
std::size_t square_of(const AttentionShape& shape, const HeadPlaces& at) {
    return at.row * static_cast<std::size_t>(shape.context);
}

void forward_head(const float* qkv, float* out, float* probabilities, const AttentionShape& shape,
                  const HeadPlaces& at) {
    const int stride = shape.row();
    for (int first = 0; first < shape.context; first += kStrip) {
        forward_strip({qkv + at.query, stride}, {qkv + at.key, stride}, {qkv + at.value, stride},
                      {probabilities + square_of(shape, at), shape.context}, {out + at.out, shape.width},
                      first, std::min(first + kStrip, shape.context), shape.head_width(), shape.causal,
                      [](int, int) {});
    }
}

template <Narrow T>
void forward_head(const T* qkv, T* out, T* probabilities, const AttentionShape& shape, const HeadPlaces& at) {
    const int context = shape.context;
    const int d = shape.head_width();
    const std::size_t size = static_cast<std::size_t>(context) * static_cast<std::size_t>(d);
    float* q = workspace_of<float>(
        Purpose::heads, 4 * size + static_cast<std::size_t>(context) * static_cast<std::size_t>(context));
    float *k = q + size, *v = k + size, *o = v + size, *p = o + size;
    read_rows(View<const T>{qkv + at.query, shape.row()}, q, context, d);
    read_rows(View<const T>{qkv + at.key, shape.row()}, k, context, d);
    read_rows(View<const T>{qkv + at.value, shape.row()}, v, context, d);
    for (int first = 0; first < context; first += kStrip) {
        const auto rounded = [&](int begin, int end) {
            const std::size_t from = static_cast<std::size_t>(begin) * static_cast<std::size_t>(context);
            const View<T> stored{probabilities + square_of(shape, at) + from, context};
            write_rows(p + from, stored, end - begin, context);
            read_rows(View<const T>{stored.data, context}, p + from, end - begin, context);
        };
        forward_strip({q, d}, {k, d}, {v, d}, {p, context}, {o, d}, first, std::min(first + kStrip, context),
                      d, shape.causal, rounded);
    }
    write_rows(o, View<T>{out + at.out, shape.width}, context, d);
}

// The first query head of a group starts the sums for their key head, the last rounds and stores them.
template <Narrow T>
void backward_head(const T* dout, const T* qkv, const T* probabilities, T* dqkv, float* scratch,
                   const AttentionShape& shape, const HeadPlaces& at, bool first_of_group,
                   bool last_of_group) {
    const int context = shape.context;
    const int d = shape.head_width();
    const int stride = shape.row();
    const std::size_t size = static_cast<std::size_t>(context) * static_cast<std::size_t>(d);
    float* q = workspace_of<float>(
        Purpose::heads, 7 * size + static_cast<std::size_t>(context) * static_cast<std::size_t>(context));
    float *k = q + size, *v = k + size, *go = v + size, *dq = go + size, *dk = dq + size, *dv = dk + size;
    float* p = dv + size;
    read_rows(View<const T>{qkv + at.query, stride}, q, context, d);
    if (first_of_group) {
        read_rows(View<const T>{qkv + at.key, stride}, k, context, d);
        read_rows(View<const T>{qkv + at.value, stride}, v, context, d);
    }
    read_rows(View<const T>{dout + at.out, shape.width}, go, context, d);
    read_rows(View<const T>{probabilities + square_of(shape, at), context}, p, context, context);
    backward_head({q, d}, {k, d}, {v, d}, {go, d}, {p, context}, {dq, d}, {dk, d}, {dv, d}, scratch, context,
                  d, shape.causal, !first_of_group);
    write_rows(dq, View<T>{dqkv + at.query, stride}, context, d);
    if (last_of_group) {
        write_rows(dk, View<T>{dqkv + at.key, stride}, context, d);
        write_rows(dv, View<T>{dqkv + at.value, stride}, context, d);
    }
}

void backward_head(const float* dout, const float* qkv, const float* probabilities, float* dqkv,
                   float* scratch, const AttentionShape& shape, const HeadPlaces& at, bool first_of_group,
                   bool) {
    const int stride = shape.row();
    backward_head({qkv + at.query, stride}, {qkv + at.key, stride}, {qkv + at.value, stride},
                  {dout + at.out, shape.width}, {probabilities + square_of(shape, at), shape.context},
                  {dqkv + at.query, stride}, {dqkv + at.key, stride}, {dqkv + at.value, stride}, scratch,
                  shape.context, shape.head_width(), shape.causal, !first_of_group);
}

}  // namespace

template <class T>
void attention_forward(const T* qkv, T* out, T* probabilities, const AttentionShape& shape) {
    for (int b = 0; b < shape.batch; ++b) {
        for (int h = 0; h < shape.heads; ++h) {
            forward_head(qkv, out, probabilities, shape, places_of(shape, b, h));
        }
    }
}

std::size_t attention_backward_scratch(const AttentionShape& shape) {
    return static_cast<std::size_t>(shape.context) *
           static_cast<std::size_t>(std::max(shape.context, shape.group()));
}

template <class T>
void attention_backward(const T* dout, const T* qkv, const T* probabilities, T* dqkv, float* scratch,
                        const AttentionShape& shape) {
    const int group = shape.group();
    for (int b = 0; b < shape.batch; ++b) {
        for (int h = 0; h < shape.heads; ++h) {
            backward_head(dout, qkv, probabilities, dqkv, scratch, shape, places_of(shape, b, h),
                          h % group == 0, h % group == group - 1);
        }
    }
}

template void attention_forward(const float*, float*, float*, const AttentionShape&);
template void attention_forward(const Bf16*, Bf16*, Bf16*, const AttentionShape&);
template void attention_forward(const Fp16*, Fp16*, Fp16*, const AttentionShape&);
template void attention_backward(const float*, const float*, const float*, float*, float*,
                                 const AttentionShape&);
template void attention_backward(const Bf16*, const Bf16*, const Bf16*, Bf16*, float*, const AttentionShape&);
template void attention_backward(const Fp16*, const Fp16*, const Fp16*, Fp16*, float*, const AttentionShape&);

}  // namespace shardscope::trainer::kernels
