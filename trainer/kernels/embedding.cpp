// Embeddings: rows looked up, and rows added where they came from; see embedding.h.
#include "trainer/kernels/embedding.h"

#include <cstddef>
#include <cstring>

#include "trainer/kernels/elementwise.h"

namespace shardscope::trainer::kernels {
namespace {

std::size_t row_start(int row, int width) {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(width);
}

}  // namespace

void embedding_forward(const std::int32_t* tokens, const float* table, float* y, int rows, int width) {
    for (int i = 0; i < rows; ++i) {
        copy(table + row_start(tokens[i], width), y + row_start(i, width), static_cast<std::size_t>(width));
    }
}

void embedding_backward(const float* dy, const std::int32_t* tokens, float* dtable, int rows, int entries,
                        int width) {
    std::memset(dtable, 0, row_start(entries, width) * sizeof(float));
    for (int i = 0; i < rows; ++i) {
        accumulate(dy + row_start(i, width), dtable + row_start(tokens[i], width),
                   static_cast<std::size_t>(width));
    }
}

void position_embedding_forward(const float* x, const float* table, float* y, int rows, int context,
                                int width) {
    const std::size_t n = static_cast<std::size_t>(width);
    for (int i = 0; i < rows; ++i) {
        const float* entry = table + row_start(i % context, width);
        const std::size_t row = row_start(i, width);
        if (x) {
            add(x + row, entry, y + row, n);
        } else {
            copy(entry, y + row, n);
        }
    }
}

void position_embedding_backward(const float* dy, float* dtable, int rows, int context, int entries,
                                 int width) {
    std::memset(dtable, 0, row_start(entries, width) * sizeof(float));
    for (int i = 0; i < rows; ++i) {
        accumulate(dy + row_start(i, width), dtable + row_start(i % context, width),
                   static_cast<std::size_t>(width));
    }
}

}  // namespace shardscope::trainer::kernels
