// Sums over the rows of a matrix, column by column, in a fixed order, for the gradients of biases and of
// norms' weights. Internal to trainer/kernels; thread safe (no state).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "trainer/kernels/elements.h"
#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {

// out[s][j] = the sum of column j over all rows, for each sum s; add_row(i, first, width, partial) adds row
// i's columns from `first` on to partial[s][0 … width). Blocks of kRowBlock rows are summed in float, the
// blocks' sums in double.
template <std::size_t kSums, class T, class AddRow>
SHARDSCOPE_INLINE void sum_columns(std::size_t rows, std::size_t columns, const std::array<T*, kSums>& out,
                                   AddRow add_row) {
    for (std::size_t first = 0; first < columns; first += kColumnTile) {
        const std::size_t width = std::min(kColumnTile, columns - first);
        double total[kSums][kColumnTile] = {};
        for (std::size_t block = 0; block < rows; block += kRowBlock) {
            const std::size_t end = std::min(block + kRowBlock, rows);
            float partial[kSums][kColumnTile] = {};
            for (std::size_t i = block; i < end; ++i) add_row(i, first, width, partial);
            for (std::size_t s = 0; s < kSums; ++s)
                for (std::size_t j = 0; j < width; ++j) total[s][j] += partial[s][j];
        }
        for (std::size_t s = 0; s < kSums; ++s) put_rounded(out[s] + first, total[s], width);
    }
}

// The same of one sum, whose partial sums are partial[0 … width).
template <class T, class AddRow>
SHARDSCOPE_INLINE void sum_columns(std::size_t rows, std::size_t columns, T* out, AddRow add_row) {
    sum_columns(rows, columns, std::array{out},
                [=](std::size_t i, std::size_t first, std::size_t width, float(&partial)[1][kColumnTile])
                    SHARDSCOPE_INLINE_LAMBDA { add_row(i, first, width, partial[0]); });
}

}  // namespace shardscope::trainer::kernels
