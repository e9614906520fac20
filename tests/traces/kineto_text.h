// Small Kineto traces as text, read into columns.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "traces/import/input/importer.h"
#include "traces/store/columns/column_sink.h"

namespace shardscope::traces {

struct ReadTrace {
    std::unique_ptr<store::Trace> trace;
    importer::FileFacts facts;
};

inline ReadTrace read_text(std::string_view text, const importer::FileRequest& request = {}) {
    importer::Input input = importer::Input::of_memory("made.json", text);
    store::ColumnSink sink;
    sink.set_path("made.json");
    ReadTrace read;
    read.facts = read_chrome_trace(input, sink, request);
    sink.set_start_utc_ns(read.facts.start_utc_ns);
    read.trace = sink.take();
    return read;
}

// An object around events, as Kineto writes it.
inline std::string kineto(const std::string& events, const std::string& before = "",
                          const std::string& after = "") {
    return "{\n  \"schemaVersion\": 1," + before + "\n  \"traceEvents\": [\n" + events + "\n  ]" + after +
           "\n}\n";
}

// One operator that launches one kernel: the operator 100..150 us, the call 110..120 us, the kernel 130..170
// us.
inline constexpr const char* kOneLaunch =
    R"({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 42, "tid": 43, "ts": 100, "dur": 50, "args": {"External id": 7}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 42, "tid": 43, "ts": 110, "dur": 10, "args": {"External id": 7, "cbid": 211, "correlation": 9}},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 130, "dur": 40, "args": {"External id": 7, "device": 0, "context": 1, "stream": 7, "correlation": 9, "grid": [2, 3, 4], "block": [128, 1, 1], "blocks per SM": 0.25, "est. achieved occupancy %": 12}})";

}  // namespace shardscope::traces
