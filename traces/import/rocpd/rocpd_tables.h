// The tables of a rocpd database under one name each, and the keys of their rows. Internal to the library.
//
// Source: ROCm/rocm-systems, projects/rocprofiler-sdk: source/share/rocprofiler-sdk-rocpd/rocpd_*.sql (tables
// and views) and source/lib/output/generateRocpd.cpp (what they hold). Each table's name carries the writing
// process's id, so that files can be joined. The file's own views without that id are not trusted: temporary
// views of the same names replace them. Ids are unique together with `guid`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces::importer {

using RocpdKey = std::pair<int, std::int64_t>;  // the number of a guid, and an id

class RocpdTables {
  public:
    // Makes a temporary view for each table, of the rows of all processes. `name`: the file's name in
    // messages. Throws StoreError if the file lacks a table that is needed.
    RocpdTables(store::Database& database, const std::string& name);

    store::Database& database() const { return database_; }
    // The start of the first event, ns since boot; 0 without events.
    std::int64_t begin() const;
    // The key from the guid, which is in the row's column 0, and the id in column `id`.
    RocpdKey key(const store::Statement& row, int id);

  private:
    store::Database& database_;
    std::map<std::string, int, std::less<>> guids_;
    std::string last_guid_;
    int last_number_ = 0;
};

}  // namespace shardscope::traces::importer
