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
#include "trainer/job/job.h"

namespace shardscope::trainer::checkpoint {

struct PlannedPiece {
    OwnedPiece owned;
    std::size_t file = 0;  // index into SavePlan::files
    std::int64_t offset = 0;
    std::int64_t part_offset = 0;  // offset in the part of its place, if that part is a file of its own
};

struct SavePlan {
    bool one_file = false;             // checkpoint.format = "full"
    std::vector<ManifestFile> files;   // the files of the checkpoint
    std::vector<PlannedPiece> pieces;  // in the order of parameters; `full`: each state is contiguous
    std::set<int> writers;             // the places that write something
};

SavePlan plan_save(const RunLayout& layout, job::CheckpointFormat format);

// Where places write.
enum class PartPlace : std::uint8_t {
    final,  // into the checkpoint's files
    own,    // into a file for each place, from which copy_parts() makes the checkpoint's files
};

// The file that a place fills (alone or, with `full` and `final`, together with others) and the bytes that it
// has at least afterwards. `place` is one of the writers.
ManifestFile part_file(const SavePlan& plan, PartPlace where, int place);

// Writes what a place owns into files of `folder` and syncs them; stores the checksums of its pieces in
// `checksums`, which is indexed by piece. Returns the number of bytes. Files that no other place writes must
// not exist. std::system_error.
std::int64_t write_part(const SavePlan& plan, PartPlace where, int place, const std::filesystem::path& folder,
                        const RankMemory& memory, std::span<std::uint32_t> checksums);

// Copies all places' own files into the checkpoint's files, syncs these, and removes the former.
// std::system_error; std::runtime_error if bytes differ from those that were written.
void copy_parts(const SavePlan& plan, const std::filesystem::path& folder,
                std::span<const std::uint32_t> checksums);

}  // namespace shardscope::trainer::checkpoint
