// Opens a trace that may come from anywhere: read-only, and trusts nothing in it. Internal to traces/.
#pragma once

#include <string>
#include <string_view>

#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::store {

// Throws StoreError if `path` is missing, a folder, unreadable, not an SQLite file, truncated, not a trace or
// of a newer schema. A finished file is read without writing anything next to it; one with a journal (its run
// was killed or is still running) is read together with the journal. If that needs a writable folder and this
// one is not, a temporary copy is read.
Database open_trace(const std::string& path);

// Whether the file has such a table with stored data. Throws StoreError for a view or a virtual table of that
// name: it computes its rows, so that reading it might never end.
bool has_plain_table(Database& database, std::string_view table);

// For callers that run SQL of a user: guarantees that all data tables are plain and that the views are the
// schema's, whatever the file defines under these names. Throws StoreError.
void trust_tables_only(Database& database);

// PRAGMA user_version of our own files; 0 for exports of other tools.
int schema_version(Database& database);

// What the user should know about how `path` is opened, as one sentence; empty if the file is read as it is
// (or cannot be opened at all, which load_trace() reports).
std::string opening_note(const std::string& path);

}  // namespace shardscope::traces::store
