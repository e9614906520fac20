// Opens a trace that somebody else may have made: read-only, trusting nothing in it. Internal to traces/.
#pragma once

#include <string>
#include <string_view>

#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces {

// Throws StoreError where `path` is missing, a folder, unreadable, no SQLite file, truncated, no trace or of
// a newer schema. A finished file is read without writing anything beside it; one with a journal (its run was
// killed or still runs) is read with what the journal holds; where that needs a folder that can be written
// and this one cannot, from a temporary copy.
Database open_trace(const std::string& path);

// Whether there is such a table of data. Throws StoreError for what only bears its name: a view or a virtual
// table computes its rows, so that reading it need not end.
bool has_plain_table(Database& database, std::string_view table);

// For who reads the file with SQL of his own: all tables of data are plain, and the views are those of the
// schema, whatever the file calls so. Throws StoreError.
void trust_tables_only(Database& database);

// PRAGMA user_version of one of our files; 0 for other exports.
int schema_version(Database& database);

// What a person should know about how `path` is opened, one sentence; empty where it is read as it lies (or
// cannot be opened at all, which load_trace() tells).
std::string opening_note(const std::string& path);

}  // namespace shardscope::traces
