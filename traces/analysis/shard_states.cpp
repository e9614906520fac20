// One sweep over the device events collects what each unit of each rank does; then each history is painted
// from it. See shard_states.h.
#include "traces/analysis/shard_states.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "traces/analysis/matching.h"
#include "traces/analysis/step_windows.h"
#include "traces/analysis/unit_names.h"
#include "traces/analysis/unit_ranges.h"
#include "traces/store/trace.h"

namespace shardscope::traces {
namespace {

constexpr std::int64_t kEarliest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kLatest = std::numeric_limits<std::int64_t>::max();

struct Transfer {  // a gather or a reduction
    Interval time;
    std::int64_t launched = 0;
    std::int32_t event = -1;
};

// What one unit of one rank does, each sorted by start.
struct Facts {
    std::vector<Transfer> gathers, reductions;
    std::vector<Interval> compute;  // disjoint
    IntervalSet allocated;
};

bool is_reduction(Operation operation) {
    return operation == Operation::reduce_scatter || operation == Operation::all_reduce ||
           operation == Operation::reduce;
}

// By host range: it, or a range around it, works for a collective, such as the copies before and after.
std::vector<bool> ranges_for_collectives(const Trace& trace) {
    std::vector<std::int8_t> by_name(trace.strings.size(), -1);
    std::vector<bool> result(trace.ranges.size(), false);
    for (std::size_t i = 0; i < result.size(); ++i) {
        std::int8_t& known = by_name[static_cast<std::size_t>(trace.ranges.name[i])];
        if (known < 0) {
            const UnitMark mark = unit_name(trace.strings[trace.ranges.name[i]]).mark;
            known = mark == UnitMark::other || mark == UnitMark::post_backward;
        }
        const std::int32_t parent = trace.ranges.parent[i];  // stands before it
        result[i] = known != 0 || (parent >= 0 && result[static_cast<std::size_t>(parent)]);
    }
    return result;
}

class Sweep {
  public:
    explicit Sweep(const Trace& trace)
        : trace_(trace),
          ranges_(find_units(trace)),
          for_collectives_(ranges_for_collectives(trace)),
          operations_(trace),
          facts_(trace.ranks.size() * ranges_.names.size()),
          bytes_(ranges_.names.size(), -1),
          latest_(trace.ranks.size()) {
        for (std::size_t u = 0; u < trace.units.size(); ++u) {
            place_of_unit_.emplace(trace.units[u].id, static_cast<std::int32_t>(u));
            if (trace.units[u].bytes > 0) bytes_[u] = trace.units[u].bytes;
        }
        if (ranges_.names.empty()) return;
        for (std::size_t i = 0; i < trace.device.size(); ++i) {
            if (trace.device.kind[i] == DeviceKind::kernel) {
                add_kernel(i);
            } else if (trace.device.kind[i] == DeviceKind::communication) {
                add_collective(i);
            }
        }
        add_allocations();
    }

    std::vector<std::string>& names() { return ranges_.names; }
    std::vector<std::int64_t>& bytes() { return bytes_; }
    const std::vector<Facts>& facts() const { return facts_; }

  private:
    Facts& facts_of(std::size_t rank, std::int32_t unit) {
        return facts_[rank * ranges_.names.size() + static_cast<std::size_t>(unit)];
    }

    void add_kernel(std::size_t i) {
        const DeviceEvents& device = trace_.device;
        const std::int32_t range = launching_range(trace_, i);
        if (range >= 0 && for_collectives_[static_cast<std::size_t>(range)]) return;
        const std::int32_t unit = ranges_.at(trace_, range, launched_at(trace_, i)).unit;
        const Interval time{device.start[i], device.end[i]};
        Latest& latest = latest_[device.rank[i]];
        const bool follows = latest.unit == unit && time.start - latest.end <= kComputePause;
        latest = {unit, std::max(time.end, follows ? latest.end : kEarliest)};
        if (unit < 0 || time.length() <= 0) return;
        std::vector<Interval>& compute = facts_of(device.rank[i], unit).compute;
        if (!compute.empty() && (follows || compute.back().end >= time.start)) {
            compute.back().end = std::max(compute.back().end, time.end);
        } else {
            compute.push_back(time);
        }
    }

    void add_collective(std::size_t i) {
        const DeviceEvents& device = trace_.device;
        const std::int64_t launched = launched_at(trace_, i);
        const std::int32_t row = device.collective[i];
        std::int32_t unit = -1;
        Operation operation = Operation::other;
        std::int64_t bytes = 0;
        if (row >= 0) {
            const auto at = static_cast<std::size_t>(row);
            operation = trace_.collectives.operation[at];
            bytes = trace_.collectives.bytes[at];
            if (const auto place = place_of_unit_.find(trace_.collectives.unit[at]);
                place != place_of_unit_.end())
                unit = place->second;
        }
        if (place_of_unit_.empty()) unit = ranges_.at(trace_, launching_range(trace_, i), launched).unit;
        if (operation == Operation::other) operation = operations_.of_event(i);
        if (unit < 0) return;
        const bool gather = operation == Operation::all_gather;
        if (!gather && !is_reduction(operation)) return;
        Facts& facts = facts_of(device.rank[i], unit);
        (gather ? facts.gathers : facts.reductions)
            .push_back({{device.start[i], device.end[i]}, launched, static_cast<std::int32_t>(i)});
        std::int64_t& known = bytes_[static_cast<std::size_t>(unit)];
        if (gather && trace_.units.empty() && bytes > 0) known = std::max(known, bytes);
    }

    void add_allocations() {
        const MemoryEvents& memory = trace_.memory;
        struct Live {
            std::int64_t since;
            std::size_t facts;
        };
        std::unordered_map<std::uint64_t, Live> live;  // by address and rank
        std::vector<std::vector<Interval>> held(facts_.size());
        const auto key = [&](std::size_t i) {
            return memory.address[i] ^ (std::uint64_t{memory.rank[i]} << 48);
        };
        for (std::size_t i = 0; i < memory.size(); ++i) {
            if (memory.category[i] != MemoryCategory::unsharded_parameters ||
                memory.space[i] != MemorySpace::device)
                continue;
            if (memory.bytes[i] > 0) {
                const auto place = place_of_unit_.find(memory.unit[i]);
                if (place == place_of_unit_.end()) continue;
                live[key(i)] = {memory.time[i], memory.rank[i] * ranges_.names.size() +
                                                    static_cast<std::size_t>(place->second)};
            } else if (const auto it = live.find(key(i)); it != live.end()) {
                held[it->second.facts].push_back({it->second.since, memory.time[i]});
                live.erase(it);
            }
        }
        for (const auto& [_, block] : live)
            held[block.facts].push_back({block.since, std::max(trace_.last_ns, block.since + 1)});
        for (std::size_t f = 0; f < facts_.size(); ++f) facts_[f].allocated = make_union(std::move(held[f]));
    }

    struct Latest {  // compute kernel of a rank
        std::int32_t unit = -1;
        std::int64_t end = kEarliest / 2;
    };
    const Trace& trace_;
    UnitRanges ranges_;
    std::vector<bool> for_collectives_;
    KernelOperations operations_;
    std::vector<Facts> facts_;  // by rank, then unit
    std::vector<std::int64_t> bytes_;
    std::vector<Latest> latest_;
    std::unordered_map<std::int64_t, std::int32_t> place_of_unit_;
};

// Paints one history: each layer over those before it.
class Painter {
  public:
    explicit Painter(const Facts& facts) : facts_(facts) {}

    UnitHistory history() {
        UnitHistory result;
        result.allocated = facts_.allocated;
        if (facts_.gathers.empty()) {
            if (facts_.reductions.empty()) return result;
            result.at_first = {kEarliest, ShardState::full, true, -1};
            whole_.push_back({{kEarliest, kLatest}, -1});
        } else {
            find_whole();
        }
        for (const Whole& whole : whole_) paint_whole(whole);
        for (std::size_t i = 0; i + 1 < pieces_.size(); ++i)
            pieces_[i].time.end = std::min(pieces_[i].time.end, pieces_[i + 1].time.start);
        const std::vector<Piece> waiting = freed();
        std::vector<Piece> reducing;
        for (const Transfer& reduction : facts_.reductions) {
            if (!reducing.empty())
                reducing.back().time.end = std::min(reducing.back().time.end, reduction.time.start);
            reducing.push_back({reduction.time, {0, ShardState::reducing, false, reduction.event}});
        }
        result.changes = changes(over(over(pieces_, waiting, false), reducing, true), result.at_first);
        return result;
    }

  private:
    struct Whole {  // while the whole parameters are there
        Interval time;
        std::int32_t gather = -1;  // index into facts_.gathers
    };
    struct Piece {
        Interval time;
        ShardChange state;
    };

    // The end of the last compute that starts in [from, to); `from` where there is none.
    std::int64_t last_use(std::int64_t from, std::int64_t to) const {
        const auto after = std::partition_point(facts_.compute.begin(), facts_.compute.end(),
                                                [&](const Interval& c) { return c.start < to; });
        return after == facts_.compute.begin() ? from : std::max(from, (after - 1)->end);
    }

    void find_whole() {
        for (std::size_t g = 0; g < facts_.gathers.size(); ++g) {
            const Transfer& gather = facts_.gathers[g];
            const bool last = g + 1 == facts_.gathers.size();
            const std::int64_t next = last ? kLatest : facts_.gathers[g + 1].time.start;
            std::int64_t end = last_use(gather.time.end, next);
            const auto block =
                std::partition_point(facts_.allocated.begin(), facts_.allocated.end(),
                                     [&](const Interval& a) { return a.end <= gather.launched; });
            const bool covered = block != facts_.allocated.end() && block->start <= gather.launched;
            if (covered) end = std::max(end, block->end);
            if (end <= gather.time.end && !covered && !last &&
                facts_.gathers[g + 1].launched < gather.time.end)
                end = next;
            whole_.push_back({{gather.time.start, std::min(end, next)}, static_cast<std::int32_t>(g)});
        }
    }

    void paint_whole(const Whole& whole) {
        std::int64_t at = whole.time.start;
        std::int32_t event = -1;
        if (whole.gather >= 0) {
            const Transfer& gather = facts_.gathers[static_cast<std::size_t>(whole.gather)];
            event = gather.event;
            add(at, gather.time.end, ShardState::gathering, event);
            at = std::max(at, gather.time.end);
        }
        auto compute = std::partition_point(facts_.compute.begin(), facts_.compute.end(),
                                            [&](const Interval& c) { return c.end <= at; });
        for (; compute != facts_.compute.end() && compute->start < whole.time.end; ++compute) {
            add(at, compute->start, ShardState::full, event);
            at = std::max(at, compute->start);
            add(at, std::min(compute->end, whole.time.end), ShardState::computing, event);
            at = std::min(compute->end, whole.time.end);
        }
        add(at, whole.time.end, ShardState::full, event);
    }

    void add(std::int64_t from, std::int64_t to, ShardState state, std::int32_t event) {
        if (from < to) pieces_.push_back({{from, to}, {from, state, true, event}});
    }

    // From each release to the reduction that follows it before the next gather.
    std::vector<Piece> freed() const {
        std::vector<Piece> result;
        for (std::size_t w = 0; w < whole_.size(); ++w) {
            const std::int64_t released = whole_[w].time.end;
            const std::int64_t next = w + 1 < whole_.size() ? whole_[w + 1].time.start : kLatest;
            const auto reduction =
                std::partition_point(facts_.reductions.begin(), facts_.reductions.end(),
                                     [&](const Transfer& r) { return r.time.start <= released; });
            if (reduction == facts_.reductions.end() || reduction->time.start >= next) continue;
            result.push_back(
                {{released, reduction->time.start}, {0, ShardState::freed, false, reduction->event}});
        }
        return result;
    }

    // `upper` painted over `lower`; both sorted and disjoint within themselves. A gathering stays on top.
    // `keep_whole`: what is painted over the whole parameters does not free them.
    static std::vector<Piece> over(const std::vector<Piece>& lower, const std::vector<Piece>& upper,
                                   bool keep_whole) {
        std::vector<std::int64_t> edges;
        for (const auto* pieces : {&lower, &upper}) {
            for (const Piece& piece : *pieces) {
                edges.push_back(piece.time.start);
                edges.push_back(piece.time.end);
            }
        }
        std::sort(edges.begin(), edges.end());
        edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
        std::vector<Piece> result;
        std::size_t below = 0, above = 0;
        for (std::size_t e = 0; e + 1 < edges.size(); ++e) {
            const Interval time{edges[e], edges[e + 1]};
            while (below < lower.size() && lower[below].time.end <= time.start) ++below;
            while (above < upper.size() && upper[above].time.end <= time.start) ++above;
            const bool in_lower = below < lower.size() && lower[below].time.start <= time.start;
            const bool in_upper = above < upper.size() && upper[above].time.start <= time.start;
            if (!in_lower && !in_upper) continue;
            const bool gathering = in_lower && lower[below].state.state == ShardState::gathering;
            ShardChange state = in_upper && !gathering ? upper[above].state : lower[below].state;
            if (keep_whole && in_lower) state.whole = lower[below].state.whole;
            result.push_back({time, state});
        }
        return result;
    }

    static std::vector<ShardChange> changes(const std::vector<Piece>& pieces, const ShardChange& at_first) {
        std::vector<ShardChange> result;
        const auto same = [](const ShardChange& a, const ShardChange& b) {
            return a.state == b.state && a.whole == b.whole && a.event == b.event;
        };
        const auto add = [&](ShardChange change) {
            if (!same(result.empty() ? at_first : result.back(), change)) result.push_back(change);
        };
        std::int64_t end = kEarliest;
        for (const Piece& piece : pieces) {
            if (piece.time.start > end && end != kEarliest) add({end, ShardState::sharded, false, -1});
            ShardChange change = piece.state;
            change.time = piece.time.start;
            add(change);
            end = piece.time.end;
        }
        if (end != kEarliest && end != kLatest) add({end, ShardState::sharded, false, -1});
        return result;
    }

    const Facts& facts_;
    std::vector<Whole> whole_;
    std::vector<Piece> pieces_;
};

}  // namespace

const ShardChange& UnitHistory::at(std::int64_t time) const {
    const auto after = std::partition_point(changes.begin(), changes.end(),
                                            [&](const ShardChange& c) { return c.time <= time; });
    return after == changes.begin() ? at_first : *(after - 1);
}

Interval UnitHistory::span(std::int64_t time) const {
    const auto after = std::partition_point(changes.begin(), changes.end(),
                                            [&](const ShardChange& c) { return c.time <= time; });
    return {after == changes.begin() ? kEarliest : (after - 1)->time,
            after == changes.end() ? kLatest : after->time};
}

ShardStates shard_states(const Trace& trace) {
    Sweep sweep(trace);
    ShardStates result;
    result.units = std::move(sweep.names());
    result.bytes = std::move(sweep.bytes());
    result.ranks = trace.ranks.size();
    result.histories.reserve(sweep.facts().size());
    for (const Facts& facts : sweep.facts()) {
        result.histories.push_back(Painter(facts).history());
        result.allocations |= !facts.allocated.empty();
        result.any_collective |= !facts.gathers.empty() || !facts.reductions.empty();
    }
    return result;
}

int most_at_once(std::span<const IntervalSet> sets) {
    std::vector<std::pair<std::int64_t, int>> edges;  // an end before a start at the same time
    for (const IntervalSet& set : sets) {
        for (const Interval& interval : set) {
            edges.emplace_back(interval.start, 1);
            edges.emplace_back(interval.end, -1);
        }
    }
    std::sort(edges.begin(), edges.end());
    int now = 0, most = 0;
    for (const auto& [_, change] : edges) most = std::max(most, now += change);
    return most;
}

}  // namespace shardscope::traces
