// What belongs to an event: the call that launched it and what a call launched, the other ranks' parts of a
// collective, the backward of a forward and the other way round. Pure; any thread.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "traces/analysis/communication/matching.h"
#include "traces/store/columns/trace.h"
#include "viewer/model/session.h"

namespace shardscope::viewer {

// The collectives of a trace by the device event of each part.
struct CollectiveIndex {
    traces::Communications communications;
    std::vector<std::pair<std::int32_t, std::int32_t>> part_of;  // (device event, part), sorted by event
    // The match that a device event is part of; nullptr where it is none.
    const traces::CollectiveMatch* match_of(std::int64_t device_event) const;
};
CollectiveIndex index_collectives(const traces::Trace& trace);

struct Links {
    SelectedEvent of;
    SelectedEvent launch;                 // the call; of a call itself: that call
    std::vector<SelectedEvent> launched;  // device events of the call, by time
    std::vector<SelectedEvent> parts;     // of the collective, its own included, by rank; none: no collective
    SelectedEvent last_arrival;           // the part that started last: the one that others waited for
    // Ranges that belong together; at most one pair where a range is of a backward, any number of backwards
    // where it is a forward.
    SelectedEvent forward;
    std::vector<SelectedEvent> backwards;
    bool operator==(const Links&) const = default;
};

// `collectives` may be nullptr (not worked out yet): then parts are not known.
Links find_links(const traces::Trace& trace, SelectedEvent event, const CollectiveIndex* collectives);

// An arrow from one event's end to another's start.
struct Arrow {
    enum class Kind { launch, collective, backward };
    Kind kind = Kind::launch;
    SelectedEvent from, to;
    bool operator==(const Arrow&) const = default;
};
// At most kMostArrows: a call that launched thousands is shown by its first ones.
inline constexpr std::size_t kMostArrows = 64;
std::vector<Arrow> arrows_of(const Links& links);

}  // namespace shardscope::viewer
