// critical-path and advice: what a step waited for, and what to change.
#include <optional>

#include "traces/analysis/advice/advice.h"
#include "traces/analysis/path/critical_path.h"
#include "traces/cli/analyse.h"
#include "traces/cli/what_if.h"

namespace shardscope::traces {

int run_critical_path(const Inputs& inputs, const std::string& what_if) {
    std::optional<PathFactors> factors;
    if (!what_if.empty()) factors = parse_what_if(what_if);
    return analyse(inputs, [&](const Trace& t, const Selection& s) { return critical_path(t, s, factors); });
}

int run_advice(const Inputs& inputs) {
    return analyse(inputs, [](const Trace& t, const Selection& s) { return advice(t, s); });
}

}  // namespace shardscope::traces
