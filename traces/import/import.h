// Foreign traces into a database of ours: `import`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/merge/merge.h"
#include "traces/merge/work.h"

namespace shardscope::traces {

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
    std::int64_t bytes = 0;  // of its content, unpacked; 0 of a database
    bool partial = false;    // something was left out
};

struct ImportResult {
    std::vector<ImportedFile> files;
    MergeResult merged;              // of several files: their clocks and ranks
    std::vector<std::string> notes;  // sentences
};

// One file becomes the database as it is read; of several each becomes a part, and the parts are merged
// (merge/merge.h). The output takes its name when it is whole: whatever goes wrong before, Ctrl-C among it,
// leaves nothing of it. Memory does not grow with the number of events. Throws StoreError, Cancelled.
ImportResult import_files(const ImportToOptions& options, const WorkOptions& work = {});

}  // namespace shardscope::traces
