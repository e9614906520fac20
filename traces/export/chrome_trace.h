// Exports a trace database as Chrome trace JSON in Kineto's own spelling: TensorBoard's plugin, Holistic
// Trace Analysis, Perfetto and chrome://tracing read it, and our own importer restores every rank. Streams
// from SQL to the file: memory does not grow with the number of events.
//
// Layout (times in us with three decimals since baseTimeNanoseconds, the UTC time of capture time 0):
//
//   {"schemaVersion":1, "deviceProperties":[...], "distributedInfo":{...}, "displayTimeUnit":"ms",
//    "baseTimeNanoseconds":N, "shardscope":{...}, "traceEvents":[...], "traceName":"..."}
//
// traceEvents, by category (cat):
//   cpu_op, user_annotation, python_function   ranges by their domain; a range of another domain is a
//                       user_annotation, a module's call (nn.Module: X) a python_function with Python id,
//                       Python parent id and Python module id
//   cuda_runtime, cuda_driver, cuda_sync, overhead, kernel, gpu_memcpy, gpu_memset
//   cpu_instant_event   [memory]
//   ac2g, fwdbwd        flows: launch to work, forward to backward
//   cpu_sample          where a thread was when a profiler looked at it (ph P)
//   and counters (ph C), marks (ph i) and metadata (ph M: process_name, thread_name).
// Host events have their process's `pid`, device events have pid = device and tid = stream.
//
// What Kineto's format does not cover:
//   "shardscope": {"version":1, "schema":5, "ended":true, "dropped":0,
//     "configuration":{"model.width":"1024", ...},
//     "ranks":[{"rank":0, "device":0, "pid":4242, "process":4242, "thread":5000, "threads":[5000, 5007],
//               "host":"...", "device_name":"...", "device_memory":0, "data":0, "shard":0, "context":0,
//               "tensor":0, "pipeline":0, "local_rank":0, "cpus":"0-3", "streams":{"7":"compute"}}],
//     "groups":[{"group":1, "axis":"tensor", "ranks":"0,1", "name":"", "description":""}],
//     "schedule":[{"rank":0, "position":0, "stage":0, "kind":"F", "micro_batch":0, "with_next":false}],
//     "devices":[{"host":"...", "kind":"gpu", "number":0, "name":"...", "bus":"0000:17:00.0", "numa":0,
//                 "memory_bytes":1, "bytes_per_second":-1, "power_limit_watts":700, "cpus":"",
//                 "visible":true}],
//     "topology":[{"host":"...", "from":"GPU0", "to_host":"...", "to":"GPU1", "link":"NV12", "lanes":12,
//                  "bytes_per_second":1, "read":"OK", "write":"OK", "nvlink":"OK", "atomics":"OK",
//                  "source":"nvml"}],
//     "clocks":[{"rank":1, "time_ns":0, "offset_ns":5, "uncertainty_ns":2}],
//     "stops":[{"rank":0, "time_ns":9, "first_rank":1, "lost":true, "reason":"...", "waiting":"..."}],
//     "modules":[{"id":0, "parent":-1, "name":"Linear_0", "class":"Linear", "path":"net.0", "unit":0,
//                 "parameters":1000}],
//     "units":[{"id":0, "module":0, "name":"root", "elements":1, "padded_elements":1, "shard_bytes":1,
//               "bytes":1}],
//     "steps":[{"rank":0, "step":3, "start_ns":0, "end_ns":9, "thread":5000}], "losses":{"3":0.5},
//     "metrics":[{"step":3, "sample":64, "time_ns":9, "rank":-1, "name":"learning_rate", "value":0.1}],
//     "predictions":[{"rank":0, "peak_bytes":1, "where":"...", "at_peak":{"parameters":1, ...}}],
//     "prediction_parts":[{"rank":0, "part":"unit", "id":0, "name":"", "bytes":1}],
//     "segments":[{"rank":0, "time_ns":0, "address":1, "bytes":1, "stream":0}]}
//   `pid` is that of the events: a free number if processes of different machines, or a process and a device,
//   have the same one; `process` is the pid on the machine. `threads`: tids that work for the rank.
//   args."shardscope" of an event has only the keys that are known:
//     range        {"module":id, "domain":"NCCL"}
//     kernel       {"short_name":"..."} if it is not the name; for a collective also {"operation":
//                  "all_gather", "bytes":n, "padding":n, "group":n, "group_size":n, "sequence":n, "unit":id,
//                  "phase":"forward"}
//     [memory]     {"category":"activations", "space":"device", "phase":"forward", "unit":id, "module":id,
//                   "stream":n, "name":"...", "annotation":"...", "stack":"..."}
//     cpu_sample   {"weight":n, "cpu":n, "stack":"..."}
//     counter      {"rank":n, "host":"...", "device":n} of one that is not one rank's alone; -1: none
#pragma once

#include <cstdint>
#include <string>

#include "traces/merge/work.h"

namespace shardscope::traces::exports {

struct ChromeExportOptions {
    bool overwrite = false;
    bool pack = false;  // with gzip
};

struct ChromeExportResult {
    std::int64_t events = 0;  // of traceEvents
    std::int64_t bytes = 0;   // of JSON, before packing
};

// Exports the Shardscope database `input`. The file gets its name only when it is complete. Throws
// StoreError: the database cannot be read, the output exists or cannot be written; Cancelled on demand.
ChromeExportResult export_chrome(const std::string& input, const std::string& output,
                                 const ChromeExportOptions& options = {},
                                 const merge::WorkOptions& work = {});

}  // namespace shardscope::traces::exports
