// See workspace.h.
#include "trainer/kernels/workspace.h"

#include <array>
#include <cstdlib>
#include <memory>
#include <new>

namespace shardscope::trainer::kernels {
namespace {

constexpr std::size_t kAlignment = 64;

struct Free {
    void operator()(std::byte* block) const { std::free(block); }
};
struct Block {
    std::unique_ptr<std::byte, Free> data;
    std::size_t bytes = 0;
};

thread_local std::array<Block, static_cast<std::size_t>(Purpose::count)> blocks;

}  // namespace

std::byte* workspace(Purpose purpose, std::size_t bytes) {
    Block& block = blocks[static_cast<std::size_t>(purpose)];
    if (block.bytes < bytes) {
        const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
        block = {};  // frees the old one before the new one is allocated
        block.data.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded)));
        if (!block.data) throw std::bad_alloc();
        block.bytes = rounded;
    }
    return block.data.get();
}

}  // namespace shardscope::trainer::kernels
