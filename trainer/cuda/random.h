// The random numbers of trainer/kernels/random.h on the device, bit for bit: the key is the seed, the counter
// is (index / 4, stream). Sources that include this are compiled without contraction to FMA. Device code.
#pragma once

#include <cstdint>

#include "trainer/cuda/runtime.h"
#include "trainer/kernels/random_formulas.h"

namespace shardscope::trainer::cuda {

using kernels::box_muller;
using kernels::unit_interval;

// The four words of one counter: those of elements 4 * counter … 4 * counter + 3.
struct PhiloxWords {
    std::uint32_t at[4];
};

__device__ inline PhiloxWords philox(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
    std::uint32_t c0 = static_cast<std::uint32_t>(counter), c1 = static_cast<std::uint32_t>(counter >> 32);
    std::uint32_t c2 = static_cast<std::uint32_t>(stream), c3 = static_cast<std::uint32_t>(stream >> 32);
    std::uint32_t key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
#pragma unroll
    for (int round = 0; round < kernels::kPhiloxRounds; ++round) {
        kernels::philox_round(c0, c1, c2, c3, key0, key1);
        key0 += kernels::kWeyl0;
        key1 += kernels::kWeyl1;
    }
    return {{c0, c1, c2, c3}};
}

}  // namespace shardscope::trainer::cuda
