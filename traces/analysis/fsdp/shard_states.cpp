// One sweep over the device events collects what each unit of each rank does; each history is then painted
// from that. See shard_states.h.
#include "traces/analysis/fsdp/shard_states.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/communication/matching.h"
#include "traces/analysis/fsdp/unit_collectives.h"
#include "traces/analysis/fsdp/unit_ranges.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

constexpr std::int64_t kEarliest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kLatest = std::numeric_limits<std::int64_t>::max();

struct Transfer {  // a gather or a reduction
    Interval time;
    std::int64_t launched = 0;
    std::int32_t event = -1;
};

struct Compute {  // kernels that follow one another
    Interval time;
    std::size_t gathers = 0;  // of the unit, launched before these kernels, which use the last of them
};

// What one unit of one rank does; each list is sorted by start.
struct Facts {
    std::vector<Transfer> gathers, reductions;
    std::vector<Compute> compute;  // disjoint
    IntervalSet allocated;
};

class Sweep {
  public:
    explicit Sweep(const store::Trace& trace)
        : trace_(trace),
          ranges_(find_units(trace)),
          uses_(unit_uses(trace)),
          collectives_(trace, ranges_),
          facts_(trace.ranks.size() * ranges_.names.size()),
          bytes_(ranges_.names.size(), -1),
          latest_(trace.ranks.size()) {
        for (std::size_t u = 0; u < trace.units.size(); ++u)
            if (trace.units[u].bytes > 0) bytes_[u] = trace.units[u].bytes;
        if (ranges_.names.empty()) return;
        for (std::size_t i = 0; i < trace.device.size(); ++i) {
            if (trace.device.kind[i] == store::DeviceKind::kernel) {
                add_kernel(i);
            } else if (trace.device.kind[i] == store::DeviceKind::communication) {
                add_collective(i);
            }
        }
        add_allocations();
    }

    std::vector<std::string>& names() { return ranges_.names; }
    std::vector<std::int64_t>& bytes() { return bytes_; }
    const std::vector<Facts>& facts() const { return facts_; }

  private:
    std::size_t place_of(std::uint16_t rank, store::UnitIndex unit) const {
        return rank * ranges_.names.size() + unit.at();
    }

    void add_kernel(std::size_t i) {
        const store::DeviceEvents& device = trace_.device;
        const std::int32_t range = launching_range(trace_, i);
        if (range >= 0 && uses_[static_cast<std::size_t>(range)] != UnitUse::computes) return;
        const std::int64_t launched = launched_at(trace_, i);
        const store::UnitIndex unit = ranges_.at(trace_, range, launched).unit;
        const Interval time{device.start[i], device.end[i]};
        Latest& latest = latest_[device.rank[i]];
        const bool follows = latest.unit == unit && time.start - latest.end <= kComputePause;
        latest = {unit, std::max(time.end, follows ? latest.end : kEarliest)};
        if (!unit.known() || time.length() <= 0) return;
        Facts& facts = facts_[place_of(device.rank[i], unit)];
        // A gather that a kernel needs has ended, so it is in the list; the list may also have later ones, if
        // the host runs ahead.
        std::size_t gathers = facts.gathers.size();
        while (gathers > 0 && facts.gathers[gathers - 1].launched > launched) --gathers;
        std::vector<Compute>& compute = facts.compute;
        const bool same_use = !compute.empty() && compute.back().gathers == gathers;
        if (same_use && (follows || compute.back().time.end >= time.start)) {
            compute.back().time.end = std::max(compute.back().time.end, time.end);
        } else {
            Interval rest = time;
            if (!compute.empty()) rest.start = std::max(rest.start, compute.back().time.end);
            if (rest.length() > 0) compute.push_back({rest, gathers});
        }
    }

    void add_collective(std::size_t i) {
        const store::DeviceEvents& device = trace_.device;
        const auto found = collectives_.of_event(i);
        if (!found || !found->unit.known()) return;
        Facts& facts = facts_[place_of(device.rank[i], found->unit)];
        (found->gather ? facts.gathers : facts.reductions)
            .push_back({{device.start[i], device.end[i]}, found->launched, static_cast<std::int32_t>(i)});
        std::int64_t& known = bytes_[found->unit.at()];
        if (found->gather && trace_.units.empty() && found->bytes > 0) known = std::max(known, found->bytes);
    }

    void add_allocations() {
        const store::MemoryEvents& memory = trace_.memory;
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
            if (memory.category[i] != schema::MemoryCategory::unsharded_parameters ||
                memory.space[i] != schema::MemorySpace::device)
                continue;
            if (memory.bytes[i] > 0) {
                const store::UnitIndex unit = trace_.unit_of_id(memory.unit[i]);
                if (unit.known()) live[key(i)] = {memory.time[i], place_of(memory.rank[i], unit)};
            } else if (const auto it = live.find(key(i)); it != live.end()) {
                held[it->second.facts].push_back({it->second.since, memory.time[i]});
                live.erase(it);
            }
        }
        for (const auto& [_, block] : live)
            held[block.facts].push_back({block.since, std::max(trace_.last_ns, block.since + 1)});
        for (std::size_t f = 0; f < facts_.size(); ++f) facts_[f].allocated = make_union(std::move(held[f]));
    }

    struct Latest {  // latest compute kernel of a rank
        store::UnitIndex unit;
        std::int64_t end = kEarliest / 2;
    };
    const store::Trace& trace_;
    UnitRanges ranges_;
    std::vector<UnitUse> uses_;  // by host range
    UnitCollectives collectives_;
    std::vector<Facts> facts_;  // by rank, then unit
    std::vector<std::int64_t> bytes_;
    std::vector<Latest> latest_;
};

// Paints one history from its layers; at each moment the first layer that covers it counts.
class Painter {
  public:
    explicit Painter(const Facts& facts) : facts_(facts) {}

    UnitHistory history() {
        UnitHistory result;
        result.allocated = facts_.allocated;
        if (facts_.gathers.empty() && facts_.reductions.empty()) return result;
        if (facts_.gathers.empty()) {
            result.at_first = {kEarliest, ShardState::full, true, -1};
            whole_.push_back({{kEarliest, kLatest}, -1});
        } else {
            find_whole();
        }
        find_freed();
        for (const Compute& compute : facts_.compute) add(compute_, {compute.time, -1});
        for (const Transfer& gather : facts_.gathers) add(gathering_, {gather.time, gather.event});
        for (const Transfer& reduction : facts_.reductions) add(reducing_, {reduction.time, reduction.event});
        paint(result);
        return result;
    }

  private:
    struct Piece {
        Interval time;
        std::int32_t event = -1;
    };
    using Layer = std::vector<Piece>;  // sorted, disjoint

    // Pieces are added in order of start; the previous piece is cut where the next begins.
    static void add(Layer& layer, Piece piece) {
        if (!layer.empty()) layer.back().time.end = std::min(layer.back().time.end, piece.time.start);
        layer.push_back(piece);
    }

    // The end of the last compute that used each gather; the earliest number if none did.
    std::vector<std::int64_t> last_uses() const {
        std::vector<std::int64_t> ends(facts_.gathers.size(), kEarliest);
        for (const Compute& compute : facts_.compute) {
            if (compute.gathers == 0) continue;  // uses a gather before the trace
            std::int64_t& end = ends[compute.gathers - 1];
            end = std::max(end, compute.time.end);
        }
        return ends;
    }

    void find_whole() {
        const std::vector<std::int64_t> uses = last_uses();
        std::int64_t until = kEarliest;  // the latest release so far
        for (std::size_t g = 0; g < facts_.gathers.size(); ++g) {
            const Transfer& gather = facts_.gathers[g];
            std::int64_t end = std::max(gather.time.end, uses[g]);
            const auto block =
                std::partition_point(facts_.allocated.begin(), facts_.allocated.end(),
                                     [&](const Interval& a) { return a.end <= gather.launched; });
            const bool covered = block != facts_.allocated.end() && block->start <= gather.launched;
            if (covered) end = std::max(end, block->end);
            const bool unused = uses[g] == kEarliest && !covered;
            if (unused && g + 1 < facts_.gathers.size() && facts_.gathers[g + 1].launched < gather.time.end)
                end = std::max(end, facts_.gathers[g + 1].time.start);
            if (gather.time.start < until) end = std::max(end, until);  // two copies at the same time
            until = end;
            add(whole_, {{gather.time.start, end}, gather.event});
        }
    }

    // From each release to the next reduction, if that is before the next gather.
    void find_freed() {
        for (std::size_t w = 0; w < whole_.size(); ++w) {
            const std::int64_t released = whole_[w].time.end;
            const std::int64_t next = w + 1 < whole_.size() ? whole_[w + 1].time.start : kLatest;
            const auto reduction =
                std::partition_point(facts_.reductions.begin(), facts_.reductions.end(),
                                     [&](const Transfer& r) { return r.time.start <= released; });
            if (reduction == facts_.reductions.end() || reduction->time.start >= next) continue;
            freed_.push_back({{released, reduction->time.start}, reduction->event});
        }
    }

    // Looks up a layer at increasing times.
    class Cursor {
      public:
        explicit Cursor(const Layer& layer) : at_(layer.begin()), end_(layer.end()) {}
        const Piece* at(std::int64_t time) {
            while (at_ != end_ && at_->time.end <= time) ++at_;
            return at_ != end_ && at_->time.start <= time ? &*at_ : nullptr;
        }

      private:
        Layer::const_iterator at_, end_;
    };

    void paint(UnitHistory& history) const {
        std::vector<std::int64_t> edges;
        for (const Layer* layer : {&gathering_, &reducing_, &compute_, &whole_, &freed_}) {
            for (const Piece& piece : *layer) {
                edges.push_back(piece.time.start);
                edges.push_back(piece.time.end);
            }
        }
        std::sort(edges.begin(), edges.end());
        edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
        Cursor gathering(gathering_), reducing(reducing_), compute(compute_), whole(whole_), freed(freed_);
        ShardChange last = history.at_first;
        for (const std::int64_t time : edges) {
            if (time == kEarliest || time == kLatest) continue;
            const Piece* gather = gathering.at(time);
            const Piece* reduction = reducing.at(time);
            const Piece* kernels = compute.at(time);
            const Piece* there = whole.at(time);
            const Piece* gone = freed.at(time);
            ShardChange now{time, ShardState::sharded, there != nullptr, -1};
            if (gather != nullptr) {
                now.state = ShardState::gathering;
                now.event = gather->event;
            } else if (reduction != nullptr) {
                now.state = ShardState::reducing;
                now.event = reduction->event;
            } else if (there != nullptr) {
                now.state = kernels != nullptr ? ShardState::computing : ShardState::full;
                now.event = there->event;
            } else if (gone != nullptr) {
                now.state = ShardState::freed;
                now.event = gone->event;
            }
            if (now.state == last.state && now.whole == last.whole && now.event == last.event) continue;
            history.changes.push_back(now);
            last = now;
        }
    }

    const Facts& facts_;
    Layer gathering_, reducing_, compute_, whole_, freed_;
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

ShardStates shard_states(const store::Trace& trace) {
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

}  // namespace shardscope::traces::analysis
