// See hit_marks.h.
#include "viewer/timeline/hit_marks.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace shardscope::viewer::timeline {
namespace {

constexpr std::size_t kBetweenChecks = 65536;
constexpr int kKinds = static_cast<int>(model::EventKind::mark) + 1;

// Whether an event was found, by kind and index.
class FoundBits {
  public:
    FoundBits(const traces::store::Trace& trace, const traces::store::EventList& found) {
        for (int kind = 0; kind < kKinds; ++kind) {
            bits_[static_cast<std::size_t>(kind)].resize(
                with_columns(trace, static_cast<model::EventKind>(kind),
                             [](const auto& events) { return events.size(); }));
        }
        for (std::size_t i = 0; i < found.size(); ++i) {
            const model::SelectedEvent event = found.event(i);
            bits_[static_cast<std::size_t>(event.kind)][static_cast<std::size_t>(event.index)] = true;
        }
    }
    bool has(model::SelectedEvent event) const {
        return event.kind != model::EventKind::none &&
               bits_[static_cast<std::size_t>(event.kind)][static_cast<std::size_t>(event.index)];
    }

  private:
    std::array<std::vector<bool>, kKinds> bits_;
};

}  // namespace

HitMarks make_hit_marks(const traces::store::Trace& trace, const Tracks& tracks,
                        const traces::store::EventList& found, int slices, const std::atomic<bool>& cancel) {
    HitMarks marks;
    marks.whole = {trace.first_ns, std::max(trace.last_ns, trace.first_ns + 1)};
    marks.strip.resize(static_cast<std::size_t>(slices));
    const double length = static_cast<double>(marks.whole.to - marks.whole.from);
    const auto slice_of = [&](std::int64_t time) {
        const double share = static_cast<double>(time - marks.whole.from) / length;
        return static_cast<std::size_t>(std::clamp(share * slices, 0.0, static_cast<double>(slices - 1)));
    };
    for (std::size_t i = 0; i < found.size() && !cancel; ++i) {
        const EventTime time = time_of(trace, found.event(i));
        const std::size_t last = slice_of(time.end);
        for (std::size_t slice = slice_of(time.start); slice <= last; ++slice) marks.strip[slice] = true;
    }
    const FoundBits bits(trace, found);
    for (const Track& track : tracks.tracks) {
        auto& lanes = marks.items.emplace_back();
        for (const Lane& lane : track.lanes) {
            std::vector<std::uint32_t>& items = lanes.emplace_back();
            for (std::size_t i = 0; i < lane.size(); ++i) {
                if (i % kBetweenChecks == 0 && cancel) break;
                if (bits.has(lane.event(i))) items.push_back(static_cast<std::uint32_t>(i));
            }
        }
    }
    return marks;
}

std::vector<HitRun> fold_hits(const Lane& lane, const std::vector<std::uint32_t>& items,
                              const model::TimeView& view) {
    std::vector<HitRun> runs;
    auto at = std::partition_point(items.begin(), items.end(),
                                   [&](std::uint32_t item) { return lane.end(item) < view.from; });
    while (at != items.end() && lane.start(*at) < view.to) {
        const double x0 = std::max(view.pixel(lane.start(*at)), -static_cast<double>(kMarkWidth));
        const double x1 = std::min(view.pixel(lane.end(*at)), view.width + static_cast<double>(kMarkWidth));
        HitRun run{static_cast<float>(x0), static_cast<float>(std::max(x1, x0 + kMarkWidth))};
        run.outlined = run.x1 - run.x0 >= kOutlinedFrom;
        constexpr float kGap = 1;
        if (!runs.empty() && !run.outlined && !runs.back().outlined && run.x0 <= runs.back().x1 + kGap) {
            runs.back().x1 = std::max(runs.back().x1, run.x1);
        } else {
            runs.push_back(run);
        }
        // The next one that is not under this mark.
        const std::int64_t next = view.time(static_cast<double>(run.x1));
        std::ptrdiff_t step = 1;
        auto low = at + 1;
        while (items.end() - low > step && lane.start(low[step]) < next) {
            low += step;
            step *= 2;
        }
        at = std::partition_point(low, low + std::min<std::ptrdiff_t>(step + 1, items.end() - low),
                                  [&](std::uint32_t item) { return lane.start(item) < next; });
    }
    return runs;
}

}  // namespace shardscope::viewer::timeline
