// See gap_names.h.
#include "viewer/timeline/gap_names.h"

namespace shardscope::viewer::timeline {

const NamedGap& GapNames::before(const traces::analysis::TraceWaits& waits, std::int64_t event) {
    constexpr std::size_t kMost = 20'000;
    if (from_ != &waits || known_.size() > kMost) known_.clear();
    from_ = &waits;
    const auto [at, fresh] = known_.try_emplace(event);
    if (fresh) {
        at->second.parts = waits.finder.gap_before(static_cast<std::size_t>(event));
        for (const traces::analysis::Wait& part : at->second.parts)
            at->second.names.push_back(waits.names.wait(part));
    }
    return at->second;
}

std::optional<std::int64_t> event_after_gap(const Track& track, int lane, std::int64_t time) {
    if (track.kind != Track::Kind::stream) return std::nullopt;
    const Lane& events = track.lanes[static_cast<std::size_t>(lane)];
    const std::size_t next = events.first_ending_after(time);
    if (next >= events.size() || events.start(next) <= time) return std::nullopt;
    const model::SelectedEvent event = events.event(next);
    return event.kind == model::EventKind::device ? std::optional(event.index) : std::nullopt;
}

}  // namespace shardscope::viewer::timeline
