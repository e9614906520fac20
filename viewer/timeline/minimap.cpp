// See minimap.h. One pass over the events, which are sorted by start: for each rank the end of the counted
// time is kept, so that overlaps count once.
#include "viewer/timeline/minimap.h"

#include <algorithm>

#include "traces/schema/memory_kinds.h"

namespace shardscope::viewer::timeline {
namespace {

// Adds stretches of time to slices.
class Slices {
  public:
    Slices(model::TimeSpan whole, int count)
        : view_{whole.from, whole.to, static_cast<double>(count)},
          count_(count),
          ns_(static_cast<std::size_t>(count)) {}

    void add(std::int64_t from, std::int64_t to) {
        from = std::max(from, view_.from);
        to = std::min(to, view_.to);
        if (to <= from) return;
        const auto first = view_.column_of(from, count_);
        for (std::int64_t c = first; c < count_; ++c) {
            const std::int64_t begin = view_.column_start(static_cast<int>(c), count_);
            const std::int64_t end = view_.column_start(static_cast<int>(c) + 1, count_);
            if (begin >= to) break;
            ns_[static_cast<std::size_t>(c)] += std::min(end, to) - std::max(begin, from);
        }
    }
    double share(int slice) const {
        const std::int64_t length = view_.column_start(slice + 1, count_) - view_.column_start(slice, count_);
        return length > 0
                   ? static_cast<double>(ns_[static_cast<std::size_t>(slice)]) / static_cast<double>(length)
                   : 0;
    }

  private:
    model::TimeView view_;
    int count_;
    std::vector<std::int64_t> ns_;
};

// The union of the events of each rank, added in order of start.
class BusyTimes {
  public:
    explicit BusyTimes(std::size_t ranks) : until_(ranks, INT64_MIN) {}
    void add(Slices& slices, std::size_t rank, std::int64_t start, std::int64_t end) {
        if (rank >= until_.size()) return;
        slices.add(std::max(start, until_[rank]), end);
        until_[rank] = std::max(until_[rank], end);
    }

  private:
    std::vector<std::int64_t> until_;
};

// `all`: every event; `work`: without communication; `kernels`: kernels alone.
void fill(Minimap& map, const Slices& all, const Slices& work, const Slices& kernels, std::size_t ranks) {
    const double share = 1 / static_cast<double>(std::max<std::size_t>(1, ranks));
    for (std::size_t i = 0; i < map.slices.size(); ++i) {
        const int slice = static_cast<int>(i);
        const double busy = all.share(slice) * share;
        const double working = work.share(slice) * share;
        map.slices[i] = {static_cast<float>(busy), static_cast<float>(std::max(0.0, busy - working)),
                         static_cast<float>(std::max(0.0, working - kernels.share(slice) * share))};
    }
}

}  // namespace

Minimap make_minimap(const traces::store::Trace& trace, int count) {
    Minimap map;
    map.whole = {trace.first_ns, std::max(trace.last_ns, trace.first_ns + 1)};
    count = static_cast<int>(std::clamp<std::int64_t>(map.whole.to - map.whole.from, 1, count));
    map.slices.resize(static_cast<std::size_t>(count));
    map.of_devices = trace.device.size() > 0;
    Slices all(map.whole, count), work(map.whole, count), kernels(map.whole, count);
    if (map.of_devices) {
        BusyTimes any(trace.ranks.size()), working(trace.ranks.size()), computing(trace.ranks.size());
        const traces::store::DeviceEvents& d = trace.device;
        for (std::size_t i = 0; i < d.size(); ++i) {
            if (traces::schema::is_of_file(d.copy_kind[i])) continue;
            any.add(all, d.rank[i], d.start[i], d.end[i]);
            if (d.kind[i] != traces::store::DeviceKind::communication)
                working.add(work, d.rank[i], d.start[i], d.end[i]);
            if (d.kind[i] == traces::store::DeviceKind::kernel)
                computing.add(kernels, d.rank[i], d.start[i], d.end[i]);
        }
        fill(map, all, work, kernels, trace.ranks.size());
        return map;
    }
    BusyTimes any(trace.threads.size());
    const traces::store::HostRanges& r = trace.ranges;
    std::vector<bool> used(trace.threads.size());
    for (std::size_t i = 0; i < r.size(); ++i) {
        if (r.thread[i] < used.size()) used[r.thread[i]] = true;
        any.add(all, r.thread[i], r.start[i], r.end[i]);
    }
    fill(map, all, all, all, static_cast<std::size_t>(std::count(used.begin(), used.end(), true)));
    return map;
}

}  // namespace shardscope::viewer::timeline
