// Opens any kind of trace into columns: a Shardscope database, an export of Nsight Systems, Kineto or Chrome
// JSON, a memory snapshot or a flight recorder's dump of PyTorch; plain or packed with gzip.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "traces/store/load/loader.h"

namespace shardscope::traces::importer {

struct ImportOptions {
    // Whether to keep what can be read of a damaged file (the trace then says so) instead of refusing it.
    bool partial = false;
    // The most bytes that a packed file may unpack to.
    std::uint64_t max_bytes = std::uint64_t{256} << 30;
    store::LoadProgress* progress = nullptr;
};

// Opens one trace from one path or several: files of the ranks of one job, or a folder of such files, are
// opened together, with their clocks aligned as by `merge`. Throws StoreError with one sentence that names
// the file, the place in it (byte offset, line) and what was expected.
std::unique_ptr<store::Trace> open_any(const std::vector<std::string>& paths,
                                       const ImportOptions& options = {});

}  // namespace shardscope::traces::importer
