#include "trainer/cli/checkpointing.h"

#include <utility>

#include <fmt/format.h>

#include "trainer/checkpoint/run_layout.h"
#include "trainer/data/bpe.h"
#include "trainer/executor/rank_runner.h"

namespace shardscope::trainer {

namespace {

RankMemory memory_of(RankRunner& runner) {
    return [&runner](const Arg& arg) { return runner.contents(arg); };
}

}  // namespace

Checkpointing::Checkpointing(const Job& job) : job_(job) {
    if (job.checkpoint.load.empty()) return;
    stored_ = std::make_unique<StoredCheckpoint>(job.checkpoint.load);
    if (!stored_->tokenizer().empty()) {
        const std::string file = (stored_->folder() / stored_->manifest().tokenizer).string();
        tokenizer_ = std::make_shared<BpeTokenizer>(bpe_from_text(stored_->tokenizer(), file));
    }
    if (first_step() >= job.run.steps) {
        throw JobError(
            fmt::format("{}run.steps: the checkpoint {} stands after step {} already; set run.steps above "
                        "it to go on",
                        where(job, "run.steps"), stored_->folder().string(), first_step()));
    }
}

void Checkpointing::prepare(const Program& program, const Tokenizer* used,
                            std::function<void(const SaveReport&)> on_saved) {
    if (stored_)
        loader_ = std::make_unique<CheckpointLoader>(*stored_, job_, layout_of(program), LoadUse::training);
    if (job_.checkpoint.save.empty()) return;
    SaveSettings settings;
    settings.overwrite = job_.run.overwrite;
    if (stored_) settings.goes_on_from = stored_->folder();
    if (loader_) settings.sample_offset = loader_->sample_offset();
    if (const auto* bpe = dynamic_cast<const BpeTokenizer*>(used)) settings.tokenizer = to_text(*bpe);
    saver_ =
        std::make_unique<CheckpointSaver>(job_, layout_of(program), std::move(settings), std::move(on_saved));
}

void Checkpointing::attach(RunOptions& options) {
    if (loader_) {
        options.first_step = first_step();
        options.first_sample = first_step() * samples_per_step(job_) + loader_->sample_offset();
        options.hooks.after_setup = [this](int rank, RankRunner& runner) {
            loader_->fill(rank, memory_of(runner));
        };
    }
    if (saver_) {
        options.hooks.at_step_end = [this](int rank, std::int64_t steps_done, RankRunner& runner) {
            saver_->save(rank, steps_done, memory_of(runner));
        };
    }
}

}  // namespace shardscope::trainer
