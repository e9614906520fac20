// Sums by part and step of each run, joined by name; see compare_parts.h.
#include "traces/analysis/compare/compare_parts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>

#include <fmt/core.h>

#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/communication/host_collectives.h"
#include "traces/analysis/communication/matching.h"
#include "traces/analysis/fsdp/units.h"
#include "traces/analysis/modules/module_join.h"
#include "traces/analysis/modules/modules.h"
#include "traces/analysis/modules/operators.h"
#include "traces/schema/sort_rows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

// Some reports read the whole trace: the spread of their parts is taken from at most this many steps.
constexpr std::size_t kSampledSteps = 20;
constexpr double kUnknownNumber = std::numeric_limits<double>::quiet_NaN();

// Which times of modules and operators are compared; unknown: only other runs have device times.
enum class Clock { device, host, unknown };
double chosen(Clock clock, double device, double host) {
    return clock == Clock::device ? device : clock == Clock::host ? host : kUnknownNumber;
}

// The sums of one part in one run.
struct PartSums {
    double ns = 0, times = 0, bytes = 0;
    std::map<std::int64_t, double> by_step;  // step number -> ns of all ranks
};

using RunParts = std::map<std::string, PartSums>;

// How many selected ranks kept each selected step; a trace without steps has one, number 0.
std::map<std::int64_t, int> kept_steps(const store::Trace& trace, const TraceSteps& steps,
                                       const Selection& selection) {
    std::map<std::int64_t, int> kept;
    for (const store::RankIndex rank : selected_ranks(trace, selection)) {
        for (const StepWindow& step : selected_windows(steps.ranks[rank.at()], selection))
            ++kept[step.number];
    }
    return kept;
}

// Sums device events under integer keys, one for each part, so that names are not handled per event.
class EventSums {
  public:
    EventSums(const store::Trace& trace, const TraceSteps& steps, const Selection& selection)
        : trace_(trace), steps_(steps), selected_(selected_events(trace, steps, selection)) {}

    // Counts `event` for the part `key` if its step is kept.
    void add(std::size_t event, std::uint64_t key, std::int64_t bytes) {
        const std::int32_t step = steps_.event[event];
        const RankSteps& rank = steps_.ranks[trace_.device.rank[event]];
        if (step < 0 || step >= rank.kept() || !selected_[event]) return;
        Sum& sum = sums_[key];
        const auto ns = static_cast<double>(trace_.device.end[event] - trace_.device.start[event]);
        sum.total.ns += ns;
        sum.total.times += 1;
        sum.total.bytes += static_cast<double>(bytes);
        const std::int64_t number = rank.steps[static_cast<std::size_t>(step)].number;
        if (sum.last_step == nullptr || sum.last_number != number) {  // events of one step come in runs
            sum.last_number = number;
            sum.last_step = &sum.total.by_step[number];
        }
        *sum.last_step += ns;
    }

    template <typename Name>
    RunParts named(Name name) const {
        RunParts parts;
        for (const auto& [key, sum] : sums_) {
            PartSums& part = parts[name(key)];  // several keys may have the same name
            part.ns += sum.total.ns;
            part.times += sum.total.times;
            part.bytes += sum.total.bytes;
            for (const auto& [number, ns] : sum.total.by_step) part.by_step[number] += ns;
        }
        return parts;
    }

  private:
    struct Sum {
        PartSums total;
        std::int64_t last_number = 0;
        double* last_step = nullptr;  // points into total.by_step
    };
    const store::Trace& trace_;
    const TraceSteps& steps_;
    const std::vector<bool> selected_;
    std::unordered_map<std::uint64_t, Sum> sums_;
};

RunParts kernels_of(const store::Trace& trace, const TraceSteps& steps, const Selection& selection) {
    EventSums sums(trace, steps, selection);
    const store::DeviceEvents& device = trace.device;
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (device.kind[i] != store::DeviceKind::kernel && device.kind[i] != store::DeviceKind::communication)
            continue;
        sums.add(i, static_cast<std::uint64_t>(device.name[i]), 0);
    }
    return sums.named(
        [&](std::uint64_t key) { return std::string(trace.strings[static_cast<schema::StringId>(key)]); });
}

RunParts collectives_of(const store::Trace& trace, const TraceSteps& steps, const Selection& selection) {
    EventSums sums(trace, steps, selection);
    const KernelOperations operations(trace);
    const store::DeviceEvents& device = trace.device;
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (device.kind[i] != store::DeviceKind::communication) continue;
        const std::int32_t row = device.collective[i];
        const auto at = static_cast<std::size_t>(row);
        const schema::Operation operation =
            row >= 0 ? trace.collectives.operation[at] : operations.of_event(i);
        const store::UnitIndex unit =
            row >= 0 ? trace.unit_of_id(trace.collectives.unit[at]) : store::UnitIndex();
        sums.add(i, static_cast<std::uint64_t>(operation) << 32 | static_cast<std::uint32_t>(unit.value),
                 row >= 0 ? trace.collectives.bytes[at] : 0);
    }
    return sums.named([&](std::uint64_t key) {
        const store::UnitIndex unit(static_cast<std::int32_t>(static_cast<std::uint32_t>(key)));
        std::string text(name(static_cast<schema::Operation>(key >> 32)));
        if (unit.known()) text += ", " + trace.units[unit.at()].name;
        return text;
    });
}

// Adds the collectives of ranks whose devices did not communicate.
void add_host_collectives(const store::Trace& trace, const TraceSteps& steps, const Selection& selection,
                          RunParts& parts) {
    for (const auto& [c, in_step] :
         selected_host_collectives(trace, steps, match_communications(trace), selection)) {
        if (!in_step || (selection.rank && trace.ranks[c.rank].number != *selection.rank)) continue;
        const RankSteps& rank = steps.ranks[c.rank];
        const std::int64_t number = rank.steps[static_cast<std::size_t>(rank.step_at(c.start))].number;
        PartSums& part = parts[std::string(name(c.operation))];
        const auto ns = static_cast<double>(c.end - c.start);
        part.ns += ns;
        part.times += 1;
        part.bytes += static_cast<double>(c.bytes);
        part.by_step[number] += ns;
    }
}

RunParts units_of(const store::Trace& trace, const Selection& selection) {
    RunParts parts;
    for (const RankUnits& rank : units_report(trace, selection).ranks) {
        for (const UnitPhase& row : rank.rows) {
            PartSums& part = parts[fmt::format("{}, {}", row.name, name(row.phase))];
            part.ns += static_cast<double>(row.sum.gather_ns + row.sum.reduce_ns);
            part.times += static_cast<double>(row.sum.gathers + row.sum.reductions);
            part.bytes += static_cast<double>(row.sum.gather_bytes + row.sum.reduce_bytes);
            for (const UnitStep& step : row.steps) {
                part.by_step[step.number] += static_cast<double>(step.costs.gather_ns + step.costs.reduce_ns);
            }
        }
    }
    return parts;
}

// Calls `take(path, node)` for every row of a view, with its own path.
template <typename Take>
void each_module(const std::vector<ModuleNode>& nodes, const std::string& path, const Take& take) {
    for (const ModuleNode& node : nodes) {
        const std::string own = path.empty() ? node.name : path + "/" + node.name;
        take(own, node);
        each_module(node.children, own, take);
    }
}

// Sums of reports that read the whole trace: one over all kept steps, and one for each of at most
// kSampledSteps of them for the spread. `add(selection, take)` passes every part of such a report to
// `take(name, ns, times)`.
template <typename Add>
RunParts sampled(const store::Trace& trace, const std::map<std::int64_t, int>& kept,
                 const Selection& selection, const Add& add) {
    RunParts parts;
    if (kept.empty()) return parts;
    Selection all = selection;
    if (!trace.steps.empty()) {
        all.first_step = kept.begin()->first;
        all.last_step = kept.rbegin()->first;
    }
    add(all, [&](const std::string& name, double ns, double times) {
        PartSums& part = parts[name];
        part.ns += ns;
        part.times += times;
    });
    if (trace.steps.empty()) return parts;
    const std::size_t stride = (kept.size() + kSampledSteps - 1) / kSampledSteps;
    std::size_t number = 0;
    for (const auto& entry : kept) {
        const std::int64_t step = entry.first;  // clang 14 cannot capture structured bindings
        if (number++ % stride != 0) continue;
        for (auto& [name, part] : parts) part.by_step[step] += 0;
        Selection one = selection;
        one.first_step = one.last_step = step;
        add(one, [&](const std::string& name, double ns, double) { parts[name].by_step[step] += ns; });
    }
    return parts;
}

RunParts modules_of(const store::Trace& trace, const std::map<std::int64_t, int>& kept,
                    const Selection& selection, Clock clock) {
    std::map<int, JoinedPaths> joined;  // by rank: of all kept steps, which are added first
    return sampled(trace, kept, selection, [&](const Selection& part, const auto& take) {
        for (const RankModules& rank : module_view(trace, part).ranks) {
            const auto [names, added] = joined.try_emplace(rank.rank);
            if (added) names->second = joined_paths(rank);
            const JoinedPaths& known = names->second;
            each_module(rank.modules, "", [&](const std::string& path, const ModuleNode& node) {
                const auto name = known.find(path);
                take(name != known.end() ? name->second : path,
                     chosen(clock, node.device_self_us, node.host_self_us) * 1e3,
                     static_cast<double>(node.occurrences));
            });
        }
    });
}

RunParts operators_of(const store::Trace& trace, const std::map<std::int64_t, int>& kept,
                      const Selection& selection, Clock clock) {
    return sampled(trace, kept, selection, [&](const Selection& part, const auto& take) {
        const OperatorsReport report = operators_report(trace, part);
        for (const RankOperators& rank : report.ranks) {
            for (const OperatorStats& row : rank.operators) {
                take(std::string(row.name),
                     chosen(clock, static_cast<double>(row.device_self), static_cast<double>(row.host_self)),
                     static_cast<double>(row.calls));
            }
        }
    });
}

PartFigures figures(const PartSums& sums, const std::map<std::int64_t, int>& kept, bool sampled) {
    PartFigures result;
    double rank_steps = 0;
    std::vector<double> steps;
    for (const auto& [number, ranks] : kept) {
        rank_steps += ranks;
        const auto at = sums.by_step.find(number);
        if (at == sums.by_step.end() && sampled) continue;  // not sampled; else: not in the step
        steps.push_back(at == sums.by_step.end() ? 0 : at->second * 1e-3 / ranks);
    }
    if (rank_steps == 0) return result;
    result.present = true;
    result.us = sums.ns * 1e-3 / rank_steps;
    result.times = sums.times / rank_steps;
    result.bytes = sums.bytes > 0 ? sums.bytes / rank_steps : kUnknownNumber;
    if (!std::isnan(result.us)) result.spread = spread_of(std::move(steps));
    return result;
}

RunParts parts_of(const store::Trace& trace, CompareBy by, const TraceSteps& steps,
                  const std::map<std::int64_t, int>& kept, const Selection& selection, Clock clock) {
    switch (by) {
        case CompareBy::module:
            return modules_of(trace, kept, selection, clock);
        case CompareBy::kernel:
            return kernels_of(trace, steps, selection);
        case CompareBy::collective: {
            RunParts parts = collectives_of(trace, steps, selection);
            add_host_collectives(trace, steps, selection, parts);
            return parts;
        }
        case CompareBy::unit:
            return units_of(trace, selection);
        case CompareBy::operation:
            return operators_of(trace, kept, selection, clock);
    }
    return {};
}

}  // namespace

double ComparedPart::largest_difference() const {
    double largest = 0;
    for (const PartFigures& run : runs) {
        const double more = run.us - runs.front().us;
        if (std::abs(more) > std::abs(largest)) largest = more;
    }
    return largest;
}

PartsComparison compare_parts(const std::vector<const store::Trace*>& traces, CompareBy by,
                              const Selection& selection) {
    return compare_parts(traces, by, std::vector<Selection>(traces.size(), selection));
}

PartsComparison compare_parts(const std::vector<const store::Trace*>& traces, CompareBy by,
                              const std::vector<Selection>& selections) {
    PartsComparison result;
    result.whole = compare(traces, selections);
    result.by = by;
    const auto on_device = [](const store::Trace* trace) { return trace->device.size() > 0; };
    result.on_host = std::none_of(traces.begin(), traces.end(), on_device);
    std::map<std::string, ComparedPart> parts;
    for (std::size_t run = 0; run < traces.size(); ++run) {
        const TraceSteps steps = find_steps(*traces[run]);
        const Selection& selection = selections[run];
        const std::map<std::int64_t, int> kept = kept_steps(*traces[run], steps, selection);
        const bool by_sample = by == CompareBy::module || by == CompareBy::operation;
        const Clock clock = on_device(traces[run]) ? Clock::device
                            : result.on_host       ? Clock::host
                                                   : Clock::unknown;
        for (const auto& [name, sums] : parts_of(*traces[run], by, steps, kept, selection, clock)) {
            ComparedPart& part = parts[name];
            part.runs.resize(traces.size());
            part.runs[run] = figures(sums, kept, by_sample);
        }
    }
    for (auto& [name, part] : parts) {
        part.name = name;
        result.parts.push_back(std::move(part));
    }
    schema::sort_rows(result.parts, [](const ComparedPart& a, const ComparedPart& b) {
        return std::abs(a.largest_difference()) > std::abs(b.largest_difference());
    });
    return result;
}

std::optional<CompareBy> compare_by(std::string_view name) {
    const auto at = std::find(kCompareByNames.begin(), kCompareByNames.end(), name);
    if (at == kCompareByNames.end()) return std::nullopt;
    return static_cast<CompareBy>(at - kCompareByNames.begin());
}

Fields<PartFigures> part_fields() {
    using P = PartFigures;
    static constexpr Field<P> kFields[] = {
        {{"us", "", Unit::us, "Mean over the ranks and kept steps."}, value_of<&P::us>},
        {{"median_us", "", Unit::us, "Median over the steps."},
         [](const P& part) { return store::Cell(part.spread.median); }},
        {{"spread_us", "", Unit::us, "Half the interquartile range of the steps."},
         [](const P& part) { return store::Cell(part.spread.spread); }},
        {{"times", "", Unit::number, "Mean number of times."}, value_of<&P::times>},
        {{"bytes", "", Unit::bytes, "Mean bytes, of collectives and units."}, value_of<&P::bytes>},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
