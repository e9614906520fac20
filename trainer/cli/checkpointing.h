// Checkpoints of one training run: the one that it continues from and those that it saves, as hooks of the
// executor. If ranks are processes, all open the same checkpoint, each checks and reads its rank's part, and
// an error in one is an error in all.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "trainer/checkpoint/keep.h"
#include "trainer/checkpoint/loader.h"
#include "trainer/checkpoint/saver.h"
#include "trainer/cli/join.h"
#include "trainer/data/epochs.h"
#include "trainer/data/tokenizer.h"
#include "trainer/executor/run.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::cli {

class Checkpointing {
  public:
    // `joined`: the job's processes, one rank each; null: this process runs all ranks.
    Checkpointing(const job::Job& job, Joined* joined) : job_(job), joined_(joined) {}

    // Opens checkpoint.load or checkpoint.initial_load if the job names one. CheckpointError: it cannot be
    // used. JobError: no step is left to train. Collective, like prepare().
    void open();

    // The vocabulary that the stored run was trained with; null: bytes, no text, or nothing loaded.
    std::shared_ptr<const data::Tokenizer> tokenizer() const { return tokenizer_; }

    // Checks the stored values against the program and prepares checkpoint.save. `used` is the run's
    // vocabulary (null or bytes: none is saved); `on_saved` is called for every checkpoint, on a rank's
    // thread (rank 0's if ranks are processes). CheckpointError: as above, or nothing can be saved.
    void prepare(const sharding::Program& program, const data::Tokenizer* used,
                 std::function<void(const checkpoint::SaveReport&)> on_saved);

    // Sets the hooks, the first step and the first sample.
    void attach(executor::RunOptions& options);
    // A validation loss, before the checkpoint of its step: checkpoint.keep may go by it.
    void validated(const executor::ValidationReport& report) {
        if (keeper_) keeper_->validated(report.step + 1, report.loss);
    }
    // The folder of the checkpoint with the lowest validation loss; empty: checkpoint.keep is not "best".
    std::string best() const;

    std::int64_t first_step() const { return start().steps; }
    // Where training begins: after a resume not at 0.
    data::Position start() const;

    // Tensors of checkpoint.initial_load that the job's model lacks, after prepare().
    std::vector<std::string> unused() const {
        return loader_ ? loader_->unused() : std::vector<std::string>{};
    }
    bool saves() const { return saver_ != nullptr; }
    bool failed() const { return saver_ && saver_->failed(); }

  private:
    // Whether only parameters are loaded, into a run that begins.
    bool starts_new() const { return !job_.checkpoint.initial_load.empty(); }
    bool first() const { return !joined_ || joined_->world().rank() == 0; }
    void open(const std::string& folder);
    void compare_manifests();
    std::unique_ptr<checkpoint::CheckpointLoader> loader_of(const checkpoint::StoredCheckpoint& stored,
                                                            checkpoint::LoadUse use) const;
    // Puts the parameters of the best checkpoint in place; returns after what it was saved.
    data::Position load_best(int rank, data::Position done, executor::RankRunner& runner);

    const job::Job& job_;
    Joined* const joined_;
    const sharding::Program* program_ = nullptr;  // set by prepare()
    std::unique_ptr<checkpoint::StoredCheckpoint> stored_;
    std::shared_ptr<const data::Tokenizer> tokenizer_;
    std::unique_ptr<checkpoint::CheckpointLoader> loader_;
    std::optional<checkpoint::CheckpointKeeper> keeper_;  // in the process that completes saves
    std::unique_ptr<checkpoint::CheckpointSaver> saver_;
    std::unique_ptr<checkpoint::StoredCheckpoint> best_;  // that is tested; guarded by mutex_
    std::unique_ptr<checkpoint::CheckpointLoader> best_loader_;
    std::mutex mutex_;
    checkpoint::ManifestLossScale loss_scale_;  // of the step that is saved; guarded by mutex_
};

}  // namespace shardscope::trainer::cli
