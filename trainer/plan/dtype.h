// Element types of buffers and kernels.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace shardscope::trainer::plan {

enum class DType : std::uint8_t { fp32, bf16, fp64, int32, fp16, int8 };
inline constexpr std::array<std::string_view, 6> kDTypeNames = {"fp32",  "bf16", "fp64",
                                                                "int32", "fp16", "int8"};

// Stored in 16 bits, computed with in fp32.
constexpr bool is_narrow(DType type) {
    return type == DType::bf16 || type == DType::fp16;
}

constexpr std::int64_t size_of(DType type) {
    constexpr std::array<std::int64_t, 6> kBytes = {4, 2, 8, 4, 2, 1};
    return kBytes[static_cast<std::size_t>(type)];
}

}  // namespace shardscope::trainer::plan
