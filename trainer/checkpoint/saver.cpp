#include "trainer/checkpoint/saver.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

#include "trainer/checkpoint/crc32c.h"
#include "trainer/checkpoint/error.h"
#include "trainer/checkpoint/files.h"

namespace shardscope::trainer {

namespace fs = std::filesystem;

namespace {

static_assert(std::endian::native == std::endian::little, "the files hold little-endian fp32");

constexpr std::int64_t kAlignment = 64;
// Of a piece: 16 MiB, so that a checksum tells where the damage is and other readers may take in pieces
// whole.
constexpr std::int64_t kMostElements = 4 << 20;
constexpr const char* kTokenizerName = "tokenizer.txt";

std::int64_t align(std::int64_t offset) {
    return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string value_of(const std::vector<std::pair<std::string, std::string>>& job, std::string_view key) {
    const auto found =
        std::find_if(job.begin(), job.end(), [&](const auto& each) { return each.first == key; });
    return found == job.end() ? "" : found->second;
}

bool same_folder(const fs::path& a, const fs::path& b) {
    std::error_code error;
    return fs::equivalent(a, b, error) && !error;
}

// Makes the folder and tries it: a run should not learn at its first save that nothing can be written.
void prepare_folder(const fs::path& folder, const SaveSettings& settings) {
    const fs::path& from = settings.goes_on_from;
    const bool goes_on =
        !from.empty() && (same_folder(from, folder) || same_folder(from.parent_path(), folder));
    if (!settings.overwrite && !goes_on && holds_checkpoints(folder)) {
        throw CheckpointError(
            fmt::format("{}: holds checkpoints of another run; choose another folder, go on from "
                        "them (checkpoint.load), or give --overwrite",
                        folder.string()));
    }
    try {
        fs::create_directories(folder);
        remove_unfinished(folder);
        const fs::path trial = folder / ".trial.tmp";
        write_file(trial, "");
        fs::remove(trial);
    } catch (const std::system_error& error) {
        throw CheckpointError(
            fmt::format("{}: checkpoints cannot be written there: {}; choose another folder", folder.string(),
                        error.code().message()));
    }
}

}  // namespace

// A save that some ranks have brought their part to.
struct CheckpointSaver::Pending {
    std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    std::vector<std::uint32_t> checksums;  // by index in pieces_; each written by one rank
    std::size_t done = 0;                  // places that have written
    std::int64_t bytes = 0;
    std::optional<std::string> error;  // the first
};

CheckpointSaver::CheckpointSaver(const Job& job, RunLayout layout, SaveSettings settings,
                                 std::function<void(const SaveReport&)> on_saved)
    : folder_(job.checkpoint.save),
      layout_(std::move(layout)),
      settings_(std::move(settings)),
      on_saved_(std::move(on_saved)),
      samples_per_step_(samples_per_step(job)) {
    facts_.job = describe(job);
    facts_.seed = job.run.seed;
    facts_.optimizer = value_of(facts_.job, "optimizer.type");
    facts_.ranks = job.run.ranks;
    plan_files(job.checkpoint.format);
    prepare_folder(folder_, settings_);
}

CheckpointSaver::~CheckpointSaver() {
    for (const auto& [step, pending] : pending_) {
        std::error_code ignored;
        fs::remove_all(folder_ / unfinished_folder_name(step), ignored);
    }
}

// Gives every piece its place in a file. `full`: all of a parameter or state stands in one stretch.
void CheckpointSaver::plan_files(CheckpointFormat format) {
    const bool one_file = format == CheckpointFormat::full;
    std::map<int, std::size_t> file_of_place;
    std::set<int> writers;
    const OwnedPiece* before = nullptr;
    for (OwnedPiece& owned : owned_pieces(layout_, kMostElements)) {
        writers.insert(owned.place);
        const auto [file, is_new] =
            file_of_place.try_emplace(one_file ? 0 : owned.place, facts_.files.size());
        if (is_new) {
            facts_.files.push_back({one_file ? "full.bin" : fmt::format("rank-{:05}.bin", owned.place), 0});
        }
        std::int64_t& end = facts_.files[file->second].bytes;
        const bool goes_on = one_file && before != nullptr &&
                             before->piece.parameter == owned.piece.parameter &&
                             before->piece.state == owned.piece.state;
        const std::int64_t offset = goes_on ? end : align(end);
        end = offset + 4 * owned.piece.elements;
        pieces_.push_back({std::move(owned), file->second, offset});
        before = &pieces_.back().owned;
    }
    writers_ = writers.size();
    for (const ParameterShape& shape : layout_.parameters) {
        facts_.parameters.push_back({shape.path, shape.rows, shape.width, {}});
    }
}

void CheckpointSaver::save(int rank, std::int64_t steps_done, const RankMemory& memory) {
    const int place = layout_.mesh.shard_index(rank);
    const bool writes = layout_.mesh.replica(rank) == 0 &&
                        std::any_of(pieces_.begin(), pieces_.end(),
                                    [&](const PlannedPiece& piece) { return piece.owned.place == place; });
    if (!writes) return;
    Pending& pending = begin(steps_done);
    std::int64_t bytes = 0;
    std::optional<std::string> error;
    try {
        bytes = write(place, steps_done, memory, pending);
    } catch (const std::exception& thrown) {
        error = thrown.what();
    }
    {
        const std::lock_guard lock(mutex_);
        pending.bytes += bytes;
        if (error && !pending.error) pending.error = error;
        if (++pending.done < writers_) return;
    }
    complete(pending, steps_done);
}

CheckpointSaver::Pending& CheckpointSaver::begin(std::int64_t step) {
    const std::lock_guard lock(mutex_);
    const auto [entry, is_new] = pending_.try_emplace(step);
    if (!is_new) return *entry->second;
    entry->second = std::make_unique<Pending>();
    entry->second->checksums.resize(pieces_.size());
    const fs::path unfinished = folder_ / unfinished_folder_name(step);
    std::error_code error;
    fs::remove_all(unfinished, error);
    fs::create_directories(unfinished, error);
    if (error) entry->second->error = fmt::format("{}: {}", unfinished.string(), error.message());
    return *entry->second;
}

std::int64_t CheckpointSaver::write(int place, std::int64_t step, const RankMemory& memory,
                                    Pending& pending) const {
    std::optional<File> file;
    std::int64_t bytes = 0;
    for (std::size_t index = 0; index < pieces_.size(); ++index) {
        const auto& [owned, file_index, offset] = pieces_[index];
        if (owned.place != place) continue;
        if (!file) {
            file.emplace(
                File::open_to_write(folder_ / unfinished_folder_name(step) / facts_.files[file_index].name));
        }
        const HostView view = memory(owned.piece.where);
        const std::span<const std::byte> data = view.bytes();
        if (std::ssize(data) != 4 * owned.piece.elements) {
            throw std::logic_error(fmt::format("{} of {} is not in memory", owned.piece.state,
                                               layout_.parameters[owned.piece.parameter].path));
        }
        pending.checksums[index] = crc32c(data);
        file->write(data, offset);
        bytes += std::ssize(data);
    }
    file->sync();
    return bytes;
}

Manifest CheckpointSaver::manifest(const Pending& pending, std::int64_t step) const {
    Manifest manifest = facts_;
    manifest.step = step;
    manifest.samples = step * samples_per_step_ + settings_.sample_offset;
    for (std::size_t index = 0; index < pieces_.size(); ++index) {
        const auto& [owned, file, offset] = pieces_[index];
        manifest.parameters[owned.piece.parameter].pieces.push_back({owned.piece.state, owned.piece.first,
                                                                     owned.piece.elements, file, offset,
                                                                     pending.checksums[index]});
    }
    if (!settings_.tokenizer.empty()) {
        manifest.tokenizer = kTokenizerName;
        manifest.tokenizer_bytes = std::ssize(settings_.tokenizer);
        manifest.tokenizer_crc32c = crc32c(std::as_bytes(std::span(settings_.tokenizer)));
    }
    return manifest;
}

// All parts are written.
void CheckpointSaver::complete(Pending& pending, std::int64_t step) {
    const fs::path unfinished = folder_ / unfinished_folder_name(step);
    if (!pending.error) {
        try {
            if (!settings_.tokenizer.empty()) write_file(unfinished / kTokenizerName, settings_.tokenizer);
            write_file(unfinished / kManifestName, to_text(manifest(pending, step)));
            publish_step(folder_, step);
        } catch (const std::exception& error) {
            pending.error = error.what();
        }
    }
    SaveReport report{step, (folder_ / step_folder_name(step)).string(), pending.bytes,
                      seconds_since(pending.start), ""};
    if (pending.error) {
        report.error = fmt::format("the checkpoint of step {} could not be saved: {}", step, *pending.error);
        std::error_code ignored;
        fs::remove_all(unfinished, ignored);
    }
    {
        const std::lock_guard lock(mutex_);
        failed_ = failed_ || pending.error.has_value();
        pending_.erase(step);
    }
    if (on_saved_) on_saved_(report);
}

bool CheckpointSaver::failed() const {
    const std::lock_guard lock(mutex_);
    return failed_;
}

}  // namespace shardscope::trainer
