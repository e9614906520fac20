// Imports foreign traces into a Shardscope database: the command `import`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/merge/merge.h"
#include "traces/merge/work.h"

namespace shardscope::traces::importer {

struct ImportToOptions {
    std::vector<std::string> inputs;  // files, folders
    std::string output;
    bool overwrite = false;
    bool partial = false;
    std::uint64_t max_bytes = std::uint64_t{256} << 30;
};

struct ImportedFile {
    std::string file;
    std::string format;      // "kineto", "chrome", "memory snapshot" ..., "database"
    std::int64_t bytes = 0;  // of its content, unpacked; 0 for a database
    bool partial = false;    // whether something was left out
};

struct ImportResult {
    std::vector<ImportedFile> files;
    merge::MergeResult merged;       // for several files: their clocks and ranks
    std::vector<std::string> notes;  // sentences
};

// A single file is written to the database as it is read; each of several files becomes a part, and the parts
// are merged (merge/merge.h). The output gets its name when it is complete: an earlier failure, or Ctrl-C,
// leaves nothing behind. Memory does not grow with the number of events. Throws StoreError, Cancelled.
ImportResult import_files(const ImportToOptions& options, const merge::WorkOptions& work = {});

}  // namespace shardscope::traces::importer
