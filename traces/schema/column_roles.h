// What a column's values refer to, so that rows can be carried to another file without knowing their table:
// `merge` and `slice` copy every table by these roles alone. Constant data; any thread may read it.
#pragma once

#include <string_view>

#include "traces/schema/schema.h"

namespace shardscope::traces::schema {

enum class ColumnRole {
    undecided,       // not stated; only for columns that hold neither an id nor a time (see is_decided)
    kept,            // an id that is meaningful only together with another (a stream of a device), or a fact
    time,            // ns since the start of the capture
    time_or_zero,    // the same, where 0 means unknown
    string,          // StringIds.id
    text_or_string,  // text in our files, StringIds.id in Nsight Systems'
    correlation,     // shared by a call and the work that it launched; 0 none
    device,          // TARGET_INFO_GPU.id
    process,         // serialized process
    pid,             // the system's number of a process: kept, but identifies the process of the row's device
    thread,          // serialized thread
    machine,         // serialized machine: hardware and virtual machine in the two highest bytes
    hardware,        // only the highest of these bytes
    virtual_machine,  // only the second
    domain,           // NVTX domain
    range,            // number of a start/end range
    rank,             // SHARD_RANKS.rank; negative none
    module,           // SHARD_MODULES.id
    module_payload,   // the same, if there is such a module; else the program's own payload
    unit,             // SHARD_UNITS.id
    prediction_part,  // SHARD_UNITS.id or SHARD_MODULES.id, depending on the column `part`
    group,            // communicator
    payload_schema,   // NVTX_PAYLOAD_SCHEMAS.schemaId or NVTX_PAYLOAD_ENUMS.schemaId
    payload_type,     // NVTX's number of a type; a payload_schema from 1 << 24 on
    payload,          // binary, as NVTX_EVENTS.binaryData: names its schema
};

ColumnRole column_role(std::string_view table, const SchemaColumn& column);

// Whether the role is listed, or none is needed because the column's unit says that it holds no ids, times
// or ranks.
bool is_decided(std::string_view table, const SchemaColumn& column);

// How a table is carried over.
enum class TableRole {
    events,  // rows with times, each a thing that happened
    facts,   // descriptive rows; equal ones are merged
    made,    // rewritten for each file: the start time, strings, sums, enums
};
TableRole table_role(const SchemaTable& table);

}  // namespace shardscope::traces::schema
