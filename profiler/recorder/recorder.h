// The in-process recorder: many threads write events, one background writer turns them into rows of a sink.
//
//   Recorder recorder(std::make_unique<traces::store::DatabaseWriter>(...));
//   NameId gemm = recorder.name("sgemm_nt");            // off the hot path
//   ThreadLog* log = recorder.attach_thread("rank 0", 0);  // once per thread; the log is that thread's alone
//   log->push(forward); ... log->pop();                  // hot path: a time stamp and a store
//   recorder.finish();                                   // drains, finishes the sink
//
// The hot path takes no lock, allocates nothing and does no atomic read-modify-write. Time stamps are raw
// ticks (clock.h); the writer converts them. Names are interned off the path.
//
// A forked child has the recorder's memory but not its writer: what it records is lost, and finish() and the
// destructor do nothing there, so that the parent's trace is the parent's alone.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string_view>

#include "profiler/log/thread_log.h"
#include "traces/store/sink.h"

namespace shardscope::profiler {

struct RecorderOptions {
    // Beyond these limits, events are dropped and counted. The memory of a thread that has ended is freed.
    std::size_t max_bytes_per_thread = std::size_t{64} << 20;
    std::size_t max_bytes = std::size_t{256} << 20;  // of all threads together
    std::chrono::milliseconds drain_period{20};
    std::chrono::milliseconds commit_period{500};
    // CLOCK_MONOTONIC at time 0 of the trace (as WriterOptions::start_system_ns); 0: that of the
    // construction.
    std::int64_t start_system_ns = 0;
    // Called on the writer's thread when the sink first fails.
    std::function<void(const std::exception_ptr&)> on_failure = {};
};

class Recorder {
  public:
    // `on_finish(sink, duration_ns, dropped)` runs on the writer thread after the last row (to finish a
    // DatabaseWriter, say); it is not called if the sink has failed.
    using FinishSink =
        std::function<void(traces::store::EventSink&, std::int64_t duration_ns, std::int64_t dropped)>;
    Recorder(std::unique_ptr<traces::store::EventSink> sink, FinishSink on_finish,
             RecorderOptions options = {});
    ~Recorder();  // calls finish(); a failure there is swallowed (call finish() to see it)

    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    // The id of a name (of a kernel, range, runtime call, buffer, counter or NVTX domain). Thread safe,
    // locks.
    NameId name(std::string_view text);

    // The calling thread's log; `rank` is -1 for a thread without one. The same thread gets the same log
    // again. What is recorded after finish() is ignored. The log is valid as long as the recorder exists or,
    // if the thread outlives the recorder, as long as the thread runs.
    ThreadLog* attach_thread(std::string_view thread_name, int rank);

    // Rows that describe the run (RunInfoRow, RankRow, StreamRow, ModuleRow, UnitRow, PredictionRow, LossRow,
    // DiagnosticRow, ProcessRow): any thread, any time before finish().
    template <typename Row>
    void describe(Row row) {
        enqueue([row = std::move(row)](traces::store::EventSink& sink) { sink.add(row); });
    }

    // The same for rows that hold ids of the sink's strings: `add` runs on the writer's thread.
    void describe_with(std::function<void(traces::store::EventSink&)> add) { enqueue(std::move(add)); }

    // Drains every log, closes open ranges at this moment, runs on_finish, joins the writer. Rethrows the
    // sink's first failure. Idempotent. Every thread that records must have stopped recording.
    void finish();

    // True once the sink failed (disk full): recording continues as a no-op, finish() throws the reason.
    bool failed() const;
    std::int64_t dropped() const;
    // Processor time that the writer thread has used so far.
    std::int64_t writer_cpu_ns() const;

    // Trace time (ns) of a raw tick count, and of now.
    std::int64_t to_ns(Ticks ticks) const;
    std::int64_t now_ns() const;
    MonotonicTime origin() const;  // time 0 of the trace

  private:
    void enqueue(std::function<void(traces::store::EventSink&)> row);
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::profiler
