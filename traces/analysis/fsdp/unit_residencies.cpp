// See unit_residencies.h.
#include "traces/analysis/fsdp/unit_residencies.h"

#include <algorithm>
#include <string_view>

#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {

BlockingCalls::BlockingCalls(const store::Trace& trace, std::span<const std::int32_t> left_out)
    : trace_(trace), by_thread_(trace.threads.size()) {
    std::vector<std::int8_t> blocking(trace.strings.size(), -1);
    std::vector<bool> no(trace.ranges.size(), false);
    for (const std::int32_t range : left_out) no[static_cast<std::size_t>(range)] = true;
    const store::RuntimeCalls& calls = trace.runtime;
    for (std::size_t i = 0; i < calls.size(); ++i) {
        std::int8_t& known = blocking[static_cast<std::size_t>(calls.name[i])];
        if (known < 0) known = trace.strings[calls.name[i]].find("Synchronize") != std::string_view::npos;
        if (known == 0) continue;
        const std::int32_t range = calls.range[i];
        if (range >= 0 && no[static_cast<std::size_t>(range)]) continue;
        by_thread_[calls.thread[i]].push_back(static_cast<std::int32_t>(i));
    }
}

std::int64_t BlockingCalls::since(std::uint16_t thread, std::int64_t time) const {
    const std::vector<std::int32_t>& calls = by_thread_[thread];
    const auto after = std::partition_point(calls.begin(), calls.end(), [&](std::int32_t call) {
        return trace_.runtime.start[static_cast<std::size_t>(call)] <= time;
    });
    if (after == calls.begin()) return time;
    const auto call = static_cast<std::size_t>(*(after - 1));
    return trace_.runtime.end[call] >= time ? trace_.runtime.start[call] : time;
}

void UnitCompute::add(Interval kernel, store::UnitIndex unit) {
    kernel.start = std::max(kernel.start, last_end_);
    if (kernel.start >= kernel.end) return;
    last_end_ = kernel.end;
    if (!pieces_.empty() && pieces_.back().unit == unit && pieces_.back().time.end == kernel.start) {
        pieces_.back().time.end = kernel.end;
    } else {
        pieces_.push_back({kernel, unit});
    }
}

std::int64_t UnitCompute::overlap(Interval time,
                                  std::unordered_map<store::UnitIndex, std::int64_t>& by_unit) const {
    std::int64_t sum = 0;
    auto piece = std::partition_point(pieces_.begin(), pieces_.end(),
                                      [&](const Piece& p) { return p.time.end <= time.start; });
    for (; piece != pieces_.end() && piece->time.start < time.end; ++piece) {
        const std::int64_t both =
            std::min(piece->time.end, time.end) - std::max(piece->time.start, time.start);
        by_unit[piece->unit] += both;
        sum += both;
    }
    return sum;
}

UnitResidencies::UnitResidencies(const store::Trace& trace, std::size_t units, const BlockingCalls& blocking)
    : trace_(trace), blocking_(blocking), units_(units), by_rank_and_unit_(trace.ranks.size() * units) {}

UnitResidencies::Unit& UnitResidencies::of(std::size_t event, store::UnitIndex unit) {
    return by_rank_and_unit_[trace_.device.rank[event] * units_ + unit.at()];
}

void UnitResidencies::add_gather(std::size_t id, std::size_t event, store::UnitIndex unit, std::int32_t step,
                                 std::int64_t launched) {
    Gather gather;
    gather.id = id;
    gather.event = event;
    gather.step = step;
    gather.launched = launched;
    of(event, unit).gathers.push_back(gather);
}

void UnitResidencies::add_kernel(std::size_t event, store::UnitIndex unit, std::int64_t launched,
                                 std::int64_t stream_free_from) {
    Unit& all = of(event, unit);
    wait(all, event, launched, stream_free_from);
    const auto before = std::find_if(all.gathers.rbegin(), all.gathers.rend(),
                                     [&](const Gather& g) { return g.launched <= launched; });
    if (before == all.gathers.rend()) return;  // uses a gather before the trace
    const store::DeviceEvents& device = trace_.device;
    if (device.start[event] < device.end[before->event]) return;  // it cannot use an unfinished gather
    before->last_use = before->used ? std::max(before->last_use, device.end[event]) : device.end[event];
    before->used = true;
}

void UnitResidencies::wait(Unit& unit, std::size_t kernel, std::int64_t launched,
                           std::int64_t stream_free_from) const {
    const store::DeviceEvents& device = trace_.device;
    std::int64_t idle_from = std::max(stream_free_from, launched);
    const std::int32_t launch = device.launch[kernel];
    for (; unit.waited_for < unit.gathers.size(); ++unit.waited_for) {
        Gather& gather = unit.gathers[unit.waited_for];
        const std::int64_t ready = device.end[gather.event];
        if (gather.launched > launched || ready > device.start[kernel]) break;
        std::int64_t from = idle_from;
        if (launched > ready && launch >= 0) {
            const std::uint16_t thread = trace_.runtime.thread[static_cast<std::size_t>(launch)];
            from = std::max(stream_free_from, blocking_.since(thread, ready));
        }
        if (from < ready) gather.wait = ready - from;
        idle_from = std::max(idle_from, ready);
        stream_free_from = std::max(stream_free_from, ready);
    }
}

std::vector<UnitResidencies::Times> UnitResidencies::times() const {
    std::vector<Times> result;
    for (const Unit& unit : by_rank_and_unit_) add_times(unit, result);
    return result;
}

void UnitResidencies::add_times(const Unit& unit, std::vector<Times>& times) const {
    const store::DeviceEvents& device = trace_.device;
    const std::vector<Gather>& all = unit.gathers;
    const std::size_t offset = times.size();
    std::size_t first = 0;  // of the gathers that belong together
    for (std::size_t g = 0; g < all.size(); ++g) {
        times.push_back({.id = all[g].id, .wait = all[g].wait});
        if (g > 0 && all[g - 1].used && all[g - 1].step == all[g].step) {
            times.back().freed = std::max<std::int64_t>(device.start[all[g].event] - all[g - 1].last_use, 0);
        }
        if (all[g].used) {
            times[offset + first].held =
                std::max<std::int64_t>(all[g].last_use - device.start[all[first].event], 0);
        } else if (g + 1 < all.size() && all[g + 1].launched < device.end[all[g].event]) {
            continue;
        }
        first = g + 1;
    }
}

}  // namespace shardscope::traces::analysis
