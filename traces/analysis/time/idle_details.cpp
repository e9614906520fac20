// See idle_details.h.
#include "traces/analysis/time/idle_details.h"

#include <algorithm>
#include <bit>

#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/time/stream_walk.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces {
namespace {

bool longer(const IdleGap& a, const IdleGap& b) {
    return a.length() != b.length() ? a.length() > b.length() : a.from < b.from;
}

// Keeps the longest gaps: a heap whose first element is the shortest of them.
class LongestGaps {
  public:
    explicit LongestGaps(std::size_t most) : most_(most) {}
    void add(const IdleGap& gap) {
        if (most_ > 0 && gaps_.size() == most_) {
            if (!longer(gap, gaps_.front())) return;
            std::pop_heap(gaps_.begin(), gaps_.end(), longer);
            gaps_.pop_back();
        }
        gaps_.push_back(gap);
        if (most_ > 0) std::push_heap(gaps_.begin(), gaps_.end(), longer);
    }
    void move_to(std::vector<IdleGap>& all) {
        all.insert(all.end(), gaps_.begin(), gaps_.end());
        gaps_.clear();
    }

  private:
    std::size_t most_;
    std::vector<IdleGap> gaps_;
};

using GapsByKind = std::vector<LongestGaps>;

// Adds the time between consecutive launches and starts to the bin of the queue's length.
void add_queue(const StreamWalk& walk, std::array<std::int64_t, kQueueBins>& bins) {
    const auto& launches = walk.launches();
    const auto& starts = walk.starts();
    if (launches.empty()) return;
    std::size_t launched = 0, started = 0;
    std::int64_t now = launches.front();
    while (started < starts.size()) {
        const bool launch = launched < launches.size() && launches[launched] < starts[started];
        const std::int64_t next = launch ? launches[launched] : starts[started];
        bins[queue_bin(static_cast<std::int64_t>(launched) - static_cast<std::int64_t>(started))] +=
            std::max<std::int64_t>(0, next - now);
        now = std::max(now, next);
        ++(launch ? launched : started);
    }
}

StreamIdleDetails details_of(StreamWalk& walk, GapsByKind& gaps, std::int32_t stream) {
    walk.finish();
    StreamIdleDetails details;
    details.stream = stream;
    for (const std::int64_t delay : walk.delays()) ++details.delays[length_bin(delay)];
    add_queue(walk, details.queue_ns);
    for (LongestGaps& kind : gaps) kind.move_to(details.gaps);
    std::sort(details.gaps.begin(), details.gaps.end(), longer);
    return details;
}

}  // namespace

std::size_t length_bin(std::int64_t value) {
    if (value < 2) return 0;
    return std::min(kLengthBins - 1,
                    static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(value))) - 1);
}

std::size_t queue_bin(std::int64_t length) {
    if (length < 1) return 0;
    return std::min(kQueueBins - 1,
                    static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(length))));
}

IdleDetails idle_details(const Trace& trace, const Selection& selection, std::size_t most,
                         std::int64_t kernel_wait_ns) {
    const std::vector<bool> counts = selected_events(trace, find_steps(trace), selection);
    const EventsByStream streams = events_by_stream(trace);
    const std::int64_t from = selected_time(selection).start;
    IdleDetails report;
    for (const RankPlace r : selected_ranks(trace, selection)) {
        RankIdleDetails rank;
        rank.rank = trace.ranks[r.at()].number;
        // `rows`: the events' rows in order of start.
        const auto follow = [&](std::int32_t stream, const auto& each_row) {
            GapsByKind gaps(kGapKinds, LongestGaps(most));
            StreamWalk walk(trace, from, kernel_wait_ns,
                            [&](GapKind kind, std::int64_t begin, std::int64_t end, std::size_t event) {
                                gaps[static_cast<std::size_t>(kind)].add(
                                    {kind, begin, end, stream, static_cast<std::int32_t>(event)});
                            });
            bool any = false;
            each_row([&](std::size_t event) {
                walk.add(event, counts[event]);
                any = any || counts[event];
            });
            if (any || stream < 0) rank.streams.push_back(details_of(walk, gaps, stream));
        };
        follow(-1, [&](const auto& add) {
            for (std::size_t i = 0; i < trace.device.size(); ++i) {
                if (trace.device.rank[i] == r.value) add(i);
            }
        });
        for (std::size_t s = 0; s < trace.streams.size(); ++s) {
            if (trace.streams[s].rank != r.value) continue;
            follow(static_cast<std::int32_t>(s), [&](const auto& add) {
                for (std::size_t e = streams.first[s]; e < streams.first[s + 1]; ++e) add(streams.events[e]);
            });
        }
        report.ranks.push_back(std::move(rank));
    }
    return report;
}

}  // namespace shardscope::traces
