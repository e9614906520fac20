// The trace that a run records: one file or, where ranks are processes, a part for each; rank 0 merges the
// parts that it can reach at the end.
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
    // Throws StoreError where this process's file exists or cannot be written. `world` may be null.
    static void check(const Job& job, const World* world);
    // Opens the file; does nothing where the job wants no trace. Throws StoreError.
    TraceOutput(const Job& job, World* world);

    profiler::Recorder* recorder() const { return recorder_.get(); }  // null: nothing is recorded
    // Measures this process's clock against rank 0's, now. Collective.
    void measure_clock();

    struct End {
        std::string trace;                  // file with all ranks, readable here; "": none here
        std::vector<std::string> warnings;  // sentences
        std::string note;                   // location of the parts, where they could not be merged
        bool failed = false;                // something is missing
    };
    // Call when the run has ended successfully. Collective.
    End finish();
    // Call when the run has failed: keeps what was recorded until then.
    void give_up();
    // Where the parts are after a failure, if there are others than this process's: a sentence, else "".
    std::string parts_kept() const;

  private:
    void failed(const std::exception_ptr& reason);
    End finish_own(std::string& own_error);
    void merge(const std::vector<std::string>& parts, std::optional<LastWords>& last_words, End& end) const;
    std::string where_unfinished() const;

    const Job& job_;
    World* world_;
    std::string path_;  // this process's file
    // Whether the run has ended, and whether the early end of the trace has been reported.
    std::atomic<bool> run_ended_{false}, reported_{false};
    std::unique_ptr<profiler::Recorder> recorder_;
};

// The file of a rank's part of a trace: "run.sqlite" -> "run.rank-00003.sqlite", in `folder` where it is not
// empty.
std::string part_path(const std::string& trace, const std::string& folder, int rank);

}  // namespace shardscope::trainer
