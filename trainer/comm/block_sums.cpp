#include "trainer/comm/block_sums.h"

#include <stdexcept>
#include <vector>

#include "trainer/kernels/elements.h"
#include "trainer/kernels/elementwise.h"
#include "trainer/kernels/streaming.h"

namespace shardscope::trainer::comm {

namespace {

template <class T>
void sum(std::span<const std::byte* const> inputs, std::byte* output, std::int64_t bytes,
         std::int32_t divisor, bool past_caches) {
    std::vector<const T*> typed;
    typed.reserve(inputs.size());
    for (const std::byte* input : inputs) typed.push_back(reinterpret_cast<const T*>(input));
    const auto ranks = static_cast<int>(typed.size());
    const std::size_t count = static_cast<std::size_t>(bytes) / sizeof(T);
    auto* sums = reinterpret_cast<T*>(output);
    if (past_caches) return kernels::streaming_sum(typed.data(), ranks, sums, count, 1.0 / divisor);
    kernels::sum_ranks(typed.data(), ranks, sums, count, 1.0 / divisor);
}

}  // namespace

bool can_sum(plan::DType type) {
    return type != plan::DType::int32;
}

void sum_blocks(plan::DType type, std::span<const std::byte* const> inputs, std::byte* output,
                std::int64_t bytes, std::int32_t divisor, plan::Reduction reduction, bool past_caches) {
    if (reduction == plan::Reduction::max) {
        if (type != plan::DType::fp32) throw std::logic_error("collectives find the largest of fp32 alone");
        std::vector<const float*> typed;
        typed.reserve(inputs.size());
        for (const std::byte* input : inputs) typed.push_back(reinterpret_cast<const float*>(input));
        return kernels::max_ranks(typed.data(), static_cast<int>(typed.size()),
                                  reinterpret_cast<float*>(output),
                                  static_cast<std::size_t>(bytes) / sizeof(float));
    }
    switch (type) {
        case plan::DType::fp32:
            return sum<float>(inputs, output, bytes, divisor, past_caches);
        case plan::DType::bf16:
            return sum<kernels::Bf16>(inputs, output, bytes, divisor, past_caches);
        case plan::DType::fp16:
            return sum<kernels::Fp16>(inputs, output, bytes, divisor, past_caches);
        case plan::DType::fp64:
            return sum<double>(inputs, output, bytes, divisor, past_caches);
        case plan::DType::int32:
        case plan::DType::int8:
            break;
    }
    throw std::logic_error("collectives do not sum integers");
}

}  // namespace shardscope::trainer::comm
