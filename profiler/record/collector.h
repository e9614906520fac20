// Finds the record files of a session's processes as they appear, and drains them into a sink: rows for
// processes, ranks, threads and everything recorded. A rank is a process whose environment names one, or a
// thread that a program of several ranks names "rank N", or "rank N" and more words, by NVTX. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "profiler/base/pid_namespace.h"
#include "profiler/record/findings.h"
#include "profiler/record/process_records.h"
#include "profiler/recorder/calibration.h"
#include "profiler/sampler/process_counters.h"
#include "traces/store/sink.h"

namespace shardscope::profiler {

class Collector {
  public:
    // References must outlive the collector. Trace time begins at `origin`.
    Collector(std::string directory, traces::store::EventSink& sink, Calibration& clock,
              MonotonicTime origin);

    // Turns everything published so far into rows, and closes processes that have ended.
    void drain();

    // The last drain: open ranges end at end_ns (trace time).
    void finish(std::int64_t end_ns);
    // For a pause in recording: drains, and ends open ranges now; more may follow later.
    void pause(std::int64_t now_ns);

    // Writes everything that is open in living processes, with their threads, as rows that end at now_ns, to
    // another sink with the same string ids. Changes nothing here.
    void write_open(traces::store::EventSink& sink, std::int64_t now_ns) const;
    // RecordConverter::visit_strings of all living processes.
    void visit_strings(const std::function<void(traces::schema::StringId)>& visit) const;

    // Where a thread was when its process ended, or where it is now: its innermost open range.
    struct Place {
        std::int64_t pid = 0, tid = 0;
        int rank = -1;
        std::string thread;
        traces::schema::StringId range = traces::schema::StringId::empty;
        std::string text;  // of the range
        std::int64_t since_ns = 0, until_ns = 0;
    };
    // The places of threads with open ranges whose processes ended after that time: the last kMostPlaces.
    static constexpr std::size_t kMostPlaces = 1024;
    std::vector<Place> places_at_end(std::int64_t after_ns) const;
    // The places of threads of living processes that are in a range.
    std::vector<Place> places_now(std::int64_t now_ns) const;

    // The living processes of this tool's pid namespace that write records, and their ranks.
    std::vector<WatchedProcess> living() const;

    bool has_rank(int rank) const { return ranks_.count(rank) != 0; }
    // Whether a process of this tool's own pid namespace is known.
    bool knows(std::int64_t pid) const { return row_pids_.knows(own_pid_namespace(), pid); }
    // Grows whenever anything at all is recorded.
    std::uint64_t activity() const;
    // What the processes reported besides their events.
    const Findings& findings() const { return findings_; }
    std::int64_t processes() const { return row_pids_.processes(); }
    std::int64_t rows() const;
    std::int64_t dropped() const;
    std::int64_t damaged() const;  // damaged stretches of records

  private:
    void drain(std::int64_t end_ns);  // trace time; processes that are gone had ended by then
    void look_for_processes();
    void describe(const ProcessRecords& process);
    void describe_rank(const ProcessRecords& process, int rank, std::int64_t tid);
    void find_ranks_of_threads(const ProcessRecords& process);
    int rank_of_thread(const ProcessRecords& process, std::int64_t tid) const;
    void describe_threads(const ProcessRecords& process, traces::store::EventSink& sink) const;
    void close(ProcessRecords& process, std::int64_t end_ns);
    void add_places(const ProcessRecords& process, std::int64_t until_ns, std::vector<Place>* places) const;

    std::string directory_;
    traces::store::EventSink& sink_;
    Calibration& clock_;
    MonotonicTime origin_;
    Findings findings_;
    std::vector<std::unique_ptr<ProcessRecords>> open_;
    std::set<std::string> seen_files_;
    RowPids row_pids_;
    std::set<std::int64_t> described_processes_, described_threads_;
    std::map<int, std::int64_t> ranks_;         // and each one's process (row_pid)
    std::map<std::int64_t, int> thread_ranks_;  // by global_tid
    std::vector<Place> places_;
    std::uint64_t closed_activity_ = 0;
    int opened_ = 0;  // record files so far
    std::int64_t closed_rows_ = 0, closed_dropped_ = 0, closed_damaged_ = 0;
};

}  // namespace shardscope::profiler
