// What shardscope-record does: run a command with the library injected, and write what it records to a trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "profiler/inject/session_format.h"

namespace shardscope::profiler {

// Threads are sampled by perf events or, if they are refused, by timers; or only by one of these.
enum class SampleBy { either, perf, timer };

struct RecordOptions {
    std::vector<std::string> command;
    std::string output;  // may be a pattern (output_name.h); empty: a name made from the command, announced
    bool overwrite = false;
    bool nvtx = true, cuda = true, nccl = true;
    bool whole_graphs = false;  // CUDA graphs as one event each, without their kernels
    bool counters = true;       // of processes and GPUs
    int sample_hertz = 0;       // of threads' stacks, per second of their processor time; 0: none
    SampleBy sample_by = SampleBy::either;

    // Which part is recorded. The first three are decided by each process for itself.
    WindowKind window = WindowKind::always;
    std::int64_t first_step = 0, last_step = 0;  // of WindowKind::steps, both included
    std::string range_name;  // of WindowKind::range; for WindowKind::steps the text before the number
    std::vector<std::pair<std::int32_t, std::int32_t>> ranks;  // both included; empty: all
    double delay_s = 0;                                        // recording begins that long after the start
    std::optional<double> duration_s;                          // and lasts that long at most
    int toggle_signal = 0;  // starts and stops recording, or with keep_last_s writes a trace; 0: none
    // Recording stops when the trace has that many bytes; with keep_last_s, that many are kept in memory.
    std::optional<std::int64_t> max_bytes;

    std::optional<double> keep_last_s;  // keep this much in memory and write it when something goes wrong
    // Where the recording's status is served; empty: at a socket beside the trace; none: nowhere.
    std::optional<std::string> status;
    std::optional<double> hang_s;  // a time without events that counts as something going wrong
};

// Returns the exit status: the command's, or 125, 126, 127 if it could not be started. Reports errors on
// standard error.
int record(const RecordOptions& options);

}  // namespace shardscope::profiler
