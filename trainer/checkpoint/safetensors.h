// The format safetensors (https://huggingface.co/docs/safetensors): 8 bytes with the length of a JSON object,
// which names each tensor with dtype, shape and bytes, then the tensors without gaps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/checkpoint/foreign.h"

namespace shardscope::trainer::checkpoint {

struct TensorEntry {
    std::string name;
    std::vector<std::int64_t> dims;
};

// The bytes before the tensors, which are of fp32 and follow in this order. A multiple of 64.
std::string safetensors_header(const std::vector<TensorEntry>& tensors);

// The file to read if `path` is one, or a folder with model.safetensors or model.safetensors.index.json (the
// list of several files, as transformers writes it); empty if it is neither.
std::filesystem::path safetensors_index(const std::filesystem::path& path);

// `index`: what safetensors_index() returned. CheckpointError.
ForeignCheckpoint read_safetensors(const std::filesystem::path& index);

}  // namespace shardscope::trainer::checkpoint
