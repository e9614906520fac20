// The record file of one injected process, mapped, and what is needed to turn it into rows. The process may
// be alive, dead or corrupting the file. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "profiler/inject/session_format.h"
#include "profiler/log/chunk_reader.h"
#include "profiler/record/row_pids.h"
#include "profiler/recorder/calibration.h"
#include "profiler/recorder/record_converter.h"
#include "traces/store/file_descriptor.h"
#include "traces/store/sink.h"

namespace shardscope::profiler {

struct Findings;

class ProcessRecords {
  public:
    // Returns nullptr while the process has not finished writing the header, and for a file that is not ours
    // (*not_ours is then set). `number` and `findings` are those of ProcessFacts.
    static std::unique_ptr<ProcessRecords> open(const std::string& path, traces::store::EventSink& sink,
                                                const Calibration& clock, MonotonicTime origin,
                                                RowPids& row_pids, int number, Findings* findings,
                                                bool* not_ours);
    ~ProcessRecords();
    ProcessRecords(const ProcessRecords&) = delete;
    ProcessRecords& operator=(const ProcessRecords&) = delete;

    std::int64_t pid() const { return pid_; }  // in its own pid namespace
    std::int64_t row_pid() const { return converter_.pid(); }
    bool same_pid_namespace() const { return same_pid_namespace_; }  // as this process
    int rank() const { return rank_; }                               // -1: none
    const std::string& name() const { return name_; }
    std::int64_t start_ns() const { return converter_.to_trace_ns(start_ticks_); }

    // Whether the process is known to be gone (a process of another pid namespace never is).
    bool gone() const;

    void snapshot();
    void drain();
    // No more records follow: open ranges end at end_ns (trace time).
    void close(std::int64_t end_ns);
    // Ends open ranges, but the process continues.
    void end_open_ranges(std::int64_t now_ns) { converter_.end_open_ranges(now_ns); }

    std::uint64_t bytes_read() const { return bytes_read_; }

    std::int64_t dropped() const { return static_cast<std::int64_t>(reader_.dropped()); }
    const RecordConverter& converter() const { return converter_; }

  private:
    struct Mapping {
        std::byte* memory;
        std::size_t bytes;
    };
    ProcessRecords(std::string path, traces::store::FileDescriptor file, Mapping mapping,
                   traces::store::EventSink& sink, const Calibration& clock, MonotonicTime origin,
                   RowPids& row_pids, int number, Findings* findings);

    std::string path_;
    traces::store::FileDescriptor file_;
    Mapping mapping_;
    std::int64_t pid_;
    int rank_;
    Ticks start_ticks_;
    std::uint64_t bytes_read_ = 0;
    std::string name_;
    bool same_pid_namespace_;
    ChunkReader reader_;
    RecordConverter converter_;
};

}  // namespace shardscope::profiler
