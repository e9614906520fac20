// See rotary.h. One block per row; a thread rotates kCount pairs of a head at a time.
#include "trainer/cuda/rotary.h"
#include "trainer/cuda/rows.h"

namespace shardscope::trainer::cuda {
namespace {

constexpr int kThreads = 256;

template <class T>
__global__ void __launch_bounds__(kThreads)
    table_kernel(T* table, int context, int head_width, double base, const std::int32_t* positions) {
    const int half = head_width / 2;
    const std::size_t n = static_cast<std::size_t>(context) * static_cast<std::size_t>(half);
    const std::size_t at = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
    if (at >= n) return;
    const std::size_t row = at / static_cast<unsigned>(half);
    const auto position = positions ? static_cast<double>(positions[row]) : static_cast<double>(row);
    const auto i = static_cast<double>(at % static_cast<unsigned>(half));
    const double speed = pow(base, -2.0 * i / head_width);
    table[at] = rounded<T>(static_cast<float>(cos(position * speed)));
    table[n + at] = rounded<T>(static_cast<float>(sin(position * speed)));
}

template <class T, class Table>
__global__ void __launch_bounds__(kThreads)
    rotate_kernel(const T* x, const Table* table, T* y, RotaryShape shape, float direction, bool packed) {
    constexpr int kCount = kPackOf<T>;
    const int half = shape.head_width / 2;
    const int packs = (half + kCount - 1) / kCount;  // of half a head
    const auto position = blockIdx.x % static_cast<unsigned>(shape.context);
    const std::size_t row = std::size_t{blockIdx.x} * static_cast<unsigned>(shape.heads * shape.head_width);
    const Table* cosines = table + std::size_t{position} * static_cast<unsigned>(half);
    const Table* sines = cosines + static_cast<std::size_t>(shape.context) * static_cast<unsigned>(half);
    const int heads = x == y ? shape.rotated : shape.heads;  // in place, nothing has to be copied
    for (int item = static_cast<int>(threadIdx.x); item < heads * packs;
         item += static_cast<int>(blockDim.x)) {
        const int head = item / packs, first = item % packs * kCount;
        const std::size_t low = row + static_cast<std::size_t>(head * shape.head_width), high = low + half;
        float a[kCount], b[kCount];
        load_part(x + low, first, half, packed, a);
        load_part(x + high, first, half, packed, b);
        if (head < shape.rotated) {
            float cosine[kCount], sine[kCount];
            load_part(cosines, first, half, packed, cosine);
            load_part(sines, first, half, packed, sine);
#pragma unroll
            for (int i = 0; i < kCount; ++i) {
                const float turn = direction * sine[i];
                const float low_x = a[i], high_x = b[i];
                a[i] = low_x * cosine[i] - high_x * turn;
                b[i] = high_x * cosine[i] + low_x * turn;
            }
        }
        store_part(y + low, first, half, packed, a);
        store_part(y + high, first, half, packed, b);
    }
}

}  // namespace

template <class T>
void rotary_table(const DeviceContext& device, T* table, int context, int head_width, double base,
                  const std::int32_t* positions) {
    const std::size_t n = static_cast<std::size_t>(context) * static_cast<std::size_t>(head_width / 2);
    launch(&table_kernel<T>, blocks_for(n, kThreads), kThreads, 0, device.stream, table, context, head_width,
           base, positions);
}

template <class T, class Table>
void rotate(const DeviceContext& device, const T* x, const Table* table, T* y, const RotaryShape& shape,
            bool backward) {
    const int half = shape.head_width / 2;
    // Packs have kPackOf<T> elements, so for Bf16 a pack of a float table takes two loads.
    const bool packed = half % kPackOf<T> == 0 && half % kPackOf<Table> == 0 && is_aligned(x) &&
                        is_aligned(y) && is_aligned(table);
    const int items = shape.heads * ((half + kPackOf<T> - 1) / kPackOf<T>);
    launch(&rotate_kernel<T, Table>, static_cast<unsigned>(shape.batch * shape.context),
           threads_for(static_cast<std::size_t>(items), kThreads), 0, device.stream, x, table, y, shape,
           backward ? -1.0f : 1.0f, packed);
}

template void rotary_table(const DeviceContext&, float*, int, int, double, const std::int32_t*);
template void rotary_table(const DeviceContext&, Bf16*, int, int, double, const std::int32_t*);
template void rotary_table(const DeviceContext&, Fp16*, int, int, double, const std::int32_t*);
template void rotate(const DeviceContext&, const float*, const float*, float*, const RotaryShape&, bool);
template void rotate(const DeviceContext&, const float*, const Bf16*, float*, const RotaryShape&, bool);
template void rotate(const DeviceContext&, const float*, const Fp16*, float*, const RotaryShape&, bool);
template void rotate(const DeviceContext&, const Bf16*, const float*, Bf16*, const RotaryShape&, bool);
template void rotate(const DeviceContext&, const Fp16*, const float*, Fp16*, const RotaryShape&, bool);
template void rotate(const DeviceContext&, const Bf16*, const Bf16*, Bf16*, const RotaryShape&, bool);
template void rotate(const DeviceContext&, const Fp16*, const Fp16*, Fp16*, const RotaryShape&, bool);

}  // namespace shardscope::trainer::cuda
