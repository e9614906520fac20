// See idle.h; stream_walk.h follows a stream.
#include "traces/analysis/time/idle.h"

#include <algorithm>
#include <bit>

#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/time/stream_walk.h"
#include "traces/schema/memory_kinds.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {

IdleReport idle_report(const store::Trace& trace, const Selection& selection, std::int64_t kernel_wait_ns) {
    const store::DeviceEvents& device = trace.device;
    const std::vector<bool> counts = selected_events(trace, find_steps(trace), selection);
    const EventsByStream streams = events_by_stream(trace);
    const std::int64_t from = selected_time(selection).start;
    std::vector<StreamWalk> devices(trace.ranks.size(), StreamWalk(trace, from, kernel_wait_ns));
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (!schema::is_of_file(device.copy_kind[i])) devices[device.rank[i]].add(i, counts[i]);
    }
    IdleReport report{.kernel_wait_ns = kernel_wait_ns, .ranks = {}};
    for (const store::RankIndex r : selected_ranks(trace, selection)) {
        RankIdle rank;
        rank.rank = trace.ranks[r.at()].number;
        rank.device = devices[r.at()].finish();
        for (std::size_t s = 0; s < trace.streams.size(); ++s) {
            if (trace.streams[s].rank != r) continue;
            StreamWalk walk(trace, from, kernel_wait_ns);
            for (std::size_t e = streams.first[s]; e < streams.first[s + 1]; ++e) {
                walk.add(streams.events[e], counts[streams.events[e]]);
            }
            StreamIdle idle = walk.finish();
            if (idle.events == 0) continue;
            idle.stream = trace.streams[s].id;
            idle.name = trace.streams[s].name;
            rank.streams.push_back(idle);
        }
        report.ranks.push_back(std::move(rank));
    }
    return report;
}

namespace {

template <GapKind Kind>
store::Cell gap_us(const StreamIdle& stream) {
    return us_cell(static_cast<double>(stream.gap(Kind).ns));
}
store::Cell share_of_span(const StreamIdle& stream, std::int64_t ns) {
    return stream.span > 0 ? 100.0 * static_cast<double>(ns) / static_cast<double>(stream.span) : 0.0;
}
template <GapKind Kind>
store::Cell gap_share(const StreamIdle& stream) {
    return share_of_span(stream, stream.gap(Kind).ns);
}
template <auto Member>
store::Cell delay_us(const StreamIdle& stream) {
    return us_cell(static_cast<double>(stream.launch.*Member));
}

}  // namespace

Fields<StreamIdle> gap_fields() {
    using S = StreamIdle;
    static constexpr ResultColumn kShare = {"percent", "%", Unit::percent, "Share of the span.", in_table};
    static constexpr Field<S> kFields[] = {
        {{"name", "", Unit::text, "The stream's name.", in_csv}, value_of<&S::name>},
        {{"events", "Events", Unit::count, "Device events of the stream."}, value_of<&S::events>},
        {{"span_us", "Span", Unit::us, "From the first start to the last end."}, micros_of<&S::span>},
        {{"busy_us", "", Unit::us, "Union of its events.", in_programs}, micros_of<&S::busy>},
        {{"busy_percent", "Busy", Unit::percent, "Share of the span.", in_table},
         [](const S& s) { return share_of_span(s, s.busy); }},
        {{"host_wait_us", "Host wait", Unit::us, "Gaps before work that was launched only after they began."},
         gap_us<GapKind::host_wait>},
        {kShare, gap_share<GapKind::host_wait>},
        {{"kernel_wait_us", "Kernel wait", Unit::us,
          "Short gaps before work that was launched before they began."},
         gap_us<GapKind::kernel_wait>},
        {kShare, gap_share<GapKind::kernel_wait>},
        {{"other_us", "Other", Unit::us, "The other gaps, such as waits for other streams."},
         gap_us<GapKind::other>},
        {kShare, gap_share<GapKind::other>},
    };
    return kFields;
}

Fields<StreamIdle> launch_delay_fields() {
    using S = StreamIdle;
    using L = LaunchDelay;
    static constexpr Field<S> kFields[] = {
        {{"launches", "Launches", Unit::count, "Events whose launching call is known."},
         [](const S& s) { return store::Cell(s.launch.count); }},
        {{"launch_delay_mean_us", "Mean delay", Unit::us,
          "From the end of the launching call to the start on the device; a mean."},
         delay_us<&L::mean>},
        {{"launch_delay_median_us", "Median", Unit::us, "The median of the delays."}, delay_us<&L::median>},
        {{"launch_delay_p95_us", "p95", Unit::us, "95 % of the delays are not longer."}, delay_us<&L::p95>},
        {{"launch_delay_max_us", "Max", Unit::us, "The longest delay."}, delay_us<&L::longest>},
        {{"queue_mean", "Mean queue", Unit::number, "Launched and not started; a mean over time."},
         [](const S& s) { return store::Cell(s.queue.mean); }},
        {{"queue_max", "Max queue", Unit::count, "The most that were launched and not started."},
         [](const S& s) { return store::Cell(s.queue.longest); }},
    };
    return kFields;
}

Fields<IdleWait> idle_wait_fields() {
    using W = IdleWait;
    static constexpr Field<W> kFields[] = {
        {{"stream", "", Unit::index, "The stream; none: all together.", in_programs}, value_of<&W::stream>},
        {{"stream", "Stream", Unit::text, "The stream.", in_table},
         [](const W& w) {
             if (!w.stream) return store::Cell(std::string("all as one"));
             std::string text = std::to_string(*w.stream);
             if (!w.stream_name.empty()) text += " " + std::string(w.stream_name);
             return store::Cell(std::move(text));
         }},
        {{"waits_for", "", Unit::text,
          "host, data, device, rank, collective, copy, kernel, queue, start or unknown.", in_programs},
         value_of<&W::what>},
        {{"waits_for", "Waits for", Unit::text, "What the next work waited for.", in_table},
         value_of<&W::title>},
        {{"count", "Count", Unit::count, "Gaps, and parts of gaps."}, value_of<&W::count>},
        {{"us", "Total", Unit::us, "Their sum."}, micros_of<&W::ns>},
        {{"longest_us", "Longest", Unit::us, "The longest of them."}, micros_of<&W::longest>},
        {{"longest_for", "Longest for", Unit::text, "What the longest waited for."},
         value_of<&W::longest_for>},
    };
    return kFields;
}

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

StreamIdleDetails details_of(StreamWalk& walk, GapsByKind& gaps, store::StreamIndex stream) {
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

IdleDetails idle_details(const store::Trace& trace, const Selection& selection, std::size_t most,
                         std::int64_t kernel_wait_ns) {
    const std::vector<bool> counts = selected_events(trace, find_steps(trace), selection);
    const EventsByStream streams = events_by_stream(trace);
    const std::int64_t from = selected_time(selection).start;
    IdleDetails report;
    for (const store::RankIndex r : selected_ranks(trace, selection)) {
        RankIdleDetails rank;
        rank.rank = trace.ranks[r.at()].number;
        // `rows`: the events' rows in order of start.
        const auto follow = [&](store::StreamIndex stream, const auto& each_row) {
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
            if (any || !stream.known()) rank.streams.push_back(details_of(walk, gaps, stream));
        };
        follow({}, [&](const auto& add) {
            for (std::size_t i = 0; i < trace.device.size(); ++i) {
                if (trace.device.rank[i] == r.value && !schema::is_of_file(trace.device.copy_kind[i])) add(i);
            }
        });
        for (std::size_t s = 0; s < trace.streams.size(); ++s) {
            if (trace.streams[s].rank != r) continue;
            follow(store::StreamIndex(s), [&](const auto& add) {
                for (std::size_t e = streams.first[s]; e < streams.first[s + 1]; ++e) add(streams.events[e]);
            });
        }
        report.ranks.push_back(std::move(rank));
    }
    return report;
}

}  // namespace shardscope::traces::analysis
