// See area.h: one pass over the events of all kinds in order of start, so that a union is a running end.
#include "traces/analysis/area/area.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "traces/analysis/time/device_time.h"
#include "traces/schema/sort_rows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

constexpr std::size_t kBetweenChecks = 4096;  // events between checks of `cancel`
constexpr double kSpread = 20;                // longest / shortest from which bins are logarithmic

bool has(const std::vector<bool>& rows, std::size_t at) {
    return at < rows.size() && rows[at];
}

bool in_row(const store::Trace& trace, const Area& area, store::EventRef event) {
    const auto i = static_cast<std::size_t>(event.index);
    switch (event.kind) {
        case store::EventKind::device: {
            if (has(area.streams, trace.device.stream[i])) return true;
            if (area.groups.empty() || trace.device.kind[i] != store::DeviceKind::communication) return false;
            const std::int32_t c = trace.device.collective[i];
            const std::int64_t group = c < 0 ? -1 : trace.collectives.group[static_cast<std::size_t>(c)];
            return std::find(area.groups.begin(), area.groups.end(), group) != area.groups.end();
        }
        case store::EventKind::range:
            return has(area.threads, trace.ranges.thread[i]);
        case store::EventKind::runtime:
            return has(area.threads, trace.runtime.thread[i]);
        case store::EventKind::wait:
            return has(area.waits, trace.synchronizations.rank[i]);
        case store::EventKind::mark:
            return has(area.marks, trace.marks.thread[i]);
        case store::EventKind::none:
            break;
    }
    return false;
}

// An instant counts where it is.
bool in_time(const Interval& area, store::EventTime event) {
    return event.start < area.end && (event.end > area.start || event.start >= area.start);
}

constexpr std::array kVisited = {store::EventKind::device, store::EventKind::range, store::EventKind::runtime,
                                 store::EventKind::wait, store::EventKind::mark};

std::size_t size_of(const store::Trace& trace, store::EventKind kind) {
    return with_columns(trace, kind, [](const auto& events) { return events.size(); });
}

// Calls visit(event, time) for each event of the area, in order of start.
template <class Visit>
void visit_area(const store::Trace& trace, const Area& area, const std::atomic<bool>& cancel, Visit visit) {
    struct Next {
        store::EventRef event;
        std::int64_t size = 0;
        store::EventTime time;
    };
    std::vector<Next> all;
    for (const store::EventKind kind : kVisited) {
        const auto size = static_cast<std::int64_t>(size_of(trace, kind));
        if (size > 0) all.push_back({{kind, 0}, size, time_of(trace, {kind, 0})});
    }
    for (std::size_t seen = 0; !all.empty(); ++seen) {
        if (seen % kBetweenChecks == 0 && cancel) return;
        const auto next = std::min_element(
            all.begin(), all.end(), [](const Next& a, const Next& b) { return a.time.start < b.time.start; });
        if (next->time.start >= area.time.end) return;
        if (in_time(area.time, next->time) && in_row(trace, area, next->event) &&
            (!area.name || name_id_of(trace, next->event) == *area.name)) {
            visit(next->event, next->time);
        }
        if (++next->event.index == next->size) {
            all.erase(next);
        } else {
            next->time = time_of(trace, next->event);
        }
    }
}

// The union of intervals that come in order of start.
class RunningUnion {
  public:
    // The part of the next interval that is not covered yet.
    Interval add(Interval next) {
        const Interval fresh{std::max(next.start, end_), std::max(next.end, end_)};
        end_ = fresh.end;
        return fresh;
    }

  private:
    std::int64_t end_ = std::numeric_limits<std::int64_t>::min();
};

// The figures of one group while its events come.
class Summing {
  public:
    void add(const Interval& inside, store::EventTime whole) {
        const std::int64_t duration = whole.end - whole.start;
        group.shortest = group.count == 0 ? duration : std::min(group.shortest, duration);
        group.longest = std::max(group.longest, duration);
        group.whole += duration;
        ++group.count;
        if (inside.start > whole.start || inside.end < whole.end) ++group.cut;
        group.sum += inside.length();
        group.busy += all_.add(inside).length();
    }
    // `compute`: the rank's kernels.
    void add_communication(const Interval& inside, std::size_t rank, const IntervalSet& compute) {
        if (ranks_.size() <= rank) ranks_.resize(rank + 1);
        const Interval fresh = ranks_[rank].add(inside);
        group.communication += fresh.length();
        group.exposed += fresh.length() - length_within(compute, fresh);
    }

    AreaGroup group;

  private:
    RunningUnion all_;
    std::vector<RunningUnion> ranks_;  // of communication
};

}  // namespace

Area whole_area(const store::Trace& trace) {
    return {.streams = std::vector<bool>(trace.streams.size(), true),
            .threads = std::vector<bool>(trace.threads.size(), true),
            .marks = std::vector<bool>(trace.threads.size(), true),
            .waits = std::vector<bool>(trace.ranks.size(), true),
            .groups = {},
            .time = {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()},
            .name = std::nullopt};
}

AreaReport area_report(const store::Trace& trace, const Area& area, GroupBy by,
                       const std::atomic<bool>& cancel) {
    const EventGroups groups(trace, by);
    const std::vector<KindUnions> unions = device_unions(trace);
    std::vector<std::int32_t> place(groups.size() + 1, -1);  // the last one: of no group
    std::vector<Summing> sums;
    Summing all;
    visit_area(trace, area, cancel, [&](store::EventRef event, store::EventTime time) {
        const int group = groups.of(event);
        std::int32_t& at = place[group < 0 ? groups.size() : static_cast<std::size_t>(group)];
        if (at < 0) {
            at = static_cast<std::int32_t>(sums.size());
            sums.emplace_back().group.group = group;
        }
        const Interval inside{std::max(time.start, area.time.start), std::min(time.end, area.time.end)};
        for (Summing* sum : {&all, &sums[static_cast<std::size_t>(at)]}) {
            sum->add(inside, time);
            const auto i = static_cast<std::size_t>(event.index);
            if (event.kind == store::EventKind::device &&
                trace.device.kind[i] == store::DeviceKind::communication) {
                const std::size_t rank = trace.device.rank[i];
                sum->add_communication(inside, rank, analysis::of(unions[rank], store::DeviceKind::kernel));
            }
        }
    });
    AreaReport report;
    report.all = std::move(all.group);
    for (Summing& sum : sums) {
        sum.group.name = groups.name(sum.group.group);
        report.groups.push_back(std::move(sum.group));
    }
    schema::sort_rows(report.groups, [](const AreaGroup& a, const AreaGroup& b) {
        return a.sum != b.sum ? a.sum > b.sum : a.name < b.name;
    });
    return report;
}

store::EventList area_events(const store::Trace& trace, const Area& area, GroupBy by,
                             std::optional<int> group, const std::atomic<bool>& cancel) {
    std::optional<EventGroups> groups;
    if (group) groups.emplace(trace, by);
    store::EventList events;
    visit_area(trace, area, cancel, [&](store::EventRef event, store::EventTime) {
        if (!groups || groups->of(event) == *group) events.add(event);
    });
    return events;
}

double DurationBins::edge(std::size_t bin) const {
    const double share = static_cast<double>(bin) / static_cast<double>(counts.size());
    return logarithmic ? low * std::pow(high / low, share) : low + (high - low) * share;
}

std::size_t DurationBins::bin_of(std::int64_t duration) const {
    const double at = static_cast<double>(duration);
    const double share =
        logarithmic ? std::log(std::max(at, low) / low) / std::log(high / low) : (at - low) / (high - low);
    const double bin = share * static_cast<double>(counts.size());
    return static_cast<std::size_t>(std::clamp(bin, 0.0, static_cast<double>(counts.size() - 1)));
}

DurationBins duration_bins(const store::Trace& trace, const store::EventList& events, std::size_t bins) {
    DurationBins result;
    result.counts.resize(bins);
    if (events.size() == 0) return result;
    const auto duration = [&](std::size_t i) {
        const store::EventTime time = time_of(trace, events.event(i));
        return time.end - time.start;
    };
    std::int64_t shortest = duration(0), longest = shortest;
    for (std::size_t i = 1; i < events.size(); ++i) {
        shortest = std::min(shortest, duration(i));
        longest = std::max(longest, duration(i));
    }
    result.low = static_cast<double>(shortest);
    result.high = static_cast<double>(longest);
    // An instant has no logarithm: the first bin of a logarithmic axis holds all below 1 ns, too.
    if (result.high > std::max(1.0, result.low) * kSpread) {
        result.logarithmic = true;
        result.low = std::max(1.0, result.low);
    } else if (longest == shortest) {  // the one value is in the middle
        const double half = std::max(0.5, result.low * 0.05);
        result.low -= half;
        result.high += half;
    }
    for (std::size_t i = 0; i < events.size(); ++i) ++result.counts[result.bin_of(duration(i))];
    return result;
}

Fields<AreaGroup> area_fields() {
    static constexpr Field<AreaGroup> kFields[] = {
        {{"name", "Name", Unit::text, "Name, kind, module, unit or rank of the events."},
         [](const AreaGroup& g) { return known_text(g.name); }},
        {{"count", "Count", Unit::count, "Events of which any part lies in the area."},
         value_of<&AreaGroup::count>},
        {{"sum_us", "Sum", Unit::us,
          "Time of the events inside the area: of those that begin before it or end after it, the part "
          "inside. Nested and parallel events count each."},
         micros_of<&AreaGroup::sum>},
        {{"union_us", "Union", Unit::us,
          "Time in the area in which at least one of the events runs, on any of the selected rows."},
         micros_of<&AreaGroup::busy>},
        {{"mean_us", "Mean", Unit::us, "Mean of the whole events, also of those that the area cuts."},
         [](const AreaGroup& g) { return us_cell(g.mean()); }},
        {{"min_us", "Min", Unit::us, "The shortest whole event."}, micros_of<&AreaGroup::shortest>},
        {{"max_us", "Max", Unit::us, "The longest whole event."}, micros_of<&AreaGroup::longest>},
        {{"exposed_us", "Exposed", Unit::us,
          "Communication in the area outside the compute kernels of the same rank; overlapping "
          "communication of a rank counts once, ranks are added up."},
         [](const AreaGroup& g) {
             return g.communication > 0 ? us_cell(static_cast<double>(g.exposed)) : store::Cell();
         }},
        {{"exposed_percent", "Exposed", Unit::percent, "Exposed share of the ranks' communication."},
         [](const AreaGroup& g) {
             return g.communication > 0 ? store::Cell(g.exposed_percent()) : store::Cell();
         }},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
