// Saves checkpoints while ranks train. Every rank writes its own part on its own thread. If all ranks are
// threads of this process, none waits for another, and the last to finish writes the manifest and publishes
// the checkpoint (see files.h). If ranks are processes, all save together: rank 0 makes the folder, all
// write, and rank 0 writes the manifest when every part is there. A save that is interrupted at any moment
// leaves the earlier checkpoints as they were.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/checkpoint/files.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/run_layout.h"
#include "trainer/checkpoint/save_plan.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::world {
class World;
}

namespace shardscope::trainer::checkpoint {

struct SaveSettings {
    bool overwrite = false;              // whether to replace the checkpoints of another run
    std::filesystem::path goes_on_from;  // the checkpoint's folder that the run started from; empty if none
    std::int64_t sample_offset = 0;      // samples done after step n: n * samples_per_step + this
    std::string tokenizer;  // the vocabulary's text; empty: the text is bytes, or the job has no text
    // Of the step that is saved, called while no rank continues; null: the loss is not scaled.
    std::function<ManifestLossScale()> loss_scale;
    world::World* world = nullptr;  // the ranks' processes; null if all ranks are threads of this one
    // Whether the World's processes run on several hosts. If so, processes that would share a file (format
    // `full`) write one each and rank 0 copies them, since NFS may lose what two hosts write next to each
    // other.
    bool several_hosts = false;
};

struct SaveReport {
    std::int64_t step = 0;  // steps done
    std::string folder;
    std::int64_t bytes = 0;
    double seconds = 0;  // since the first rank started
    std::string error;   // one sentence; empty: the checkpoint is complete and on the disk
};

class CheckpointSaver {
  public:
    // Saves into job.checkpoint.save, prepared as save_folder.h says; collective if settings.world is not
    // null. `on_saved` is called once per save, on the thread that completed it (only in rank 0's process).
    // CheckpointError as in save_folder.h.
    CheckpointSaver(const job::Job& job, RunLayout layout, SaveSettings settings,
                    std::function<void(const SaveReport&)> on_saved);
    ~CheckpointSaver();  // called after all ranks have ended; removes a save to which some rank did not
                         // contribute its part
    CheckpointSaver(const CheckpointSaver&) = delete;
    CheckpointSaver& operator=(const CheckpointSaver&) = delete;

    // `steps_done`: the number of steps after which the rank's memory is saved. Every rank calls it for the
    // same steps in the same order, when its streams are idle. A failure is reported, never thrown: training
    // continues. With a World it is collective, and throws WorldError if the job has failed.
    void save(int rank, std::int64_t steps_done, const RankMemory& memory);

    bool failed() const;  // whether some save was not completed; the same in all processes

  private:
    // A save that is in progress.
    struct Pending {
        explicit Pending(std::size_t pieces) : checksums(pieces) {}
        std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
        std::vector<std::uint32_t> checksums;  // indexed by piece of the plan; each is written by one rank
        std::vector<std::uint32_t> of_boxes;   // in another order, as copy_parts() returns them
        std::size_t done = 0;                  // places that have written their part
        std::int64_t bytes = 0;
        std::optional<std::string> error;  // the first error
    };
    struct Part;

    std::filesystem::path unfinished(std::int64_t step) const;
    Pending& begin(std::int64_t step);
    void make_unfinished(std::int64_t step, Pending& pending) const;
    void complete(Pending& pending, std::int64_t step);
    Manifest manifest(const Pending& pending, std::int64_t step) const;

    // Saves with a World.
    void save_together(std::int64_t step, const RankMemory& memory);
    Part write_own_part(std::int64_t step, const RankMemory& memory) const;
    void take_parts(const std::vector<std::string>& texts, std::int64_t step, Pending& pending) const;
    void check_files(std::int64_t step) const;

    const std::filesystem::path folder_;
    const RunLayout layout_;
    const SaveSettings settings_;
    const std::function<void(const SaveReport&)> on_saved_;
    const SavePlan plan_;
    const PartPlace part_place_;
    const std::optional<File> lock_;  // lock of the folder, on rank 0
    Manifest facts_;                  // what is the same in every manifest of the run
    const std::int64_t samples_per_step_;
    const job::OptimizerSection optimizer_;
    const std::int64_t accumulation_;
    mutable std::mutex mutex_;                                  // guards the members below
    std::map<std::int64_t, std::unique_ptr<Pending>> pending_;  // by step
    bool failed_ = false;
};

}  // namespace shardscope::trainer::checkpoint
