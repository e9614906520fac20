// The peak and its parts, measured and predicted; see memory.h.
#include "traces/analysis/memory/memory.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string_view>
#include <unordered_map>

#include "traces/analysis/communication/host_collectives.h"
#include "traces/analysis/memory/memory_curves.h"
#include "traces/analysis/memory/peak_search.h"
#include "traces/analysis/memory/prediction.h"
#include "traces/schema/sort_rows.h"
#include "traces/store/columns/memory_facts.h"
#include "traces/store/columns/trace.h"
#include "traces/store/stack_text.h"

namespace shardscope::traces::analysis {
namespace {

// Bytes that the addresses do not explain: a free without a matching allocation.
constexpr const char* kNotTold = "(unattributed)";
// Spaces whose peaks stand beside the device's.
constexpr std::array kOtherSpaces = {schema::MemorySpace::pinned, schema::MemorySpace::host,
                                     schema::MemorySpace::disk};

// --- what only foreign traces have ---

// Sums the bytes of the live rows by their text in a column.
std::unordered_map<schema::StringId, std::int64_t> by_text(const store::MemoryEvents& memory,
                                                           const store::Column<schema::StringId>& column,
                                                           const std::vector<std::uint32_t>& live) {
    std::unordered_map<schema::StringId, std::int64_t> bytes;
    for (const std::uint32_t row : live) bytes[column[row]] += memory.bytes[row];
    return bytes;
}

// Adds the bytes that no address explains, so that the holders sum to the peak, and sorts them, largest
// first.
void close(std::vector<MemoryHolder>& holders, std::int64_t peak) {
    for (const MemoryHolder& holder : holders) peak -= holder.bytes;
    if (peak != 0) holders.push_back({kNotTold, peak});
    std::sort(holders.begin(), holders.end(), [](const MemoryHolder& a, const MemoryHolder& b) {
        return a.bytes != b.bytes ? a.bytes > b.bytes : a.name < b.name;
    });
}

std::vector<MemoryHolder> by_annotation(const store::Trace& trace, std::int64_t peak,
                                        const std::vector<std::uint32_t>& live) {
    std::vector<MemoryHolder> holders;
    for (const auto& [id, bytes] : by_text(trace.memory, trace.memory.annotation, live)) {
        holders.push_back(
            {id == schema::StringId::empty ? "(no annotation)" : std::string(trace.strings[id]), bytes});
    }
    close(holders, peak);
    return holders;
}

// Stacks that differ only in PyTorch's frames are one holder.
std::vector<MemoryHolder> by_stack(const store::Trace& trace, std::int64_t peak,
                                   const std::vector<std::uint32_t>& live) {
    struct Place {
        std::int64_t bytes = 0, largest = 0;
        schema::StringId stack = schema::StringId::empty;
    };
    std::unordered_map<std::string_view, Place> places;
    for (const auto& [id, bytes] : by_text(trace.memory, trace.memory.stack, live)) {
        Place& place = places[store::asking_frame(trace.strings[id])];
        place.bytes += bytes;
        if (bytes <= place.largest) continue;
        place.largest = bytes;
        place.stack = id;
    }
    std::vector<MemoryHolder> holders;
    for (const auto& [frame, place] : places) {
        MemoryHolder& holder = holders.emplace_back();
        holder.name = frame.empty() ? "(no stack)" : store::short_frame(frame);
        holder.bytes = place.bytes;
        holder.stack = trace.strings[place.stack];
    }
    close(holders, peak);
    return holders;
}

// The time of the peak: when it was reached or, if bytes count until their last use, the allocator's last
// action before the total fell.
std::int64_t moment_of(const store::Trace& trace, store::RankIndex rank,
                       const std::vector<std::uint32_t>& rows, const Peak& peak) {
    if (!counts_active(trace) || peak.rows == 0 || peak.rows >= rows.size()) return peak.time;
    const std::int64_t next = trace.memory.time[rows[peak.rows]];
    const store::Counters& counters = trace.counters;
    auto at = static_cast<std::size_t>(std::upper_bound(counters.time.begin(), counters.time.end(), next) -
                                       counters.time.begin());
    for (; at > 0 && counters.time[at - 1] > peak.time; --at) {
        if (counters.rank[at - 1] == rank.value) return counters.time[at - 1];
    }
    return peak.time;
}

// Sets annotations, stacks, fragmentation and until_last_use of `result`. `live`: the rows that are live at
// `peak`.
void add_places(const store::Trace& trace, store::RankIndex rank, const Peak& peak,
                const std::vector<std::uint32_t>& live, RankMemory& result) {
    const auto told = [&](const store::Column<schema::StringId>& column) {
        return std::any_of(live.begin(), live.end(),
                           [&](std::uint32_t row) { return column[row] != schema::StringId::empty; });
    };
    const store::MemoryEvents& memory = trace.memory;
    result.until_last_use = counts_active(trace);
    if (!memory.annotation.empty() && told(memory.annotation))
        result.annotations = by_annotation(trace, peak.total, live);
    if (!memory.stack.empty() && told(memory.stack)) result.stacks = by_stack(trace, peak.total, live);
    const Fragmentation fragmentation = fragmentation_at(trace, rank, peak.time, live);
    if (fragmentation.segments > 0) result.fragmentation = fragmentation;
}

// The growth in a rank's rows. None if a step ends with no more than the previous one, if there are fewer
// than three steps, or if the growth is below a hundredth of what is live at the end of the last one.
std::optional<MemoryGrowth> growth_of(const store::Trace& trace, store::RankIndex rank,
                                      const std::vector<std::uint32_t>& rows, const RankSteps& steps,
                                      const Selection& selection) {
    constexpr std::int64_t kFewSteps = 3, kShare = 100;
    if (trace.steps.empty()) return std::nullopt;
    const store::MemoryEvents& memory = trace.memory;
    const Interval time = selected_time(selection);
    MemoryGrowth growth;
    std::int64_t live = 0, total = 0;
    std::size_t next = 0;
    for (std::int64_t s = 0; s < steps.kept(); ++s) {
        const StepWindow& step = steps.steps[static_cast<std::size_t>(s)];
        if (!selection.has_step(step.number) || step.host.start < time.start || step.host.end > time.end)
            continue;
        for (; next < rows.size() && memory.time[rows[next]] < step.host.end; ++next) {
            total += memory.bytes[rows[next]];
            if (memory.category[rows[next]] == schema::MemoryCategory::communication)
                live += memory.bytes[rows[next]];
        }
        if (growth.steps++ == 0) {
            growth.first_bytes = live;
        } else if (live <= growth.last_bytes) {
            return std::nullopt;
        }
        growth.last_bytes = live;
    }
    if (growth.steps < kFewSteps || kShare * (growth.last_bytes - growth.first_bytes) < total)
        return std::nullopt;
    for (std::size_t i = 0; i < trace.ranges.size() && growth.host_library.empty(); ++i) {
        if (trace.threads[trace.ranges.thread[i]].rank == rank)
            growth.host_library = host_library(trace.strings[trace.ranges.name[i]]);
    }
    return growth;
}

// Failures of the rank with that number in the selected time.
std::vector<MemoryFailure> failures_of(const store::Trace& trace, int rank, const RankSteps& steps,
                                       const Selection& selection) {
    std::vector<MemoryFailure> failures;
    const IntervalSet time = selected_host_time(steps, selection);
    for (const schema::DiagnosticRow& row : trace.diagnostics) {
        const std::string_view text = row.text;
        if (!text.starts_with(store::kOutOfMemory)) continue;
        int number = -1;
        std::from_chars(text.data() + store::kOutOfMemory.size(), text.data() + text.size(), number);
        if (number != rank) continue;
        const bool whole = selects_whole_time(selection);
        const bool selected = std::any_of(time.begin(), time.end(), [&](const Interval& i) {
            return row.time >= i.start && row.time < i.end;
        });
        if (whole || selected) failures.push_back({row.time, row.text});
    }
    return failures;
}

// --- measured beside predicted ---

// The part of the stored peak that the stored parts do not explain.
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
    schema::sort_rows(holders, [](const MemoryHolder& a, const MemoryHolder& b) {
        if (a.bytes != b.bytes) return a.bytes > b.bytes;
        return a.predicted.value_or(0) > b.predicted.value_or(0);
    });
}

// Joins measured and predicted bytes by key; without a prediction (none of this kind stored, or not
// applicable) the holders have none. `name_of` returns the name of a key.
template <typename Key, typename KeyOf, typename Predicted, typename NameOf>
std::vector<MemoryHolder> join(const store::MemoryEvents& memory, const std::vector<std::uint32_t>& live,
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
std::int64_t most_reserved(const store::Trace& trace, store::RankIndex rank, const RankSteps& steps,
                           const Selection& selection) {
    const IntervalSet time = selected_host_time(steps, selection);
    if (time.empty()) return 0;
    const CounterCurve reserved(trace, rank, kReservedCounter);
    return counter_bytes(reserved.most({time.front().start, time.back().end}).value);
}

}  // namespace

schema::MemorySpace space_in_use(const store::Trace& trace) {
    const auto& spaces = trace.memory.space;
    const auto any = [&](schema::MemorySpace space) {
        return std::find(spaces.begin(), spaces.end(), space) != spaces.end();
    };
    return !any(schema::MemorySpace::device) && any(schema::MemorySpace::host) && trace.predictions.empty()
               ? schema::MemorySpace::host
               : schema::MemorySpace::device;
}

MemoryReport memory_report(const store::Trace& trace, const Selection& selection, schema::MemorySpace space) {
    const store::MemoryEvents& memory = trace.memory;
    const bool device = space == schema::MemorySpace::device;
    const TraceSteps steps = find_steps(trace);
    const auto rows = rows_by_rank(trace, space, steps, selection);
    std::array<std::vector<std::vector<std::uint32_t>>, schema::kMemorySpaces> others;
    for (const schema::MemorySpace other : kOtherSpaces) {
        if (device) others[static_cast<std::size_t>(other)] = rows_by_rank(trace, other, steps, selection);
    }
    const Names units(trace.units, "(no unit)");
    const Names modules(trace.modules, "(no module)");
    const auto same = [](const std::string& name) { return name.empty() ? "(no name)" : name; };
    MemoryReport report;
    report.space = space;
    for (const store::RankIndex r : selected_ranks(trace, selection)) {
        const std::size_t at = r.at();
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
        for (const schema::MemorySpace other : kOtherSpaces) {
            if (!device || others[static_cast<std::size_t>(other)][at].empty()) continue;
            const auto& own = others[static_cast<std::size_t>(other)][at];
            const Peak most = find_peak(memory, own, peak_range(trace, own, steps.ranks[at], selection));
            result.other_spaces.push_back({other, most.total, most.time});
        }
        report.ranks.push_back(std::move(result));
    }
    return report;
}

std::vector<MemoryPoint> memory_curve(const store::Trace& trace, store::RankIndex rank,
                                      schema::MemorySpace space) {
    const store::MemoryEvents& memory = trace.memory;
    const std::vector<bool> counts = rows_of_fullest_devices(trace);
    std::vector<MemoryPoint> curve;
    MemoryPoint point;
    for (std::size_t i = 0; i < memory.size(); ++i) {
        if (memory.rank[i] != rank.value || memory.space[i] != space || (!counts.empty() && !counts[i]))
            continue;
        point.time = memory.time[i];
        point.total += memory.bytes[i];
        point.bytes[static_cast<std::size_t>(memory.category[i])] += memory.bytes[i];
        curve.push_back(point);
    }
    return curve;
}

}  // namespace shardscope::traces::analysis
