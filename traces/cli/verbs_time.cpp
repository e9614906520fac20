// The verbs that tell where time went.
#include <cmath>

#include <fmt/core.h>

#include "traces/analysis/modules/operators.h"
#include "traces/analysis/time/idle.h"
#include "traces/analysis/time/kernels.h"
#include "traces/analysis/time/overlap.h"
#include "traces/analysis/time/steps.h"
#include "traces/analysis/time/temporal.h"
#include "traces/cli/analyse.h"

namespace shardscope::traces {

// A terminal holds some rows; programs get all.
std::size_t most_rows(const Inputs& inputs, const std::optional<std::size_t>& top) {
    constexpr std::size_t kRowsOfATable = 20;
    return top.value_or(inputs.format == Format::table ? kRowsOfATable : 0);
}

int run_overlap(const Inputs& inputs) {
    return analyse_devices(inputs, [](const Trace& t, const Selection& s) { return overlap_report(t, s); });
}

int run_temporal(const Inputs& inputs) {
    return analyse_devices(inputs,
                           [](const Trace& t, const Selection& s) { return temporal_breakdown(t, s); });
}

int run_steps(const Inputs& inputs) {
    return analyse(inputs, [](const Trace& t, const Selection& s) { return steps_report(t, s); });
}

int run_idle(const Inputs& inputs, double kernel_wait_us) {
    if (!(kernel_wait_us >= 0 && kernel_wait_us <= 1e12)) {
        throw UsageError(fmt::format("--kernel-wait-us {}: it must be from 0 to 1e12 us", kernel_wait_us));
    }
    const std::int64_t ns = std::llround(kernel_wait_us * 1e3);
    return analyse_devices(inputs,
                           [ns](const Trace& t, const Selection& s) { return idle_report(t, s, ns); });
}

int run_kernels(const Inputs& inputs, const std::optional<std::size_t>& top) {
    const std::size_t most = most_rows(inputs, top);
    return analyse_devices(inputs,
                           [most](const Trace& t, const Selection& s) { return kernels_report(t, s, most); });
}

int run_operators(const Inputs& inputs, bool by_shape, const std::optional<std::size_t>& top) {
    const std::size_t most = most_rows(inputs, top);
    return analyse(
        inputs, [=](const Trace& t, const Selection& s) { return operators_report(t, s, by_shape, most); });
}

}  // namespace shardscope::traces
