// Fused attention, head after head and tile after tile; see attention_fused.h. A tile is kQueryTile rows by
// kKeyTile columns of the scores; in the causal case, because one is a multiple of the other, a tile that
// begins at or before its last row's position also begins at or before its first row's, so every row sees at
// least one of its keys.
#include "trainer/kernels/attention_fused.h"

#include <algorithm>
#include <cmath>

#include "trainer/kernels/attention_tiles.h"
#include "trainer/kernels/blas.h"
#include "trainer/kernels/vectorize.h"
#include "trainer/kernels/workspace.h"

namespace shardscope::trainer::kernels {
namespace {

static_assert(kKeyTile % kQueryTile == 0);

// Rows [row, row + rows) by columns [column, column + columns) of a head's scores.
struct Tile {
    int row, rows, column, columns;
    bool causal;
    // The number of columns that the i-th row may see.
    int seen(int i) const { return causal ? std::min(columns, row + i - column + 1) : columns; }
};

// The largest score and the sum of e^(score - largest) of each row, over the tiles so far.
struct RunningSoftmax {
    float largest[kQueryTile];
    float sum[kQueryTile];
};

// A tile of scores becomes e^(score - largest so far), 0 where masked; the sums and the rows of o from
// earlier tiles are rescaled to the new largest.
SHARDSCOPE_VECTOR_CLONES
void take_tile(float* scores, const Tile& tile, RunningSoftmax& softmax, Matrix o, int d) {
    for (int i = 0; i < tile.rows; ++i) {
        float* row = scores + static_cast<std::size_t>(i) * kKeyTile;
        const auto seen = static_cast<std::size_t>(tile.seen(i));
        const float here = lane_max(row, seen);
        const float before = softmax.largest[i];
        const float largest = tile.column > 0 && before > here ? before : here;
        for (std::size_t j = 0; j < seen; ++j) row[j] = exp_approximate(row[j] - largest);
        std::fill(row + seen, row + tile.columns, 0.0f);
        const float sum = lane_sum(seen, [=](std::size_t j) SHARDSCOPE_INLINE_LAMBDA { return row[j]; });
        softmax.largest[i] = largest;
        if (tile.column == 0) {
            softmax.sum[i] = sum;
            continue;
        }
        const float keep = exp_approximate(before - largest);
        softmax.sum[i] = softmax.sum[i] * keep + sum;
        float* out = o.row(tile.row + i);
        for (int j = 0; j < d; ++j) out[j] *= keep;
    }
}

SHARDSCOPE_VECTOR_CLONES
void finish_rows(const RunningSoftmax& softmax, Matrix o, int row, int rows, int d, float* lse) {
    for (int i = 0; i < rows; ++i) {
        const float scale = 1.0f / softmax.sum[i];
        float* out = o.row(row + i);
        for (int j = 0; j < d; ++j) out[j] *= scale;
        lse[row + i] = softmax.largest[i] + std::log(softmax.sum[i]);
    }
}

// Scores become probabilities, p = e^(score - lse), and the gradients of the probabilities those of the
// scores, ds = p (dp - delta); both are 0 where masked. lse and delta are those of the tile's rows.
SHARDSCOPE_VECTOR_CLONES
void tile_gradient(float* scores, float* gradient, const Tile& tile, const float* lse, const float* delta) {
    for (int i = 0; i < tile.rows; ++i) {
        float* p = scores + static_cast<std::size_t>(i) * kKeyTile;
        float* g = gradient + static_cast<std::size_t>(i) * kKeyTile;
        const int seen = tile.seen(i);
        for (int j = 0; j < seen; ++j) p[j] = exp_approximate(p[j] - lse[i]);
        for (int j = 0; j < seen; ++j) g[j] = p[j] * (g[j] - delta[i]);
        std::fill(p + seen, p + tile.columns, 0.0f);
        std::fill(g + seen, g + tile.columns, 0.0f);
    }
}

}  // namespace

void attend(ConstMatrix q, ConstMatrix k, ConstMatrix v, Matrix o, float* lse, float* scores,
            const HeadSize& size) {
    const Blas& blas = Blas::get();
    const int d = size.d;
    const float scale = 1.0f / std::sqrt(static_cast<float>(d));
    for (int row = 0; row < size.queries; row += kQueryTile) {
        const int rows = std::min(kQueryTile, size.queries - row);
        RunningSoftmax softmax;
        const int end = size.causal ? row + rows : size.keys;
        for (int column = 0; column < end; column += kKeyTile) {
            const Tile tile{row, rows, column, std::min(kKeyTile, end - column), size.causal};
            blas.sgemm(false, true, rows, tile.columns, d, scale, q.row(row), q.stride, k.row(column),
                       k.stride, 0.0f, scores, kKeyTile);
            take_tile(scores, tile, softmax, o, d);
            blas.sgemm(false, false, rows, d, tile.columns, 1.0f, scores, kKeyTile, v.row(column), v.stride,
                       column > 0 ? 1.0f : 0.0f, o.row(row), o.stride);
        }
        finish_rows(softmax, o, row, rows, d, lse);
    }
}

SHARDSCOPE_VECTOR_CLONES
void row_products(ConstMatrix go, ConstMatrix o, float* delta, int rows, int d) {
    for (int i = 0; i < rows; ++i) {
        const float *a = go.row(i), *b = o.row(i);
        delta[i] = lane_sum(static_cast<std::size_t>(d),
                            [=](std::size_t j) SHARDSCOPE_INLINE_LAMBDA { return a[j] * b[j]; });
    }
}

void clear_rows(Matrix m, int rows, int d) {
    for (int i = 0; i < rows; ++i) std::fill_n(m.row(i), d, 0.0f);
}

void attend_backward(ConstMatrix q, ConstMatrix k, ConstMatrix v, ConstMatrix go, const float* lse,
                     const float* delta, const HeadGradients& gradients, float* tiles, const HeadSize& size) {
    const Blas& blas = Blas::get();
    const int d = size.d;
    const auto& [dq, dk, dv, adds] = gradients;
    const float scale = 1.0f / std::sqrt(static_cast<float>(d));
    float *scores = tiles, *gradient = tiles + kTile;
    for (int column = 0; column < size.keys; column += kKeyTile) {
        for (int row = size.causal ? column : 0; row < size.queries; row += kQueryTile) {
            const int rows = std::min(kQueryTile, size.queries - row);
            const int columns = std::min(kKeyTile, (size.causal ? row + rows : size.keys) - column);
            blas.sgemm(false, true, rows, columns, d, scale, q.row(row), q.stride, k.row(column), k.stride,
                       0.0f, scores, kKeyTile);
            blas.sgemm(false, true, rows, columns, d, 1.0f, go.row(row), go.stride, v.row(column), v.stride,
                       0.0f, gradient, kKeyTile);
            tile_gradient(scores, gradient, {row, rows, column, columns, size.causal}, lse + row,
                          delta + row);
            blas.sgemm(true, false, columns, d, rows, 1.0f, scores, kKeyTile, go.row(row), go.stride, 1.0f,
                       dv.row(column), dv.stride);
            blas.sgemm(true, false, columns, d, rows, scale, gradient, kKeyTile, q.row(row), q.stride, 1.0f,
                       dk.row(column), dk.stride);
            blas.sgemm(false, false, rows, d, columns, scale, gradient, kKeyTile, k.row(column), k.stride,
                       column > 0 || adds ? 1.0f : 0.0f, dq.row(row), dq.stride);
        }
    }
}

namespace {

HeadSize size_of_head(const AttentionShape& shape) {
    return {shape.context, shape.context, shape.head_width(), shape.causal};
}

// --- float: in the tensors themselves --------------------------------------------------------------------

void forward_head(const float* qkv, float* out, float* lse, const AttentionShape& shape,
                  const HeadPlaces& at) {
    const int stride = shape.row();
    attend({qkv + at.query, stride}, {qkv + at.key, stride}, {qkv + at.value, stride},
           {out + at.out, shape.width}, lse + at.row, workspace_of<float>(Purpose::heads, kTile),
           size_of_head(shape));
}

void backward_head(const float* dout, const float* qkv, const float* out, const float* lse, float* dqkv,
                   float* delta, const AttentionShape& shape, const HeadPlaces& at, bool first_of_group,
                   bool) {
    const int context = shape.context, d = shape.head_width(), stride = shape.row();
    const ConstMatrix go{dout + at.out, shape.width};
    const Matrix dk{dqkv + at.key, stride}, dv{dqkv + at.value, stride};
    row_products(go, {out + at.out, shape.width}, delta + at.row, context, d);
    if (first_of_group) {
        clear_rows(dk, context, d);
        clear_rows(dv, context, d);
    }
    attend_backward({qkv + at.query, stride}, {qkv + at.key, stride}, {qkv + at.value, stride}, go,
                    lse + at.row, delta + at.row, {{dqkv + at.query, stride}, dk, dv},
                    workspace_of<float>(Purpose::heads, 2 * kTile), size_of_head(shape));
}

// --- Bf16: in copies as floats, rounded once when complete -----------------------------------------------

template <Narrow T>
void forward_head(const T* qkv, T* out, float* lse, const AttentionShape& shape, const HeadPlaces& at) {
    const int context = shape.context, d = shape.head_width(), stride = shape.row();
    const std::size_t size = static_cast<std::size_t>(context) * static_cast<std::size_t>(d);
    float* q = workspace_of<float>(Purpose::heads, 4 * size + kTile);
    float *k = q + size, *v = k + size, *o = v + size;
    read_rows(View<const T>{qkv + at.query, stride}, q, context, d);
    read_rows(View<const T>{qkv + at.key, stride}, k, context, d);
    read_rows(View<const T>{qkv + at.value, stride}, v, context, d);
    attend({q, d}, {k, d}, {v, d}, {o, d}, lse + at.row, o + size, size_of_head(shape));
    write_rows(o, View<T>{out + at.out, shape.width}, context, d);
}

// The first query head of a group starts the sums for their key head, the last rounds and stores them.
template <Narrow T>
void backward_head(const T* dout, const T* qkv, const T* out, const float* lse, T* dqkv, float* delta,
                   const AttentionShape& shape, const HeadPlaces& at, bool first_of_group,
                   bool last_of_group) {
    const int context = shape.context, d = shape.head_width(), stride = shape.row();
    const std::size_t size = static_cast<std::size_t>(context) * static_cast<std::size_t>(d);
    float* q = workspace_of<float>(Purpose::heads, 7 * size + 2 * kTile);
    float *k = q + size, *v = k + size, *go = v + size, *dq = go + size, *dk = dq + size, *dv = dk + size;
    read_rows(View<const T>{qkv + at.query, stride}, q, context, d);
    if (first_of_group) {
        read_rows(View<const T>{qkv + at.key, stride}, k, context, d);
        read_rows(View<const T>{qkv + at.value, stride}, v, context, d);
        clear_rows({dk, d}, context, d);
        clear_rows({dv, d}, context, d);
    }
    read_rows(View<const T>{dout + at.out, shape.width}, go, context, d);
    float* o = dq;  // shares the memory of dq, which is computed later
    read_rows(View<const T>{out + at.out, shape.width}, o, context, d);
    row_products({go, d}, {o, d}, delta + at.row, context, d);
    attend_backward({q, d}, {k, d}, {v, d}, {go, d}, lse + at.row, delta + at.row,
                    {{dq, d}, {dk, d}, {dv, d}}, dv + size, size_of_head(shape));
    write_rows(dq, View<T>{dqkv + at.query, stride}, context, d);
    if (last_of_group) {
        write_rows(dk, View<T>{dqkv + at.key, stride}, context, d);
        write_rows(dv, View<T>{dqkv + at.value, stride}, context, d);
    }
}

}  // namespace

template <class T>
void fused_attention_forward(const T* qkv, T* out, float* lse, const AttentionShape& shape) {
    for (int b = 0; b < shape.batch; ++b) {
        for (int h = 0; h < shape.heads; ++h) forward_head(qkv, out, lse, shape, places_of(shape, b, h));
    }
}

template <class T>
void fused_attention_backward(const T* dout, const T* qkv, const T* out, const float* lse, T* dqkv,
                              float* delta, const AttentionShape& shape) {
    const int group = shape.group();
    for (int b = 0; b < shape.batch; ++b) {
        for (int h = 0; h < shape.heads; ++h) {
            backward_head(dout, qkv, out, lse, dqkv, delta, shape, places_of(shape, b, h), h % group == 0,
                          h % group == group - 1);
        }
    }
}

template void fused_attention_forward(const float*, float*, float*, const AttentionShape&);
template void fused_attention_forward(const Bf16*, Bf16*, float*, const AttentionShape&);
template void fused_attention_forward(const Fp16*, Fp16*, float*, const AttentionShape&);
template void fused_attention_backward(const float*, const float*, const float*, const float*, float*, float*,
                                       const AttentionShape&);
template void fused_attention_backward(const Bf16*, const Bf16*, const Bf16*, const float*, Bf16*, float*,
                                       const AttentionShape&);
template void fused_attention_backward(const Fp16*, const Fp16*, const Fp16*, const float*, Fp16*, float*,
                                       const AttentionShape&);

}  // namespace shardscope::trainer::kernels
