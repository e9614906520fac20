// `critical-path --what-if communication=0.5,host=2`: factors for kinds of time.
#pragma once

#include <string>

#include "traces/analysis/path/critical_path.h"

namespace shardscope::traces {

// Throws UsageError if the text is not a list of KIND=FACTOR.
PathFactors parse_what_if(const std::string& text);

}  // namespace shardscope::traces
