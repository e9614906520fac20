// The element types of tensors in checkpoints. The trainer's own are fp32, and so is what it reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shardscope::trainer::checkpoint {

enum class ElementType : std::uint8_t { fp32, bf16, fp16, fp64 };

constexpr std::int64_t size_of(ElementType type) {
    return type == ElementType::fp64 ? 8 : type == ElementType::fp32 ? 4 : 2;
}

// Reads `to.size() / 4` elements, each `stride` elements after the previous one, and writes them as fp32.
// fp64 is rounded to nearest; the others are exact.
void to_fp32(std::span<const std::byte> from, ElementType type, std::int64_t stride, std::span<std::byte> to);

}  // namespace shardscope::trainer::checkpoint
