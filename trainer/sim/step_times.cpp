#include "trainer/sim/step_times.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

#include "traces/schema/sort_rows.h"

namespace shardscope::trainer::sim {

namespace {

using traces::analysis::Interval;
using traces::analysis::IntervalSet;

double seconds(Time ns) {
    return static_cast<double>(ns) * 1e-9;
}

// The part of a set that an interval may overlap.
std::span<const Interval> near(const IntervalSet& set, Interval of) {
    const auto first = std::partition_point(set.begin(), set.end(),
                                            [&](const Interval& own) { return own.end <= of.start; });
    const auto last =
        std::partition_point(first, set.end(), [&](const Interval& own) { return own.start < of.end; });
    return {first, last};
}

Time outside(const IntervalSet& what, const IntervalSet& of) {
    if (what.empty()) return 0;
    return traces::analysis::length(
        traces::analysis::subtract(what, near(of, {what.front().start, what.back().end})));
}

}  // namespace

void StepTimes::add(const StreamItem& item, Time start, Time end) {
    const auto number = static_cast<std::size_t>(item.step);
    if (steps_.size() <= number) steps_.resize(number + 1);
    Step& step = steps_[number];
    step.end = std::max(step.end, end);
    if (item.kind == StreamItem::Kind::collective) {
        step.collectives.push_back({item.op, {start, end}});
    } else if (item.op->kind == plan::OpKind::kernel) {
        step.kernels.push_back({start, end});
    } else if (!is_disk_stream(item.op->stream)) {
        step.copies.push_back({start, end});
    }
}

std::vector<SimStep> StepTimes::steps(const std::vector<HostWalk::Step>& host, Time begin) {
    std::vector<Interval> all;
    for (const Step& step : steps_) all.insert(all.end(), step.kernels.begin(), step.kernels.end());
    kernels_ = traces::analysis::make_union(std::move(all));
    steps_.resize(host.size());  // a step may launch nothing
    std::vector<SimStep> result;
    ends_ = {begin};
    for (std::size_t s = 0; s < host.size(); ++s) {
        const Step& step = steps_[s];
        const Time end = std::max({begin, step.end, host[s].end});
        SimStep& out = result.emplace_back();
        out.seconds = seconds(end - begin);
        begin = end;
        ends_.push_back(end);
        std::vector<Interval> collectives;
        for (const Collective& collective : step.collectives) collectives.push_back(collective.time);
        const IntervalSet communication = traces::analysis::make_union(std::move(collectives));
        out.kernel_s = seconds(traces::analysis::length(traces::analysis::make_union(step.kernels)));
        out.copy_s = seconds(traces::analysis::length(traces::analysis::make_union(step.copies)));
        out.communication_s = seconds(traces::analysis::length(communication));
        out.exposed_communication_s = seconds(outside(communication, kernels_));
        out.peak_bytes = host[s].peak_bytes;
    }
    return result;
}

Interval StepTimes::last(std::size_t count) const {
    return {ends_[ends_.size() - 1 - std::min(count, ends_.size() - 1)], ends_.back()};
}

std::array<double, plan::kGroupNames.size()> StepTimes::exposed_by_group() const {
    std::array<double, plan::kGroupNames.size()> exposed{};
    if (steps_.empty()) return exposed;
    std::array<std::vector<Interval>, plan::kGroupNames.size()> by_group;
    for (const Collective& collective : steps_.back().collectives)
        by_group[static_cast<std::size_t>(collective.op->collective().group)].push_back(collective.time);
    IntervalSet counted;  // exposed, of the groups so far
    const auto add = [&](std::size_t group) {
        IntervalSet own =
            traces::analysis::subtract(traces::analysis::make_union(std::move(by_group[group])), kernels_);
        exposed[group] = seconds(traces::analysis::length(traces::analysis::subtract(own, counted)));
        std::vector<Interval> all(counted.begin(), counted.end());
        all.insert(all.end(), own.begin(), own.end());
        counted = traces::analysis::make_union(std::move(all));
    };
    constexpr auto kPipeline = static_cast<std::size_t>(plan::Group::pipeline);
    for (std::size_t group = 0; group < exposed.size(); ++group)
        if (group != kPipeline) add(group);
    add(kPipeline);
    return exposed;
}

std::vector<UnitExposure> StepTimes::exposures() const {
    std::map<std::tuple<int, plan::Phase, plan::Operation>, UnitExposure> found;
    if (steps_.empty()) return {};
    for (const Collective& collective : steps_.back().collectives) {
        const plan::Op& op = *collective.op;
        UnitExposure& out = found[{op.unit, op.phase, op.collective().operation}];
        out.unit = op.unit;
        out.phase = op.phase;
        out.operation = op.collective().operation;
        ++out.count;
        out.bytes += op.bytes;
        out.seconds += seconds(collective.time.length());
        out.exposed_s += seconds(outside({collective.time}, kernels_));
    }
    std::vector<UnitExposure> result;
    result.reserve(found.size());
    for (const auto& [key, exposure] : found) result.push_back(exposure);
    traces::schema::sort_rows(
        result, [](const UnitExposure& a, const UnitExposure& b) { return a.exposed_s > b.exposed_s; });
    return result;
}

}  // namespace shardscope::trainer::sim
