// The SQL types of columns, and columns shared by several of Nsight Systems' tables. Included by the files
// that define tables.
#pragma once

#include "traces/schema/schema.h"

namespace shardscope::traces::schema {

inline constexpr std::string_view kInt = "INTEGER";
inline constexpr std::string_view kIntNN = "INTEGER NOT NULL";
inline constexpr std::string_view kText = "TEXT";
inline constexpr std::string_view kTextNN = "TEXT NOT NULL";
inline constexpr std::string_view kReal = "REAL";

inline constexpr SchemaColumn kStart = {"start", kIntNN, "ns",
                                        "When it began, since the start of the capture."};
inline constexpr SchemaColumn kEnd = {"end", kIntNN, "ns", "When it ended."};
inline constexpr SchemaColumn kDevice = {"deviceId", kIntNN, "id",
                                         "The device; each rank has its own. TARGET_INFO_GPU.id"};
inline constexpr SchemaColumn kContext = {"contextId", kIntNN, "id", "The CUDA context; 1 on other devices."};
inline constexpr SchemaColumn kGreenContext = {"greenContextId", kInt, "id",
                                               "The green context, if one was used."};
inline constexpr SchemaColumn kStream = {"streamId", kIntNN, "id",
                                         "The stream, a number within the rank. SHARD_STREAMS"};
inline constexpr SchemaColumn kCorrelation = {
    "correlationId", kInt, "id", "Ties the work to the call that launched it; unique in the file."};
inline constexpr SchemaColumn kPid = {"globalPid", kInt, "id",
                                      "The process, serialized as (1 << 48) + (pid << 24)."};
inline constexpr SchemaColumn kTid = {"globalTid", kInt, "id",
                                      "The thread, serialized as (1 << 48) + (pid << 24) + tid."};
inline constexpr SchemaColumn kGraphNode = {"graphNodeId", kInt, "id",
                                            "The CUDA graph node that it came from."};

}  // namespace shardscope::traces::schema
