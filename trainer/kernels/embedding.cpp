// Embeddings: looks up rows of a table, and adds their gradients to the same rows; see embedding.h.
#include "trainer/kernels/embedding.h"

#include <algorithm>
#include <cstddef>

#include "trainer/kernels/elements.h"
#include "trainer/kernels/elementwise.h"
#include "trainer/kernels/vectorize.h"
#include "trainer/kernels/workspace.h"

namespace shardscope::trainer::kernels {
namespace {

std::size_t row_start(std::size_t row, int width) {
    return row * static_cast<std::size_t>(width);
}

// The row numbers, grouped by entry, in row order within a group; the group of entry e ends at `ends[e]`.
struct RowsByEntry {
    std::int32_t* rows;
    std::int32_t* ends;
};
RowsByEntry group_by_entry(const std::int32_t* tokens, int rows, int entries) {
    auto* memory = workspace_of<std::int32_t>(
        Purpose::order, static_cast<std::size_t>(rows) + static_cast<std::size_t>(entries) + 1);
    const RowsByEntry grouped{memory, memory + rows};
    std::fill_n(grouped.ends, entries + 1, 0);
    for (int i = 0; i < rows; ++i) ++grouped.ends[tokens[i] + 1];
    for (int e = 0; e < entries; ++e) grouped.ends[e + 1] += grouped.ends[e];
    for (int i = 0; i < rows; ++i) grouped.rows[grouped.ends[tokens[i]]++] = i;  // starts become ends
    return grouped;
}

// out[0 … width) = sum over i in [0, count) of dy[row_of(i)], added in that order within pieces.
template <class T, class RowOf>
SHARDSCOPE_INLINE void sum_rows(const T* dy, T* out, int count, int width, RowOf row_of) {
    const std::size_t n = static_cast<std::size_t>(width);
    for (std::size_t first = 0; first < n; first += kColumnTile) {
        const std::size_t columns = std::min(kColumnTile, n - first);
        float sum[kColumnTile] = {};
        float buffer[kColumnTile];
        for (int begin = 0; begin < count; begin += std::min(kRowsOfPiece, count - begin)) {
            float piece[kColumnTile] = {};
            for (int i = begin; i < begin + std::min(kRowsOfPiece, count - begin); ++i) {
                const float* row = floats_of(dy + row_start(row_of(i), width) + first, columns, buffer);
                for (std::size_t j = 0; j < columns; ++j) piece[j] += row[j];
            }
            for (std::size_t j = 0; j < columns; ++j) sum[j] += piece[j];
        }
        const float* made = sum;
        map(
            out + first, columns, [](float value) SHARDSCOPE_INLINE_LAMBDA { return value; }, made);
    }
}

}  // namespace

template <class T>
void embedding_forward(const std::int32_t* tokens, const T* table, T* y, int rows, int width) {
    for (int i = 0; i < rows; ++i) {
        copy(table + row_start(static_cast<std::size_t>(tokens[i]), width),
             y + row_start(static_cast<std::size_t>(i), width), static_cast<std::size_t>(width));
    }
}

template <class T>
SHARDSCOPE_VECTOR_CLONES void embedding_backward(const T* dy, const std::int32_t* tokens, T* dtable, int rows,
                                                 int entries, int width) {
    const RowsByEntry grouped = group_by_entry(tokens, rows, entries);
    for (int e = 0; e < entries; ++e) {
        const int begin = e > 0 ? grouped.ends[e - 1] : 0;
        const std::int32_t* of_entry = grouped.rows + begin;
        sum_rows(dy, dtable + row_start(static_cast<std::size_t>(e), width), grouped.ends[e] - begin, width,
                 [=](int i) SHARDSCOPE_INLINE_LAMBDA { return static_cast<std::size_t>(of_entry[i]); });
    }
}

template <class T>
void position_embedding_forward(const std::type_identity_t<T>* x, const T* table, T* y, int rows, int context,
                                int width, int first) {
    const std::size_t n = static_cast<std::size_t>(width);
    for (int i = 0; i < rows; ++i) {
        const T* entry = table + row_start(static_cast<std::size_t>((first + i) % context), width);
        const std::size_t row = row_start(static_cast<std::size_t>(i), width);
        if (x) {
            add(x + row, entry, y + row, n);
        } else {
            copy(entry, y + row, n);
        }
    }
}

template <class T>
SHARDSCOPE_VECTOR_CLONES void position_embedding_backward(const T* dy, T* dtable, int rows, int context,
                                                          int entries, int width, int first) {
    for (int e = 0; e < entries; ++e) {
        const int start = (e % context + context - first % context) % context;
        const int count = e < context && start < rows ? (rows - start + context - 1) / context : 0;
        sum_rows(dy, dtable + row_start(static_cast<std::size_t>(e), width), count, width,
                 [=](int i) SHARDSCOPE_INLINE_LAMBDA {
                     return static_cast<std::size_t>(start) +
                            static_cast<std::size_t>(i) * static_cast<std::size_t>(context);
                 });
    }
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define SHARDSCOPE_INSTANTIATE(T)                                                         \
    template void embedding_forward(const std::int32_t*, const T*, T*, int, int);         \
    template void embedding_backward(const T*, const std::int32_t*, T*, int, int, int);   \
    template void position_embedding_forward(const T*, const T*, T*, int, int, int, int); \
    template void position_embedding_backward(const T*, T*, int, int, int, int, int);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(float)
SHARDSCOPE_INSTANTIATE(Bf16)
SHARDSCOPE_INSTANTIATE(Fp16)

}  // namespace shardscope::trainer::kernels
