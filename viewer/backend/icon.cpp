// See icon.h.
#include "viewer/backend/icon.h"

#include <array>
#include <cstddef>

namespace shardscope::viewer::backend {
namespace {

constexpr int kGrid = 16;

struct Bar {
    int left = 0, top = 0, right = 0, bottom = 0;  // on a grid of 16
    std::array<std::uint8_t, 3> rgb{};
};

// The ground, and each rank's kernel (blue) and its collective (orange), which ends for all at once.
constexpr std::array<Bar, 7> kBars = {{{0, 0, 16, 16, {0x16, 0x1B, 0x22}},
                                       {2, 3, 8, 6, {0x4F, 0xA3, 0xD9}},
                                       {8, 3, 14, 6, {0xE0, 0x9F, 0x3E}},
                                       {2, 7, 6, 10, {0x4F, 0xA3, 0xD9}},
                                       {6, 7, 14, 10, {0xE0, 0x9F, 0x3E}},
                                       {2, 11, 11, 14, {0x4F, 0xA3, 0xD9}},
                                       {11, 11, 14, 14, {0xE0, 0x9F, 0x3E}}}};

}  // namespace

std::vector<std::uint8_t> icon_pixels(int size) {
    std::vector<std::uint8_t> pixels;
    pixels.reserve(static_cast<std::size_t>(size) * static_cast<std::size_t>(size) * 4);
    for (int y = 0; y < size; ++y) {
        for (int x = 0; x < size; ++x) {
            const int column = x * kGrid / size, line = y * kGrid / size;
            const Bar* top = nullptr;
            for (const Bar& bar : kBars)
                if (column >= bar.left && column < bar.right && line >= bar.top && line < bar.bottom)
                    top = &bar;
            pixels.insert(pixels.end(), top->rgb.begin(), top->rgb.end());
            pixels.push_back(0xFF);
        }
    }
    return pixels;
}

}  // namespace shardscope::viewer::backend
