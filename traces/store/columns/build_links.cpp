// Links host ranges and device events of sources that name operators instead of calls.
#include <algorithm>
#include <iterator>
#include <limits>
#include <tuple>

#include "traces/store/columns/build_columns.h"
#include "traces/store/columns/nesting.h"

namespace shardscope::traces::store {

namespace {

// Ranges by the id that their source gave them; ids are unique within a process.
class ExternalIds {
  public:
    explicit ExternalIds(const PendingRows& rows) {
        const std::vector<std::int64_t>& ids = rows.ranges.external_id;
        for (std::size_t i = 0; i < ids.size(); ++i) {
            if (ids[i] == 0) continue;
            entries_.push_back({ids[i], pid_of(rows.threads[rows.ranges.thread[i]].a), i});
        }
        std::sort(entries_.begin(), entries_.end());
    }
    // The latest range to begin, which is the innermost of those with the id. `pid` 0: any process.
    std::int32_t find(std::int64_t id, std::int64_t pid) const {
        const Entry last = {id, pid != 0 ? pid : std::numeric_limits<std::int64_t>::max(),
                            std::numeric_limits<std::size_t>::max()};
        const auto it = std::upper_bound(entries_.begin(), entries_.end(), last);
        if (it == entries_.begin()) return -1;
        const auto& [its_id, its_pid, index] = *std::prev(it);
        return its_id == id && (pid == 0 || its_pid == pid) ? static_cast<std::int32_t>(index) : -1;
    }

  private:
    using Entry = std::tuple<std::int64_t, std::int64_t, std::size_t>;  // id, process, range
    std::vector<Entry> entries_;
};

// A time on a thread at which an operator is looked up.
struct Place {
    std::int64_t time = 0;
    std::uint16_t thread = 0;
    std::size_t link = 0;
    bool is_forward = false;
};

// Among the ranges around a moment: the operator that starts at it, else the innermost operator, else the
// innermost range.
std::int32_t operator_at(const HostRanges& ranges, std::int32_t innermost, std::int64_t time) {
    std::int32_t open = -1;
    for (std::int32_t r = innermost; r >= 0; r = ranges.parent[static_cast<std::size_t>(r)]) {
        const auto i = static_cast<std::size_t>(r);
        if (ranges.kind[i] != RangeKind::operation) continue;
        if (ranges.start[i] == time) return r;
        if (open < 0) open = r;
    }
    return open >= 0 ? open : innermost;
}

}  // namespace

void build_launch_ranges(const PendingRows& rows, Trace& trace) {
    DeviceEvents& d = trace.device;
    const std::vector<std::int64_t>& ids = rows.device.external_id;
    bool named = false;
    for (std::size_t i = 0; i < d.size(); ++i) {
        if (d.launch[i] >= 0) {
            d.range.set(i, trace.runtime.range[static_cast<std::size_t>(d.launch[i])]);
        } else {
            named = named || (!ids.empty() && ids[i] != 0);
        }
    }
    if (!named) return;
    const ExternalIds operators(rows);
    for (std::size_t i = 0; i < d.size(); ++i) {
        if (d.launch[i] >= 0 || ids[i] == 0 || ids[i] == d.correlation[i]) continue;
        d.range.set(i, operators.find(ids[i], rows.device.lanes[rows.device.lane[i]].a));
    }
}

void build_links(const std::vector<schema::LinkRow>& rows, const ThreadLookup& threads, Trace& trace) {
    std::vector<Place> places;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const int from = threads.find(rows[i].from_tid), to = threads.find(rows[i].to_tid);
        if (rows[i].kind != schema::LinkKind::backward || from < 0 || to < 0) continue;
        places.push_back({rows[i].from_time, static_cast<std::uint16_t>(from), i, true});
        places.push_back({rows[i].to_time, static_cast<std::uint16_t>(to), i, false});
    }
    if (places.empty()) return;
    std::stable_sort(places.begin(), places.end(),
                     [](const Place& a, const Place& b) { return a.time < b.time; });
    std::vector<std::int64_t> times;
    std::vector<std::uint16_t> on;
    for (const Place& p : places) {
        times.push_back(p.time);
        on.push_back(p.thread);
    }
    HostRanges& ranges = trace.ranges;
    const Nesting nesting = nest(ranges.start, ranges.end, ranges.thread, times, on);
    std::vector<std::int32_t> from(rows.size(), -1), to(rows.size(), -1);
    for (std::size_t i = 0; i < places.size(); ++i) {
        const std::int32_t found = operator_at(ranges, nesting.innermost[i], places[i].time);
        (places[i].is_forward ? from : to)[places[i].link] = found;
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (from[i] < 0 || to[i] < 0 || from[i] == to[i]) continue;
        if (ranges.forward.empty()) ranges.forward.assign(ranges.size(), -1);
        ranges.forward[static_cast<std::size_t>(to[i])] = from[i];
    }
}

}  // namespace shardscope::traces::store
