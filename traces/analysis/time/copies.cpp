// See copies.h: one pass over the sorted device events, a union for each kind.
#include "traces/analysis/time/copies.h"

#include <algorithm>
#include <map>
#include <utility>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/time/device_time.h"
#include "traces/schema/memory_kinds.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

struct Kind {
    CopyStats stats;
    IntervalSet times;
    bool of_file = false;
};

// When the hosts of the ranks wait for the device or for files; by index into Trace::ranks.
std::vector<IntervalSet> host_waits(const store::Trace& trace) {
    const store::Synchronizations& all = trace.synchronizations;
    std::vector<IntervalSet> waits(trace.ranks.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (all.type[i] != schema::kSyncStreamWait && all.rank[i] < waits.size())
            append_merged(waits[all.rank[i]], {all.start[i], all.end[i]});
    }
    return waits;
}

bool is_copy(const store::DeviceEvents& device, std::size_t event) {
    return device.kind[event] == store::DeviceKind::memcpy || device.kind[event] == store::DeviceKind::memset;
}

}  // namespace

CopiesReport copies_report(const store::Trace& trace, const Selection& selection) {
    const store::DeviceEvents& device = trace.device;
    const std::vector<bool> counts = selected_events(trace, find_steps(trace), selection);
    std::vector<std::map<std::string_view, Kind>> kinds(trace.ranks.size());
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (!is_copy(device, i) || !counts[i]) continue;
        const std::string_view name = trace.strings[device.name[i]];
        Kind& kind = kinds[device.rank[i]][name];
        const std::int64_t duration = device.end[i] - device.start[i];
        kind.stats.name = name;
        kind.of_file = schema::is_of_file(device.copy_kind[i]);
        ++kind.stats.count;
        kind.stats.bytes += device.bytes[i];
        kind.stats.total += duration;
        kind.stats.longest = std::max(kind.stats.longest, duration);
        append_merged(kind.times, {device.start[i], device.end[i]});
    }
    const std::vector<KindUnions> unions = device_unions(trace);
    const std::vector<IntervalSet> waits = host_waits(trace);
    CopiesReport report;
    for (const store::RankIndex r : selected_ranks(trace, selection)) {
        RankCopies rank{.rank = trace.ranks[r.at()].number, .copies = {}};
        const KindUnions& own = unions[r.at()];
        std::vector<Interval> of_files;  // exposed
        for (auto& [name, kind] : kinds[r.at()]) {
            IntervalSet outside = subtract(kind.times, of(own, store::DeviceKind::kernel));
            if (kind.of_file) outside = intersect(outside, waits[r.at()]);
            outside = subtract(outside, of(own, store::DeviceKind::communication));
            kind.stats.exposed = length(outside);
            if (kind.of_file) of_files.insert(of_files.end(), outside.begin(), outside.end());
            rank.copies.push_back(kind.stats);
        }
        rank.file_waits = length(make_union(std::move(of_files)));
        std::stable_sort(rank.copies.begin(), rank.copies.end(),
                         [](const CopyStats& a, const CopyStats& b) { return a.total > b.total; });
        report.ranks.push_back(std::move(rank));
    }
    return report;
}

std::vector<std::uint32_t> copy_events(const store::Trace& trace, const Selection& selection,
                                       std::string_view name) {
    return named_events(trace, selection, name, {store::DeviceKind::memcpy, store::DeviceKind::memset});
}

Fields<CopyStats> copy_fields() {
    using C = CopyStats;
    static constexpr Field<C> kFields[] = {
        {{"name", "Copy", Unit::text, "The kind of copy or fill, by where it reads and writes."},
         value_of<&C::name>},
        {{"count", "Count", Unit::count, "Copies of that kind in the current selection."},
         value_of<&C::count>},
        {{"bytes", "Size", Unit::bytes, "The sum of their bytes."}, known_value_of<&C::bytes>},
        {{"us", "Total", Unit::us, "The sum of their durations."}, micros_of<&C::total>},
        {{"exposed_us", "Exposed", Unit::us,
          "The time of these copies outside all kernels of the rank; of reads and writes of files, only "
          "while "
          "its host waits."},
         micros_of<&C::exposed>},
        {{"max_us", "Max", Unit::us, "The longest duration."}, micros_of<&C::longest>},
        {{"gbps", "Rate", Unit::gbps, "Bytes over the sum of durations."},
         [](const C& c) { return known_cell(c.gbps()); }},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
