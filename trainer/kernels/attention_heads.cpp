// See attention_heads.h.
#include "trainer/kernels/attention_heads.h"

#include "trainer/kernels/vectorize.h"

namespace shardscope::trainer::kernels {

HeadPlaces places_of(const AttentionShape& shape, int b, int h) {
    const std::size_t d = static_cast<std::size_t>(shape.head_width());
    const std::size_t context = static_cast<std::size_t>(shape.context);
    const std::size_t sequence = static_cast<std::size_t>(b) * context;
    const std::size_t query =
        sequence * static_cast<std::size_t>(shape.row()) + static_cast<std::size_t>(h) * d;
    const std::size_t key = sequence * static_cast<std::size_t>(shape.row()) +
                            static_cast<std::size_t>(shape.width) +
                            static_cast<std::size_t>(h / shape.group()) * d;
    return {
        query, key, key + static_cast<std::size_t>(shape.kv_heads) * d,
        sequence * static_cast<std::size_t>(shape.width) + static_cast<std::size_t>(h) * d,
        (static_cast<std::size_t>(b) * static_cast<std::size_t>(shape.heads) + static_cast<std::size_t>(h)) *
            context};
}

template <Narrow T>
SHARDSCOPE_VECTOR_CLONES void read_rows(View<const T> from, float* to, int rows, int width) {
    const std::size_t n = static_cast<std::size_t>(width);
    for (int i = 0; i < rows; ++i) floats_of(from.row(i), n, to + static_cast<std::size_t>(i) * n);
}

template <Narrow T>
SHARDSCOPE_VECTOR_CLONES void write_rows(const float* from, View<T> to, int rows, int width) {
    const std::size_t n = static_cast<std::size_t>(width);
    for (int i = 0; i < rows; ++i) put(to.row(i), from + static_cast<std::size_t>(i) * n, n);
}

template void read_rows(View<const Bf16>, float*, int, int);
template void read_rows(View<const Fp16>, float*, int, int);
template void write_rows(const float*, View<Bf16>, int, int);
template void write_rows(const float*, View<Fp16>, int, int);

}  // namespace shardscope::trainer::kernels
