// manifest.json: what a checkpoint holds and where. The page docs/checkpoints.md documents the text; here are
// its values, complete and consistent once parse_manifest returned them. Counts are elements of fp32, offsets
// and sizes bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardscope::trainer {

inline constexpr int kCheckpointVersion = 1;
inline constexpr const char* kManifestName = "manifest.json";

// Elements [first, first + elements) of a parameter or of its state, in bytes [offset, offset + 4 * elements)
// of a file.
struct ManifestPiece {
    std::string state;  // "": the parameter itself, "exp_avg" …: its optimizer state
    std::int64_t first = 0, elements = 0;
    std::size_t file = 0;  // index into Manifest::files
    std::int64_t offset = 0;
    std::uint32_t crc32c = 0;

    bool operator==(const ManifestPiece&) const = default;
};

struct ManifestParameter {
    std::string path;  // "net.0.weight"
    std::int64_t rows = 0, width = 1;
    std::vector<ManifestPiece> pieces;  // by state, then by first

    std::int64_t elements() const { return rows * width; }
    bool operator==(const ManifestParameter&) const = default;
};

struct ManifestFile {
    std::string name;
    std::int64_t bytes = 0;

    bool operator==(const ManifestFile&) const = default;
};

struct Manifest {
    std::int64_t step = 0;     // optimizer steps done
    std::int64_t samples = 0;  // of the run's stream that were trained on: where the sampler stands
    std::int64_t seed = 0;     // run.seed: with it, step and samples are all of the random state
    std::string optimizer;     // optimizer.type
    int ranks = 1;             // of the run that saved
    std::vector<std::pair<std::string, std::string>> job;  // every key of the run's job with its value
    std::string tokenizer;  // the file of the vocabulary; "": bytes, or no text
    std::int64_t tokenizer_bytes = 0;
    std::uint32_t tokenizer_crc32c = 0;
    std::vector<ManifestFile> files;  // of the pieces
    std::vector<ManifestParameter> parameters;

    bool operator==(const Manifest&) const = default;
};

// The text of manifest.json; its last member is the checksum of all that stands before it.
std::string to_text(const Manifest& manifest);

// The reverse. `name` stands for the file in messages. CheckpointError: no manifest, of a newer version, cut
// off, changed, or saying what cannot be (pieces outside their file or parameter, or overlapping; two
// parameters of one path).
Manifest parse_manifest(std::string_view text, const std::string& name);

// The pieces of a state that hold some of the elements [first, first + elements), in their order; O(log n).
std::span<const ManifestPiece> pieces_within(const ManifestParameter& parameter, std::string_view state,
                                             std::int64_t first, std::int64_t elements);

// A file's name that stays in its folder: no empty one, no '/', not "." or "..".
bool is_plain_name(std::string_view name);

}  // namespace shardscope::trainer
