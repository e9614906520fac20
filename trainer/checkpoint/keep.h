// Which checkpoints of a folder stay (checkpoint.keep): after each save those that nothing asks for are
// removed. With "best", SAVE/best names the one with the lowest validation loss, and its loss:
// "step-20 2.31".
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>

#include "trainer/job/job.h"

namespace shardscope::trainer::checkpoint {

// One run's, in the process that completes saves. Any thread.
class CheckpointKeeper {
  public:
    // `continues`: the run goes on from a checkpoint of this folder, and its best so far may be there.
    CheckpointKeeper(std::filesystem::path save, job::KeptCheckpoints keep, bool continues);

    // The validation loss after so many steps. Called before that step is saved.
    void validated(std::int64_t steps_done, double loss);
    // A checkpoint is complete and on the disk. Removes what is not kept of the earlier ones; those of later
    // steps, which another continuation has left, stay. std::system_error if that fails.
    void saved(std::int64_t steps_done);

    // The step of the best, if "best" is kept and a loss is known.
    std::optional<std::int64_t> best() const;

  private:
    struct Validated {
        std::int64_t step = 0;
        double loss = 0;
    };
    std::filesystem::path save_;
    job::KeptCheckpoints keep_;
    mutable std::mutex mutex_;  // guards the members below
    std::optional<Validated> latest_, best_;
};

}  // namespace shardscope::trainer::checkpoint
