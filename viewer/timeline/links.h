// Events related to an event: the call that launched it and what a call launched, the other ranks' parts of a
// collective, the backward of a forward and vice versa, what it waited for and what waited for it. Pure; any
// thread.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "traces/analysis/communication/matching.h"
#include "traces/analysis/waits/waits.h"
#include "traces/store/columns/trace.h"
#include "viewer/model/session.h"

namespace shardscope::viewer::timeline {

// The collectives of a trace, indexed by the device event of each part.
struct CollectiveIndex {
    traces::analysis::Communications communications;
    std::vector<std::pair<std::int32_t, std::int32_t>> part_of;  // (device event, part), sorted by event
    // The match that contains a device event; nullptr if there is none.
    const traces::analysis::CollectiveMatch* match_of(std::int64_t device_event) const;
};
CollectiveIndex index_collectives(const traces::store::Trace& trace);

struct Links {
    model::SelectedEvent of;
    model::SelectedEvent launch;                 // the call; for a call: itself
    std::vector<model::SelectedEvent> launched;  // device events of the call, by time
    std::vector<model::SelectedEvent> parts;     // of the collective, with this event, by rank; empty: none
    model::SelectedEvent last_arrival;           // the part that started last: the one that others waited for
    // Related ranges: a range of a backward has at most one pair, a forward any number of backwards.
    model::SelectedEvent forward;
    std::vector<model::SelectedEvent> backwards;
    // Work that ended last before this could begin or, for a call in which the host waits, return; and the
    // work, other ranks' parts and calls that waited for this.
    std::vector<model::SelectedEvent> waited_for, waiting;
    bool operator==(const Links&) const = default;
};

// `collectives` and `waits` may be nullptr (not computed yet): then parts or waits are unknown.
Links find_links(const traces::store::Trace& trace, model::SelectedEvent event,
                 const CollectiveIndex* collectives, const traces::analysis::WaitFinder* waits = nullptr);

// An arrow from one event's end to another's start; to a call's end, if the host waits in it.
struct Arrow {
    enum class Kind { launch, collective, backward, wait };
    Kind kind = Kind::launch;
    model::SelectedEvent from, to;
    bool operator==(const Arrow&) const = default;
};
// At most kMostArrows: for a call that launched thousands, only the first ones are shown.
inline constexpr std::size_t kMostArrows = 64;
std::vector<Arrow> arrows_of(const Links& links);

}  // namespace shardscope::viewer::timeline
