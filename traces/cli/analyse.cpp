#include "traces/cli/analyse.h"

#include "traces/import/open.h"

namespace shardscope::traces {

std::unique_ptr<Trace> load(const Inputs& inputs) {
    for (const std::string& file : inputs.files) check_input(file);
    ImportOptions options;
    options.partial = inputs.partial;
    return open_any(inputs.files, options);
}

}  // namespace shardscope::traces
