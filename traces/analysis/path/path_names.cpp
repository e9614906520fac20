// Searches among the nested ranges of a thread; see path_names.h.
#include "traces/analysis/path/path_names.h"

#include <algorithm>

#include "traces/store/columns/names.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {

std::int32_t ModuleRanges::of(std::int32_t range) {
    constexpr int kNear = 64;  // levels; few traces have more
    const store::HostRanges& ranges = trace_.ranges;
    std::int32_t found = range;
    int levels = 0;
    for (; found >= 0; found = ranges.parent[static_cast<std::size_t>(found)]) {
        const auto at = static_cast<std::size_t>(found);
        if (ranges.kind[at] == store::RangeKind::module || ranges.kind[at] == store::RangeKind::backward ||
            ranges.module[at] >= 0) {
            break;
        }
        if (++levels <= kNear) continue;
        if (const auto known = far_.find(found); known != far_.end()) {
            found = known->second;
            break;
        }
    }
    for (std::int32_t r = range; levels > kNear; r = ranges.parent[static_cast<std::size_t>(r)]) {
        if (r < 0 || r == found || !far_.emplace(r, found).second) break;
    }
    return found;
}

std::string module_name(const store::Trace& trace, std::int32_t range) {
    const auto at = static_cast<std::size_t>(range);
    const std::int32_t id = trace.ranges.module[at];
    const auto row = std::lower_bound(trace.modules.begin(), trace.modules.end(), id,
                                      [](const schema::ModuleRow& m, std::int32_t i) { return m.id < i; });
    if (id >= 0 && row != trace.modules.end() && row->id == id) return row->name;
    std::string_view name = trace.strings[trace.ranges.name[at]];
    if (name.starts_with(store::kModulePrefix)) name.remove_prefix(store::kModulePrefix.size());
    if (name.ends_with(store::kBackwardSuffix)) name.remove_suffix(store::kBackwardSuffix.size());
    return std::string(name);
}

ThreadRanges::ThreadRanges(const store::Trace& trace) : trace_(trace), ranges_(trace.threads.size()) {
    const store::HostRanges& ranges = trace.ranges;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        if (ranges.kind[i] == store::RangeKind::function) continue;
        ranges_[ranges.thread[i]].push_back(static_cast<std::uint32_t>(i));
    }
}

// The innermost range that contains `time`, from `range` outwards.
std::int32_t ThreadRanges::open_at(std::int32_t range, std::int64_t time) const {
    const store::HostRanges& ranges = trace_.ranges;
    while (range >= 0 && (ranges.end[static_cast<std::size_t>(range)] <= time ||
                          ranges.kind[static_cast<std::size_t>(range)] == store::RangeKind::function)) {
        range = ranges.parent[static_cast<std::size_t>(range)];
    }
    return range;
}

void ThreadRanges::split(std::uint16_t thread, std::int64_t from, std::int64_t to,
                         const std::function<void(std::int32_t, std::int64_t, std::int64_t)>& piece) const {
    const store::HostRanges& ranges = trace_.ranges;
    const std::vector<std::uint32_t>& own = ranges_[thread];
    auto next = std::upper_bound(own.begin(), own.end(), from,
                                 [&](std::int64_t t, std::uint32_t r) { return t < ranges.start[r]; });
    std::int32_t range = next == own.begin() ? -1 : open_at(static_cast<std::int32_t>(*(next - 1)), from);
    while (from < to) {
        std::int64_t until = range >= 0 ? std::min(to, ranges.end[static_cast<std::size_t>(range)]) : to;
        const bool enters = next != own.end() && ranges.start[*next] < until;
        if (enters) until = ranges.start[*next];
        if (until > from) piece(range, from, until);
        from = std::max(from, until);
        range = enters ? open_at(static_cast<std::int32_t>(*next++), from) : open_at(range, from);
    }
}

}  // namespace shardscope::traces::analysis
