// Joins and splits buffers on a CUDA device: a Plan's cat, split, chunk_cat and chunk_split, up to 640
// buffers per launch. Bytes move in the widest words that the addresses allow (16 … 1); elements that are
// converted move one by one. Bound by memory: twice the bytes of the whole buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/cuda/device.h"

namespace shardscope::trainer::cuda {

// One of the buffers that make up the whole. It is cut into pieces of `piece` bytes; piece r lies in part r
// of the whole, `first` bytes after the start of that part. `bytes` may end before the last pieces are full.
struct Component {
    std::byte* data = nullptr;
    std::int64_t bytes = 0;
    std::int64_t piece = 0;
    std::int64_t first = 0;
};

// The whole has `parts` parts of `part_bytes` each. gather: copies components to the whole and fills the rest
// of a component's pieces with zeros; else copies the whole to the components.
void move_pieces(const DeviceContext& device, std::byte* whole, std::int64_t parts, std::int64_t part_bytes,
                 const std::vector<Component>& components, bool gather);

// Gathers like move_pieces, from components of From to a whole of To (float to a narrow type, or back).
// Numbers here and in the components count elements, not bytes.
template <class From, class To>
void convert_pieces(const DeviceContext& device, To* whole, std::int64_t parts, std::int64_t part_elements,
                    const std::vector<Component>& components);

}  // namespace shardscope::trainer::cuda
