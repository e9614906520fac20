// One sweep over the device events finds gathers, reductions and waits; what hid them is then looked up in
// the complete compute time; see units.h.
#include "traces/analysis/fsdp/units.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/communication/matching.h"
#include "traces/analysis/fsdp/unit_collectives.h"
#include "traces/analysis/fsdp/unit_ranges.h"
#include "traces/analysis/fsdp/unit_residencies.h"
#include "traces/analysis/fsdp/unit_rows.h"
#include "traces/analysis/memory/peak_search.h"
#include "traces/schema/memory_kinds.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

constexpr std::size_t kLeftOut = std::numeric_limits<std::size_t>::max();

// A gather or reduction in a kept step.
struct Kept : UnitCollective {
    store::RankIndex rank;
    std::int32_t step = -1;  // index of its rank's step
    UnitRows::Place place;
};

class UnitsAnalysis {
  public:
    UnitsAnalysis(const store::Trace& trace, const Selection& selection)
        : trace_(trace),
          selection_(selection),
          steps_(find_steps(trace)),
          selected_(selected_events(trace, steps_, selection)),
          ranges_(find_units(trace)),
          blocking_(trace, ranges_.limiters),
          collectives_(trace, ranges_),
          uses_(unit_uses(trace)),
          residencies_(trace, ranges_.names.size(), blocking_),
          rows_(ranges_.names),
          compute_(trace.ranks.size()),
          busy_(trace.ranks.size()) {}

    UnitsReport report() {
        UnitsReport result;
        result.any_unit = !ranges_.names.empty();
        sweep();
        if (result.any_unit) {
            add_residencies();
            what_hid_them();
            count_regathers();
            add_limiters();
        }
        finish(result);
        return result;
    }

  private:
    bool kept(std::size_t event) const {
        const std::int32_t step = steps_.event[event];
        return selected_[event] && step >= 0 && step < steps_.ranks[trace_.device.rank[event]].kept();
    }

    void sweep() {
        const store::DeviceEvents& device = trace_.device;
        std::vector<std::int64_t> free_from(trace_.streams.size(), std::numeric_limits<std::int64_t>::min());
        for (std::size_t i = 0; i < device.size(); ++i) {
            std::int64_t& stream = free_from[device.stream[i]];
            if (device.kind[i] == store::DeviceKind::kernel) {
                add_kernel(i, stream);
            } else if (device.kind[i] == store::DeviceKind::communication) {
                add_collective(i);
            }
            stream = std::max(stream, device.end[i]);
            if (!schema::is_of_file(device.copy_kind[i]))
                append_merged(busy_[device.rank[i]], {device.start[i], device.end[i]});
        }
    }

    void add_kernel(std::size_t i, std::int64_t stream_free_from) {
        const store::DeviceEvents& device = trace_.device;
        const std::int64_t launched = launched_at(trace_, i);
        const std::int32_t range = launching_range(trace_, i);
        const store::UnitIndex unit = ranges_.at(trace_, range, launched).unit;
        compute_[device.rank[i]].add({device.start[i], device.end[i]}, unit);
        if (!unit.known() || (range >= 0 && uses_[static_cast<std::size_t>(range)] == UnitUse::nothing))
            return;
        residencies_.add_kernel(i, unit, launched, stream_free_from);
    }

    void add_collective(std::size_t i) {
        const store::DeviceEvents& device = trace_.device;
        if (ranges_.names.empty()) return;
        const auto found = collectives_.of_event(i);
        if (!found) return;
        // Gathers that are not kept still end the residency of the previous one.
        if (found->gather && found->unit.known())
            residencies_.add_gather(kept(i) ? kept_.size() : kLeftOut, i, found->unit, steps_.event[i],
                                    found->launched);
        if (!kept(i)) return;
        Kept collective{*found, store::RankIndex(device.rank[i]), steps_.event[i], {}};
        const std::vector<StepWindow>& steps = steps_.ranks[collective.rank.at()].steps;
        collective.place = rows_.place(collective.rank, collective.unit, collective.phase, collective.step,
                                       steps[static_cast<std::size_t>(collective.step)].number);
        const std::int64_t ns = device.end[i] - device.start[i];
        UnitCosts& sum = rows_.costs(collective.place);
        if (collective.gather) {
            ++sum.gathers;
            sum.gather_bytes += collective.bytes;
            sum.gather_padding += collective.padding;
            sum.gather_ns += ns;
            sum.issue_to_ready_ns += std::max<std::int64_t>(device.end[i] - collective.launched, 0);
        } else {
            ++sum.reductions;
            sum.reduce_bytes += collective.bytes;
            sum.reduce_padding += collective.padding;
            sum.reduce_ns += ns;
        }
        if (collective.gather && collective.unit.known()) note_shard(collective);
        kept_.push_back(collective);
    }

    void add_residencies() {
        for (const UnitResidencies::Times& times : residencies_.times()) {
            if (times.id == kLeftOut) continue;
            UnitCosts& sum = rows_.costs(kept_[times.id].place);
            sum.wait_ns += times.wait;
            sum.held_ns += times.held;
            sum.freed_ns += times.freed;
        }
    }

    void what_hid_them() {
        const store::DeviceEvents& device = trace_.device;
        for (const Kept& c : kept_) {
            const Interval time{device.start[c.event], device.end[c.event]};
            const std::int64_t exposed =
                time.length() - compute_[c.rank.at()].overlap(time, rows_.hidden(c.place));
            UnitCosts& sum = rows_.costs(c.place);
            (c.gather ? sum.gather_exposed_ns : sum.reduce_exposed_ns) += exposed;
        }
    }

    void count_regathers() {
        std::vector<const Kept*> gathers;
        for (const Kept& c : kept_) {
            if (c.gather && c.unit.known()) gathers.push_back(&c);
        }
        std::sort(gathers.begin(), gathers.end(), [](const Kept* a, const Kept* b) {
            return std::tie(a->rank, a->launched, a->event) < std::tie(b->rank, b->launched, b->event);
        });
        for (std::size_t i = 1; i < gathers.size(); ++i) {
            const Kept& before = *gathers[i - 1];
            const Kept& c = *gathers[i];
            if (before.rank == c.rank && before.unit == c.unit && before.step == c.step &&
                before.phase != c.phase)
                ++rows_.costs(c.place).regathers;
        }
    }

    // The limiter holds the host before it issues a gather: the time counts for the thread's next gather.
    void add_limiters() {
        std::vector<std::vector<std::pair<std::int64_t, std::size_t>>> gathers(trace_.threads.size());
        for (std::size_t i = 0; i < kept_.size(); ++i) {
            const std::int32_t launch = trace_.device.launch[kept_[i].event];
            if (!kept_[i].gather || launch < 0) continue;
            gathers[trace_.runtime.thread[static_cast<std::size_t>(launch)]].push_back(
                {kept_[i].launched, i});
        }
        for (auto& thread : gathers) std::sort(thread.begin(), thread.end());
        const store::HostRanges& ranges = trace_.ranges;
        for (const std::int32_t limiter : ranges_.limiters) {
            const auto at = static_cast<std::size_t>(limiter);
            const auto& thread = gathers[ranges.thread[at]];
            const auto next = std::lower_bound(thread.begin(), thread.end(),
                                               std::pair<std::int64_t, std::size_t>(ranges.start[at], 0));
            if (next == thread.end()) continue;
            const Kept& gather = kept_[next->second];
            const StepWindow& step =
                steps_.ranks[gather.rank.at()].steps[static_cast<std::size_t>(gather.step)];
            if (ranges.start[at] < step.host.start) continue;  // it held a gather of a step that is not kept
            rows_.costs(gather.place).limiter_ns += ranges.end[at] - ranges.start[at];
        }
    }

    std::size_t key(store::RankIndex rank, store::UnitIndex unit) const {
        return rank.at() * ranges_.names.size() + unit.at();
    }

    // The bytes of a unit that a rank keeps, from its gathers.
    void note_shard(const Kept& gather) {
        if (gather.group_size < 1) return;
        std::int64_t& shard = shards_[key(gather.rank, gather.unit)];
        shard = std::max(shard, gather.bytes / gather.group_size);
    }

    void finish(UnitsReport& report) {
        report.stepped = !trace_.steps.empty();
        const auto memory = rows_by_rank(trace_, schema::MemorySpace::device, steps_, selection_);
        const std::vector<std::int64_t> parameters = most_parameters();
        std::vector<std::size_t> place_of_rank(trace_.ranks.size(), 0);
        for (const store::RankIndex r : selected_ranks(trace_, selection_)) {
            const std::size_t at = r.at();
            RankUnits rank;
            rank.rank = trace_.ranks[at].number;
            std::vector<Interval> windows;
            for (const StepWindow& step : selected_windows(steps_.ranks[at], selection_))
                windows.push_back(step.window);
            rank.steps = static_cast<std::int64_t>(windows.size());
            for (const std::int64_t ns : length_inside(busy_[at], windows)) rank.busy_ns += ns;
            if (!memory[at].empty()) {
                const PeakRange range = peak_range(trace_, memory[at], steps_.ranks[at], selection_);
                rank.peak_bytes = find_peak(trace_.memory, memory[at], range).total;
            }
            rank.shard_bytes = shard_bytes(r, parameters[at]);
            place_of_rank[at] = report.ranks.size();
            report.rank_steps += rank.steps;
            report.ranks.push_back(std::move(rank));
        }
        rows_.finish(report, place_of_rank);
        report.uneven = {uneven(report, [](const RankUnits& r) { return r.shard_bytes; }),
                         uneven(report, [](const RankUnits& r) { return r.peak_bytes; }),
                         uneven(report, [](const RankUnits& r) { return r.busy_ns; })};
    }

    // By rank: the maximum of the parameters' category in any memory space.
    std::vector<std::int64_t> most_parameters() const {
        std::vector<std::int64_t> live(trace_.ranks.size(), 0), most(live);
        const store::MemoryEvents& memory = trace_.memory;
        for (std::size_t i = 0; i < memory.size(); ++i) {
            if (memory.category[i] != schema::MemoryCategory::parameters) continue;
            live[memory.rank[i]] += memory.bytes[i];
            most[memory.rank[i]] = std::max(most[memory.rank[i]], live[memory.rank[i]]);
        }
        return most;
    }

    std::int64_t shard_bytes(store::RankIndex rank, std::int64_t parameters) const {
        if (parameters > 0) return parameters;
        std::int64_t sum = 0;
        for (const schema::UnitRow& unit : trace_.units) sum += unit.shard_bytes;
        if (sum > 0) return sum;
        for (std::size_t u = 0; u < ranges_.names.size(); ++u) {
            const auto it = shards_.find(key(rank, store::UnitIndex(u)));
            if (it != shards_.end()) sum += it->second;
        }
        return sum > 0 ? sum : -1;
    }

    template <typename Value>
    static double uneven(const UnitsReport& report, Value value) {
        double sum = 0, most = 0;
        for (const RankUnits& rank : report.ranks) {
            if (value(rank) < 0) return 0;
            sum += static_cast<double>(value(rank));
            most = std::max(most, static_cast<double>(value(rank)));
        }
        return sum > 0 ? most * static_cast<double>(report.ranks.size()) / sum : 0;
    }

    const store::Trace& trace_;
    const Selection& selection_;
    const TraceSteps steps_;
    const std::vector<bool> selected_;
    const UnitRanges ranges_;
    const BlockingCalls blocking_;
    const UnitCollectives collectives_;
    const std::vector<UnitUse> uses_;  // by host range
    UnitResidencies residencies_;
    UnitRows rows_;
    std::vector<Kept> kept_;
    std::vector<UnitCompute> compute_;                      // by rank
    std::vector<IntervalSet> busy_;                         // by rank
    std::unordered_map<std::size_t, std::int64_t> shards_;  // by key(rank, unit)
};

}  // namespace

void UnitCosts::add(const UnitCosts& other) {
    gathers += other.gathers;
    gather_bytes += other.gather_bytes;
    gather_padding += other.gather_padding;
    gather_ns += other.gather_ns;
    issue_to_ready_ns += other.issue_to_ready_ns;
    wait_ns += other.wait_ns;
    gather_exposed_ns += other.gather_exposed_ns;
    reductions += other.reductions;
    reduce_bytes += other.reduce_bytes;
    reduce_padding += other.reduce_padding;
    reduce_ns += other.reduce_ns;
    reduce_exposed_ns += other.reduce_exposed_ns;
    limiter_ns += other.limiter_ns;
    regathers += other.regathers;
    held_ns += other.held_ns;
    freed_ns += other.freed_ns;
}

UnitsReport units_report(const store::Trace& trace, const Selection& selection) {
    return UnitsAnalysis(trace, selection).report();
}

}  // namespace shardscope::traces::analysis
