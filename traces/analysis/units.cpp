// One sweep over the device events gives gathers, reductions and waits; what hid them is looked up in the
// finished compute time; see units.h.
#include "traces/analysis/units.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "traces/analysis/intervals.h"
#include "traces/analysis/matching.h"
#include "traces/analysis/peak_search.h"
#include "traces/analysis/step_windows.h"
#include "traces/analysis/unit_ranges.h"
#include "traces/store/trace.h"

namespace shardscope::traces {
namespace {

constexpr std::int64_t kNowhere = -1;

bool is_gather(Operation operation) {
    return operation == Operation::all_gather;
}
bool is_reduction(Operation operation) {
    return operation == Operation::reduce_scatter || operation == Operation::all_reduce ||
           operation == Operation::reduce;
}

// The compute of one rank, each instant given to the unit whose kernel started first.
class ComputeTime {
  public:
    void add(Interval kernel, std::int32_t unit) {  // in the order of their starts
        kernel.start = std::max(kernel.start, last_end_);
        if (kernel.start >= kernel.end) return;
        last_end_ = kernel.end;
        if (!pieces_.empty() && pieces_.back().unit == unit && pieces_.back().time.end == kernel.start) {
            pieces_.back().time.end = kernel.end;
        } else {
            pieces_.push_back({kernel, unit});
        }
    }

    // Adds to `by_unit` what lies in `time`; returns the sum.
    std::int64_t overlap(Interval time, std::unordered_map<std::int32_t, std::int64_t>& by_unit) const {
        std::int64_t sum = 0;
        auto piece = std::partition_point(pieces_.begin(), pieces_.end(),
                                          [&](const Piece& p) { return p.time.end <= time.start; });
        for (; piece != pieces_.end() && piece->time.start < time.end; ++piece) {
            const std::int64_t both =
                std::min(piece->time.end, time.end) - std::max(piece->time.start, time.start);
            by_unit[piece->unit] += both;
            sum += both;
        }
        return sum;
    }

  private:
    struct Piece {
        Interval time;
        std::int32_t unit;
    };
    std::vector<Piece> pieces_;  // disjoint, in order of time
    std::int64_t last_end_ = std::numeric_limits<std::int64_t>::min();
};

// Calls in which the host waits for the device, by thread, in order of time; those of the limiter left out.
class BlockingCalls {
  public:
    BlockingCalls(const Trace& trace, const std::vector<std::int32_t>& limiters)
        : trace_(trace), by_thread_(trace.threads.size()) {
        std::vector<std::int8_t> blocking(trace.strings.size(), -1);
        std::vector<bool> limiter(trace.ranges.size(), false);
        for (const std::int32_t range : limiters) limiter[static_cast<std::size_t>(range)] = true;
        const RuntimeCalls& calls = trace.runtime;
        for (std::size_t i = 0; i < calls.size(); ++i) {
            std::int8_t& known = blocking[static_cast<std::size_t>(calls.name[i])];
            if (known < 0) known = trace.strings[calls.name[i]].find("Synchronize") != std::string_view::npos;
            if (known == 0) continue;
            const std::int32_t range = calls.range[i];
            if (range >= 0 && limiter[static_cast<std::size_t>(range)]) continue;
            by_thread_[calls.thread[i]].push_back(static_cast<std::int32_t>(i));
        }
    }

    // When the call began that held the thread at `time`; `time` itself where none did.
    std::int64_t since(std::uint16_t thread, std::int64_t time) const {
        const std::vector<std::int32_t>& calls = by_thread_[thread];
        const auto after = std::partition_point(calls.begin(), calls.end(), [&](std::int32_t call) {
            return trace_.runtime.start[static_cast<std::size_t>(call)] <= time;
        });
        if (after == calls.begin()) return time;
        const auto call = static_cast<std::size_t>(*(after - 1));
        return trace_.runtime.end[call] >= time ? trace_.runtime.start[call] : time;
    }

  private:
    const Trace& trace_;
    std::vector<std::vector<std::int32_t>> by_thread_;
};

// A gather or reduction of a kept step.
struct UnitCollective {
    std::size_t event = 0;
    std::int64_t launched = 0;
    std::int32_t row = -1;   // index into the rows
    std::size_t place = 0;   // in the row's steps
    std::int32_t step = -1;  // of its rank
    std::int32_t unit = -1;
    std::uint16_t rank = 0;
    Phase phase = Phase::none;
    bool gather = false;
};

// The rows of the report while they grow.
struct Row {
    std::uint16_t rank = 0;
    std::int32_t unit = -1;
    Phase phase = Phase::none;
    UnitPhase result;
    std::unordered_map<std::int32_t, std::int64_t> hidden;  // by unit

    // Where the costs of a step stand in result.steps.
    std::size_t place(std::int32_t step, std::int64_t number) {
        if (result.steps.empty() || last_step_ != step) {
            const auto it =
                std::lower_bound(order_.begin(), order_.end(), std::pair<std::int32_t, std::size_t>(step, 0));
            if (it == order_.end() || it->first != step) {
                place_ = result.steps.size();
                order_.insert(it, {step, place_});
                result.steps.push_back({number, {}});
            } else {
                place_ = it->second;
            }
            last_step_ = step;
        }
        return place_;
    }

  private:
    std::int32_t last_step_ = -1;
    std::size_t place_ = 0;
    std::vector<std::pair<std::int32_t, std::size_t>> order_;  // step -> place in result.steps
};

class Analysis {
  public:
    Analysis(const Trace& trace, const Selection& selection)
        : trace_(trace),
          selection_(selection),
          steps_(find_steps(trace)),
          selected_(selected_events(trace, steps_, selection)),
          ranges_(find_units(trace)),
          blocking_(trace, ranges_.limiters),
          compute_(trace.ranks.size()),
          busy_(trace.ranks.size()) {
        for (std::size_t u = 0; u < trace.units.size(); ++u)
            place_of_unit_.emplace(trace.units[u].id, static_cast<std::int32_t>(u));
    }

    UnitsReport report() {
        UnitsReport result;
        result.any_unit = !ranges_.names.empty();
        sweep();
        if (result.any_unit) {
            what_hid_them();
            count_regathers();
            add_limiters();
        }
        finish(result);
        return result;
    }

  private:
    // A unit of a rank while it is gathered.
    struct Held {
        std::int32_t first = -1, last = -1;  // collectives_ of the gathers that it was made of; -1 not held
        std::int64_t start = 0, launched = 0, last_use = kNowhere;
        std::vector<std::int32_t> waited_for;  // gathers that no kernel has needed yet
    };

    std::size_t key(std::uint16_t rank, std::int32_t unit) const {
        return rank * (ranges_.names.size() + 1) + static_cast<std::size_t>(unit + 1);
    }

    std::int32_t row(std::uint16_t rank, std::int32_t unit, Phase phase) {
        const auto [it, is_new] =
            row_of_.try_emplace(key(rank, unit) * kPhases + static_cast<std::size_t>(phase),
                                static_cast<std::int32_t>(rows_.size()));
        if (is_new) {
            Row& made = rows_.emplace_back();
            made.rank = rank;
            made.unit = unit;
            made.phase = phase;
            made.result.name = unit >= 0 ? ranges_.names[static_cast<std::size_t>(unit)] : "(no unit)";
            made.result.phase = phase;
        }
        return it->second;
    }

    UnitCosts& costs(const UnitCollective& c) {
        return rows_[static_cast<std::size_t>(c.row)].result.steps[c.place].costs;
    }

    bool kept(std::size_t event) const {
        const std::int32_t step = steps_.event[event];
        return selected_[event] && step >= 0 && step < steps_.ranks[trace_.device.rank[event]].kept();
    }

    void sweep() {
        const DeviceEvents& device = trace_.device;
        const KernelOperations operations(trace_);
        std::vector<std::int64_t> free_from(trace_.streams.size(), std::numeric_limits<std::int64_t>::min());
        held_at_.assign(trace_.ranks.size() * (ranges_.names.size() + 1), -1);
        for (std::size_t i = 0; i < device.size(); ++i) {
            std::int64_t& stream = free_from[device.stream[i]];
            if (device.kind[i] == DeviceKind::kernel) {
                add_kernel(i, stream);
            } else if (device.kind[i] == DeviceKind::communication) {
                add_collective(i, operations);
            }
            stream = std::max(stream, device.end[i]);
            append_merged(busy_[device.rank[i]], {device.start[i], device.end[i]});
        }
        for (Held& held : held_) release(held, nullptr);
    }

    void add_kernel(std::size_t i, std::int64_t stream_free_from) {
        const DeviceEvents& device = trace_.device;
        const std::uint16_t rank = device.rank[i];
        const std::int64_t launched = launched_at(trace_, i);
        const std::int32_t unit = ranges_.at(trace_, launching_range(trace_, i), launched).unit;
        compute_[rank].add({device.start[i], device.end[i]}, unit);
        if (unit < 0) return;
        const std::int32_t at = held_at_[key(rank, unit)];
        if (at < 0) return;
        Held& held = held_[static_cast<std::size_t>(at)];
        if (launched < held.launched) return;  // of an earlier use
        if (!held.waited_for.empty()) wait(held, i, launched, stream_free_from);
        const auto last = static_cast<std::size_t>(held.last);
        if (device.start[i] >= device.end[collectives_[last].event])
            held.last_use = std::max(held.last_use, device.end[i]);
    }

    void wait(Held& held, std::size_t kernel, std::int64_t launched, std::int64_t stream_free_from) {
        const DeviceEvents& device = trace_.device;
        std::int64_t idle_from = std::max(stream_free_from, launched);
        const std::int32_t launch = device.launch[kernel];
        auto at = held.waited_for.begin();
        for (; at != held.waited_for.end(); ++at) {
            const UnitCollective& gather = collectives_[static_cast<std::size_t>(*at)];
            const std::int64_t ready = device.end[gather.event];
            if (ready > device.start[kernel]) break;  // it cannot use what is not there: another's copy-in
            std::int64_t from = idle_from;
            if (launched > ready && launch >= 0) {
                const std::uint16_t thread = trace_.runtime.thread[static_cast<std::size_t>(launch)];
                from = std::max(stream_free_from, blocking_.since(thread, ready));
            }
            if (from < ready) costs(gather).wait_ns += ready - from;
            idle_from = std::max(idle_from, ready);
            stream_free_from = std::max(stream_free_from, ready);
        }
        held.waited_for.erase(held.waited_for.begin(), at);
    }

    void add_collective(std::size_t i, const KernelOperations& operations) {
        const DeviceEvents& device = trace_.device;
        if (ranges_.names.empty() || !kept(i)) return;
        const std::int32_t c = device.collective[i];
        const auto at = static_cast<std::size_t>(c);
        const std::int32_t range = launching_range(trace_, i);
        UnitCollective collective;
        collective.event = i;
        collective.rank = device.rank[i];
        collective.step = steps_.event[i];
        collective.launched = launched_at(trace_, i);
        const UnitRanges::Place place = ranges_.at(trace_, range, collective.launched);
        collective.unit = place.unit;
        collective.phase = place.phase;
        Operation operation = Operation::other;
        std::int64_t bytes = 0, padding = 0;
        if (c >= 0) {
            const Collectives& all = trace_.collectives;
            operation = all.operation[at];
            bytes = all.bytes[at];
            padding = all.padding[at];
            if (!place_of_unit_.empty()) {
                const auto unit = place_of_unit_.find(all.unit[at]);
                collective.unit = unit != place_of_unit_.end() ? unit->second : -1;
            }
            if (all.phase[at] != Phase::none) collective.phase = all.phase[at];
            note_shard(collective, bytes, all.group_size[at], operation);
        }
        if (operation == Operation::other) operation = operations.of_event(i);
        collective.gather = is_gather(operation);
        if (!collective.gather && !is_reduction(operation)) return;
        collective.row = row(collective.rank, collective.unit, collective.phase);
        collective.place = rows_[static_cast<std::size_t>(collective.row)].place(
            collective.step,
            steps_.ranks[collective.rank].steps[static_cast<std::size_t>(collective.step)].number);
        const std::int64_t ns = device.end[i] - device.start[i];
        UnitCosts& sum = costs(collective);
        if (collective.gather) {
            ++sum.gathers;
            sum.gather_bytes += bytes;
            sum.gather_padding += padding;
            sum.gather_ns += ns;
            sum.issue_to_ready_ns += std::max<std::int64_t>(device.end[i] - collective.launched, 0);
        } else {
            ++sum.reductions;
            sum.reduce_bytes += bytes;
            sum.reduce_padding += padding;
            sum.reduce_ns += ns;
        }
        collectives_.push_back(collective);
        if (!collective.gather || collective.unit < 0) return;
        const auto number = static_cast<std::int32_t>(collectives_.size() - 1);
        std::int32_t& held_at = held_at_[key(collective.rank, collective.unit)];
        if (held_at < 0) {
            held_at = static_cast<std::int32_t>(held_.size());
            held_.emplace_back();
        }
        Held& held = held_[static_cast<std::size_t>(held_at)];
        const bool another = held.first >= 0 && held.last_use == kNowhere;  // the unit is made of several
        if (!another) {
            release(held, &collective);
            held.first = number;
            held.start = device.start[i];
            held.launched = collective.launched;
        }
        held.last = number;
        held.waited_for.push_back(number);
    }

    // The unit is freed, for `next` to gather it again (null: never).
    void release(Held& held, const UnitCollective* next) {
        if (held.first >= 0 && held.last_use != kNowhere) {
            const UnitCollective& gather = collectives_[static_cast<std::size_t>(held.first)];
            costs(gather).held_ns += std::max<std::int64_t>(held.last_use - held.start, 0);
            if (next != nullptr && next->step == gather.step) {
                const std::int64_t start = trace_.device.start[next->event];
                costs(*next).freed_ns += std::max<std::int64_t>(start - held.last_use, 0);
            }
        }
        held = {};
    }

    void what_hid_them() {
        const DeviceEvents& device = trace_.device;
        for (const UnitCollective& c : collectives_) {
            const Interval time{device.start[c.event], device.end[c.event]};
            const std::int64_t exposed =
                time.length() - compute_[c.rank].overlap(time, rows_[static_cast<std::size_t>(c.row)].hidden);
            UnitCosts& sum = costs(c);
            (c.gather ? sum.gather_exposed_ns : sum.reduce_exposed_ns) += exposed;
        }
    }

    void count_regathers() {
        std::vector<const UnitCollective*> gathers;
        for (const UnitCollective& c : collectives_) {
            if (c.gather && c.unit >= 0) gathers.push_back(&c);
        }
        std::sort(gathers.begin(), gathers.end(), [](const UnitCollective* a, const UnitCollective* b) {
            return std::tie(a->rank, a->launched, a->event) < std::tie(b->rank, b->launched, b->event);
        });
        for (std::size_t i = 1; i < gathers.size(); ++i) {
            const UnitCollective& before = *gathers[i - 1];
            const UnitCollective& c = *gathers[i];
            if (before.rank == c.rank && before.unit == c.unit && before.step == c.step &&
                before.phase != c.phase)
                ++costs(c).regathers;
        }
    }

    // The limiter holds the host before it issues a gather: the time counts with the next one of the thread.
    void add_limiters() {
        std::vector<std::vector<std::pair<std::int64_t, std::int32_t>>> gathers(trace_.threads.size());
        for (std::size_t i = 0; i < collectives_.size(); ++i) {
            const std::int32_t launch = trace_.device.launch[collectives_[i].event];
            if (!collectives_[i].gather || launch < 0) continue;
            gathers[trace_.runtime.thread[static_cast<std::size_t>(launch)]].push_back(
                {collectives_[i].launched, static_cast<std::int32_t>(i)});
        }
        for (auto& thread : gathers) std::sort(thread.begin(), thread.end());
        const HostRanges& ranges = trace_.ranges;
        for (const std::int32_t limiter : ranges_.limiters) {
            const auto at = static_cast<std::size_t>(limiter);
            const auto& thread = gathers[ranges.thread[at]];
            const auto next = std::lower_bound(thread.begin(), thread.end(),
                                               std::pair<std::int64_t, std::int32_t>(ranges.start[at], -1));
            if (next == thread.end()) continue;
            const UnitCollective& gather = collectives_[static_cast<std::size_t>(next->second)];
            const StepWindow& step = steps_.ranks[gather.rank].steps[static_cast<std::size_t>(gather.step)];
            if (ranges.start[at] < step.host.start) continue;  // it held one of a step that is left out
            costs(gather).limiter_ns += ranges.end[at] - ranges.start[at];
        }
    }

    // What a rank keeps of a unit, from what it gathers.
    void note_shard(const UnitCollective& c, std::int64_t bytes, std::int32_t group_size,
                    Operation operation) {
        if (!is_gather(operation) || c.unit < 0 || group_size < 1) return;
        std::int64_t& shard = shards_[key(c.rank, c.unit)];
        shard = std::max(shard, bytes / group_size);
    }

    void finish(UnitsReport& report) {
        const auto memory = rows_by_rank(trace_, MemorySpace::device);
        const std::vector<std::int64_t> parameters = most_parameters();
        for (const int r : selected_ranks(trace_, selection_)) {
            const auto at = static_cast<std::size_t>(r);
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
            rank.shard_bytes = shard_bytes(static_cast<std::uint16_t>(r), parameters[at]);
            report.ranks.push_back(std::move(rank));
            place_of_rank_[static_cast<std::uint16_t>(r)] = report.ranks.size() - 1;
        }
        for (Row& row : rows_) add_row(row, report.ranks[place_of_rank_.at(row.rank)]);
        for (RankUnits& rank : report.ranks) {
            in_order(rank.rows);
            report.rank_steps += rank.steps;
        }
        sum_over_ranks(report);
        report.uneven = {uneven(report, [](const RankUnits& r) { return r.shard_bytes; }),
                         uneven(report, [](const RankUnits& r) { return r.peak_bytes; }),
                         uneven(report, [](const RankUnits& r) { return r.busy_ns; })};
    }

    void in_order(std::vector<UnitPhase>& rows) {
        std::stable_sort(rows.begin(), rows.end(), [this](const auto& a, const auto& b) {
            return std::pair(order_of_name(a), a.phase) < std::pair(order_of_name(b), b.phase);
        });
    }

    void sum_over_ranks(UnitsReport& report) {
        std::map<std::pair<std::string_view, Phase>, std::size_t> places;
        std::vector<std::map<std::string_view, std::int64_t>> hidden;
        for (const RankUnits& rank : report.ranks) {
            for (const UnitPhase& row : rank.rows) {
                const auto [it, is_new] = places.try_emplace({row.name, row.phase}, report.all_ranks.size());
                if (is_new) {
                    report.all_ranks.push_back(
                        {.name = row.name, .phase = row.phase, .sum = {}, .steps = {}, .hidden_by = {}});
                    hidden.emplace_back();
                }
                report.all_ranks[it->second].sum.add(row.sum);
                if (row.hidden_ns > 0) hidden[it->second][row.hidden_by] += row.hidden_ns;
            }
        }
        for (std::size_t i = 0; i < hidden.size(); ++i) {
            UnitPhase& row = report.all_ranks[i];
            for (const auto& [unit, ns] : hidden[i]) {
                if (ns <= row.hidden_ns) continue;
                row.hidden_by = unit;
                row.hidden_ns = ns;
            }
        }
        in_order(report.all_ranks);
    }

    // Units in the order of their names' appearance, those of no unit last.
    std::size_t order_of_name(const UnitPhase& row) {
        if (order_.empty()) {
            for (std::size_t u = 0; u < ranges_.names.size(); ++u) order_.emplace(ranges_.names[u], u);
        }
        const auto it = order_.find(row.name);
        return it != order_.end() ? it->second : ranges_.names.size();
    }

    void add_row(Row& row, RankUnits& rank) const {
        UnitPhase& result = row.result;
        std::sort(result.steps.begin(), result.steps.end(),
                  [](const UnitStep& a, const UnitStep& b) { return a.number < b.number; });
        for (const UnitStep& step : result.steps) result.sum.add(step.costs);
        // Ties go to the unit that comes first.
        std::pair<std::int64_t, std::int32_t> most{0, 0};
        for (const auto& [unit, ns] : row.hidden) most = std::max(most, {ns, -unit});
        if (most.first > 0) {
            const std::int32_t unit = -most.second;
            result.hidden_by = unit >= 0 ? ranges_.names[static_cast<std::size_t>(unit)] : "(no unit)";
            result.hidden_ns = most.first;
        }
        rank.sum.add(result.sum);
        rank.rows.push_back(std::move(result));
    }

    // By rank: the most that lives of the parameters' category, wherever it lies.
    std::vector<std::int64_t> most_parameters() const {
        std::vector<std::int64_t> live(trace_.ranks.size(), 0), most(live);
        const MemoryEvents& memory = trace_.memory;
        for (std::size_t i = 0; i < memory.size(); ++i) {
            if (memory.category[i] != MemoryCategory::parameters) continue;
            live[memory.rank[i]] += memory.bytes[i];
            most[memory.rank[i]] = std::max(most[memory.rank[i]], live[memory.rank[i]]);
        }
        return most;
    }

    std::int64_t shard_bytes(std::uint16_t rank, std::int64_t parameters) const {
        if (parameters > 0) return parameters;
        std::int64_t sum = 0;
        for (const UnitRow& unit : trace_.units) sum += unit.shard_bytes;
        if (sum > 0) return sum;
        for (std::size_t u = 0; u < ranges_.names.size(); ++u) {
            const auto it = shards_.find(key(rank, static_cast<std::int32_t>(u)));
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

    const Trace& trace_;
    const Selection& selection_;
    const TraceSteps steps_;
    const std::vector<bool> selected_;
    const UnitRanges ranges_;
    const BlockingCalls blocking_;
    std::unordered_map<int, std::int32_t> place_of_unit_;
    std::vector<ComputeTime> compute_;  // by rank
    std::vector<UnitCollective> collectives_;
    std::vector<std::int32_t> held_at_;  // by key(rank, unit): index into held_, -1 never gathered
    std::vector<Held> held_;
    std::vector<IntervalSet> busy_;  // by rank
    std::unordered_map<std::size_t, std::int64_t> shards_;
    std::vector<Row> rows_;
    std::unordered_map<std::size_t, std::int32_t> row_of_;  // by (rank, unit, phase)
    std::unordered_map<std::uint16_t, std::size_t> place_of_rank_;
    std::unordered_map<std::string_view, std::size_t> order_;
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

UnitsReport units_report(const Trace& trace, const Selection& selection) {
    return Analysis(trace, selection).report();
}

}  // namespace shardscope::traces
