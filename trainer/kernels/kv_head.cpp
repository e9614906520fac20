#include "trainer/kernels/kv_head.h"

#include <algorithm>
#include <cstddef>

#include "trainer/kernels/elements.h"

namespace shardscope::trainer::kernels {
namespace {

// Calls visit(element of parts, element of head) for the first of each `part` features of the head.
template <class Visit>
void for_features(const KvParts& shape, const Visit& visit) {
    const auto part = static_cast<std::size_t>(shape.part), row = static_cast<std::size_t>(shape.row),
               rows = static_cast<std::size_t>(shape.rows), sharing = static_cast<std::size_t>(shape.sharing),
               first = static_cast<std::size_t>(shape.first());
    for (std::size_t r = 0; r < sharing; ++r) {
        for (std::size_t i = 0; i < rows; ++i) {
            for (const std::size_t kind : {0U, 1U})  // keys, values
                visit((((first + r) * rows + i) * 2 + kind) * part, i * row + (kind * sharing + r) * part);
        }
    }
}

}  // namespace

template <class T>
void take_kv_head(const T* parts, T* head, const KvParts& shape) {
    for_features(shape,
                 [&](std::size_t from, std::size_t to) { std::copy_n(parts + from, shape.part, head + to); });
}

template <class T>
void spread_kv_head(const T* head, T* parts, const KvParts& shape) {
    std::fill_n(parts,
                std::size_t{2} * static_cast<std::size_t>(shape.ranks) *
                    static_cast<std::size_t>(shape.rows) * static_cast<std::size_t>(shape.part),
                T{});
    for_features(shape,
                 [&](std::size_t to, std::size_t from) { std::copy_n(head + from, shape.part, parts + to); });
}

template void take_kv_head(const float*, float*, const KvParts&);
template void take_kv_head(const Bf16*, Bf16*, const KvParts&);
template void take_kv_head(const Fp16*, Fp16*, const KvParts&);
template void spread_kv_head(const float*, float*, const KvParts&);
template void spread_kv_head(const Bf16*, Bf16*, const KvParts&);
template void spread_kv_head(const Fp16*, Fp16*, const KvParts&);

}  // namespace shardscope::trainer::kernels
