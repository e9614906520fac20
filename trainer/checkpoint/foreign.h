// Checkpoints that other libraries wrote, described as if they were ours: a Manifest whose pieces lie in
// their files. They have no checksums, no seed and no position of the sampler; their tensors may be in other
// element types and in another order of dimensions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/checkpoint/manifest.h"

namespace shardscope::trainer::checkpoint {

inline constexpr const char* kDcpMetadata = ".metadata";  // of torch.distributed.checkpoint

struct ForeignCheckpoint {
    std::filesystem::path index;  // the file that lists the tensors; Manifest::files are next to it
    Manifest manifest;            // `step` is -1 if it is unknown
};

// Whether the path is a .safetensors file, or a folder with files of such a format and without a manifest.
bool is_foreign(const std::filesystem::path& path);

// Reads what is where; no values. CheckpointError names the file and the tensor that is wrong.
ForeignCheckpoint read_foreign(const std::filesystem::path& path);

// A tensor, or a box of one, as it lies in a file: `strides` in elements, in the order of PyTorch's
// dimensions.
struct StoredBox {
    std::vector<std::int64_t> offsets, sizes, strides;
    ElementType type = ElementType::fp32;
    std::size_t file = 0;
    std::int64_t offset = 0;  // of its first element, in bytes
};

// The number of elements; -1 if it is beyond every file, or if a size is below 0.
std::int64_t element_count(const std::vector<std::int64_t>& dims);
std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& dims);

// The parameter of a tensor of these dimensions: its rows and their width.
ManifestParameter foreign_parameter(std::string path, std::vector<std::int64_t> dims);

// Appends the pieces that a box within the parameter's dimensions consists of. Filters (four dimensions) are
// channels last in our order of elements.
void append_pieces(ManifestParameter& parameter, const std::string& state, const StoredBox& box);

// Whether the tensor is one that the trainer's models do not have, and need not.
bool is_ignored(std::string_view name);

}  // namespace shardscope::trainer::checkpoint
