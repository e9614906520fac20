// export: any trace as Chrome JSON or CSV, for other tools.
#pragma once

#include <string>

#include "traces/cli/arguments.h"

namespace shardscope::traces {

// `to`: "chrome", "csv" or "sqlite". Chrome JSON is packed where `output` ends in .gz.
int run_export(const Inputs& inputs, const std::string& to, const std::string& output, bool overwrite);

}  // namespace shardscope::traces
