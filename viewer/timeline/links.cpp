// See links.h.
#include "viewer/timeline/links.h"

#include <algorithm>

#include "viewer/timeline/tracks.h"

namespace shardscope::viewer::timeline {
namespace {

using traces::store::RangeKind;
using traces::store::Trace;

model::SelectedEvent range_event(std::int64_t index) {
    return {model::EventKind::range, index};
}

traces::store::RankIndex rank_of_range(const Trace& trace, std::size_t range) {
    const std::size_t thread = trace.ranges.thread[range];
    return thread < trace.threads.size() ? trace.threads[thread].rank : traces::store::RankIndex();
}

bool inside_backward(const Trace& trace, std::size_t range) {
    for (std::int32_t r = trace.ranges.parent[range]; r >= 0;
         r = trace.ranges.parent[static_cast<std::size_t>(r)]) {
        if (trace.ranges.kind[static_cast<std::size_t>(r)] == RangeKind::backward) return true;
    }
    return false;
}

// Our own traces link a module's backward to its forward by the module: the latest forward before it that is
// not a recomputation inside a backward.
std::int64_t forward_of_module(const Trace& trace, std::size_t backward) {
    const traces::store::HostRanges& r = trace.ranges;
    const traces::store::RankIndex rank = rank_of_range(trace, backward);
    for (std::size_t i = backward; i-- > 0;) {
        if (r.module[i] == r.module[backward] && r.kind[i] == RangeKind::module &&
            rank_of_range(trace, i) == rank && !inside_backward(trace, i)) {
            return static_cast<std::int64_t>(i);
        }
    }
    return -1;
}

std::int64_t backward_of_module(const Trace& trace, std::size_t forward) {
    const traces::store::HostRanges& r = trace.ranges;
    const traces::store::RankIndex rank = rank_of_range(trace, forward);
    for (std::size_t i = forward + 1; i < r.size(); ++i) {
        if (r.module[i] != r.module[forward] || rank_of_range(trace, i) != rank) continue;
        if (r.kind[i] == RangeKind::backward) return static_cast<std::int64_t>(i);
        if (r.kind[i] == RangeKind::module && !inside_backward(trace, i)) return -1;  // the next forward
    }
    return -1;
}

// The range, or the nearest one around it, that is linked to a forward.
void link_backward(const Trace& trace, std::int64_t innermost, Links& links) {
    const traces::store::HostRanges& r = trace.ranges;
    for (std::int64_t at = innermost; at >= 0; at = r.parent[static_cast<std::size_t>(at)]) {
        const auto i = static_cast<std::size_t>(at);
        std::int64_t forward = r.forward.empty() ? -1 : r.forward[i];
        if (forward < 0 && r.kind[i] == RangeKind::backward && r.module[i] >= 0)
            forward = forward_of_module(trace, i);
        if (forward < 0) continue;
        links.forward = range_event(forward);
        links.backwards = {range_event(at)};
        return;
    }
}

void link_forward(const Trace& trace, std::int64_t range, Links& links) {
    const traces::store::HostRanges& r = trace.ranges;
    const auto i = static_cast<std::size_t>(range);
    for (std::size_t j = 0; j < r.forward.size() && links.backwards.size() < kMostArrows; ++j) {
        if (r.forward[j] == range) links.backwards.push_back(range_event(static_cast<std::int64_t>(j)));
    }
    if (links.backwards.empty() && r.kind[i] == RangeKind::module && r.module[i] >= 0) {
        const std::int64_t backward = backward_of_module(trace, i);
        if (backward >= 0) links.backwards.push_back(range_event(backward));
    }
    if (!links.backwards.empty()) links.forward = range_event(range);
}

void link_launch(const Trace& trace, model::SelectedEvent event, Links& links) {
    if (event.kind == model::EventKind::runtime) {
        links.launch = event;
        for (const std::int64_t e : launched_by(trace, event.index))
            links.launched.push_back({model::EventKind::device, e});
        if (links.launched.empty()) links.launch = {};
        return;
    }
    const std::int32_t call = trace.device.launch[static_cast<std::size_t>(event.index)];
    if (call < 0) return;
    links.launch = {model::EventKind::runtime, call};
    links.launched.push_back(event);
}

void link_parts(const Trace& trace, model::SelectedEvent event, const CollectiveIndex& collectives,
                Links& links) {
    const traces::analysis::CollectiveMatch* match = collectives.match_of(event.index);
    if (match == nullptr) return;
    std::int64_t last = INT64_MIN;
    for (const traces::analysis::Communication& part : collectives.communications.of(*match)) {
        if (part.event < 0) continue;
        const model::SelectedEvent e{model::EventKind::device, part.event};
        links.parts.push_back(e);
        const std::int64_t start = trace.device.start[static_cast<std::size_t>(part.event)];
        if (start > last) {
            last = start;
            links.last_arrival = e;
        }
    }
}

void link_waits(model::SelectedEvent event, const traces::analysis::WaitFinder& waits, Links& links) {
    const auto i = static_cast<std::size_t>(event.index);
    const auto add = [](std::vector<model::SelectedEvent>& to, model::SelectedEvent other) {
        if (std::find(to.begin(), to.end(), other) == to.end()) to.push_back(other);
    };
    if (event.kind == model::EventKind::runtime) {
        const traces::analysis::Wait wait = waits.host_wait(i);
        if (wait.on >= 0) add(links.waited_for, {model::EventKind::device, wait.on});
        return;
    }
    for (const traces::analysis::Wait& wait : waits.gap_before(i)) {
        if (wait.on >= 0) add(links.waited_for, {model::EventKind::device, wait.on});
    }
    for (const traces::analysis::Wait& wait : waits.waiting_for(i)) {
        add(links.waiting, wait.event >= 0 ? model::SelectedEvent{model::EventKind::device, wait.event}
                                           : model::SelectedEvent{model::EventKind::runtime, wait.call});
    }
}

}  // namespace

const traces::analysis::CollectiveMatch* CollectiveIndex::match_of(std::int64_t device_event) const {
    const auto at = std::lower_bound(part_of.begin(), part_of.end(),
                                     std::pair(static_cast<std::int32_t>(device_event), std::int32_t{-1}));
    if (at == part_of.end() || at->first != device_event) return nullptr;
    const std::int32_t match = communications.parts[static_cast<std::size_t>(at->second)].match;
    return match < 0 ? nullptr : &communications.matches[static_cast<std::size_t>(match)];
}

CollectiveIndex index_collectives(const Trace& trace) {
    CollectiveIndex index;
    index.communications = traces::analysis::match_communications(trace);
    const auto& parts = index.communications.parts;
    for (std::size_t p = 0; p < parts.size(); ++p) {
        if (parts[p].event >= 0) index.part_of.emplace_back(parts[p].event, static_cast<std::int32_t>(p));
    }
    std::sort(index.part_of.begin(), index.part_of.end());
    return index;
}

Links find_links(const Trace& trace, model::SelectedEvent event, const CollectiveIndex* collectives,
                 const traces::analysis::WaitFinder* waits) {
    Links links;
    links.of = event;
    if (event.index < 0) return links;
    if (event.kind == model::EventKind::range) {
        link_forward(trace, event.index, links);
        if (links.backwards.empty()) link_backward(trace, event.index, links);
        return links;
    }
    if (event.kind != model::EventKind::device && event.kind != model::EventKind::runtime) return links;
    link_launch(trace, event, links);
    if (waits != nullptr) link_waits(event, *waits, links);
    const auto i = static_cast<std::size_t>(event.index);
    if (event.kind == model::EventKind::device) {
        link_backward(trace, trace.device.range[i], links);
        if (collectives != nullptr) link_parts(trace, event, *collectives, links);
    } else {
        link_backward(trace, trace.runtime.range[i], links);
    }
    return links;
}

std::vector<Arrow> arrows_of(const Links& links) {
    std::vector<Arrow> arrows;
    for (const model::SelectedEvent& event : links.launched) {
        if (arrows.size() >= kMostArrows) break;
        arrows.push_back({Arrow::Kind::launch, links.launch, event});
    }
    // The last arrival releases the others: arrows start from it.
    for (const model::SelectedEvent& part : links.parts) {
        if (part != links.last_arrival && arrows.size() < kMostArrows * 2)
            arrows.push_back({Arrow::Kind::collective, links.last_arrival, part});
    }
    for (const model::SelectedEvent& on : links.waited_for)
        arrows.push_back({Arrow::Kind::wait, on, links.of});
    for (const model::SelectedEvent& waiter : links.waiting) {
        // A collective's arrows lead to the other ranks' parts already.
        if (std::find(links.parts.begin(), links.parts.end(), waiter) == links.parts.end())
            arrows.push_back({Arrow::Kind::wait, links.of, waiter});
    }
    for (const model::SelectedEvent& backward : links.backwards)
        arrows.push_back({Arrow::Kind::backward, links.forward, backward});
    return arrows;
}

}  // namespace shardscope::viewer::timeline
