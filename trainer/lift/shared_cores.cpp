#include "trainer/lift/shared_cores.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "traces/analysis/communication/matching.h"
#include "traces/schema/memory_kinds.h"
#include "traces/store/columns/trace.h"
#include "trainer/lift/settings.h"

namespace shardscope::trainer::lift {

namespace {

using traces::analysis::Interval;
using traces::store::Trace;

// Worker threads of the one process that runs all ranks; 0: there is no such process.
int workers_of(const Trace& trace) {
    if (trace.config_value("run.device") != "cpu" || std::ssize(trace.ranks) != ranks_of(trace)) return 0;
    for (const traces::store::Rank& rank : trace.ranks)
        if (rank.global_pid != trace.ranks.front().global_pid) return 0;
    const std::string_view text = trace.config_value("workers");
    int workers = 0;
    std::from_chars(text.data(), text.data() + text.size(), workers);
    return std::max(workers, 0);  // a file may contain anything
}

// The number of open intervals from each time at which it changes.
std::vector<std::pair<std::int64_t, int>> counts_of(const std::vector<Interval>& intervals) {
    std::vector<std::pair<std::int64_t, int>> changes;
    for (const Interval& interval : intervals) {
        if (interval.length() <= 0) continue;
        changes.emplace_back(interval.start, 1);
        changes.emplace_back(interval.end, -1);
    }
    std::sort(changes.begin(), changes.end());  // at equal times, ends come before starts
    std::vector<std::pair<std::int64_t, int>> counts;
    int active = 0;
    for (const auto& [time, by] : changes) {
        active += by;
        if (!counts.empty() && counts.back().first == time) {
            counts.back().second = active;
        } else {
            counts.emplace_back(time, active);
        }
    }
    return counts;
}

}  // namespace

SharedCores::SharedCores(const Trace& trace, const traces::analysis::Communications& communications)
    : count_(workers_of(trace)) {
    if (count_ == 0) return;
    std::vector<Interval> work;
    for (std::size_t e = 0; e < trace.device.size(); ++e) {
        if (trace.device.kind[e] != traces::store::DeviceKind::communication &&
            !traces::schema::is_of_file(trace.device.copy_kind[e]))
            work.push_back({trace.device.start[e], trace.device.end[e]});
    }
    for (const auto& [time, active] : counts_of(work)) kernels_.push_back({time, active});
    // In a collective, each member uses its core only after the last arrival.
    for (const traces::analysis::CollectiveMatch& match : communications.matches) {
        if (match.transfer_ns <= 0) continue;
        for (const traces::analysis::Communication& part : communications.of(match)) {
            if (part.event < 0) continue;
            const auto e = static_cast<std::size_t>(part.event);
            work.push_back({trace.device.end[e] - match.transfer_ns, trace.device.end[e]});
        }
    }
    std::int64_t since = 0;
    bool full = false;
    for (const auto& [time, active] : counts_of(work)) {
        if (std::exchange(full, active >= count_)) traces::analysis::append_merged(full_, {since, time});
        since = time;
    }
}

std::int64_t SharedCores::full_inside(Interval interval) const {
    if (interval.length() <= 0) return 0;
    auto first = std::upper_bound(full_.begin(), full_.end(), interval.start,
                                  [](std::int64_t time, const Interval& own) { return time < own.end; });
    std::int64_t sum = 0;
    for (; first != full_.end() && first->start < interval.end; ++first)
        sum += std::min(first->end, interval.end) - std::max(first->start, interval.start);
    return sum;
}

std::int64_t SharedCores::transfer_ns(Interval transfer, int members) const {
    auto next = std::upper_bound(kernels_.begin(), kernels_.end(), transfer.start,
                                 [](std::int64_t time, const Change& own) { return time < own.time; });
    int active = next == kernels_.begin() ? 0 : std::prev(next)->active;
    double sum = 0;
    for (std::int64_t at = transfer.start; at < transfer.end; ++next) {
        const std::int64_t until = next == kernels_.end() ? transfer.end : std::min(next->time, transfer.end);
        const double share = std::clamp(static_cast<double>(count_ - active) / members, 0.0, 1.0);
        sum += share * static_cast<double>(until - at);
        at = until;
        if (next == kernels_.end()) break;
        active = next->active;
    }
    return std::llround(sum);
}

}  // namespace shardscope::trainer::lift
