// The contents of a file: ranks, steps, counts of rows, configuration, completeness.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "traces/analysis/base/selection.h"
#include "traces/analysis/communication/hosts.h"
#include "traces/analysis/communication/stopped.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct TraceInfo {
    std::string file;
    int schema_version = 0;
    bool ended = true;
    std::int64_t dropped = 0;
    std::string started_utc;  // ISO 8601
    double duration_ms = 0;
    int ranks = 0;
    std::int64_t steps = 0;
    std::string device;  // the devices' names, without repetition; empty: unknown
    // What names of CUDA and NCCL stand for if no GPU ran them, one sentence; empty: they are literal.
    std::string device_note;
    std::vector<HostPlace> hosts;  // with their ranks; their sums are not set
    StopReport stopped;
    std::vector<std::pair<std::string, std::int64_t>> counts;  // "kernels" -> rows, ...
    std::vector<std::pair<std::string, std::string>> config;
    // Notes of the recorder, in order of time: losses, where a thread was when its program crashed, …
    struct Noted {
        double time_ms = 0;
        std::string text;
    };
    std::vector<Noted> noted;
};

TraceInfo trace_info(const store::Trace& trace);

// Faults of a trace, each one sentence; empty: none. Detects: a run that did not end, dropped and invalid
// events, errors that the recorder noted, device events without a launch, overlapping work on a stream,
// collectives without device event or counterpart or with differing bytes, memory freed twice or never
// allocated, overlapping steps, predictions whose categories do not sum.
std::vector<std::string> check_trace(const store::Trace& trace);

// Remarks that are not faults, each one sentence: warnings of the recorder and, if a file was finished after
// its run was killed, what has no counterpart at the cut.
std::vector<std::string> check_notes(const store::Trace& trace);

// Which memory events their source recorded. The others were added on loading, so that the totals are the
// allocator's (memory_facts.h); they are not rows of the trace.
std::vector<bool> recorded_memory_events(const store::Trace& trace);

// The counts of trace_info() for the selection, under the same names in the same order. A device event counts
// by the step that launched it and by its start; another event (a range, a call, an allocation) by its rank
// and its start in the steps' host time; a step, stream or thread by its rank and number. Data of the run as
// a whole (modules, units, diagnostics, invalid events) is always included.
std::vector<std::pair<std::string, std::int64_t>> row_counts(const store::Trace& trace,
                                                             const Selection& selection = {});

}  // namespace shardscope::traces::analysis
