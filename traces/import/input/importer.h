// The interface of importers: each foreign format is one function from an Input to an EventSink.
//
// A reader gets what is known from outside (FileRequest), feeds rows to the sink on the calling thread and
// returns the facts that rows cannot hold (FileFacts). It adds its own RunInfoRow ("import.format" =
// "kineto"), DiagnosticRow (what it repaired or left out, counted), RankRow, ThreadRow ... Malformed input is
// a StoreError with byte offset, what was expected and, if something could be kept, the hint that
// --partial keeps what is intact. With `partial`, what is intact is kept, and a DiagnosticRow and the
// RunInfoRow "import.partial" = "1" say so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "traces/import/input/input.h"
#include "traces/store/sink.h"

namespace shardscope::traces::importer {

struct FileRequest {
    // The rank of the rows. If the file records another one (FileFacts::rank), the caller reads it again
    // with that one.
    int rank = 0;
    bool one_of_several = false;  // one file per rank of a job: all devices in it belong to its rank
    bool partial = false;         // keep what is intact of a damaged file
};

struct FileFacts {
    std::optional<int> rank;        // according to the file itself
    int rows_rank = 0;              // the rank in the rows
    std::int64_t start_utc_ns = 0;  // wall clock at time 0 of the rows; 0 unknown
    std::int64_t last_ns = 0;       // time of the last event
    bool partial = false;           // whether something was omitted
};

// Kineto and Chrome traces (JSON). Owner: kineto.cpp.
FileFacts read_chrome_trace(Input& input, store::EventSink& sink, const FileRequest& request);

// PyTorch's memory snapshots and flight recorder dumps as pickles, distinguished by their content.
FileFacts read_pickle(Input& input, store::EventSink& sink, const FileRequest& request);
// Flight recorder dumps as JSON.
FileFacts read_flight_json(Input& input, store::EventSink& sink, const FileRequest& request);
// The text of `perf script`: samples of threads. `head`: the first bytes of a file.
bool is_perf_script(std::string_view head);
FileFacts read_perf_script(Input& input, store::EventSink& sink, const FileRequest& request);
// Databases of ROCm's rocprofv3. `database`: the path; `name`: the file's name in messages.
FileFacts read_rocpd(const std::string& database, const std::string& name, store::EventSink& sink,
                     const FileRequest& request);

}  // namespace shardscope::traces::importer
