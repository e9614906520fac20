// The times of the thread that walks the Plan: medians of its calls and of the gaps between them.
#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "trainer/calibrate/fit.h"
#include "trainer/calibrate/fit_curve.h"

namespace shardscope::trainer::calibrate {

namespace {

template <class Take>
std::vector<double> all(const Runs& runs, const Take& take) {
    std::vector<double> values;
    for (const MeasuredRun& run : runs) {
        const std::vector<double>& own = take(run);
        values.insert(values.end(), own.begin(), own.end());
    }
    return values;
}

// The gaps that `chosen` accepts, less the time before a call, per item that `count` counts.
template <class Chosen, class Count>
std::vector<double> per_item(const Runs& runs, const std::array<double, 2>& before, const Chosen& chosen,
                             const Count& count) {
    std::vector<double> values;
    for (const MeasuredRun& run : runs) {
        for (const HostGap& gap : run.gaps) {
            if (!chosen(gap)) continue;
            const double left = gap.seconds - before[static_cast<std::size_t>(gap.launches)];
            values.push_back(std::max(0.0, left / count(gap)));
        }
    }
    return values;
}

double moved(const plan::Op& op) {
    return (op.kind == plan::OpKind::memcpy ? 2.0 : 1.0) * static_cast<double>(op.bytes);
}

void fit_calls(const Runs& runs, Calibration& into) {
    sim::HostModel& host = into.cluster.host;
    const auto set = [&](const char* key, double& figure, const std::vector<double>& values, double more,
                         const char* what) {
        if (!values.empty()) figure = median(values) + more;
        into.note(fmt::format("host.{}", key), !values.empty(),
                  fmt::format("median of {} {}", values.size(), what));
    };
    // Gaps between two calls with nothing in between count for the second call; index 1: it is a launch.
    std::array<double, 2> before{};
    for (const int launches : {0, 1}) {
        std::vector<double> gaps;
        for (const MeasuredRun& run : runs) {
            for (const HostGap& gap : run.gaps) {
                if (gap.ranges == 0 && gap.allocations == 0 && gap.launches == launches)
                    gaps.push_back(gap.seconds);
            }
        }
        before[static_cast<std::size_t>(launches)] = median(gaps);
    }
    set("launch", host.launch,
        all(
            runs, [](const MeasuredRun& run) -> auto& { return run.launch_calls; }),
        before[1], "launching calls, and of what comes before one");
    set("event", host.event,
        all(
            runs, [](const MeasuredRun& run) -> auto& { return run.event_calls; }),
        before[0], "calls, and of what comes before one");
    set("operation", host.operation,
        per_item(
            runs, before, [](const HostGap& gap) { return gap.ranges > 0 && gap.allocations == 0; },
            [](const HostGap& gap) { return gap.ranges; }),
        0, "gaps between calls, for each range");
    set("allocate", host.allocate,
        per_item(
            runs, before, [](const HostGap& gap) { return gap.ranges == 0 && gap.allocations > 0; },
            [](const HostGap& gap) { return gap.allocations; }),
        0, "gaps between calls, for each allocation and free");
    set("grow", host.grow,
        all(
            runs, [](const MeasuredRun& run) -> auto& { return run.grow_calls; }),
        0, "calls for new memory");
    // Subtracts the call's own time, which is a separate figure (`event`).
    set("wake", host.wake,
        all(
            runs, [](const MeasuredRun& run) -> auto& { return run.wakes; }),
        -host.event, "waits, from the event until the thread continues");
    host.wake = std::max(0.0, host.wake);
}

void fit_work(const Runs& runs, Calibration& into) {
    sim::HostModel& host = into.cluster.host;
    // Weighted by the amount of work, not by its duration: an interrupted thread says little about the rate.
    std::vector<Weighted> computing, copying, batches;
    double fastest = 0;  // the most bytes per second that a kernel moved
    for (const MeasuredRun& run : runs) {
        for (const MeasuredHostWork& work : run.host_work) {
            const double seconds = work.seconds;
            if (!(seconds > 0)) continue;
            if (work.op->kind == plan::OpKind::host_call) {
                double bytes = 0;
                for (const plan::Arg& arg : work.op->args) bytes += static_cast<double>(arg.bytes);
                if (bytes > 0 && run.job.data.workers == 0) batches.push_back({bytes / seconds, bytes});
            } else if (work.op->kind == plan::OpKind::kernel && work.op->flops > 0) {
                computing.push_back(
                    {static_cast<double>(work.op->flops) / seconds, static_cast<double>(work.op->flops)});
                fastest = std::max(fastest, moved(*work.op) / seconds);
            } else if (work.op->bytes > 0) {
                copying.push_back({moved(*work.op) / seconds, moved(*work.op)});
            }
        }
    }
    const auto note = [&](const char* key, const std::vector<Weighted>& rates, const char* what) {
        into.note(fmt::format("host.{}", key), !rates.empty(),
                  fmt::format("median rate of {} {}", rates.size(), what));
    };
    if (!computing.empty()) host.flops = weighted_median(computing);
    note("flops", computing, "kernels that the host carried out");
    if (!copying.empty()) host.memory_bandwidth = weighted_median(copying);
    note("memory_bandwidth", copying, "copies on the host");
    if (copying.empty() && fastest > 0) {
        host.memory_bandwidth = fastest;
        into.notes["host.memory_bandwidth"] = "the most bytes per second that a kernel on the host moved";
    }
    if (!batches.empty()) host.batch_bandwidth = weighted_median(batches);
    if (batches.empty() && !(host.batch_bandwidth > 0)) host.batch_bandwidth = host.memory_bandwidth;
    note("batch_bandwidth", batches, "batches made by the host");
}

}  // namespace

void fit_host(const Runs& runs, Calibration& into) {
    fit_calls(runs, into);
    fit_work(runs, into);
}

}  // namespace shardscope::trainer::calibrate
