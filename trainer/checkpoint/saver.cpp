#include "trainer/checkpoint/saver.h"

#include <algorithm>
#include <span>
#include <system_error>

#include <fmt/core.h>

#include "trainer/checkpoint/crc32c.h"
#include "trainer/checkpoint/dcp_write.h"
#include "trainer/checkpoint/save_folder.h"

namespace shardscope::trainer::checkpoint {

namespace fs = std::filesystem;

namespace {

constexpr const char* kTokenizerName = "tokenizer.txt";

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string value_of(const std::vector<std::pair<std::string, std::string>>& job, std::string_view key) {
    const auto found =
        std::find_if(job.begin(), job.end(), [&](const auto& each) { return each.first == key; });
    return found == job.end() ? "" : found->second;
}

std::optional<File> take_folder(const fs::path& path, const SaveSettings& settings) {
    const SaveFolder folder{path, settings.overwrite, settings.goes_on_from};
    return settings.world ? make_ready(folder, *settings.world) : make_ready(folder);
}

}  // namespace

CheckpointSaver::CheckpointSaver(const job::Job& job, RunLayout layout, SaveSettings settings,
                                 std::function<void(const SaveReport&)> on_saved)
    : folder_(job.checkpoint.save),
      layout_(std::move(layout)),
      settings_(std::move(settings)),
      on_saved_(std::move(on_saved)),
      plan_(plan_save(layout_, job)),
      part_place_(plan_.reorders || (plan_.shared_files && settings_.several_hosts) ? PartPlace::own
                                                                                    : PartPlace::final),
      lock_(take_folder(folder_, settings_)),
      samples_per_step_(job.samples_per_step()),
      optimizer_(job.optimizer),
      accumulation_(job.train.accumulation) {
    facts_.job = describe(job);
    facts_.seed = job.run.seed;
    facts_.optimizer = value_of(facts_.job, "optimizer.type");
    facts_.ranks = job.run.ranks;
    facts_.files = plan_.files;
    for (const ParameterShape& shape : layout_.parameters) {
        facts_.parameters.push_back({shape.path, shape.rows, shape.width, {}});
    }
}

CheckpointSaver::~CheckpointSaver() {
    for (const auto& [step, pending] : pending_) {
        std::error_code ignored;
        fs::remove_all(unfinished(step), ignored);
    }
}

fs::path CheckpointSaver::unfinished(std::int64_t step) const {
    return folder_ / unfinished_folder_name(step);
}

void CheckpointSaver::save(int rank, std::int64_t steps_done, const RankMemory& memory) {
    if (settings_.world) return save_together(steps_done, memory);
    const int place = layout_.place_of(rank);
    if (layout_.rank_at(place) != rank || !plan_.writers.contains(place)) return;
    Pending& pending = begin(steps_done);
    std::int64_t bytes = 0;
    std::optional<std::string> error;
    try {
        bytes = write_part(plan_, part_place_, place, unfinished(steps_done), memory, pending.checksums);
    } catch (const std::exception& thrown) {
        error = thrown.what();
    }
    {
        const std::lock_guard lock(mutex_);
        pending.bytes += bytes;
        if (error && !pending.error) pending.error = error;
        if (++pending.done < plan_.writers.size()) return;
    }
    complete(pending, steps_done);
}

CheckpointSaver::Pending& CheckpointSaver::begin(std::int64_t step) {
    const std::lock_guard lock(mutex_);
    const auto [entry, is_new] = pending_.try_emplace(step);
    if (!is_new) return *entry->second;
    entry->second = std::make_unique<Pending>(plan_.pieces.size());
    make_unfinished(step, *entry->second);
    return *entry->second;
}

void CheckpointSaver::make_unfinished(std::int64_t step, Pending& pending) const {
    const fs::path folder = unfinished(step);
    std::error_code error;
    fs::remove_all(folder, error);
    if (!error) fs::create_directories(folder, error);
    if (error) pending.error = fmt::format("{}: {}", folder.string(), error.message());
}

Manifest CheckpointSaver::manifest(const Pending& pending, std::int64_t step) const {
    Manifest manifest = facts_;
    manifest.step = step;
    manifest.samples = step * samples_per_step_ + settings_.sample_offset;
    if (settings_.loss_scale) manifest.loss_scale = settings_.loss_scale();
    for (std::size_t index = 0; index < plan_.pieces.size(); ++index) {
        const PlannedPiece& planned = plan_.pieces[index];
        if (planned.reordered) continue;
        const sharding::StatePiece& piece = planned.owned.piece;
        manifest.parameters[static_cast<std::size_t>(piece.parameter)].pieces.push_back(
            {piece.state, piece.first, piece.elements, planned.file, planned.offset,
             pending.checksums[index]});
    }
    for (std::size_t index = 0; index < plan_.boxes.size(); ++index) {
        const PlannedBox& box = plan_.boxes[index];
        if (box.order.empty()) continue;
        const sharding::StatePiece& first = plan_.pieces[box.first_piece].owned.piece;
        manifest.parameters[static_cast<std::size_t>(first.parameter)].pieces.push_back(
            {first.state, first.first, box.elements, box.file, box.offset, pending.of_boxes.at(index),
             ElementType::fp32, box.order});
    }
    if (!settings_.tokenizer.empty()) {
        manifest.tokenizer = kTokenizerName;
        manifest.tokenizer_bytes = std::ssize(settings_.tokenizer);
        manifest.tokenizer_crc32c = crc32c(std::as_bytes(std::span(settings_.tokenizer)));
    }
    return manifest;
}

// Called when all parts are written.
void CheckpointSaver::complete(Pending& pending, std::int64_t step) {
    const fs::path folder = unfinished(step);
    if (!pending.error) {
        try {
            if (part_place_ == PartPlace::own)
                pending.of_boxes = copy_parts(plan_, folder, pending.checksums);
            write_headers(plan_, folder);
            const Manifest all = manifest(pending, step);
            if (plan_.format == job::CheckpointFormat::dcp) {
                const std::int64_t skipped = all.loss_scale ? all.loss_scale->skipped : 0;
                write_dcp_index(plan_, optimizer_, folder, {step, step - skipped, accumulation_});
            }
            if (!settings_.tokenizer.empty()) write_file(folder / kTokenizerName, settings_.tokenizer);
            write_file(folder / kManifestName, to_text(all));
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
        fs::remove_all(folder, ignored);
    }
    {
        const std::lock_guard lock(mutex_);
        failed_ = failed_ || pending.error.has_value();
        pending_.erase(step);  // destroys `pending`, which this map owns
    }
    if (on_saved_) on_saved_(report);
}

bool CheckpointSaver::failed() const {
    const std::lock_guard lock(mutex_);
    return failed_;
}

}  // namespace shardscope::trainer::checkpoint
