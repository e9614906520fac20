// Finds the record files of a session's processes as they come, and drains them into a sink: rows for
// processes, ranks, threads and everything recorded. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "profiler/calibration.h"
#include "profiler/record/process_records.h"
#include "traces/store/sink.h"

namespace shardscope::profiler {

class Collector {
  public:
    // References must outlive the collector. Trace time is CLOCK_MONOTONIC minus origin_ns.
    Collector(std::string directory, traces::EventSink& sink, Calibration& clock, std::int64_t origin_ns);

    // Everything that is published now becomes rows. Processes that have ended are closed.
    void drain();

    // The last drain: open ranges end at end_ns (trace time).
    void finish(std::int64_t end_ns);

    bool knows(std::int64_t pid) const { return pids_.count(pid) != 0; }
    std::int64_t processes() const { return static_cast<std::int64_t>(pids_.size()); }
    std::int64_t rows() const;
    std::int64_t dropped() const;
    std::int64_t damaged() const;  // stretches of records that made no sense

  private:
    void drain(std::int64_t end_ns);  // trace time; processes that are gone ended then at the latest
    void look_for_processes();
    void describe(const ProcessRecords& process);
    void close(ProcessRecords& process, std::int64_t end_ns);

    std::string directory_;
    traces::EventSink& sink_;
    Calibration& clock_;
    std::int64_t origin_ns_;
    std::vector<std::unique_ptr<ProcessRecords>> open_;
    std::set<std::string> seen_files_;
    std::set<std::int64_t> pids_, described_threads_;
    std::set<int> ranks_;
    int opened_ = 0;  // record files so far
    std::int64_t closed_rows_ = 0, closed_dropped_ = 0, closed_damaged_ = 0;
};

}  // namespace shardscope::profiler
