// The commands that show where time went and that have options of their own.
#include <cmath>
#include <optional>

#include <fmt/core.h>

#include "traces/analysis/modules/operators.h"
#include "traces/analysis/path/critical_path.h"
#include "traces/analysis/time/idle.h"
#include "traces/analysis/time/kernels.h"
#include "traces/cli/analyse.h"
#include "traces/cli/verb.h"
#include "traces/cli/what_if.h"

namespace shardscope::traces {

Work idle_verb(Options& options) {
    const double& kernel_wait_us =
        options.number("--kernel-wait-us", 30, "US",
                       "The longest gap that the device itself needs between two kernels (30)");
    return [&](const Inputs& inputs) {
        if (!(kernel_wait_us >= 0 && kernel_wait_us <= 1e12)) {
            throw UsageError(
                fmt::format("--kernel-wait-us {}: it must be from 0 to 1e12 us", kernel_wait_us));
        }
        const std::int64_t ns = std::llround(kernel_wait_us * 1e3);
        return analyse_devices(inputs,
                               [ns](const Trace& t, const Selection& s) { return idle_report(t, s, ns); });
    };
}

Work kernels_verb(Options& options) {
    const auto& top = top_option(options);
    return [&](const Inputs& inputs) {
        const std::size_t most = most_rows(inputs, top);
        return analyse_devices(
            inputs, [most](const Trace& t, const Selection& s) { return kernels_report(t, s, most); });
    };
}

Work operators_verb(Options& options) {
    const bool& by_shape = options.flag("--by-shape", "By name and the shapes of the inputs");
    const auto& top = top_option(options);
    return [&](const Inputs& inputs) {
        const std::size_t most = most_rows(inputs, top);
        return analyse(inputs, [&, most](const Trace& t, const Selection& s) {
            return operators_report(t, s, by_shape, most);
        });
    };
}

Work critical_path_verb(Options& options) {
    const std::string& what_if = options.text("--what-if", "KIND=FACTOR,...",
                                              "What a step would take if kinds of time were scaled, for "
                                              "example communication=0.5,waiting=0");
    return [&](const Inputs& inputs) {
        std::optional<PathFactors> factors;
        if (!what_if.empty()) factors = parse_what_if(what_if);
        return analyse(inputs,
                       [&](const Trace& t, const Selection& s) { return critical_path(t, s, factors); });
    };
}

}  // namespace shardscope::traces
