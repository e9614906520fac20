#include "trainer/checkpoint/element_type.h"

#include <cstring>

#include "trainer/kernels/bf16.h"
#include "trainer/kernels/fp16.h"

namespace shardscope::trainer::checkpoint {

namespace {

template <class Stored>
Stored element(const std::byte* at) {
    Stored value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

float to_float(const std::byte* at, ElementType type) {
    switch (type) {
        case ElementType::bf16:
            return kernels::to_float(element<kernels::Bf16>(at));
        case ElementType::fp16:
            return kernels::to_float(element<kernels::Fp16>(at));
        case ElementType::fp64:
            return static_cast<float>(element<double>(at));
        case ElementType::fp32:
            break;
    }
    return element<float>(at);
}

}  // namespace

void to_fp32(std::span<const std::byte> from, ElementType type, std::int64_t stride,
             std::span<std::byte> to) {
    const auto step = static_cast<std::size_t>(stride * size_of(type));
    for (std::size_t i = 0; 4 * i < to.size(); ++i) {
        const float value = to_float(from.data() + i * step, type);
        std::memcpy(to.data() + 4 * i, &value, sizeof value);
    }
}

}  // namespace shardscope::trainer::checkpoint
