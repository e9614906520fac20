// Creates a new, empty trace database. Internal to the store.
#pragma once

#include <cstdint>
#include <string>

#include "traces/store/sqlite/sqlite.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::store {

// Creates the file with all tables and the facts that are known before the first event; its owner alone may
// read it (0600). The file takes its name only when it is complete, so that an older file stays until then.
// Returns the path that was written (with symbolic links resolved). Throws StoreError.
std::string create_database(const WriterOptions& options);

// Opens an empty file that no other process uses yet and makes all tables, enums and views in it. Losing such
// a file does not matter, so it has no journal on disk and is not synced.
Database create_schema(const std::string& path, int page_size);

// The page size of a trace of that size: in a small trace most tables fill little of a large page.
inline constexpr int kLargePage = 16384, kSmallPage = 4096;
constexpr int page_size_for(std::int64_t bytes) {
    return bytes < (32 << 20) ? kSmallPage : kLargePage;
}

// Nanoseconds since 1970 as "2026-06-26T03:04:48".
std::string iso_time(std::int64_t utc_ns, bool local);

}  // namespace shardscope::traces::store
