// See context_attention.h. Each pair of chunks, of queries and of keys, is a fused attention of its own
// (attention_tiles.h) whose result is merged: whole, causal (the same chunk) or unseen.
#include "trainer/kernels/context_attention.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>

#include "trainer/kernels/attention_tiles.h"
#include "trainer/kernels/elements.h"
#include "trainer/kernels/elementwise.h"
#include "trainer/kernels/vectorize.h"
#include "trainer/kernels/workspace.h"

namespace shardscope::trainer::kernels {
namespace {

constexpr float kUnseen = -std::numeric_limits<float>::infinity();

// A row of o and its lse become those of its keys and of part's.
SHARDSCOPE_INLINE void merge_row(float* o, float& lse, const float* part, float part_lse, int d) {
    if (part_lse == kUnseen) return;
    const float largest = std::max(lse, part_lse);
    const float own = std::exp(lse - largest), other = std::exp(part_lse - largest);
    const float scale = 1.0f / (own + other);
    for (int e = 0; e < d; ++e) o[e] = (o[e] * own + part[e] * other) * scale;
    lse = largest + std::log(own + other);
}

SHARDSCOPE_VECTOR_CLONES
void merge_rows(Matrix o, float* lse, ConstMatrix part, const float* part_lse, int rows, int d) {
    for (int i = 0; i < rows; ++i) merge_row(o.row(i), lse[i], part.row(i), part_lse[i], d);
}

// Rows as floats: themselves, or copied to `at`.
ConstMatrix as_floats(View<const float> rows, float* /*at*/, int /*count*/, int /*d*/) {
    return rows;
}
ConstMatrix as_floats(View<const Bf16> rows, float* at, int count, int d) {
    read_rows(rows, at, count, d);
    return {at, d};
}
ConstMatrix as_floats(View<const Fp16> rows, float* at, int count, int d) {
    read_rows(rows, at, count, d);
    return {at, d};
}

// Calls visit(query chunk, block, key chunk, causal) for the pairs in which a query sees a key; chunks are
// counted within a rank.
template <class Visit>
void for_pairs(const ContextAttentionShape& shape, const Visit& visit) {
    const ContextCut& cut = shape.cut;
    for (int i = 0; i < cut.own(); ++i) {
        for (int block = 0; block < shape.blocks(); ++block) {
            for (int j = 0; j < cut.own(); ++j) {
                const int query = cut.chunk(i), key = cut.chunk(j, shape.rank_of(block));
                if (cut.causal && key > query) continue;
                visit(i, block, j, cut.causal && key == query);
            }
        }
    }
}

// The first of the rows that a head of a sequence has, in elements.
struct Places {
    std::size_t query, out, key, value;  // in qkv; in out; in a block of kv
    std::size_t row;                     // in lse
};
Places places_of(const ContextAttentionShape& s, int b, int h) {
    const auto d = static_cast<std::size_t>(s.head_width()), head = static_cast<std::size_t>(h);
    const std::size_t first = static_cast<std::size_t>(b) * static_cast<std::size_t>(s.rows);
    const std::size_t key =
        first * static_cast<std::size_t>(s.kv_row()) + static_cast<std::size_t>(h / s.group()) * d;
    return {first * static_cast<std::size_t>(s.row()) + head * d,
            first * static_cast<std::size_t>(s.width) + head * d, key,
            key + static_cast<std::size_t>(s.kv_heads) * d,
            (static_cast<std::size_t>(b) * static_cast<std::size_t>(s.heads) + head) *
                static_cast<std::size_t>(s.rows)};
}
std::size_t block_elements(const ContextAttentionShape& s) {
    return static_cast<std::size_t>(s.batch) * static_cast<std::size_t>(s.rows) *
           static_cast<std::size_t>(s.kv_row());
}

}  // namespace

template <class T>
void context_attention_forward(const T* qkv, const T* kv, float* out, float* lse,
                               const ContextAttentionShape& shape) {
    const int d = shape.head_width(), chunk = shape.rows / shape.cut.own();
    const std::size_t size = static_cast<std::size_t>(chunk) * static_cast<std::size_t>(d);
    float* q = workspace_of<float>(Purpose::heads, 4 * size + kTile + static_cast<std::size_t>(chunk));
    float *k = q + size, *v = k + size, *part = v + size, *tile = part + size, *part_lse = tile + kTile;
    for (int b = 0; b < shape.batch; ++b) {
        for (int h = 0; h < shape.heads; ++h) {
            const Places at = places_of(shape, b, h);
            const View<const T> queries{qkv + at.query, shape.row()};
            const Matrix o{out + at.out, shape.width};
            clear_rows(o, shape.rows, d);
            std::fill_n(lse + at.row, shape.rows, kUnseen);
            for_pairs(shape, [&](int i, int block, int j, bool causal) {
                const T* keys = kv + static_cast<std::size_t>(block) * block_elements(shape);
                const View<const T> key{keys + at.key, shape.kv_row()},
                    value{keys + at.value, shape.kv_row()};
                float* own_lse = lse + at.row + i * chunk;
                const Matrix own{o.row(i * chunk), o.stride};
                const bool first = *own_lse == kUnseen;
                attend(as_floats({queries.row(i * chunk), queries.stride}, q, chunk, d),
                       as_floats({key.row(j * chunk), key.stride}, k, chunk, d),
                       as_floats({value.row(j * chunk), value.stride}, v, chunk, d),
                       first ? own : Matrix{part, d}, first ? own_lse : part_lse, tile,
                       {chunk, chunk, d, causal});
                if (!first) merge_rows(own, own_lse, {part, d}, part_lse, chunk, d);
            });
        }
    }
}

template <class T>
void context_attention_backward(const T* dout, const T* qkv, const T* kv, const T* out, const float* lse,
                                float* dq, float* dkv, float* delta, const ContextAttentionShape& shape) {
    const int d = shape.head_width(), chunk = shape.rows / shape.cut.own();
    const std::size_t size = static_cast<std::size_t>(chunk) * static_cast<std::size_t>(d);
    float* q = workspace_of<float>(Purpose::heads, 5 * size + 2 * kTile);
    float *k = q + size, *v = k + size, *go = v + size, *o = go + size, *tiles = o + size;
    std::fill_n(dkv, static_cast<std::size_t>(shape.blocks()) * block_elements(shape), 0.0f);
    for (int b = 0; b < shape.batch; ++b) {
        for (int h = 0; h < shape.heads; ++h) {
            const Places at = places_of(shape, b, h);
            const View<const T> queries{qkv + at.query, shape.row()}, gradients{dout + at.out, shape.width},
                outputs{out + at.out, shape.width};
            const Matrix own_dq{dq + at.out, shape.width};
            if (shape.step <= 0) clear_rows(own_dq, shape.rows, d);
            for (int i = 0; i < shape.cut.own(); ++i) {
                const int row = i * chunk;
                row_products(as_floats({gradients.row(row), gradients.stride}, go, chunk, d),
                             as_floats({outputs.row(row), outputs.stride}, o, chunk, d), delta + at.row + row,
                             chunk, d);
            }
            for_pairs(shape, [&](int i, int block, int j, bool causal) {
                const std::size_t first = static_cast<std::size_t>(block) * block_elements(shape);
                const int row = i * chunk, kv_row = shape.kv_row();
                const View<const T> key{kv + first + at.key, kv_row}, value{kv + first + at.value, kv_row};
                const Matrix dk{dkv + first + at.key, kv_row}, dv{dkv + first + at.value, kv_row};
                attend_backward(as_floats({queries.row(row), queries.stride}, q, chunk, d),
                                as_floats({key.row(j * chunk), kv_row}, k, chunk, d),
                                as_floats({value.row(j * chunk), kv_row}, v, chunk, d),
                                as_floats({gradients.row(row), gradients.stride}, go, chunk, d),
                                lse + at.row + row, delta + at.row + row,
                                {{own_dq.row(row), own_dq.stride},
                                 {dk.row(j * chunk), kv_row},
                                 {dv.row(j * chunk), kv_row},
                                 true},
                                tiles, {chunk, chunk, d, causal});
            });
        }
    }
}

void merge_attention(float* out, float* lse, const float* part, const float* part_lse,
                     const ContextAttentionShape& shape) {
    const int d = shape.head_width();
    for (int b = 0; b < shape.batch; ++b) {
        for (int h = 0; h < shape.heads; ++h) {
            const Places at = places_of(shape, b, h);
            merge_rows({out + at.out, shape.width}, lse + at.row, {part + at.out, shape.width},
                       part_lse + at.row, shape.rows, d);
        }
    }
}

void context_positions(std::int32_t* positions, int rows, const ContextCut& cut) {
    cut.for_runs(0, rows, rows, [&](std::int64_t at, std::int64_t count, std::int64_t whole) {
        for (std::int64_t i = 0; i < count; ++i) positions[at + i] = static_cast<std::int32_t>(whole + i);
    });
}

template <class To, class From>
void copy_columns(const From* x, To* y, int rows, int columns, int to_row, int from_row) {
    const auto n = static_cast<std::size_t>(columns);
    for (std::ptrdiff_t i = 0; i < rows; ++i) {
        if constexpr (std::is_same_v<To, From>) {
            std::copy_n(x + i * from_row, n, y + i * to_row);
        } else {
            cast(x + i * from_row, y + i * to_row, n);
        }
    }
}

template void context_attention_forward(const float*, const float*, float*, float*,
                                        const ContextAttentionShape&);
template void context_attention_forward(const Bf16*, const Bf16*, float*, float*,
                                        const ContextAttentionShape&);
template void context_attention_forward(const Fp16*, const Fp16*, float*, float*,
                                        const ContextAttentionShape&);
template void context_attention_backward(const float*, const float*, const float*, const float*, const float*,
                                         float*, float*, float*, const ContextAttentionShape&);
template void context_attention_backward(const Bf16*, const Bf16*, const Bf16*, const Bf16*, const float*,
                                         float*, float*, float*, const ContextAttentionShape&);
template void context_attention_backward(const Fp16*, const Fp16*, const Fp16*, const Fp16*, const float*,
                                         float*, float*, float*, const ContextAttentionShape&);
template void copy_columns(const float*, float*, int, int, int, int);
template void copy_columns(const float*, Bf16*, int, int, int, int);
template void copy_columns(const float*, Fp16*, int, int, int, int);
template void copy_columns(const Bf16*, Bf16*, int, int, int, int);
template void copy_columns(const Fp16*, Fp16*, int, int, int, int);

}  // namespace shardscope::trainer::kernels
