#include "traces/import/open.h"

#include <fmt/format.h>

namespace shardscope::traces {

std::unique_ptr<Trace> open_any(const std::vector<std::string>& paths, const ImportOptions& options) {
    if (paths.size() == 1) return load_trace(paths[0], options.progress);
    throw StoreError(fmt::format("{} files cannot be opened together; merge them first", paths.size()));
}

}  // namespace shardscope::traces
