// `critical-path --what-if communication=0.5,host=2`: factors for kinds of time.
#pragma once

#include <string>

#include "traces/analysis/path/critical_path.h"

namespace shardscope::traces {

// Throws UsageError where the text is no list of KIND=FACTOR.
PathFactors parse_what_if(const std::string& text);

}  // namespace shardscope::traces
