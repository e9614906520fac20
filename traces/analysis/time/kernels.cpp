// See kernels.h: durations are grouped by name in one array, then each name's part is evaluated.
#include "traces/analysis/time/kernels.h"

#include <algorithm>

#include "traces/analysis/base/percentile.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/time/device_time.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

bool is_kernel(const store::DeviceEvents& device, std::size_t event) {
    return device.kind[event] == store::DeviceKind::kernel ||
           device.kind[event] == store::DeviceKind::communication;
}

// Sum of value x duration, and of the durations of the events with a value.
struct WeightedMean {
    double sum = 0, weight = 0;
    void add(const store::Column<float>& column, std::size_t event, std::int64_t duration) {
        if (column.empty() || !(column[event] >= 0)) return;
        sum += static_cast<double>(column[event]) * static_cast<double>(duration);
        weight += static_cast<double>(duration);
    }
    std::optional<double> mean() const { return weight > 0 ? std::optional(sum / weight) : std::nullopt; }
};

struct Known {
    WeightedMean blocks, occupancy;
    bool communication = false;
};

// Numbers the names of kernels, because a trace has many more strings.
struct KernelNames {
    explicit KernelNames(const store::Trace& trace) : number(trace.strings.size(), -1) {}
    void add(schema::StringId name) {
        std::int32_t& known = number[static_cast<std::size_t>(name)];
        if (known >= 0) return;
        known = static_cast<std::int32_t>(names.size());
        names.push_back(name);
    }
    std::vector<std::int32_t> number;  // by string; -1: not a kernel's name
    std::vector<schema::StringId> names;
};

// The durations of one rank's events, grouped by name.
struct ByName {
    std::vector<std::size_t> first;  // by number of the name; the last element is the end
    std::vector<std::int64_t> durations;
    std::vector<Known> known;
};

ByName by_name(const store::Trace& trace, const KernelNames& names,
               const std::vector<std::uint32_t>& events) {
    const store::DeviceEvents& device = trace.device;
    const auto name = [&](std::uint32_t i) {
        return static_cast<std::size_t>(names.number[static_cast<std::size_t>(device.name[i])]);
    };
    ByName result;
    result.first.assign(names.names.size() + 1, 0);
    result.known.resize(names.names.size());
    for (const std::uint32_t i : events) ++result.first[name(i) + 1];
    for (std::size_t n = 1; n < result.first.size(); ++n) result.first[n] += result.first[n - 1];
    result.durations.resize(events.size());
    std::vector<std::size_t> next(result.first.begin(), result.first.end() - 1);
    for (const std::uint32_t i : events) {
        const std::int64_t duration = device.end[i] - device.start[i];
        result.durations[next[name(i)]++] = duration;
        Known& known = result.known[name(i)];
        known.blocks.add(device.blocks_per_sm, i, duration);
        known.occupancy.add(device.occupancy, i, duration);
        known.communication = known.communication || device.kind[i] == store::DeviceKind::communication;
    }
    return result;
}

KernelStats stats_of(std::span<std::int64_t> durations) {
    KernelStats stats;
    stats.count = static_cast<std::int64_t>(durations.size());
    for (const std::int64_t duration : durations) stats.total += duration;
    stats.mean = static_cast<double>(stats.total) / static_cast<double>(stats.count);
    const auto [shortest, longest] = std::minmax_element(durations.begin(), durations.end());
    stats.shortest = *shortest;
    stats.longest = *longest;
    stats.median = percentile(durations, 0.5);
    stats.p95 = percentile(durations, 0.95);
    return stats;
}

RankKernels rank_kernels(const store::Trace& trace, const KernelNames& all,
                         const std::vector<std::uint32_t>& events) {
    ByName names = by_name(trace, all, events);
    RankKernels rank;
    for (std::size_t n = 0; n + 1 < names.first.size(); ++n) {
        const std::size_t count = names.first[n + 1] - names.first[n];
        if (count == 0) continue;
        KernelStats stats = stats_of(std::span(names.durations).subspan(names.first[n], count));
        stats.name = trace.strings[all.names[n]];
        stats.communication = names.known[n].communication;
        stats.blocks_per_sm = names.known[n].blocks.mean();
        stats.occupancy_percent = names.known[n].occupancy.mean();
        rank.count += stats.count;
        rank.total += stats.total;
        rank.kernels.push_back(stats);
    }
    rank.distinct = static_cast<std::int64_t>(rank.kernels.size());
    for (KernelStats& stats : rank.kernels) {
        stats.share =
            rank.total > 0 ? 100.0 * static_cast<double>(stats.total) / static_cast<double>(rank.total) : 0.0;
    }
    std::sort(rank.kernels.begin(), rank.kernels.end(), [](const KernelStats& a, const KernelStats& b) {
        return a.total != b.total ? a.total > b.total : a.name < b.name;
    });
    return rank;
}

}  // namespace

KernelsReport kernels_report(const store::Trace& trace, const Selection& selection, std::size_t most) {
    const store::DeviceEvents& device = trace.device;
    const std::vector<bool> counts = selected_events(trace, find_steps(trace), selection);
    KernelNames names(trace);
    std::vector<std::vector<std::uint32_t>> events(trace.ranks.size());
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (!is_kernel(device, i) || !counts[i]) continue;
        names.add(device.name[i]);
        events[device.rank[i]].push_back(static_cast<std::uint32_t>(i));
    }
    KernelsReport report;
    for (const store::RankIndex r : selected_ranks(trace, selection)) {
        RankKernels rank = rank_kernels(trace, names, events[r.at()]);
        rank.rank = trace.ranks[r.at()].number;
        if (most > 0 && rank.kernels.size() > most) rank.kernels.resize(most);
        report.ranks.push_back(std::move(rank));
    }
    return report;
}

std::vector<std::uint32_t> kernel_events(const store::Trace& trace, const Selection& selection,
                                         std::string_view name) {
    return named_events(trace, selection, name,
                        {store::DeviceKind::kernel, store::DeviceKind::communication});
}

namespace {

// The position of the opening parenthesis that matches a parenthesis at the name's end.
std::size_t parameters_start(std::string_view name) {
    if (!name.ends_with(')')) return name.npos;
    int depth = 0;
    for (std::size_t i = name.size(); i-- > 0;) {
        if (name[i] == ')') ++depth;
        if (name[i] == '(' && --depth == 0) return i;
    }
    return name.npos;
}

}  // namespace

std::string_view kernel_label(std::string_view name) {
    if (const auto at = parameters_start(name); at != name.npos && at > 0) name = name.substr(0, at);
    if (name.starts_with("void ")) name.remove_prefix(5);
    return name;
}

Fields<KernelStats> kernel_fields() {
    using K = KernelStats;
    static constexpr Field<K> kFields[] = {
        {{"name", "", Unit::text, "The kernel's name.", in_programs}, value_of<&K::name>},
        {{"full_name", "Kernel", Unit::text, "The kernel's name.", in_viewer}, value_of<&K::name>},
        {{"name", "Kernel", Unit::text, "The kernel's name without its parameters.", in_table},
         [](const K& k) { return to_cell(kernel_label(k.name)); }},
        {{"communication", "", Unit::text, "Whether it is the kernel of a collective.", in_json},
         value_of<&K::communication>},
        {{"kind", "Kind", Unit::text, "Compute, or the kernel of a collective.", in_viewer},
         [](const K& k) { return to_cell(k.communication ? "collective" : "compute"); }},
        {{"count", "Count", Unit::count, "Kernels of that name in the current selection."},
         value_of<&K::count>},
        {{"us", "Total", Unit::us, "The sum of their durations."}, micros_of<&K::total>},
        {{"percent", "%", Unit::percent, "Share of the time of all kernels of the rank.", in_table},
         value_of<&K::share>},
        {{"mean_us", "Mean", Unit::us, "The mean of their durations."}, micros_of<&K::mean>},
        {{"median_us", "Median", Unit::us, "The median of their durations."}, micros_of<&K::median>},
        {{"p95_us", "p95", Unit::us, "95 % of them are not longer."}, micros_of<&K::p95>},
        {{"min_us", "Min", Unit::us, "The shortest duration."}, micros_of<&K::shortest>},
        {{"max_us", "Max", Unit::us, "The longest duration."}, micros_of<&K::longest>},
        {{"percent", "", Unit::percent, "Share of the time of all kernels of the rank.", in_programs},
         value_of<&K::share>},
        {{"blocks_per_sm", "Blocks/SM", Unit::number,
          "Launched blocks for each multiprocessor, a mean weighted with duration.", everywhere, -1, true},
         value_of<&K::blocks_per_sm>},
        {{"occupancy_percent", "Occupancy", Unit::percent,
          "Achieved occupancy, a mean weighted with duration.", everywhere, -1, true},
         value_of<&K::occupancy_percent>},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
