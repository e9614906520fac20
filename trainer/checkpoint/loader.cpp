#include "trainer/checkpoint/loader.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "trainer/checkpoint/crc32c.h"
#include "trainer/checkpoint/error.h"
#include "trainer/checkpoint/foreign.h"
#include "trainer/checkpoint/strided_read.h"

namespace shardscope::trainer::checkpoint {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20;  // bytes that are checked at a time
constexpr const char* kWhatToDo = "load another checkpoint";

[[noreturn]] void fail(const fs::path& path, const std::string& what) {
    throw CheckpointError(fmt::format("{}: {}; {}", path.string(), what, kWhatToDo));
}

[[noreturn]] void fail_to_read(const fs::path& path, const std::system_error& error) {
    fail(path, "cannot be read: " + error.code().message());
}

std::string read_whole(const fs::path& path) {
    try {
        return read_file(path);
    } catch (const std::system_error& error) {
        fail_to_read(path, error);
    }
}

std::string name_of(const std::string& state, const std::string& path) {
    return state.empty() ? path : fmt::format("{} of {}", state, path);
}

// Names the first key of the model that differs from the run that saved: this is what the user most likely
// needs to know.
std::string model_hint(const Manifest& manifest, const job::Job& job) {
    const std::map<std::string, std::string> stored(manifest.job.begin(), manifest.job.end());
    for (const auto& [key, value] : describe(job)) {
        if (!key.starts_with("model.")) continue;
        const auto found = stored.find(key);
        if (found != stored.end() && found->second != value) {
            return fmt::format("it was saved with {} = {}, the job has {}; set it so", key, found->second,
                               value);
        }
    }
    return "set the model's keys as in the run that saved it";
}

}  // namespace

StoredCheckpoint::StoredCheckpoint(const std::string& path)
    : folder_(find_checkpoint(path)), manifest_path_(folder_ / kManifestName) {
    if (is_foreign(folder_)) {
        foreign_ = read_foreign(folder_);
        manifest_path_ = foreign_->index;
        manifest_ = foreign_->manifest;
    } else {
        manifest_ = parse_manifest(read_whole(manifest_path_), manifest_path_.string());
    }
    for (std::size_t index = 0; index < manifest_.files.size(); ++index) {
        try {
            const std::int64_t bytes = files_.add(file_path(index));
            if (bytes != manifest_.files[index].bytes) {
                fail(file_path(index),
                     fmt::format("has {} bytes, {} were saved: it is cut off or was changed", bytes,
                                 manifest_.files[index].bytes));
            }
        } catch (const std::system_error& error) {
            fail_to_read(file_path(index), error);
        }
    }
    if (manifest_.tokenizer.empty()) return;
    const fs::path vocabulary = folder_ / manifest_.tokenizer;
    tokenizer_ = read_whole(vocabulary);
    if (std::ssize(tokenizer_) != manifest_.tokenizer_bytes ||
        crc32c(std::as_bytes(std::span(tokenizer_))) != manifest_.tokenizer_crc32c) {
        fail(vocabulary, "is damaged: it is not the vocabulary that was saved");
    }
}

CheckpointLoader::CheckpointLoader(const StoredCheckpoint& stored, const job::Job& job, RunLayout layout,
                                   LoadUse use, std::optional<int> only_rank)
    : stored_(stored), layout_(std::move(layout)), use_(use) {
    if (!stored.foreign())
        sample_offset_ = stored.manifest().samples - stored.manifest().step * job.samples_per_step();
    check_parameters(job);
    if (use_ == LoadUse::training) check_optimizer(job);
    check_values(only_rank);
}

void CheckpointLoader::refuse(const std::string& what) const {
    throw CheckpointError(fmt::format("{}: {}", stored_.manifest_path().string(), what));
}

void CheckpointLoader::check_parameters(const job::Job& job) {
    if (stored_.foreign()) {
        bound_ = bind(*stored_.foreign(), layout_, job.model.type);
        for (const ManifestParameter& parameter : bound_.parameters) {
            check_whole(parameter, "", parameter.elements());
            parameters_.push_back(&parameter);
        }
        return;
    }
    std::map<std::string_view, const ManifestParameter*> by_path;
    for (const ManifestParameter& parameter : stored_.manifest().parameters) {
        by_path.emplace(parameter.path, &parameter);
    }
    for (const ParameterShape& shape : layout_.parameters) {
        const auto found = by_path.find(shape.path);
        if (found == by_path.end()) {
            refuse(fmt::format("{} of the job's model is not in it; {}", shape.path,
                               model_hint(stored_.manifest(), job)));
        }
        const ManifestParameter& parameter = *found->second;
        if (parameter.rows != shape.rows || parameter.width != shape.width) {
            refuse(fmt::format("{} is {} x {} there and {} x {} in the job's model; {}", shape.path,
                               parameter.rows, parameter.width, shape.rows, shape.width,
                               model_hint(stored_.manifest(), job)));
        }
        check_whole(parameter, "", parameter.elements());
        parameters_.push_back(&parameter);
        by_path.erase(found);
    }
    if (!by_path.empty()) {
        refuse(fmt::format("it has {}, which the job's model does not have; {}", by_path.begin()->first,
                           model_hint(stored_.manifest(), job)));
    }
}

// Checks that all elements are stored; parse_manifest() has checked that none is stored twice.
void CheckpointLoader::check_whole(const ManifestParameter& parameter, const std::string& state,
                                   std::int64_t elements) const {
    std::int64_t next = 0;
    for (const ManifestPiece& piece : pieces_within(parameter, state, 0, elements)) {
        if (piece.first != next) break;
        next += piece.elements;
    }
    if (next != elements) {
        fail(stored_.manifest_path(),
             fmt::format("element {} of {} is not stored", next, name_of(state, parameter.path)));
    }
}

void CheckpointLoader::check_optimizer(const job::Job& job) const {
    const Manifest& manifest = stored_.manifest();
    std::string type;
    for (const auto& [key, value] : describe(job)) {
        if (key == "optimizer.type") type = value;
    }
    if (!manifest.optimizer.empty() && manifest.optimizer != type) {
        refuse(
            fmt::format("its optimizer is {}, the job's is {}: neither can use the state of the other; set "
                        "optimizer.type = \"{}\"",
                        manifest.optimizer, type, manifest.optimizer));
    }
    constexpr const char* kAsSaved = "set the optimizer's keys as in the run that saved it";
    std::set<std::string> wanted_states, stored_states;
    for (const std::vector<sharding::StatePiece>& place : layout_.places) {
        for (const sharding::StatePiece& piece : place) wanted_states.insert(piece.state);
    }
    for (const ManifestParameter* parameter : parameters_) {
        for (const ManifestPiece& piece : parameter->pieces) stored_states.insert(piece.state);
    }
    for (const std::string& state : wanted_states) {
        if (!stored_states.contains(state)) {
            refuse(fmt::format("the job's optimizer needs {}, which is not in it; {}", state, kAsSaved));
        }
    }
    for (const std::string& state : stored_states) {
        if (!wanted_states.contains(state)) {
            refuse(fmt::format("it has {}, which the job's optimizer does not keep; {}", state, kAsSaved));
        }
    }
    std::set<std::pair<int, std::string>> checked;
    for (const std::vector<sharding::StatePiece>& place : layout_.places) {
        for (const sharding::StatePiece& piece : place) {
            if (!checked.emplace(piece.parameter, piece.state).second) continue;
            const ManifestParameter& parameter = *parameters_[static_cast<std::size_t>(piece.parameter)];
            check_whole(parameter, piece.state, piece.one_number ? 1 : parameter.elements());
        }
    }
}

// The stored pieces that contain some of what the rank holds.
std::set<const ManifestPiece*> CheckpointLoader::pieces_of(int rank) const {
    std::set<const ManifestPiece*> needed;
    for (const sharding::StatePiece& held :
         layout_.places[static_cast<std::size_t>(layout_.place_of(rank))]) {
        const ManifestParameter& parameter = *parameters_[static_cast<std::size_t>(held.parameter)];
        for (const ManifestPiece& piece : pieces_within(parameter, held.state, held.first, held.elements)) {
            needed.insert(&piece);
        }
    }
    return needed;
}

void CheckpointLoader::check_values(std::optional<int> only_rank) const {
    std::set<const ManifestPiece*> needed;
    if (only_rank) needed = pieces_of(*only_rank);
    for (const ManifestParameter* parameter : parameters_) {
        for (const ManifestPiece& piece : parameter->pieces) {
            if (piece.crc32c && wanted(piece.state) && (!only_rank || needed.contains(&piece)))
                check(piece, *parameter);
        }
    }
}

void CheckpointLoader::check(const ManifestPiece& piece, const ManifestParameter& parameter) const {
    const std::int64_t end = piece.offset + 4 * piece.elements;
    std::vector<std::byte> block(std::min(kBlock, static_cast<std::size_t>(end - piece.offset)));
    std::uint32_t checksum = 0;
    try {
        for (std::int64_t at = piece.offset; at < end;) {
            const auto length = static_cast<std::size_t>(std::min<std::int64_t>(kBlock, end - at));
            const std::span<std::byte> bytes(block.data(), length);
            stored_.file(piece.file)->read(bytes, at);
            checksum = crc32c(bytes, checksum);
            at += static_cast<std::int64_t>(length);
        }
    } catch (const std::system_error& error) {
        fail_to_read(stored_.file_path(piece.file), error);
    }
    if (checksum != piece.crc32c) {
        fail(stored_.file_path(piece.file),
             fmt::format("is damaged: bytes {} to {}, which hold {}, do not match their checksum",
                         piece.offset, end, name_of(piece.state, parameter.path)));
    }
}

void CheckpointLoader::fill(int rank, const RankMemory& memory) const {
    const std::span<const sharding::StatePiece> held =
        layout_.places[static_cast<std::size_t>(layout_.place_of(rank))];
    for (auto first = held.begin(); first != held.end();) {
        const auto end = std::find_if(first, held.end(), [&](const sharding::StatePiece& piece) {
            return piece.parameter != first->parameter || piece.state != first->state;
        });
        if (wanted(first->state)) read({first, end}, memory);
        first = end;
    }
}

// The pieces of one parameter or state, so that what lies apart in a file is read once for all of them.
void CheckpointLoader::read(std::span<const sharding::StatePiece> pieces, const RankMemory& memory) const {
    std::vector<plan::HostView> views;
    std::map<std::size_t, std::vector<StridedRun>> apart;  // by file
    for (const sharding::StatePiece& piece : pieces) {
        if (piece.elements > 0) read(piece, views.emplace_back(memory(piece.where)).bytes(), apart);
    }
    for (const auto& [file, runs] : apart) {
        try {
            read_strided(*stored_.file(file), runs);
        } catch (const std::system_error& error) {
            fail_to_read(stored_.file_path(file), error);
        }
    }
    for (plan::HostView& view : views) view.commit();
}

void CheckpointLoader::read(const sharding::StatePiece& piece, std::span<std::byte> to,
                            std::map<std::size_t, std::vector<StridedRun>>& apart) const {
    const ManifestParameter& parameter = *parameters_[static_cast<std::size_t>(piece.parameter)];
    if (std::ssize(to) != 4 * piece.elements) {
        throw std::logic_error(
            fmt::format("there is no memory for {}", name_of(piece.state, parameter.path)));
    }
    const std::int64_t end = piece.first + piece.elements;
    for (const ManifestPiece& stored : pieces_within(parameter, piece.state, piece.first, piece.elements)) {
        const std::int64_t first = std::max(piece.first, stored.first);
        const std::int64_t last = std::min(end, stored.first + stored.elements);
        for (const EvenRun& run : runs_of(stored, first, last)) {
            const std::span<std::byte> part =
                to.subspan(static_cast<std::size_t>(4 * (run.first - piece.first)),
                           static_cast<std::size_t>(4 * run.elements));
            const std::int64_t at = stored.offset + run.offset * size_of(stored.type);
            if (stored.type != ElementType::fp32 || !stored.order.empty()) {
                apart[stored.file].push_back({at, run.stride, stored.type, part});
                continue;
            }
            try {
                stored_.file(stored.file)->read(part, at);
            } catch (const std::system_error& error) {
                fail_to_read(stored_.file_path(stored.file), error);
            }
        }
    }
}

}  // namespace shardscope::trainer::checkpoint
