// Rotary position embedding; see rotary.h.
#include "trainer/kernels/rotary.h"

#include <cmath>
#include <cstddef>

#include "trainer/kernels/elements.h"
#include "trainer/kernels/elementwise.h"
#include "trainer/kernels/vectorize.h"
#include "trainer/kernels/workspace.h"

namespace shardscope::trainer::kernels {
namespace {

// Rotates one head of one row; a `direction` of -1 rotates back.
SHARDSCOPE_INLINE void turn(const float* x, const float* cosines, const float* sines, float* y,
                            std::size_t half, float direction) {
    for (std::size_t i = 0; i < half; ++i) {
        const float sine = direction * sines[i];
        const float first = x[i];
        const float second = x[i + half];
        y[i] = first * cosines[i] - second * sine;
        y[i + half] = second * cosines[i] + first * sine;
    }
}

template <class T, class Table>
SHARDSCOPE_VECTOR_CLONES void turn_rows(const T* x, const Table* table, T* y, int batch, int context,
                                        int rotated, int heads, int head_width, float direction) {
    const std::size_t d = static_cast<std::size_t>(head_width);
    const std::size_t half = d / 2;
    const std::size_t row = static_cast<std::size_t>(heads) * d;
    const std::size_t turned = static_cast<std::size_t>(rotated) * d;
    const std::size_t positions = static_cast<std::size_t>(context);
    float* buffers = workspace_of<float>(Purpose::rows, 3 * d);
    for (std::size_t i = 0; i < static_cast<std::size_t>(batch) * positions; ++i) {
        const std::size_t position = i % positions;
        const float* cosines = floats_of(table + position * half, half, buffers);
        const float* sines = floats_of(table + (positions + position) * half, half, buffers + half);
        for (std::size_t h = 0; h < turned; h += d) {
            const float* in = floats_of(x + i * row + h, d, buffers + d);
            float* out = floats_for(y + i * row + h, buffers + 2 * d);
            turn(in, cosines, sines, out, half, direction);
            put(y + i * row + h, out, d);
        }
        copy(x + i * row + turned, y + i * row + turned, row - turned);
    }
}

}  // namespace

template <class T>
void rotary_table(T* table, int context, int head_width, double base, const std::int32_t* positions) {
    const int half = head_width / 2;
    T* sines = table + static_cast<std::ptrdiff_t>(context) * half;
    for (int i = 0; i < half; ++i) {
        const double speed = std::pow(base, -2.0 * i / head_width);
        for (int row = 0; row < context; ++row) {
            const int position = positions ? positions[row] : row;
            const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * half + i;
            store(static_cast<float>(std::cos(position * speed)), table[at]);
            store(static_cast<float>(std::sin(position * speed)), sines[at]);
        }
    }
}

template <class T, class Table>
void rotary_forward(const T* x, const Table* table, T* y, int batch, int context, int rotated, int heads,
                    int head_width) {
    turn_rows(x, table, y, batch, context, rotated, heads, head_width, 1.0f);
}

template <class T, class Table>
void rotary_backward(const T* dy, const Table* table, T* dx, int batch, int context, int rotated, int heads,
                     int head_width) {
    turn_rows(dy, table, dx, batch, context, rotated, heads, head_width, -1.0f);
}

template void rotary_table(float*, int, int, double, const std::int32_t*);
template void rotary_table(Bf16*, int, int, double, const std::int32_t*);
template void rotary_table(Fp16*, int, int, double, const std::int32_t*);
// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none.
#define SHARDSCOPE_INSTANTIATE(T, Table)                                               \
    template void rotary_forward(const T*, const Table*, T*, int, int, int, int, int); \
    template void rotary_backward(const T*, const Table*, T*, int, int, int, int, int);
// NOLINTEND(bugprone-macro-parentheses)
SHARDSCOPE_INSTANTIATE(float, float)
SHARDSCOPE_INSTANTIATE(float, Bf16)
SHARDSCOPE_INSTANTIATE(Bf16, float)
SHARDSCOPE_INSTANTIATE(Bf16, Bf16)
SHARDSCOPE_INSTANTIATE(float, Fp16)
SHARDSCOPE_INSTANTIATE(Fp16, float)
SHARDSCOPE_INSTANTIATE(Fp16, Fp16)

}  // namespace shardscope::trainer::kernels
