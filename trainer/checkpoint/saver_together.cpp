// A save if ranks are processes. Every process makes the same calls of the World even if one of them fails,
// so that all continue training; only the end of the job (WorldError) is thrown.
#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/core.h>

#include "trainer/checkpoint/files.h"
#include "trainer/checkpoint/save_folder.h"
#include "trainer/checkpoint/saver.h"
#include "trainer/world/message.h"
#include "trainer/world/world.h"

namespace shardscope::trainer::checkpoint {

namespace fs = std::filesystem;

// What a process reports to rank 0 about its part.
struct CheckpointSaver::Part {
    std::string error;  // why the part is not written; empty: it is on the disk
    std::int64_t bytes = 0;
    std::vector<std::uint32_t> checksums;  // checksums of its own pieces, in the plan's order

    std::string text() const {
        return world::MessageWriter().add(error).add(bytes).add_all(checksums).take();
    }
    static Part read(std::string_view text) {
        world::MessageReader reader(text);
        Part part;
        part.error = reader.text();
        part.bytes = reader.number<std::int64_t>();
        part.checksums = reader.numbers<std::uint32_t>();
        return part;
    }
};

void CheckpointSaver::save_together(std::int64_t step, const RankMemory& memory) {
    world::World& world = *settings_.world;
    const bool first = world.rank() == 0;
    Pending pending(plan_.pieces.size());
    if (first) make_unfinished(step, pending);
    const bool made = world.broadcast(pending.error.value_or("")).empty();
    if (made) {
        const std::vector<std::string> parts = world.gather(write_own_part(step, memory).text());
        if (first) take_parts(parts, step, pending);
    }
    if (first) complete(pending, step);
    const bool saved = world.broadcast(pending.error.value_or("")).empty();
    const std::lock_guard lock(mutex_);
    failed_ = failed_ || !saved;
}

CheckpointSaver::Part CheckpointSaver::write_own_part(std::int64_t step, const RankMemory& memory) const {
    const int rank = settings_.world->rank(), place = layout_.place_of(rank);
    Part part;
    if (layout_.rank_at(place) != rank || !plan_.writers.contains(place)) return part;
    try {
        std::vector<std::uint32_t> checksums(plan_.pieces.size());
        part.bytes = write_part(plan_, part_place_, place, unfinished(step), memory, checksums);
        for (std::size_t index = 0; index < checksums.size(); ++index) {
            if (plan_.pieces[index].owned.place == place) part.checksums.push_back(checksums[index]);
        }
    } catch (const std::exception& error) {
        part.error = error.what();
    }
    return part;
}

// Called on rank 0.
void CheckpointSaver::take_parts(const std::vector<std::string>& texts, std::int64_t step,
                                 Pending& pending) const {
    try {
        std::vector<Part> parts;
        parts.reserve(texts.size());
        for (const std::string& text : texts) parts.push_back(Part::read(text));
        for (std::size_t rank = 0; rank < parts.size(); ++rank) {
            if (parts[rank].error.empty()) continue;
            throw std::runtime_error(fmt::format(
                "{}: {}", process_name(*settings_.world, static_cast<int>(rank)), parts[rank].error));
        }
        std::vector<std::size_t> taken(parts.size());
        for (std::size_t index = 0; index < plan_.pieces.size(); ++index) {
            const auto rank = static_cast<std::size_t>(layout_.rank_at(plan_.pieces[index].owned.place));
            pending.checksums[index] = parts[rank].checksums.at(taken[rank]++);
        }
        for (const Part& part : parts) pending.bytes += part.bytes;
        check_files(step);
    } catch (const std::exception& error) {
        pending.error = error.what();
    }
}

// Checks that this process sees what every process has written.
void CheckpointSaver::check_files(std::int64_t step) const {
    const world::World& world = *settings_.world;
    for (const int place : plan_.writers) {
        for (const ManifestFile& file : part_files(plan_, part_place_, place)) {
            const fs::path path = unfinished(step) / file.name;
            std::string seen;
            try {
                const std::int64_t bytes = File::open_to_read(path).bytes();
                if (bytes >= file.bytes) continue;
                seen = std::to_string(bytes);
            } catch (const std::system_error& error) {
                if (error.code() != std::errc::no_such_file_or_directory) throw;
                seen = "none";
            }
            throw std::runtime_error(fmt::format(
                "{}: {} sees {} of the {} bytes that {} has written; checkpoint.save must be on a file "
                "system that all hosts share, at the same path for all of them",
                path.string(), process_name(world, 0), seen, file.bytes,
                process_name(world, layout_.rank_at(place))));
        }
    }
}

}  // namespace shardscope::trainer::checkpoint
