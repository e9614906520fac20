// See axes.h.
#include "traces/analysis/communication/axes.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/core.h>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/time/device_time.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

// The place of an axis in the order of the rows: "data", "data+shard", "shard", ..., names that no mesh has,
// unknown.
auto order_of(const AxisTraffic& row) {
    const std::string_view first = std::string_view(row.axis).substr(0, row.axis.find('+'));
    const auto* const at = std::find_if(schema::kMeshAxes.begin(), schema::kMeshAxes.end(),
                                        [&](const schema::MeshAxis& axis) { return axis.name == first; });
    return std::tuple(row.axis.empty(), at - schema::kMeshAxes.begin(), std::string_view(row.axis));
}

class AxisAnalysis {
  public:
    AxisAnalysis(const store::Trace& trace, const Selection& selection, const TraceSteps& steps,
                 const Communications& all)
        : trace_(trace), steps_(steps), all_(all), selected_(selected_events(trace, steps, selection)) {
        windows_.resize(trace.ranks.size());
        for (const store::RankIndex rank : selected_ranks(trace, selection)) {
            for (const StepWindow& step : selected_windows(steps.ranks[rank.at()], selection))
                windows_[rank.at()].push_back(step.window);
        }
    }

    std::vector<AxisTraffic> rows() {
        for (const CollectiveMatch& match : all_.matches) add(match);
        add_times();
        std::int64_t steps = 0;
        for (const std::vector<Interval>& rank : windows_) steps += static_cast<std::int64_t>(rank.size());
        std::vector<AxisTraffic> rows;
        for (Axis& axis : axes_) {
            if (axis.row.collectives == 0) continue;
            axis.row.steps = steps;
            axis.row.groups = static_cast<std::int64_t>(axis.groups.size());
            axis.row.algbw_gbps = axis.rates.algbw();
            axis.row.busbw_gbps = axis.rates.busbw();
            rows.push_back(std::move(axis.row));
        }
        std::sort(rows.begin(), rows.end(),
                  [](const AxisTraffic& a, const AxisTraffic& b) { return order_of(a) < order_of(b); });
        return rows;
    }

  private:
    struct Axis {
        AxisTraffic row;
        Bandwidths rates;
        std::set<std::int64_t> groups;
        std::vector<IntervalSet> when;  // by rank index: union of its device events
    };

    // The axis of a row of Trace::collectives.
    Axis& axis_at(std::size_t row) {
        const std::int64_t group = trace_.collectives.group[row];
        const auto [at, is_new] = places_.try_emplace(group, axes_.size());
        if (!is_new) return axes_[at->second];
        const std::string_view name = axis_of(trace_, group);
        const auto same =
            std::find_if(axes_.begin(), axes_.end(), [&](const Axis& axis) { return axis.row.axis == name; });
        at->second = static_cast<std::size_t>(same - axes_.begin());
        if (same == axes_.end()) {
            axes_.emplace_back().row.axis = name;
            axes_.back().when.resize(trace_.ranks.size());
        }
        return axes_[at->second];
    }

    void add(const CollectiveMatch& match) {
        const auto parts = all_.of(match);
        const auto is_selected = [this](const Communication& part) {
            return part.event >= 0 && selected_[static_cast<std::size_t>(part.event)];
        };
        if (parts.front().row < 0 || std::none_of(parts.begin(), parts.end(), is_selected)) return;
        const auto row = static_cast<std::size_t>(parts.front().row);
        const std::int64_t bytes = trace_.collectives.bytes[row];
        const int ranks = trace_.collectives.group_size[row];
        Axis& axis = axis_at(row);
        axis.row.group_size = axis.row.collectives == 0 || axis.row.group_size == ranks ? ranks : 0;
        axis.groups.insert(trace_.collectives.group[row]);
        ++axis.row.collectives;
        axis.row.bytes += bytes;
        axis.row.transfer_ns += match.transfer_ns;
        axis.rates.add(parts.front().operation, bytes, match.transfer_ns, ranks);
        for (const Communication& part : parts) {
            if (!is_selected(part)) continue;
            const std::int32_t step = steps_.event[static_cast<std::size_t>(part.event)];
            if (step < 0 || step >= steps_.ranks[part.rank].kept()) continue;
            ++axis.row.parts;
            axis.row.part_bytes += bytes;
            axis.row.waiting_ns += duration(trace_, part) - match.transfer_ns;
        }
    }

    void add_times() {
        for (std::size_t i = 0; i < trace_.device.size();
             ++i) {  // sorted by start, as append_merged requires
            const std::int32_t row = trace_.device.collective[i];
            if (row < 0) continue;
            append_merged(axis_at(static_cast<std::size_t>(row)).when[trace_.device.rank[i]],
                          {trace_.device.start[i], trace_.device.end[i]});
        }
        const std::vector<KindUnions> unions = device_unions(trace_);
        const auto inside = [](const IntervalSet& set, const std::vector<Interval>& windows) {
            std::int64_t sum = 0;
            for (const std::int64_t ns : length_inside(set, windows)) sum += ns;
            return sum;
        };
        for (Axis& axis : axes_) {
            for (std::size_t r = 0; r < windows_.size(); ++r) {
                axis.row.ns += inside(axis.when[r], windows_[r]);
                axis.row.exposed_ns +=
                    inside(subtract(axis.when[r], of(unions[r], store::DeviceKind::kernel)), windows_[r]);
            }
        }
    }

    const store::Trace& trace_;
    const TraceSteps& steps_;
    const Communications& all_;
    const std::vector<bool> selected_;
    std::vector<std::vector<Interval>> windows_;  // by rank index: of its kept, selected steps
    std::vector<Axis> axes_;
    std::map<std::int64_t, std::size_t> places_;  // in axes_, by communicator
};

}  // namespace

std::vector<AxisTraffic> axis_traffic(const store::Trace& trace, const Selection& selection,
                                      const TraceSteps& steps, const Communications& all) {
    const bool known = std::any_of(trace.groups.begin(), trace.groups.end(),
                                   [](const schema::GroupRow& group) { return !group.axis.empty(); });
    return known ? AxisAnalysis(trace, selection, steps, all).rows() : std::vector<AxisTraffic>();
}

std::string_view axis_of(const store::Trace& trace, std::int64_t group) {
    const auto at =
        std::lower_bound(trace.groups.begin(), trace.groups.end(), group,
                         [](const schema::GroupRow& row, std::int64_t id) { return row.group < id; });
    return at != trace.groups.end() && at->group == group ? std::string_view(at->axis) : std::string_view();
}

std::string place_in_mesh(const store::Trace& trace, store::RankIndex rank) {
    std::string text;
    int differing = 0;
    for (std::size_t axis = 0; axis < schema::kMeshAxes.size(); ++axis) {
        const int own = trace.ranks[rank.at()].place[axis];
        if (std::all_of(trace.ranks.begin(), trace.ranks.end(),
                        [&](const store::Rank& other) { return other.place[axis] == own; }))
            continue;
        text += fmt::format("{}{} {}", differing++ > 0 ? ", " : "", schema::kMeshAxes[axis].name, own);
    }
    return differing > 1 ? text : "";
}

namespace {

template <auto Sum>
store::Cell per_step(const AxisTraffic& row) {
    return row.steps > 0 ? store::Cell(static_cast<double>(row.*Sum) / static_cast<double>(row.steps))
                         : store::Cell();
}
template <auto Sum>
store::Cell us_per_step(const AxisTraffic& row) {
    return row.steps > 0 ? us_cell(static_cast<double>(row.*Sum) / static_cast<double>(row.steps))
                         : store::Cell();
}

}  // namespace

Fields<AxisTraffic> axis_traffic_fields() {
    using A = AxisTraffic;
    static constexpr Field<A> kFields[] = {
        {kAxisColumn, [](const A& a) { return known_text(a.axis); }},
        {{"groups", "Groups", Unit::count, "Communicators along it."}, value_of<&A::groups>},
        {{"group_size", "Ranks", Unit::index, "Ranks of each communicator; unknown if they differ."},
         known_value_of<&A::group_size>},
        {{"collectives", "", Unit::count, "Number of collectives; each counts once.", in_programs},
         value_of<&A::collectives>},
        {{"bytes", "", Unit::bytes, "Sum of their full buffers.", in_programs}, known_value_of<&A::bytes>},
        {{"transfer_us", "", Unit::us, "Sum of their shortest durations.", in_programs},
         micros_of<&A::transfer_ns>},
        {{"count_per_step", "Count/step", Unit::count, "Collectives of a rank in a step, a mean."},
         per_step<&A::parts>},
        {{"bytes_per_step", "MiB/step", Unit::bytes, "Full buffers of a rank in a step, a mean."},
         [](const A& a) { return a.bytes > 0 ? per_step<&A::part_bytes>(a) : store::Cell(); }},
        {{"us_per_step", "Time", Unit::us, "Time of a rank in a step in which one of them runs, a mean."},
         us_per_step<&A::ns>},
        {{"waiting_us_per_step", "Waiting", Unit::us,
          "Durations of a rank in a step without the transfers, a mean: waiting for other ranks."},
         us_per_step<&A::waiting_ns>},
        {{"exposed_us_per_step", "Exposed", Unit::us,
          "The part of this time outside compute kernels, a mean per rank and step."},
         us_per_step<&A::exposed_ns>},
        {{"algbw_gbps", "algbw", Unit::gbps, "Algorithm bandwidth.", everywhere, 2},
         known_value_of<&A::algbw_gbps>},
        {{"busbw_gbps", "busbw", Unit::gbps, "Bus bandwidth.", everywhere, 2},
         known_value_of<&A::busbw_gbps>},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
