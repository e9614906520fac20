#include "trainer/checkpoint/save_plan.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "trainer/checkpoint/crc32c.h"
#include "trainer/checkpoint/files.h"

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

File open_part(const SavePlan& plan, PartPlace where, int place, const fs::path& folder) {
    const fs::path path = folder / part_file(plan, where, place).name;
    const bool shared = plan.one_file && where == PartPlace::final;
    return shared ? File::open_to_write(path) : File::create(path);
}

}  // namespace

SavePlan plan_save(const RunLayout& layout, job::CheckpointFormat format) {
    SavePlan plan;
    plan.one_file = format == job::CheckpointFormat::full;
    std::map<int, std::size_t> file_of_place;
    std::map<int, std::int64_t> part_ends;
    for (OwnedPiece& owned : owned_pieces(layout, kMostElements)) {
        plan.writers.insert(owned.place);
        const auto [file, is_new] =
            file_of_place.try_emplace(plan.one_file ? 0 : owned.place, plan.files.size());
        if (is_new) {
            plan.files.push_back(
                {plan.one_file ? "full.bin" : fmt::format("rank-{:05}.bin", owned.place), 0});
        }
        const bool goes_on =
            plan.one_file && !plan.pieces.empty() && same_state(plan.pieces.back().owned, owned);
        PlannedPiece piece{std::move(owned), file->second};
        std::int64_t &end = plan.files[file->second].bytes, &part_end = part_ends[piece.owned.place];
        piece.offset = goes_on ? end : align(end);
        piece.part_offset = part_end;
        end = piece.offset + bytes_of(piece);
        part_end += bytes_of(piece);
        plan.pieces.push_back(std::move(piece));
    }
    return plan;
}

ManifestFile part_file(const SavePlan& plan, PartPlace where, int place) {
    ManifestFile file;
    for (const PlannedPiece& piece : plan.pieces) {
        if (piece.owned.place != place) continue;
        const bool own = where == PartPlace::own;
        file.name = own ? part_name(place) : plan.files[piece.file].name;
        file.bytes = std::max(file.bytes, (own ? piece.part_offset : piece.offset) + bytes_of(piece));
    }
    return file;
}

std::int64_t write_part(const SavePlan& plan, PartPlace where, int place, const fs::path& folder,
                        const RankMemory& memory, std::span<std::uint32_t> checksums) {
    const File file = open_part(plan, where, place, folder);
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
        file.write(data, where == PartPlace::own ? piece.part_offset : piece.offset);
        bytes += std::ssize(data);
    }
    file.sync();
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

}  // namespace shardscope::trainer::checkpoint
