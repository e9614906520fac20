#include "trainer/checkpoint/save_plan.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "trainer/checkpoint/crc32c.h"
#include "trainer/checkpoint/dcp_write.h"
#include "trainer/checkpoint/files.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/torch_file.h"

namespace shardscope::trainer::checkpoint {

namespace fs = std::filesystem;

namespace {

static_assert(std::endian::native == std::endian::little, "the files hold little-endian fp32");

constexpr std::int64_t kAlignment = 64;
// The largest piece, 16 MiB: small enough that a checksum locates damage and that readers can take in whole
// pieces.
constexpr std::int64_t kMostElements = 4 << 20;

std::int64_t align(std::int64_t offset) {
    return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

std::int64_t bytes_of(const PlannedPiece& piece) {
    return 4 * piece.owned.piece.elements;
}

bool same_state(const OwnedPiece& a, const OwnedPiece& b) {
    return a.piece.parameter == b.piece.parameter && a.piece.state == b.piece.state;
}

std::string part_name(int place) {
    return fmt::format("part-{:05}.tmp", place);
}

// The pieces of checkpoint.format = "dcp".
std::vector<OwnedPiece> boxes_of(const RunLayout& layout) {
    std::vector<OwnedPiece> boxes;
    for (const OwnedPiece& owned : owned_pieces(layout, std::numeric_limits<std::int64_t>::max())) {
        const ParameterShape shape = tensor_of(owned.piece, layout.parameters);
        for (OwnedPiece& box : as_boxes(owned, shape, kMostElements)) boxes.push_back(std::move(box));
    }
    return boxes;
}

TorchFrame frame_of(const SavePlan& plan, const PlannedPiece& piece, std::uint32_t checksum) {
    const sharding::StatePiece& state = piece.owned.piece;
    return torch_frame(box_of(state, tensor_of(state, plan.shapes)).tensor, bytes_of(piece), checksum);
}

// The file of shared_files to which a state belongs.
std::size_t shared_file(job::CheckpointFormat format, const std::string& state) {
    return format == job::CheckpointFormat::safetensors && !state.empty() ? 1 : 0;
}

// The files that all places write into, and what each begins with.
void add_shared_files(SavePlan& plan, const RunLayout& layout, job::CheckpointFormat format,
                      const std::vector<OwnedPiece>& pieces) {
    if (format == job::CheckpointFormat::full) {
        plan.files = {{"full.bin", 0}};
        return;
    }
    std::vector<std::vector<TensorEntry>> tensors(2);
    const OwnedPiece* before = nullptr;
    for (const OwnedPiece& owned : pieces) {
        if (before && same_state(*before, owned)) continue;
        before = &owned;
        const ParameterShape shape = tensor_of(owned.piece, layout.parameters);
        const std::string& state = owned.piece.state;
        tensors[shared_file(format, state)].push_back(
            {state.empty() ? shape.path : shape.path + "." + state, shape.dims()});
    }
    for (std::size_t file = 0; file < tensors.size() && !tensors[file].empty(); ++file) {
        plan.headers.push_back(safetensors_header(tensors[file]));
        plan.files.push_back(
            {file == 0 ? "model.safetensors" : "optimizer.safetensors", std::ssize(plan.headers.back())});
    }
}

}  // namespace

SavePlan plan_save(const RunLayout& layout, job::CheckpointFormat format) {
    SavePlan plan;
    plan.format = format;
    plan.shapes = layout.parameters;
    plan.shared_files = format == job::CheckpointFormat::full || format == job::CheckpointFormat::safetensors;
    const bool dcp = format == job::CheckpointFormat::dcp;
    std::vector<OwnedPiece> pieces = dcp ? boxes_of(layout) : owned_pieces(layout, kMostElements);
    if (plan.shared_files) add_shared_files(plan, layout, format, pieces);
    std::map<int, std::size_t> file_of_place;
    std::map<int, std::int64_t> part_ends;
    for (OwnedPiece& owned : pieces) {
        plan.writers.insert(owned.place);
        PlannedPiece piece{.owned = std::move(owned)};
        if (plan.shared_files) {
            piece.file = shared_file(format, piece.owned.piece.state);
        } else {
            const auto [file, is_new] = file_of_place.try_emplace(piece.owned.place, plan.files.size());
            const int place = piece.owned.place;
            if (is_new)
                plan.files.push_back({dcp ? dcp_file_name(place) : fmt::format("rank-{:05}.bin", place), 0});
            piece.file = file->second;
        }
        const bool goes_on =
            format == job::CheckpointFormat::safetensors ||  // which has no gaps
            (plan.shared_files && !plan.pieces.empty() && same_state(plan.pieces.back().owned, piece.owned));
        std::int64_t &end = plan.files[piece.file].bytes, &part_end = part_ends[piece.owned.place];
        piece.offset = goes_on ? end : align(end);
        piece.part_offset = part_end;
        if (dcp) {
            const TorchFrame frame = frame_of(plan, piece, 0);
            piece.frame = piece.offset;
            piece.offset += std::ssize(frame.before);
            piece.frame_bytes = std::ssize(frame.before) + bytes_of(piece) + std::ssize(frame.after);
        }
        end = dcp ? piece.frame + piece.frame_bytes : piece.offset + bytes_of(piece);
        part_end += bytes_of(piece);
        plan.pieces.push_back(std::move(piece));
    }
    return plan;
}

std::vector<ManifestFile> part_files(const SavePlan& plan, PartPlace where, int place) {
    std::map<std::string, std::int64_t> files;
    for (const PlannedPiece& piece : plan.pieces) {
        if (piece.owned.place != place) continue;
        const bool own = where == PartPlace::own;
        std::int64_t& bytes = files[own ? part_name(place) : plan.files[piece.file].name];
        bytes = std::max(bytes, (own ? piece.part_offset : piece.offset) + bytes_of(piece));
    }
    std::vector<ManifestFile> parts;
    parts.reserve(files.size());
    for (const auto& [name, bytes] : files) parts.push_back({name, bytes});
    return parts;
}

std::int64_t write_part(const SavePlan& plan, PartPlace where, int place, const fs::path& folder,
                        const RankMemory& memory, std::span<std::uint32_t> checksums) {
    const bool own = where == PartPlace::own;
    std::map<std::string, File> files;
    for (const ManifestFile& part : part_files(plan, where, place)) {
        const fs::path path = folder / part.name;
        files.emplace(part.name, plan.shared_files && !own ? File::open_to_write(path) : File::create(path));
    }
    std::int64_t bytes = 0;
    for (std::size_t index = 0; index < plan.pieces.size(); ++index) {
        const PlannedPiece& piece = plan.pieces[index];
        if (piece.owned.place != place) continue;
        const plan::HostView view = memory(piece.owned.piece.where);
        const std::span<const std::byte> data = view.bytes();
        if (std::ssize(data) != bytes_of(piece)) {
            throw std::logic_error(
                fmt::format("elements from {} on of parameter {}, state \"{}\": not in memory",
                            piece.owned.piece.first, piece.owned.piece.parameter, piece.owned.piece.state));
        }
        checksums[index] = crc32c(data);
        const File& file = files.at(own ? part_name(place) : plan.files[piece.file].name);
        file.write(data, own ? piece.part_offset : piece.offset);
        bytes += std::ssize(data);
        if (plan.format != job::CheckpointFormat::dcp) continue;
        const TorchFrame frame = frame_of(plan, piece, zip_checksum(data));
        file.write(std::as_bytes(std::span(frame.before)), piece.frame);
        file.write(std::as_bytes(std::span(frame.after)), piece.offset + std::ssize(data));
    }
    for (const auto& [name, file] : files) file.sync();
    return bytes;
}

void copy_parts(const SavePlan& plan, const fs::path& folder, std::span<const std::uint32_t> checksums) {
    std::map<int, File> parts;
    for (const int place : plan.writers) {
        parts.emplace(place, File::open_to_read(folder / part_name(place)));
    }
    std::vector<File> files;
    for (const ManifestFile& file : plan.files) files.push_back(File::create(folder / file.name));
    std::vector<std::byte> block;
    for (std::size_t index = 0; index < plan.pieces.size(); ++index) {
        const PlannedPiece& piece = plan.pieces[index];
        block.resize(static_cast<std::size_t>(bytes_of(piece)));
        parts.at(piece.owned.place).read(block, piece.part_offset);
        if (crc32c(block) != checksums[index]) {
            throw std::runtime_error(
                fmt::format("{}: bytes {} to {} are not those that were written; check its file system",
                            (folder / part_name(piece.owned.place)).string(), piece.part_offset,
                            piece.part_offset + bytes_of(piece)));
        }
        files[piece.file].write(block, piece.offset);
    }
    for (const File& file : files) file.sync();
    parts.clear();
    for (const int place : plan.writers) fs::remove(folder / part_name(place));
}

void write_headers(const SavePlan& plan, const fs::path& folder) {
    for (std::size_t file = 0; file < plan.headers.size(); ++file) {
        const File opened = File::open_to_write(folder / plan.files[file].name);
        opened.write(std::as_bytes(std::span(plan.headers[file])), 0);
        opened.sync();
    }
}

}  // namespace shardscope::trainer::checkpoint
