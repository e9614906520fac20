// Opens any trace as an SQLite database, for code that works on the file and not on columns. A database is
// opened as it is; any other trace (Kineto's JSON, a memory snapshot ...) is imported into a temporary one.
// Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/merge/work.h"
#include "traces/store/sqlite/scratch_folder.h"

namespace shardscope::traces::query {

// Whether the file is an SQLite database, by its first bytes.
bool is_database(const std::string& path);

struct AsDatabaseOptions {
    std::vector<std::string> files;  // files of one job; a folder stands for the traces in it
    bool partial = false;            // keep the readable part of a damaged file
    std::uint64_t max_bytes = std::uint64_t{256} << 30;  // the largest size to which a packed file may unpack
    bool ours = false;                                   // import an export of Nsight Systems, too
};

class AsDatabase {
  public:
    // Throws StoreError or Cancelled.
    explicit AsDatabase(const AsDatabaseOptions& options, const merge::WorkOptions& work = {});
    AsDatabase(const AsDatabase&) = delete;
    AsDatabase& operator=(const AsDatabase&) = delete;

    const std::string& path() const { return path_; }
    bool imported() const { return folder_.has_value(); }
    const std::vector<std::string>& notes() const { return notes_; }  // notes of the import

  private:
    std::string path_;
    std::optional<store::ScratchFolder> folder_;  // removed by the destructor
    std::vector<std::string> notes_;
};

}  // namespace shardscope::traces::query
