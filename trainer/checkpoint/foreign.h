// Checkpoints that other libraries wrote: which tensors they have, and where. They have no checksums, no seed
// and no position of the sampler; their tensors may be in other element types and in another order of
// dimensions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/run_layout.h"
#include "trainer/checkpoint/tensor_form.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::checkpoint {

inline constexpr const char* kDcpMetadata = ".metadata";  // of torch.distributed.checkpoint

struct ForeignTensor {
    std::string name;
    std::string state;  // "": the parameter itself; else what the optimizer keeps of it
    std::vector<std::int64_t> dims;
    std::vector<StoredBox> boxes;  // each is within the dimensions and in its file
};

struct ForeignCheckpoint {
    std::filesystem::path index;  // the file that lists the tensors; Manifest::files are next to it
    Manifest manifest;            // without parameters; `step` is -1 if it is unknown
    std::vector<ForeignTensor> tensors;
};

// Whether the path is a .safetensors file, or a folder with files of such a format and without a manifest.
bool is_foreign(const std::filesystem::path& path);

// Reads what is where; no values. CheckpointError names the file and the tensor that is wrong.
ForeignCheckpoint read_foreign(const std::filesystem::path& path);

// What and where its tensors are, as a text that two copies have in common.
std::string to_text(const ForeignCheckpoint& checkpoint);

// The parameters of a run, in their order, as pieces of the checkpoint's files. Its names are those of our
// modules, or transformers' for a model of this type. CheckpointError: a tensor is missing, is superfluous,
// has other dimensions than the model's, or has an element twice.
struct Bound {
    std::vector<ManifestParameter> parameters;
    std::vector<std::string> unused;  // tensors that transformers' class has and our model lacks
};
Bound bind(const ForeignCheckpoint& checkpoint, const RunLayout& layout, job::ModelType type);

// Whether the tensor is one that the trainer's models do not have, and need not.
bool is_ignored(std::string_view name);

}  // namespace shardscope::trainer::checkpoint
