// Checkpoints of one training run: what it goes on from and what it saves, as hooks of the executor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "trainer/checkpoint/loader.h"
#include "trainer/checkpoint/saver.h"
#include "trainer/data/tokenizer.h"
#include "trainer/executor/run.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer {

class Checkpointing {
  public:
    // Opens checkpoint.load, where the job names one. CheckpointError: it cannot be used. JobError: no step
    // is left to train.
    explicit Checkpointing(const Job& job);

    // The vocabulary that the stored run was trained with; null: bytes, no text, or nothing is loaded.
    std::shared_ptr<const Tokenizer> tokenizer() const { return tokenizer_; }

    // Checks the stored values against the program and makes checkpoint.save ready. `used` is the run's
    // vocabulary (null or bytes: none is saved); `on_saved` is called for every checkpoint, on a rank's
    // thread. CheckpointError as above, or where nothing can be saved.
    void prepare(const Program& program, const Tokenizer* used,
                 std::function<void(const SaveReport&)> on_saved);

    // Sets the hooks, the first step and the first sample.
    void attach(RunOptions& options);

    std::int64_t first_step() const { return stored_ ? stored_->manifest().step : 0; }
    bool saves() const { return saver_ != nullptr; }
    bool failed() const { return saver_ && saver_->failed(); }

  private:
    const Job& job_;
    std::unique_ptr<StoredCheckpoint> stored_;
    std::shared_ptr<const Tokenizer> tokenizer_;
    std::unique_ptr<CheckpointLoader> loader_;
    std::unique_ptr<CheckpointSaver> saver_;
};

}  // namespace shardscope::trainer
