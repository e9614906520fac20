// The peak and its parts, measured and predicted; see memory.h.
#include "traces/analysis/memory/memory.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

#include "traces/analysis/base/counter_curve.h"
#include "traces/analysis/memory/memory_places.h"
#include "traces/analysis/memory/peak_search.h"
#include "traces/analysis/memory/prediction.h"
#include "traces/schema/sort_rows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces {
namespace {

// Bytes that the addresses do not explain: a free without a matching allocation.
constexpr const char* kNotTold = "(unattributed)";
// The rest of the stored peak that the stored parts do not explain.
constexpr const char* kNotStored = "(not predicted)";

// Measured and predicted bytes of one key (an id or a name).
struct Tally {
    std::int64_t bytes = 0, predicted = 0;
};

// Completes a list of holders: adds what is missing from both totals, so that they sum to the peaks exactly,
// and sorts it, largest first.
void close(std::vector<MemoryHolder>& holders, std::int64_t peak,
           std::optional<std::int64_t> predicted_peak) {
    std::int64_t missing = peak, missing_prediction = predicted_peak.value_or(0);
    for (const MemoryHolder& holder : holders) {
        missing -= holder.bytes;
        missing_prediction -= holder.predicted.value_or(0);
    }
    const auto none = predicted_peak ? std::optional<std::int64_t>(0) : std::nullopt;
    if (missing != 0) holders.push_back({kNotTold, missing, none});
    if (missing_prediction != 0) holders.push_back({kNotStored, 0, missing_prediction});
    sort_rows(holders, [](const MemoryHolder& a, const MemoryHolder& b) {
        if (a.bytes != b.bytes) return a.bytes > b.bytes;
        return a.predicted.value_or(0) > b.predicted.value_or(0);
    });
}

// Joins measured and predicted bytes by key; without a prediction (none of this kind stored, or not
// applicable) the holders have none. `name_of` returns the name of a key.
template <typename Key, typename KeyOf, typename Predicted, typename NameOf>
std::vector<MemoryHolder> join(const MemoryEvents& memory, const std::vector<std::uint32_t>& live,
                               std::int64_t peak, std::optional<std::int64_t> predicted_peak,
                               const KeyOf& key_of, const Predicted& predicted, const NameOf& name_of) {
    if (predicted.empty()) predicted_peak.reset();
    std::map<Key, Tally> tallies;
    for (const std::uint32_t row : live) tallies[key_of(row)].bytes += memory.bytes[row];
    if (predicted_peak) {
        for (const auto& [key, bytes] : predicted) tallies[key].predicted += bytes;
    }
    std::vector<MemoryHolder> holders;
    holders.reserve(tallies.size());
    for (const auto& [key, tally] : tallies) {
        if (tally.bytes == 0 && tally.predicted == 0) continue;
        MemoryHolder& holder = holders.emplace_back();
        holder.name = name_of(key);
        holder.bytes = tally.bytes;
        if (predicted_peak) holder.predicted = tally.predicted;
    }
    close(holders, peak, predicted_peak);
    return holders;
}

// Names by id, with one name for all unknown ids.
class Names {
  public:
    template <typename Row>
    Names(const std::vector<Row>& rows, std::string_view none) : none_(none) {
        for (const Row& row : rows) names_.emplace(row.id, row.name);
    }
    // -1: none.
    std::int64_t known(std::int64_t id) const { return names_.count(id) > 0 ? id : -1; }
    std::string_view operator[](std::int64_t id) const {
        const auto at = names_.find(id);
        return at != names_.end() ? at->second : none_;
    }
    std::map<std::int64_t, std::int64_t> known_only(const std::map<std::int64_t, std::int64_t>& by_id) const {
        std::map<std::int64_t, std::int64_t> result;
        for (const auto& [id, bytes] : by_id) result[known(id)] += bytes;
        return result;
    }

  private:
    std::unordered_map<std::int64_t, std::string_view> names_;
    std::string_view none_;
};

// The maximum of the pool in the selected time, including its value at its start; 0 unknown.
std::int64_t most_reserved(const Trace& trace, int rank_index, const RankSteps& steps,
                           const Selection& selection) {
    const IntervalSet time = selected_host_time(steps, selection);
    if (time.empty()) return 0;
    const CounterCurve reserved(trace, rank_index, kReservedCounter);
    return counter_bytes(reserved.most({time.front().start, time.back().end}).value);
}

}  // namespace

MemorySpace space_in_use(const Trace& trace) {
    const auto& spaces = trace.memory.space;
    const auto any = [&](MemorySpace space) {
        return std::find(spaces.begin(), spaces.end(), space) != spaces.end();
    };
    return !any(MemorySpace::device) && any(MemorySpace::host) && trace.predictions.empty()
               ? MemorySpace::host
               : MemorySpace::device;
}

MemoryReport memory_report(const Trace& trace, const Selection& selection, MemorySpace space) {
    const MemoryEvents& memory = trace.memory;
    const bool device = space == MemorySpace::device;
    const TraceSteps steps = find_steps(trace);
    const auto rows = rows_by_rank(trace, space, steps, selection);
    std::array<std::vector<std::vector<std::uint32_t>>, kMemorySpaces> others;
    for (const MemorySpace other : {MemorySpace::pinned, MemorySpace::host}) {
        if (device) others[static_cast<std::size_t>(other)] = rows_by_rank(trace, other, steps, selection);
    }
    const Names units(trace.units, "(no unit)");
    const Names modules(trace.modules, "(no module)");
    const auto same = [](const std::string& name) { return name.empty() ? "(no name)" : name; };
    MemoryReport report;
    report.space = space;
    for (const int r : selected_ranks(trace, selection)) {
        const auto at = static_cast<std::size_t>(r);
        Peak peak = find_peak(memory, rows[at], peak_range(trace, rows[at], steps.ranks[at], selection));
        peak.time = moment_of(trace, r, rows[at], peak);
        const std::vector<std::uint32_t> live = live_rows(memory, rows[at], peak.rows);
        const RankPrediction prediction = prediction_of(trace, r);
        RankMemory result;
        result.rank = trace.ranks[at].number;
        result.peak_bytes = peak.total;
        result.peak_time_ns = peak.time;
        if (device) result.devices = memory_devices(trace, r);
        result.growth = growth_of(trace, r, rows[at], steps.ranks[at], selection);
        result.at_peak = peak.bytes;
        if (device) result.reserved_bytes = most_reserved(trace, r, steps.ranks[at], selection);
        std::optional<std::int64_t> predicted;
        if (device && prediction.peak != nullptr) {
            result.predicted_peak_bytes = prediction.peak->peak_bytes;
            std::copy(std::begin(prediction.peak->at_peak), std::end(prediction.peak->at_peak),
                      result.predicted_at_peak.begin());
            result.predicted_where = prediction.peak->where;
            result.prediction_applies = prediction.applies_to(trace, r, selection);
            result.predicted_of_steps = prediction.of_steps(trace, r, selection).value_or(-1);
            result.predicted_step = prediction.step_of_peak();
            if (result.prediction_applies) predicted = result.predicted_peak_bytes;
        }
        result.units = join<std::int64_t>(
            memory, live, peak.total, predicted, [&](std::uint32_t i) { return units.known(memory.unit[i]); },
            units.known_only(prediction.units), [&](std::int64_t id) { return units[id]; });
        result.modules = join<std::int64_t>(
            memory, live, peak.total, predicted,
            [&](std::uint32_t i) { return modules.known(memory.module[i]); },
            modules.known_only(prediction.modules), [&](std::int64_t id) { return modules[id]; });
        result.buffers = join<std::string>(
            memory, live, peak.total, predicted,
            [&](std::uint32_t i) { return std::string(trace.strings[memory.name[i]]); }, prediction.buffers,
            same);
        add_places(trace, r, peak, live, result);
        if (device) {
            result.failures = failures_of(trace, result.rank, steps.ranks[at], selection);
        } else {
            result.fragmentation.reset();
        }
        for (const MemorySpace other : {MemorySpace::pinned, MemorySpace::host}) {
            if (!device || others[static_cast<std::size_t>(other)][at].empty()) continue;
            const auto& own = others[static_cast<std::size_t>(other)][at];
            const Peak most = find_peak(memory, own, peak_range(trace, own, steps.ranks[at], selection));
            result.other_spaces.push_back({other, most.total, most.time});
        }
        report.ranks.push_back(std::move(result));
    }
    return report;
}

std::vector<MemoryPoint> memory_curve(const Trace& trace, int rank_index, MemorySpace space) {
    const MemoryEvents& memory = trace.memory;
    const std::vector<bool> counts = rows_of_fullest_devices(trace);
    std::vector<MemoryPoint> curve;
    MemoryPoint point;
    for (std::size_t i = 0; i < memory.size(); ++i) {
        if (memory.rank[i] != rank_index || memory.space[i] != space || (!counts.empty() && !counts[i]))
            continue;
        point.time = memory.time[i];
        point.total += memory.bytes[i];
        point.bytes[static_cast<std::size_t>(memory.category[i])] += memory.bytes[i];
        curve.push_back(point);
    }
    return curve;
}

}  // namespace shardscope::traces
