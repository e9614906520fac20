// See use_text.h.
#include "traces/report/use_text.h"

#include <cmath>

#include <fmt/core.h>

#include "traces/analysis/job/utilization.h"
#include "traces/store/grouped.h"

namespace shardscope::traces::report {

std::string duration_text(double seconds) {
    if (seconds < 10) return store::grouped(seconds, 3) + " s";
    if (seconds < 120) return store::grouped(seconds, 1) + " s";
    const auto whole = static_cast<std::int64_t>(std::llround(seconds));
    if (whole < 2 * 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
    if (whole < 48 * 3600) return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
    return fmt::format("{} d {} h", whole / 86400, whole / 3600 % 24);
}

std::string energy_text(double joules) {
    constexpr double kKilowattHour = 3.6e6;
    if (joules >= kKilowattHour) return store::grouped(joules / kKilowattHour, 2) + " kWh";
    return store::grouped(joules, joules < 100 ? 1 : 0) + " J";
}

std::string cost_text(const analysis::JobUse& job) {
    return job.cost ? store::grouped(*job.cost, *job.cost < 0.1 ? 4 : 2) : "-";
}

std::string job_sentence(const analysis::UtilizationReport& report) {
    const analysis::JobUse& job = report.job;
    std::string text = fmt::format("{} on {} in {}", store::counted(job.devices, "device", "devices"),
                                   store::counted(job.hosts, "host", "hosts"), duration_text(job.seconds));
    if (job.utilization_percent)
        text += fmt::format(": utilization {} %", store::grouped(*job.utilization_percent, 1));
    if (job.utilization_percent && job.idle_percent)
        text += fmt::format(", idle {} %", store::grouped(*job.idle_percent, 1));
    if (job.unused_devices > 0)
        text += fmt::format("; {} of them did nothing", store::grouped(job.unused_devices));
    text += ".";
    if (job.energy_j) {
        text += fmt::format(" Energy {}", energy_text(*job.energy_j));
        if (job.energy_per_step_j)
            text += fmt::format(", {} J a step", store::grouped(*job.energy_per_step_j, 2));
        if (job.energy_per_token_j) {
            text += fmt::format(", {:.4g} J a token", *job.energy_per_token_j);
        } else if (job.energy_per_sample_j) {
            text += fmt::format(", {:.4g} J a sample", *job.energy_per_sample_j);
        }
        text += ".";
    }
    if (job.cost) {
        text += fmt::format(" Cost {}, at {} a device hour.", cost_text(job),
                            store::grouped(*job.price_per_device_hour, 2));
    } else {
        text += " Cost -, without a price (--price-per-device-hour).";
    }
    return text;
}

}  // namespace shardscope::traces::report
