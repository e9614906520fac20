// manifest.json: what a checkpoint contains, and where. docs/checkpoints.md documents the text; the structs
// below are its values, which are complete and consistent once parse_manifest has returned them. Counts are
// in elements of fp32, offsets and sizes in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/checkpoint/element_type.h"

namespace shardscope::trainer::checkpoint {

// Of a manifest. Version 2 has the order of a piece's elements, which tools that read only version 1 do not
// know; without one, version 1 is written.
inline constexpr int kFirstVersion = 1, kVersionWithOrder = 2;
inline constexpr const char* kManifestName = "manifest.json";

// A loop over elements: `size` of them, each `stride` elements after the previous one in the file.
struct Extent {
    std::int64_t size = 0, stride = 1;

    bool operator==(const Extent&) const = default;
};

// Elements [first, first + elements) of a parameter or of its state, in a file from byte `offset` on. In
// manifest.json all are fp32, without gaps.
struct ManifestPiece {
    std::string state;  // "": the parameter itself; "exp_avg" …: its optimizer state
    std::int64_t first = 0, elements = 0;
    std::size_t file = 0;  // index into Manifest::files
    std::int64_t offset = 0;
    std::optional<std::uint32_t> crc32c = 0;  // absent in the checkpoints of others
    ElementType type = ElementType::fp32;
    std::vector<Extent> order;  // where they are there, the outermost loop first; empty: one after the other

    bool operator==(const ManifestPiece&) const = default;
};

struct ManifestParameter {
    std::string path;  // "net.0.weight"
    std::int64_t rows = 0, width = 1;
    std::vector<ManifestPiece> pieces;  // sorted by state, then by first

    std::int64_t elements() const { return rows * width; }
    bool operator==(const ManifestParameter&) const = default;
};

struct ManifestFile {
    std::string name;
    std::int64_t bytes = 0;

    bool operator==(const ManifestFile&) const = default;
};

// The loss scale of the next step, of a run in fp16 (executor/loss_scaler.h).
struct ManifestLossScale {
    double scale = 1;
    std::int64_t clean = 0, skipped = 0;
    int hysteresis = 1;

    bool operator==(const ManifestLossScale&) const = default;
};

struct Manifest {
    std::int64_t step = 0;     // optimizer steps done
    std::int64_t samples = 0;  // samples of the run's stream that were trained on: the sampler's position
    std::int64_t seed = 0;     // run.seed, which with step and samples makes up the random state
    std::string optimizer;     // optimizer.type; empty: unknown
    int ranks = 1;             // ranks of the run that saved
    std::optional<ManifestLossScale> loss_scale;
    std::vector<std::pair<std::string, std::string>> job;  // every key of the run's job, with its value
    std::string tokenizer;  // the file of the vocabulary; empty: the text is bytes, or the job has no text
    std::int64_t tokenizer_bytes = 0;
    std::uint32_t tokenizer_crc32c = 0;
    std::vector<ManifestFile> files;  // the files of the pieces
    std::vector<ManifestParameter> parameters;

    bool operator==(const Manifest&) const = default;
};

// The text of manifest.json; its last member is the checksum of everything before it.
std::string to_text(const Manifest& manifest);

// The inverse of to_text(). Messages call the file `name`. CheckpointError: the text is not a manifest, is of
// a newer version, was truncated or changed, or is inconsistent (pieces outside their file or parameter, or
// overlapping; two parameters of one path).
Manifest parse_manifest(std::string_view text, const std::string& name);

// The pieces of a state that overlap the elements [first, first + elements), in their order; O(log n).
std::span<const ManifestPiece> pieces_within(const ManifestParameter& parameter, std::string_view state,
                                             std::int64_t first, std::int64_t elements);

// The same loops in the fewest: none of size 1, and none that continues another; empty if all elements are
// neighbours.
std::vector<Extent> simplified(const std::vector<Extent>& extents);

// Elements of a piece that lie evenly in the file: the first one `offset` elements after the piece's.
struct EvenRun {
    std::int64_t first = 0, elements = 0, offset = 0, stride = 1;
};
// The runs of the elements [first, last) of the piece's parameter, which the piece contains.
std::vector<EvenRun> runs_of(const ManifestPiece& piece, std::int64_t first, std::int64_t last);

// Sorts a parameter's pieces by state and first element; returns an element that two of them contain.
std::optional<std::int64_t> sort_pieces(std::vector<ManifestPiece>& pieces);

// Whether a file's name stays in its folder: it is not empty, has no '/', and is not "." or "..".
bool is_plain_name(std::string_view name);

}  // namespace shardscope::trainer::checkpoint
