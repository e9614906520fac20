// The trace that a run records: one file or, if ranks are processes, one part per rank; rank 0 merges the
// parts at the end if it can read all of them.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profiler/nccl/nccl_files.h"
#include "profiler/recorder/recorder.h"
#include "profiler/sampler/counter_thread.h"
#include "trainer/cli/stop.h"
#include "trainer/job/job.h"
#include "trainer/world/world.h"

namespace shardscope::trainer::cli {

class TraceOutput {
  public:
    // Throws StoreError if this process's file exists already or cannot be written. `world` may be null.
    static void check(const job::Job& job, const world::World* world);
    // Opens the file; does nothing if the job records no trace. Throws StoreError.
    TraceOutput(const job::Job& job, world::World* world);
    ~TraceOutput();
    TraceOutput(const TraceOutput&) = delete;
    TraceOutput& operator=(const TraceOutput&) = delete;

    profiler::Recorder* recorder() const { return recorder_.get(); }  // null: nothing is recorded
    // Measures this process's clock against rank 0's, now. Collective.
    void measure_clock();

    struct End {
        std::string trace;                  // file with all ranks; "": there is none on this host
        std::vector<std::string> warnings;  // sentences
        std::string note;                   // location of the parts, if they could not be merged
        bool failed = false;                // something is missing
    };
    // Called after the run has ended successfully. Collective.
    End finish();
    // Called after the run has failed; keeps what was recorded so far.
    void give_up();
    // A sentence that says where the parts are after a failure, on rank 0 of several processes; otherwise "".
    std::string parts_kept() const;

  private:
    void start_nccl_files();
    void start_counters();
    void end_sources();
    void failed(const std::exception_ptr& reason);
    End finish_own(std::string& own_error);
    void merge(const std::vector<std::string>& parts, std::optional<LastWords>& last_words, End& end) const;
    std::string where_unfinished() const;

    const job::Job& job_;
    world::World* world_;
    std::string path_;  // this process's file
    // Whether the run has ended, and whether the early end of the trace has been reported.
    std::atomic<bool> run_ended_{false}, reported_{false};
    std::unique_ptr<profiler::Recorder> recorder_;
    std::shared_ptr<profiler::NcclFiles> nccl_files_;    // null: the job does not use NCCL
    std::unique_ptr<profiler::CounterThread> counters_;  // ends before the recorder, which it feeds
};

// The file of a rank's part of a trace: "run.sqlite" -> "run.rank-00003.sqlite", in `folder` unless it is
// empty.
std::string part_path(const std::string& trace, const std::string& folder, int rank);

}  // namespace shardscope::trainer::cli
