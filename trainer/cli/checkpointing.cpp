#include "trainer/cli/checkpointing.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "trainer/checkpoint/crc32c.h"
#include "trainer/checkpoint/error.h"
#include "trainer/checkpoint/files.h"
#include "trainer/checkpoint/run_layout.h"
#include "trainer/data/bpe.h"
#include "trainer/executor/rank_runner.h"

namespace shardscope::trainer::cli {

namespace {

checkpoint::RankMemory memory_of(executor::RankRunner& runner) {
    return [&runner](const plan::Arg& arg) { return runner.contents(arg); };
}

}  // namespace

void Checkpointing::open() {
    const std::string& from = starts_new() ? job_.checkpoint.initial_load : job_.checkpoint.load;
    if (from.empty()) return;
    std::string folder;
    together(joined_, [&] {
        if (first()) folder = checkpoint::find_checkpoint(from).string();
    });
    // Another host may find a different latest checkpoint, and new ones may appear: rank 0 decides.
    if (joined_) folder = joined_->world().broadcast(folder);
    together(joined_, [&] { open(folder); });
    if (joined_) compare_manifests();
}

// Hosts may read their own copies of a checkpoint; all must be copies of the same one.
void Checkpointing::compare_manifests() {
    const world::World& world = joined_->world();
    const std::string text = stored_->text();
    const std::vector<std::string> sums =
        joined_->world().gather(fmt::format("{:08x}", checkpoint::crc32c(std::as_bytes(std::span(text)))));
    together(joined_, [&] {
        const auto other = std::find_if(sums.begin(), sums.end(),
                                        [&](const std::string& sum) { return sum != sums.front(); });
        if (other == sums.end()) return;
        const std::ptrdiff_t rank = other - sums.begin();
        throw checkpoint::CheckpointError(fmt::format(
            "{}: rank {} on {} sees another checkpoint here than rank 0 on {}; checkpoint.load must name "
            "the same checkpoint on all hosts",
            stored_->manifest_path().string(), rank, world.members()[static_cast<std::size_t>(rank)].host,
            world.members().front().host));
    });
}

void Checkpointing::open(const std::string& folder) {
    stored_ = std::make_unique<checkpoint::StoredCheckpoint>(folder);
    if (!stored_->tokenizer().empty()) {
        const std::string file = (stored_->folder() / stored_->manifest().tokenizer).string();
        tokenizer_ = std::make_shared<data::BpeTokenizer>(data::bpe_from_text(stored_->tokenizer(), file));
    }
    if (starts_new()) return;
    if (stored_->manifest().step < 0) {
        throw checkpoint::CheckpointError(
            fmt::format("{}: does not say how many steps were done, so training cannot continue from it; "
                        "start with its parameters (checkpoint.initial_load)",
                        stored_->manifest_path().string()));
    }
    if (job_.train.epochs == 0 && first_step() >= job_.run.steps) {
        throw job::JobError(fmt::format(
            "{}run.steps: the checkpoint {} is after step {} already; set run.steps above it to continue",
            where(job_, "run.steps"), stored_->folder().string(), first_step()));
    }
}

data::Position Checkpointing::start() const {
    if (!stored_ || starts_new()) return {};
    const checkpoint::Manifest& manifest = stored_->manifest();
    // The samples of another library's run are unknown.
    return {manifest.step, stored_->foreign() ? manifest.step * job_.samples_per_step() : manifest.samples};
}

void Checkpointing::prepare(const sharding::Program& program, const data::Tokenizer* used,
                            std::function<void(const checkpoint::SaveReport&)> on_saved) {
    program_ = &program;
    together(joined_, [&] {
        if (stored_)
            loader_ = loader_of(*stored_,
                                starts_new() ? checkpoint::LoadUse::weights : checkpoint::LoadUse::training);
    });
    if (job_.checkpoint.save.empty()) return;
    checkpoint::SaveSettings settings;
    settings.overwrite = job_.run.overwrite;
    if (stored_ && !starts_new()) settings.goes_on_from = stored_->folder();
    if (loader_ && !starts_new()) settings.sample_offset = loader_->sample_offset();
    if (const auto* bpe = dynamic_cast<const data::BpeTokenizer*>(used)) settings.tokenizer = to_text(*bpe);
    if (job_.precision.scales_loss()) {
        settings.loss_scale = [this] {
            const std::lock_guard lock(mutex_);
            return loss_scale_;
        };
    }
    if (joined_) {
        settings.world = &joined_->world();
        settings.several_hosts = joined_->world().hosts() > 1;
    }
    auto saved = [this, tell = std::move(on_saved)](checkpoint::SaveReport report) {
        try {
            if (keeper_ && report.error.empty()) keeper_->saved(report.step);
        } catch (const std::exception& error) {
            report.error = fmt::format("{} is saved, but an earlier checkpoint could not be removed: {}",
                                       report.folder, error.what());
        }
        tell(report);
    };
    together(joined_, [&] {
        std::error_code error;
        const bool continues = stored_ && std::filesystem::equivalent(stored_->folder().parent_path(),
                                                                      job_.checkpoint.save, error);
        if (first() && !job_.checkpoint.keep.all())
            keeper_.emplace(job_.checkpoint.save, job_.checkpoint.keep, continues);
        saver_ = std::make_unique<checkpoint::CheckpointSaver>(job_, checkpoint::layout_of(program),
                                                               std::move(settings), std::move(saved));
    });
}

std::unique_ptr<checkpoint::CheckpointLoader> Checkpointing::loader_of(
    const checkpoint::StoredCheckpoint& stored, checkpoint::LoadUse use) const {
    return std::make_unique<checkpoint::CheckpointLoader>(
        stored, job_, checkpoint::layout_of(*program_), use,
        joined_ ? std::optional(joined_->world().rank()) : std::nullopt);
}

data::Position Checkpointing::load_best(int rank, data::Position done, executor::RankRunner& runner) {
    std::string folder = best();
    if (joined_) folder = joined_->world().broadcast(folder);  // only rank 0's process keeps checkpoints
    if (folder.empty()) return done;
    {
        const std::lock_guard lock(mutex_);
        if (!best_) best_ = std::make_unique<checkpoint::StoredCheckpoint>(folder);
        if (best_->manifest().step == done.steps) return done;
        if (!best_loader_) best_loader_ = loader_of(*best_, checkpoint::LoadUse::weights);
    }
    best_loader_->fill(rank, memory_of(runner));
    return {best_->manifest().step, best_->manifest().samples};
}

std::string Checkpointing::best() const {
    if (!keeper_ || !keeper_->best()) return "";
    return (std::filesystem::path(job_.checkpoint.save) / checkpoint::step_folder_name(*keeper_->best()))
        .string();
}

void Checkpointing::attach(executor::RunOptions& options) {
    if (loader_ && !starts_new()) {
        options.first_step = first_step();
        options.first_sample = start().samples;
    }
    if (loader_) {
        options.hooks.after_setup = [this](int rank, executor::RankRunner& runner) {
            loader_->fill(rank, memory_of(runner));
            const auto& loss = stored_->manifest().loss_scale;
            if (!starts_new() && loss && runner.loss_scaler())
                runner.loss_scaler()->go_on_from({loss->scale, loss->clean, loss->skipped, loss->hysteresis});
        };
    }
    if (job_.checkpoint.keep.best) {
        options.hooks.before_test = [this](int rank, data::Position done, executor::RankRunner& runner) {
            return load_best(rank, done, runner);
        };
    }
    if (saver_) {
        options.hooks.at_step_end = [this](int rank, std::int64_t steps_done, executor::RankRunner& runner) {
            if (runner.loss_scaler()) {  // the same on every rank
                const std::lock_guard lock(mutex_);
                const executor::LossScale& loss = runner.loss_scaler()->state();
                loss_scale_ = {loss.scale, loss.clean, loss.skipped, loss.hysteresis};
            }
            saver_->save(rank, steps_done, memory_of(runner));
        };
    }
}

}  // namespace shardscope::trainer::cli
