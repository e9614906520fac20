// The verbs that ask what communication costs; see verbs.h.
#include "traces/analysis/units.h"
#include "traces/cli/analyse.h"
#include "traces/cli/verbs.h"

namespace shardscope::traces {

int run_units(const Inputs& inputs) {
    return analyse(inputs, [](const Trace& t, const Selection& s) { return units_report(t, s); });
}

}  // namespace shardscope::traces
