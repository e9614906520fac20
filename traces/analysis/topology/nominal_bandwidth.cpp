#include "traces/analysis/topology/nominal_bandwidth.h"

#include "traces/schema/text.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {

double nominal_bandwidth(const store::Trace& trace, bool between_hosts) {
    const double value =
        schema::number_of<double>(trace.config_value(between_hosts ? kInterBandwidth : kIntraBandwidth))
            .value_or(0);
    return value > 0 && value < 1e18 ? value : 0;
}

}  // namespace shardscope::traces::analysis
