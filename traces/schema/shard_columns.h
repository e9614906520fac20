// Columns shared by several of Shardscope's own tables. Included by the files that define those tables.
#pragma once

#include "traces/schema/nsight_columns.h"

namespace shardscope::traces::schema::own {

inline constexpr std::string_view kKey = "INTEGER NOT NULL PRIMARY KEY";

inline constexpr SchemaColumn kRank = {"rank", kIntNN, "rank", "The rank. SHARD_RANKS.rank"};
inline constexpr SchemaColumn kUnit = {"unit", kInt, "id", "The FSDP unit. SHARD_UNITS.id"};
inline constexpr SchemaColumn kPhase = {"phase", kIntNN, "enum", "The part of the step. SHARD_ENUM_PHASE"};

}  // namespace shardscope::traces::schema::own
