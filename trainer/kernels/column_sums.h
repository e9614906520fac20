// Sums over the rows of a matrix, column by column, in a fixed order, for the gradients of biases and of
// norms' weights. Internal to trainer/kernels; thread safe (no state).
#pragma once

#include <algorithm>
#include <cstddef>

#include "trainer/kernels/elements.h"
#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {

// out[j] = the sum of column j over all rows; add_row(i, first, width, partial) adds row i's columns from
// `first` on to partial[0 … width). Blocks of kRowBlock rows are summed in float, the blocks' sums in double.
template <class T, class AddRow>
SHARDSCOPE_INLINE void sum_columns(std::size_t rows, std::size_t columns, T* out, AddRow add_row) {
    for (std::size_t first = 0; first < columns; first += kColumnTile) {
        const std::size_t width = std::min(kColumnTile, columns - first);
        double total[kColumnTile] = {};
        for (std::size_t block = 0; block < rows; block += kRowBlock) {
            const std::size_t end = std::min(block + kRowBlock, rows);
            float partial[kColumnTile] = {};
            for (std::size_t i = block; i < end; ++i) add_row(i, first, width, partial);
            for (std::size_t j = 0; j < width; ++j) total[j] += partial[j];
        }
        put_rounded(out + first, total, width);
    }
}

}  // namespace shardscope::trainer::kernels
