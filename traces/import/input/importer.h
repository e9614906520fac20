// The frame of importing: each foreign format is one function from an Input to an EventSink.
//
// A reader is told what is known from outside (FileRequest), feeds rows to the sink on the calling thread and
// answers what the rows cannot say (FileFacts). It adds its own RunInfoRow ("import.format" = "kineto"),
// DiagnosticRow (what it repaired or left out, counted), RankRow, ThreadRow ... Malformed input is a
// StoreError with byte offset, what was expected and, where something could be kept, that --partial keeps
// what is whole; with `partial` what is whole is kept, a DiagnosticRow says so, and so does the RunInfoRow
// "import.partial" = "1".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "traces/import/input/input.h"
#include "traces/store/sink.h"

namespace shardscope::traces {

struct FileRequest {
    // The rank that the rows shall carry. Where the file knows better (FileFacts::rank), the caller asks
    // again with that one.
    int rank = 0;
    bool one_of_several = false;  // files of the ranks of one job: all of this one's devices are its rank's
    bool partial = false;         // keep what is whole of a damaged file
};

struct FileFacts {
    std::optional<int> rank;        // as the file itself says
    int rows_rank = 0;              // that the rows carry
    std::int64_t start_utc_ns = 0;  // wall clock at time 0 of the rows; 0 unknown
    std::int64_t last_ns = 0;       // of the last event
    bool partial = false;           // something was left out
};

// Kineto and Chrome traces (JSON). Owner: kineto.cpp.
FileFacts read_chrome_trace(Input& input, EventSink& sink, const FileRequest& request);

// PyTorch's memory snapshots and flight recorder dumps as pickles: which of them the content says.
FileFacts read_pickle(Input& input, EventSink& sink, const FileRequest& request);
// Flight recorder dumps as JSON.
FileFacts read_flight_json(Input& input, EventSink& sink, const FileRequest& request);

}  // namespace shardscope::traces
