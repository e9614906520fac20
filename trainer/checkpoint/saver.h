// Saves checkpoints while ranks train. Every rank brings its own part on its own thread and goes on; nobody
// waits for another. The last to be done writes the manifest and lets the checkpoint appear (see files.h): a
// save that is interrupted at any moment leaves the checkpoints before it as they were.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/run_layout.h"
#include "trainer/job/job.h"

namespace shardscope::trainer {

struct SaveSettings {
    bool overwrite = false;              // replace the checkpoints of another run
    std::filesystem::path goes_on_from;  // the checkpoint's folder that the run started from; empty: none
    std::int64_t sample_offset = 0;      // samples done after step n: n * samples_per_step + this
    std::string tokenizer;               // the vocabulary's text; empty: bytes, or no text
};

struct SaveReport {
    std::int64_t step = 0;  // steps done
    std::string folder;
    std::int64_t bytes = 0;
    double seconds = 0;  // from the first rank's start
    std::string error;   // one sentence; empty: the checkpoint is whole and on the disk
};

class CheckpointSaver {
  public:
    // Into job.checkpoint.save, which is made if it is not there; what interrupted saves left in it is
    // removed. `on_saved` is called once a save, on the thread that ended it. CheckpointError: cannot be
    // written to, or holds checkpoints that this run does not go on from and settings.overwrite is false.
    CheckpointSaver(const Job& job, RunLayout layout, SaveSettings settings,
                    std::function<void(const SaveReport&)> on_saved);
    ~CheckpointSaver();  // after all ranks ended; removes a save that not all of them brought their part to
    CheckpointSaver(const CheckpointSaver&) = delete;
    CheckpointSaver& operator=(const CheckpointSaver&) = delete;

    // `steps_done`: the steps that the rank's memory stands after. Every rank calls it for the same steps in
    // the same order, when its streams are idle. A failure is reported, never thrown: training goes on.
    void save(int rank, std::int64_t steps_done, const RankMemory& memory);

    bool failed() const;  // some save was not completed

  private:
    struct PlannedPiece {
        OwnedPiece owned;
        std::size_t file = 0;
        std::int64_t offset = 0;
    };
    struct Pending;

    void plan_files(CheckpointFormat format);
    Pending& begin(std::int64_t step);
    std::int64_t write(int place, std::int64_t step, const RankMemory& memory, Pending& pending) const;
    void complete(Pending& pending, std::int64_t step);
    Manifest manifest(const Pending& pending, std::int64_t step) const;

    const std::filesystem::path folder_;
    const RunLayout layout_;
    const SaveSettings settings_;
    const std::function<void(const SaveReport&)> on_saved_;
    Manifest facts_;  // what is the same in every manifest of the run
    std::int64_t samples_per_step_;
    std::vector<PlannedPiece> pieces_;  // in the order of parameters
    std::size_t writers_ = 0;           // places that write something
    mutable std::mutex mutex_;
    std::map<std::int64_t, std::unique_ptr<Pending>> pending_;  // by step
    bool failed_ = false;
};

}  // namespace shardscope::trainer
