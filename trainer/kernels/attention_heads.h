// Where the heads of an attention lie in its tensors, and copies of a head's matrices as floats. Internal to
// the attention kernels (plain and fused); thread safe.
#pragma once

#include <cstddef>

#include "trainer/kernels/attention.h"
#include "trainer/kernels/elements.h"

namespace shardscope::trainer::kernels {

// A matrix inside a larger one: `stride` elements from row to row.
template <class T>
struct View {
    T* data;
    int stride;
    T* row(int i) const { return data + static_cast<std::ptrdiff_t>(i) * stride; }
};
using Matrix = View<float>;
using ConstMatrix = View<const float>;

// Where head h of sequence b starts, in elements.
struct HeadPlaces {
    std::size_t query, key, value;  // in qkv
    std::size_t out;                // in out
    std::size_t row;                // of its first position among [B,H,T]
};
HeadPlaces places_of(const AttentionShape& shape, int b, int h);

// Copies rows to floats, or from them, `width` of them per row.
template <Narrow T>
void read_rows(View<const T> from, float* to, int rows, int width);
template <Narrow T>
void write_rows(const float* from, View<T> to, int rows, int width);

}  // namespace shardscope::trainer::kernels
