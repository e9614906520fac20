// Rotary position embedding on a CUDA device: trainer/kernels/rotary.h, rotations bit for bit; the table's
// sines and cosines are the device's (in double, then rounded). Bound by memory, 2 units of T per element.
#pragma once

#include <cstdint>

#include "trainer/cuda/device.h"
#include "trainer/cuda/types.h"

namespace shardscope::trainer::cuda {

template <class T>
void rotary_table(const DeviceContext& device, T* table, int context, int head_width, double base,
                  const std::int32_t* positions = nullptr);

struct RotaryShape {
    int batch = 0, context = 0, rotated = 0, heads = 0, head_width = 0;
};

// y may be x. `backward`: rotates back (dx from dy).
template <class T, class Table>
void rotate(const DeviceContext& device, const T* x, const Table* table, T* y, const RotaryShape& shape,
            bool backward);

}  // namespace shardscope::trainer::cuda
