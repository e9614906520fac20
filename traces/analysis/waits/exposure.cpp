// Why a collective or copy is exposed; see waits.h. Its transfer could have been hidden by the compute that
// ran between the time when its input was ready and its start: that compute is divided by what kept it from
// starting, from its start backwards, until all of the exposed transfer is accounted for.
#include <algorithm>
#include <limits>

#include "traces/analysis/waits/waits.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

constexpr double kBeside =
    0.25;                 // of a transfer: with less that is or could be hidden, nothing runs beside it
constexpr int kDeep = 8;  // events that wait for each other, which are followed

std::int64_t& of(Exposure& exposure, ExposureCause cause) {
    return exposure.causes[static_cast<std::size_t>(cause)];
}

}  // namespace

ExposureCause Exposure::main() const {
    return static_cast<ExposureCause>(std::max_element(causes.begin(), causes.end()) - causes.begin());
}

std::int64_t WaitFinder::compute_within(std::size_t event, std::int64_t from, std::int64_t to) const {
    return to > from ? length_within(compute_[trace_.device.rank[event]], {from, to}) : 0;
}

Exposure WaitFinder::exposure(std::size_t event) const {
    const store::DeviceEvents& device = trace_.device;
    Exposure exposure;
    if (device.kind[event] == store::DeviceKind::kernel) return exposure;
    const std::int64_t start = device.start[event], end = device.end[event];
    const auto exposed = [&](std::int64_t from, std::int64_t to) {
        return to > from ? to - from - compute_within(event, from, to) : 0;
    };
    exposure.ns = exposed(start, end);
    if (exposure.ns == 0) return exposure;
    const Wait late = for_last_rank(event);
    of(exposure, ExposureCause::late_rank) = exposed(late.from, late.to);
    if (late.length() > 0) exposure.late = late.rank;
    std::int64_t begin = late.to;
    if (const std::int32_t ahead = ahead_of(event); ahead >= 0) {
        // Two kernels of one communicator at once: the later one waits.
        const std::int64_t free = std::min(device.end[static_cast<std::size_t>(ahead)], end);
        if (free > begin) {
            of(exposure, ExposureCause::queued) = exposed(begin, free);
            exposure.behind = ahead;
            begin = free;
        }
    }
    // Compute that ran during this waiting could have hidden the transfer, too.
    std::int64_t left = exposed(begin, end);
    const auto move = [&](ExposureCause cause, std::int64_t from, std::int64_t to) {
        const std::int64_t hidden = std::min(left, compute_within(event, from, to));
        of(exposure, cause) += hidden;
        left -= hidden;
    };
    const std::int64_t whole = left;
    move(ExposureCause::queued, late.to, begin);
    move(ExposureCause::late_rank, late.from, late.to);
    left -= blame(event, left, exposure);
    const std::int64_t hidden = compute_within(event, begin, end) + whole - left;
    const bool beside = static_cast<double>(hidden) >= kBeside * static_cast<double>(end - begin);
    of(exposure, beside ? ExposureCause::too_long : ExposureCause::nothing) += left;
    return exposure;
}

// Adds what kept the event from starting earlier to the exposure, at most `most`; returns how much.
std::int64_t WaitFinder::blame(std::size_t event, std::int64_t most, Exposure& exposure) const {
    const store::DeviceEvents& device = trace_.device;
    const auto end_of = [&](std::int32_t e) {
        return e < 0 ? std::numeric_limits<std::int64_t>::min() : device.end[static_cast<std::size_t>(e)];
    };
    const RankSteps& steps = steps_[device.rank[event]];
    const int step = trace_.steps.empty() ? 0 : steps.step_at(launched(event));
    const std::int64_t floor = step >= 0 && step < static_cast<int>(steps.steps.size())
                                   ? steps.steps[static_cast<std::size_t>(step)].window.start
                                   : device.start[event];
    std::int64_t left = most;
    const auto take = [&](ExposureCause cause, std::int64_t from, std::int64_t to) {
        const std::int64_t hidden = std::min(left, compute_within(event, from, to));
        of(exposure, cause) += hidden;
        left -= hidden;
        return hidden;
    };
    std::int64_t waited = 0;  // the longest wait of the host
    for (int depth = 0; left > 0 && depth < kDeep; ++depth) {
        const std::int64_t start = device.start[event];
        std::int32_t ahead = last_before(event);
        if (const std::int32_t other = ahead_of(event);
            end_of(other) <= start && end_of(other) > end_of(ahead))
            ahead = other;
        const std::int32_t on = dependency(event, true);
        const std::int64_t queue = std::min(end_of(ahead), start), ready = std::max(end_of(on), floor);
        const std::int32_t call = launch_of(event);
        const std::int64_t issued = launched(event);
        if (call >= 0 && issued > std::max(queue, ready)) {
            std::vector<Wait> host;
            add_host(host, event, std::max(queue, ready),
                     std::min(start, trace_.runtime.end[static_cast<std::size_t>(call)]));
            for (auto piece = host.rbegin(); piece != host.rend() && left > 0; ++piece) {
                const bool waits = piece->what == WaitFor::device;
                const std::int64_t ns = take(waits ? ExposureCause::host_waited : ExposureCause::issued_late,
                                             piece->from, piece->to);
                if (!waits || ns <= waited) continue;
                waited = ns;
                exposure.call = piece->call;
                exposure.waited = piece->on;
            }
            if (queue > ready) break;
        } else if (queue >= ready) {
            // Kernels of its own stream, which it must follow, are no queue.
            if (ahead < 0 || device.kind[static_cast<std::size_t>(ahead)] == store::DeviceKind::kernel) break;
            const std::int64_t from = std::max(issued, ready);
            const Wait late = for_last_rank(static_cast<std::size_t>(ahead));
            const std::int64_t late_from = std::clamp(late.from, from, queue),
                               late_to = std::clamp(late.to, from, queue);
            const std::int64_t queued =
                take(ExposureCause::queued, late_to, queue) + take(ExposureCause::queued, from, late_from);
            if (queued > 0 && exposure.behind < 0) exposure.behind = ahead;
            if (take(ExposureCause::late_rank, late_from, late_to) > 0 && !exposure.late.known())
                exposure.late = late.rank;
            break;
        }
        if (on < 0 || end_of(on) < floor) break;
        event = static_cast<std::size_t>(on);
    }
    return most - left;
}

}  // namespace shardscope::traces::analysis
