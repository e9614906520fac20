// The trace that a run records: one file or, where ranks are processes, a part for each, which that of rank 0
// brings together at the end where it can reach them.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profiler/recorder/recorder.h"
#include "trainer/cli/stop.h"
#include "trainer/job/job.h"
#include "trainer/world/world.h"

namespace shardscope::trainer {

class TraceOutput {
  public:
    // Throws StoreError where what this process writes exists or cannot be written. `world` may be null.
    static void check(const Job& job, const World* world);
    // Opens it: nothing where the job wants no trace. StoreError.
    TraceOutput(const Job& job, World* world);

    profiler::Recorder* recorder() const { return recorder_.get(); }  // null: nothing is recorded
    // Collective: how this process's clock stands to that of rank 0, now.
    void measure_clock();

    struct End {
        std::string trace;                  // that holds all ranks, to be read here; "": there is none here
        std::vector<std::string> warnings;  // sentences
        std::string note;                   // where the parts are, where they could not be brought together
        bool failed = false;                // something is missing
    };
    // The run has ended well. Collective.
    End finish();
    // It has failed: keeps what was recorded until then.
    void give_up();
    // Where that is then, where it is more than this process's: a sentence, else "".
    std::string parts_kept() const;

  private:
    void failed(const std::exception_ptr& reason);
    End finish_own(std::string& own_error);
    void merge(const std::vector<std::string>& parts, std::optional<LastWords>& last_words, End& end) const;
    std::string where_unfinished() const;

    const Job& job_;
    World* world_;
    std::string path_;  // of this process's file
    // Whether the run has ended, and whether it was told that the trace had ended before.
    std::atomic<bool> run_ended_{false}, told_{false};
    std::unique_ptr<profiler::Recorder> recorder_;
};

// The file of a rank's part of a trace: "run.sqlite" -> "run.rank-00003.sqlite", in `folder` where it is not
// empty.
std::string part_path(const std::string& trace, const std::string& folder, int rank);

}  // namespace shardscope::trainer
