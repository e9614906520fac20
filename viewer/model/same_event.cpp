// See same_event.h. In the newer file a row may have another index (a rank that wrote later), but its start,
// name and place are the same.
#include "viewer/model/same_event.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace shardscope::viewer::model {
namespace {

// The row that starts at this time.
template <class Same>
std::int64_t row_with(const std::vector<std::int64_t>& start, std::int64_t time, Same same) {
    for (std::size_t i = 0; i < start.size(); ++i) {
        if (start[i] == time && same(i)) return static_cast<std::int64_t>(i);
    }
    return -1;
}

}  // namespace

SelectedEvent same_event(const traces::store::Trace& before, SelectedEvent event,
                         const traces::store::Trace& now) {
    const auto i = static_cast<std::size_t>(event.index);
    std::int64_t found = -1;
    const auto same_name = [&](traces::schema::StringId a, traces::schema::StringId b) {
        return before.strings[a] == now.strings[b];
    };
    switch (event.kind) {
        case EventKind::device:
            if (i >= before.device.size()) break;
            found = row_with(now.device.start, before.device.start[i], [&](std::size_t j) {
                return now.device.rank[j] == before.device.rank[i] &&
                       now.device.kind[j] == before.device.kind[i] &&
                       same_name(before.device.name[i], now.device.name[j]);
            });
            break;
        case EventKind::range:
            if (i >= before.ranges.size()) break;
            found = row_with(now.ranges.start, before.ranges.start[i], [&](std::size_t j) {
                return now.ranges.depth[j] == before.ranges.depth[i] &&
                       same_name(before.ranges.name[i], now.ranges.name[j]);
            });
            break;
        case EventKind::runtime:
            if (i >= before.runtime.size()) break;
            found = row_with(now.runtime.start, before.runtime.start[i], [&](std::size_t j) {
                return now.runtime.correlation[j] == before.runtime.correlation[i] &&
                       same_name(before.runtime.name[i], now.runtime.name[j]);
            });
            break;
        case EventKind::wait:
            if (i >= before.synchronizations.size()) break;
            found =
                row_with(now.synchronizations.start, before.synchronizations.start[i], [&](std::size_t j) {
                    return now.synchronizations.rank[j] == before.synchronizations.rank[i];
                });
            break;
        case EventKind::mark:
            if (i >= before.marks.size()) break;
            found = row_with(now.marks.time, before.marks.time[i], [&](std::size_t j) {
                return same_name(before.marks.name[i], now.marks.name[j]);
            });
            break;
        case EventKind::none:
            break;
    }
    return found < 0 ? SelectedEvent{} : SelectedEvent{event.kind, found};
}

}  // namespace shardscope::viewer::model
