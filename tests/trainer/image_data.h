// Small files of images that a model can learn: CIFAR's format, made from patterns and noise.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace shardscope::trainer::testing {

// A byte of 0 to 127 that looks random (the finaliser of SplitMix64).
inline int made_byte(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return static_cast<int>((x ^ (x >> 31)) >> 57);
}

// Image i of CIFAR-10's format has the class i % 10: sixteen patches in the class's colours under noise.
inline void write_cifar(const std::string& path, std::uint64_t images, std::uint64_t seed) {
    std::string bytes;
    for (std::uint64_t image = 0; image < images; ++image) {
        const std::uint64_t label = image % 10;
        bytes += static_cast<char>(label);
        for (std::uint64_t at = 0; at < 3072; ++at) {
            const std::uint64_t channel = at / 1024, row = at / 32 % 32, column = at % 32;
            const int color = made_byte(((label * 3 + channel) * 4 + row / 8) * 4 + column / 8);
            bytes += static_cast<char>(color + made_byte((seed << 40) + image * 3072 + at));
        }
    }
    std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace shardscope::trainer::testing
