// One run of a command with its trace: the loop of shardscope-record, on its one thread. It waits a little,
// drains what the processes recorded, and commits; at the end it finishes the trace. The command continues
// whatever happens to the trace.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "profiler/nccl/nccl_files.h"
#include "profiler/record/collector.h"
#include "profiler/record/counters.h"
#include "profiler/record/launch.h"
#include "profiler/record/live_recording.h"
#include "profiler/record/output_name.h"
#include "profiler/record/recent_rows.h"
#include "profiler/record/record_command.h"
#include "profiler/record/row_counts.h"
#include "profiler/record/session.h"
#include "profiler/recorder/calibration.h"
#include "profiler/stacks/stack_sampler.h"
#include "traces/store/write/writer.h"

namespace shardscope::profiler {

struct Injection;

class Recording {
  public:
    // `options` must outlive it; output.path is where the trace goes.
    Recording(const RecordOptions& options, const OutputName& output);

    // Runs the command to its end and returns the exit status. Throws LaunchError, or another exception if
    // nothing was started because the trace could not be written.
    int run();

  private:
    std::int64_t now_ns() const { return MonotonicTime::now() - origin_; }
    bool announces() const { return !launched_ || launched_->rank == 0; }

    template <typename Work>
    void guarded(Work work);

    void prepare_sampling(Injection& injection);
    void open_output();
    void open_status();
    void close_status(int status);
    void describe_run(traces::store::EventSink& sink) const;
    traces::store::WriterOptions writer_options(const std::string& path) const;

    void tick();
    void on_signal(std::int64_t now);
    void set_recording(bool on, std::int64_t now);
    void stop(std::int64_t now);
    void take_late(std::int64_t now);
    void start_counters();
    void look_for_children(std::int64_t now);
    std::vector<WatchedProcess> watched() const;
    void take_counters();
    void start_nccl_files();
    StackSampler::Place place_of_stacks();
    void take_stacks();
    int rank_of(std::int32_t pid) const;
    void look_for_hang(std::int64_t now);
    void commit_when_due(std::int64_t now);
    void look_at_size(std::int64_t now);

    void finish(int status);
    struct Keep {  // what is written from memory, and why
        const std::string& reason;
        std::int64_t end_ns;
        bool goes_on;
    };
    void write_kept(const Keep& keep);
    void write_kept_since(const Keep& keep, std::int64_t since_ns, const std::string& path);
    void report(std::int64_t duration_ns);
    void report_next_steps(const std::string& path) const;

    const RecordOptions& options_;
    const OutputName& output_;
    const std::optional<LaunchedRank> launched_;
    Session session_;
    Calibration clock_;
    std::optional<Command> command_;

    // Rows go through the row counter, to either a database or memory.
    std::unique_ptr<traces::store::DatabaseWriter> writer_;
    std::unique_ptr<RecentRows> recent_;
    std::unique_ptr<LiveRecording> live_;  // null: nobody can watch
    std::unique_ptr<CountingSink> sink_;
    std::unique_ptr<Collector> collector_;
    std::unique_ptr<Counters> counters_;   // null: none are wanted
    std::optional<NcclFiles> nccl_files_;  // none: NCCL is not to be recorded
    std::int64_t counted_from_ns_ = 0;     // when recording began, or began again
    std::vector<WatchedProcess>
        children_;  // the command and what it has started, when it was last looked for
    std::int64_t next_look_ns_ = 0;
    std::unique_ptr<StackSampler> stacks_;  // null: threads are not sampled
    std::string sampling_notice_;           // how they are sampled, or why not; empty: as usual

    MonotonicTime origin_{0};
    std::int64_t start_utc_ns_ = 0;
    std::int64_t stopped_ns_ = -1;  // when --duration or --max-size ended the recording
    bool took_late_ = false;        // whether device work from before that has had time to arrive
    std::int64_t committed_ns_ = 0, committed_rows_ = 0;
    std::uint64_t activity_ = 0;  // for --hang: the collector's count, and when it last changed
    std::int64_t active_ns_ = 0;
    bool hung_ = false;
    int kept_files_ = 0;
    bool recording_ = false, started_ = false, failed_ = false;
    bool ended_ = false;  // whether the command has ended
};

}  // namespace shardscope::profiler
