// Which bytes of a checkpoint are where, and which rank writes them: the same for every save of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/run_layout.h"
#include "trainer/checkpoint/torch_file.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::checkpoint {

struct PlannedPiece {
    OwnedPiece owned;
    std::size_t file = 0;  // index into SavePlan::files
    std::int64_t offset = 0;
    std::int64_t part_offset = 0;  // offset in the part of its place, if that part is a file of its own
    bool reordered = false;        // it is a part of a PlannedBox in another order
};

// A box of a tensor, in the order of PyTorch's dimensions.
struct TensorBox {
    std::vector<std::int64_t> offsets;
    TorchTensor tensor;
};

// Pieces that are written as one box of a tensor: all those of `dcp`, and tensors in another order of
// elements than ours. Pieces of the latter kind are written to the places' own files, and copy_parts() puts
// them in order.
struct PlannedBox {
    std::size_t first_piece = 0, end_piece = 0;  // of SavePlan::pieces
    std::size_t file = 0;
    std::int64_t offset = 0, elements = 0;
    std::vector<Extent> order;  // of a whole tensor's elements, if it is not ours
    // `dcp`: the box as a tensor, and the part of the file that is a torch.save of it.
    TensorBox box;
    std::int64_t frame = 0, frame_bytes = 0;
};

struct SavePlan {
    job::CheckpointFormat format = job::CheckpointFormat::sharded;
    std::vector<ParameterShape> shapes;  // of the parameters
    // Whether places write into the same files (`full`, `safetensors`), where each state is contiguous.
    bool shared_files = false;
    std::vector<ManifestFile> files;   // the files of the checkpoint
    std::vector<std::string> headers;  // what each file begins with; empty, or one for each file
    bool ends_with_zeros = false;      // the first file, after its pieces
    std::vector<PlannedPiece> pieces;  // in the order of parameters and states
    std::vector<PlannedBox> boxes;     // in the same order
    bool reorders = false;             // whether one of them is in another order than ours
    std::set<int> writers;             // the places that write something
};

// In the job's checkpoint.format and checkpoint.names. JobError: the format cannot hold a tensor.
SavePlan plan_save(const RunLayout& layout, const job::Job& job);

// Where places write.
enum class PartPlace : std::uint8_t {
    final,  // into the checkpoint's files
    own,    // into a file for each place, from which copy_parts() makes the checkpoint's files
};

// The files that a place fills (alone or, with shared files and `final`, together with others) and the bytes
// that each has at least afterwards. `place` is one of the writers.
std::vector<ManifestFile> part_files(const SavePlan& plan, PartPlace where, int place);

// Writes what a place owns into files of `folder` and syncs them; stores the checksums of its pieces in
// `checksums`, which is indexed by piece. Returns the number of bytes. Files that no other place writes must
// not exist. std::system_error.
std::int64_t write_part(const SavePlan& plan, PartPlace where, int place, const std::filesystem::path& folder,
                        const RankMemory& memory, std::span<std::uint32_t> checksums);

// Copies all places' own files into the checkpoint's files, syncs these, and removes the former. Returns the
// checksums of boxes in another order, indexed by box. std::system_error; std::runtime_error if bytes differ
// from those that were written.
std::vector<std::uint32_t> copy_parts(const SavePlan& plan, const std::filesystem::path& folder,
                                      std::span<const std::uint32_t> checksums);

// Writes the headers and syncs their files, which all places have filled. std::system_error.
void write_headers(const SavePlan& plan, const std::filesystem::path& folder);

}  // namespace shardscope::trainer::checkpoint
