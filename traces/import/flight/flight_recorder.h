// Dumps of PyTorch's flight recorder (TORCH_FR_DUMP_TEMP_FILE's files, _dump_nccl_trace(), _json()) as rows:
// one FlightRow for each collective, send or receive of one rank, of versions 1.x to 2.x.
//
// The members of a group are recorded in SHARD_RUN under "flight_recorder.rank<R>.groups", as one JSON
// object: {"0":{"description":"default_pg","ranks":[0,1],"enqueued":7,"started":7,"completed":6}} (without
// unknown keys). Times are wall-clock ns since the dump's first record; 0 if a record has none.
//
// Source: PyTorch's documentation "Flight Recorder" and the dump's own version key.
#pragma once

#include <string>
#include <string_view>

#include "traces/import/input/importer.h"
#include "traces/import/json/value_tree.h"

namespace shardscope::traces::importer {

bool is_flight_dump(const Value& root);

// `root` is the dump.
FileFacts read_flight_dump(const Value& root, const std::string& path, store::EventSink& sink,
                           const FileRequest& request);

}  // namespace shardscope::traces::importer
