// Detects faults in a loaded trace; each becomes one sentence. See info.h.
#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include <fmt/core.h>

#include "traces/analysis/base/shown_name.h"
#include "traces/analysis/base/shown_ranks.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/facts/info.h"
#include "traces/store/columns/trace.h"
#include "traces/store/grouped.h"
#include "traces/store/sqlite/no_space.h"

namespace shardscope::traces::analysis {
namespace {

using Faults = std::vector<std::string>;

std::string at_ms(std::int64_t ns) {
    return fmt::format("{:.3f} ms", static_cast<double>(ns) * 1e-6);
}

void check_recording(const store::Trace& trace, Faults& faults) {
    if (!trace.ended) {
        const std::string_view why = trace.config_value(store::kStoppedBecause);
        faults.push_back(fmt::format(
            "The run did not end ({}): what it did after the last commit, {} after its start, is missing; "
            "shardscope-trace check --finalize makes a finished file of the rest.",
            why.empty() ? "it was killed or is still running" : why, at_ms(trace.last_ns)));
    }
    if (trace.dropped > 0) {
        faults.push_back(
            fmt::format("{} lost while recording (a buffer was full, or the device reported invalid "
                        "timestamps): times and "
                        "counts are too low; record fewer steps.",
                        store::counted(trace.dropped, "event was", "events were")));
    }
    if (trace.invalid_events > 0) {
        faults.push_back(fmt::format("{} ignored: an end before the start, or an impossible time or size.",
                                     store::counted(trace.invalid_events, "event is", "events are")));
    }
    for (const schema::DiagnosticRow& row : trace.diagnostics) {
        if (row.severity == schema::Severity::error) {
            faults.push_back(
                fmt::format("At {} the recorder reported an error: {}", at_ms(row.time), row.text));
        }
    }
}

void check_launches(const store::Trace& trace, Faults& faults) {
    const store::DeviceEvents& device = trace.device;
    std::int64_t missing = 0;
    std::size_t first = 0;
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (device.launch[i] >= 0) continue;
        if (missing++ == 0) first = i;
    }
    if (missing == 0) return;
    const std::int64_t backlog = trace.steps.empty() ? 0 : count_backlog(trace);
    std::string where = "it is counted in the step in which it starts and in no module";
    if (backlog > 0) {
        where = fmt::format(
            "{} ended before the first that has one, and so {} left from before the recording and {} to no "
            "step",
            backlog, backlog == 1 ? "is" : "are", backlog == 1 ? "belongs" : "belong");
        if (missing > backlog)
            where += "; each other one is counted in the step in which it starts and in no module";
    } else if (missing > 1) {
        where = "each is counted in the step in which it starts and in no module";
    }
    faults.push_back(fmt::format("{} no launching call in the trace, the first is {} of rank {} at {}: {}.",
                                 store::counted(missing, "device event has", "device events have"),
                                 shown(trace.strings[device.name[first]]),
                                 trace.ranks[device.rank[first]].number, at_ms(device.start[first]), where));
}

// A stream runs one piece of work at a time: work that starts before the previous one has ended overlaps.
void check_streams(const store::Trace& trace, Faults& faults) {
    const store::DeviceEvents& device = trace.device;
    struct Stream {
        std::int64_t latest_end = INT64_MIN, overlaps = 0;
        std::size_t latest = 0;
        std::size_t first = 0, first_other = 0;
    };
    std::map<std::pair<int, int>, Stream> streams;
    std::vector<Stream*> known(trace.streams.size(), nullptr);
    for (std::size_t i = 0; i < device.size(); ++i) {
        Stream*& stream = known[device.stream[i]];
        if (stream == nullptr) stream = &streams[{device.rank[i], device.stream[i]}];
        if (device.start[i] < stream->latest_end && stream->overlaps++ == 0) {
            stream->first = i;
            stream->first_other = stream->latest;
        }
        if (device.end[i] > stream->latest_end) {
            stream->latest_end = device.end[i];
            stream->latest = i;
        }
    }
    for (const auto& [key, stream] : streams) {
        if (stream.overlaps == 0) continue;
        const store::DeviceStream& row = trace.streams[static_cast<std::size_t>(key.second)];
        faults.push_back(
            fmt::format("{} on stream {} of rank {} before the one before it has ended, the first is {} "
                        "at {} inside {}.",
                        store::counted(stream.overlaps, "device event starts", "device events start"),
                        row.name.empty() ? std::to_string(row.id) : row.name,
                        trace.ranks[static_cast<std::size_t>(key.first)].number,
                        shown(trace.strings[device.name[stream.first]]), at_ms(device.start[stream.first]),
                        shown(trace.strings[device.name[stream.first_other]])));
    }
}

std::string describe_collective(const store::Trace& trace, std::size_t row) {
    const store::Collectives& c = trace.collectives;
    const std::string number = c.sequence[row] >= 0 ? fmt::format(" {}", c.sequence[row]) : "";
    return fmt::format("{}{} of group {} on rank {}", name(c.operation[row]), number, c.group[row],
                       trace.ranks[c.rank[row]].number);
}

void check_collectives(const store::Trace& trace, Faults& faults) {
    const store::Collectives& collectives = trace.collectives;
    const std::vector<MatchedCollective> matched = match_collectives(trace);
    struct Fault {
        std::int64_t count = 0;
        std::size_t first = 0;
        void add(std::size_t row) {
            if (count++ == 0) first = row;
        }
    };
    Fault no_event, unmatched, differing;
    int largest_group = 0;
    for (std::size_t i = 0; i < collectives.size(); ++i) {
        if (collectives.event[i] < 0) no_event.add(i);
        if (matched[i].unmatched) unmatched.add(i);
        if (matched[i].bytes_differ) differing.add(i);
        largest_group = std::max(largest_group, collectives.group_size[i]);
    }
    if (no_event.count > 0) {
        faults.push_back(fmt::format("{} no device event, the first is {}: its time is unknown.",
                                     store::counted(no_event.count, "collective has", "collectives have"),
                                     describe_collective(trace, no_event.first)));
    }
    const bool parts_missing = largest_group > static_cast<int>(trace.ranks.size());
    // A simulation deliberately shows only some of its ranks.
    const bool meant = parts_missing && !trace.config_value("sim.ranks_shown").empty();
    if (unmatched.count > 0 && !meant) {
        faults.push_back(fmt::format(
            "{} no counterpart on another rank, the first is {}{}.",
            store::counted(unmatched.count, "collective has", "collectives have"),
            describe_collective(trace, unmatched.first),
            parts_missing ? fmt::format(": the trace contains {} of at least {} ranks; merge the parts",
                                        trace.ranks.size(), largest_group)
                          : ": waiting and bandwidth are not known for these"));
    }
    if (differing.count > 0) {
        faults.push_back(
            fmt::format("{} other bytes than a counterpart on another rank, the first is {} with {}.",
                        store::counted(differing.count, "collective has", "collectives have"),
                        describe_collective(trace, differing.first), collectives.bytes[differing.first]));
    }
}

// Allocations and frees of an address must alternate and have the same size.
void check_memory(const store::Trace& trace, Faults& faults) {
    const store::MemoryEvents& memory = trace.memory;
    std::vector<std::uint32_t> order(memory.size());
    std::iota(order.begin(), order.end(), 0u);
    const auto place = [&](std::uint32_t i) {
        return std::tuple(memory.rank[i], memory.space[i], memory.address[i]);
    };
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::tuple(place(a), a) < std::tuple(place(b), b);
    });
    struct Fault {
        std::string_view one, many;
        std::int64_t count = 0;
        std::uint32_t first = 0;
        void add(std::uint32_t row) {
            if (count++ == 0 || row < first) first = row;
        }
    };
    Fault not_live{"free is of memory that is not live (freed twice, or never allocated)",
                   "frees are of memory that is not live (freed twice, or never allocated)"};
    Fault already_live{"allocation is at an address that is still live",
                       "allocations are at addresses still live"};
    Fault size_differs{"free has another size than its allocation",
                       "frees have another size than their allocation"};
    Fault category_differs{"free has another category than its allocation",
                           "frees have another category than their allocation"};
    for (std::size_t i = 0; i < order.size(); ++i) {
        const std::uint32_t row = order[i];
        const bool follows = i > 0 && place(order[i - 1]) == place(row);
        const std::uint32_t before = follows ? order[i - 1] : row;
        const bool live = follows && memory.bytes[before] > 0;
        if (memory.bytes[row] > 0) {
            if (live) already_live.add(row);
        } else if (memory.bytes[row] < 0) {
            if (!live) {
                not_live.add(row);
            } else if (memory.bytes[before] != -memory.bytes[row]) {
                size_differs.add(row);
            } else if (memory.category[before] != memory.category[row]) {
                category_differs.add(row);
            }
        }
    }
    for (const Fault* fault : {&not_live, &already_live, &size_differs, &category_differs}) {
        if (fault->count == 0) continue;
        const std::uint32_t row = fault->first;
        faults.push_back(fmt::format(
            "{}, the first is {} ({} bytes of {}, {}) of rank {} at {}.",
            store::counted(fault->count, fault->one, fault->many),
            memory.name[row] == schema::StringId::empty ? std::string_view("a buffer without a name")
                                                        : trace.strings[memory.name[row]],
            std::abs(memory.bytes[row]), name(memory.category[row]), name(memory.space[row]),
            trace.ranks[memory.rank[row]].number, at_ms(memory.time[row])));
    }
}

void check_memory_totals(const store::Trace& trace, Faults& faults) {
    const store::MemoryEvents& memory = trace.memory;
    constexpr std::size_t kTotals = std::size_t{schema::kMemorySpaces} * schema::kMemoryCategories;
    std::vector<std::array<std::int64_t, kTotals>> live(trace.ranks.size());
    std::vector<std::array<bool, kTotals>> said(trace.ranks.size());
    for (std::size_t i = 0; i < memory.size(); ++i) {
        const std::size_t rank = memory.rank[i];
        const std::size_t at = static_cast<std::size_t>(memory.space[i]) * schema::kMemoryCategories +
                               static_cast<std::size_t>(memory.category[i]);
        live[rank][at] += memory.bytes[i];
        if (live[rank][at] >= 0 || said[rank][at]) continue;
        said[rank][at] = true;
        faults.push_back(fmt::format("Live {} memory of {} on rank {} goes below zero ({} bytes) at {}.",
                                     name(memory.space[i]), name(memory.category[i]),
                                     trace.ranks[rank].number, live[rank][at], at_ms(memory.time[i])));
    }
}

void check_steps(const store::Trace& trace, Faults& faults) {
    for (std::size_t i = 1; i < trace.steps.size(); ++i) {
        const store::Step& before = trace.steps[i - 1];
        const store::Step& step = trace.steps[i];
        if (step.rank != before.rank || step.start >= before.end) continue;
        faults.push_back(fmt::format("Step {} of rank {} starts at {}, before step {} has ended.",
                                     step.number, trace.ranks[step.rank.at()].number, at_ms(step.start),
                                     before.number));
    }
}

// Units, modules and buffers each sum to the predicted peak; no step exceeds it.
void check_prediction_parts(const store::Trace& trace, Faults& faults) {
    std::map<std::pair<int, schema::PredictionPart>, std::int64_t> found;  // for steps: the largest
    for (const schema::PredictionPartRow& part : trace.prediction_parts) {
        std::int64_t& bytes = found[{part.rank, part.kind}];
        bytes = part.kind == schema::PredictionPart::step ? std::max(bytes, part.bytes) : bytes + part.bytes;
    }
    for (const schema::PredictionRow& row : trace.predictions) {
        for (int p = 0; p < schema::kPredictionParts; ++p) {
            const auto kind = static_cast<schema::PredictionPart>(p);
            const auto at = found.find({row.rank, kind});
            const bool step = kind == schema::PredictionPart::step;
            if (at == found.end() || at->second == row.peak_bytes) continue;
            if (step && at->second < row.peak_bytes) continue;  // the peak may lie in a validation
            faults.push_back(fmt::format("The predicted peak of rank {} is {} bytes, but its {}s {} {}.",
                                         row.rank, row.peak_bytes, name(kind), step ? "reach" : "sum to",
                                         at->second));
        }
    }
}

void check_predictions(const store::Trace& trace, Faults& faults) {
    for (const schema::PredictionRow& row : trace.predictions) {
        const std::int64_t sum =
            std::accumulate(std::begin(row.at_peak), std::end(row.at_peak), std::int64_t{0});
        if (sum == row.peak_bytes) continue;
        faults.push_back(
            fmt::format("The predicted peak of rank {} is {} bytes, but its categories sum to {}.", row.rank,
                        row.peak_bytes, sum));
    }
    check_prediction_parts(trace, faults);
}

// Whether the run was killed, and the file finished afterwards.
bool was_cut(const store::Trace& trace) {
    return !trace.config_value("finalized").empty();
}

// Related records that different threads wrote: after a kill, one may be present without the other.
void check_pairs(const store::Trace& trace, Faults& faults) {
    check_launches(trace, faults);
    check_collectives(trace, faults);
}

}  // namespace

std::vector<std::string> check_notes(const store::Trace& trace) {
    std::vector<std::string> notes;
    if (was_cut(trace)) check_pairs(trace, notes);
    if (const StopReport stopped = stop_report(trace); stopped.stopped)
        notes.push_back(stop_sentence(stopped));
    if (const std::string shown = shown_ranks_sentence(trace); !shown.empty()) {
        notes.push_back(shown + ".");
        for (std::string& like : ranks_like_it(trace)) notes.push_back(std::move(like));
    }
    for (const schema::DiagnosticRow& row : trace.diagnostics) {
        if (row.severity == schema::Severity::warning) {
            notes.push_back(fmt::format("At {} the recorder reported: {}", at_ms(row.time), row.text));
        }
    }
    return notes;
}

std::vector<std::string> check_trace(const store::Trace& trace) {
    Faults faults;
    check_recording(trace, faults);
    if (!was_cut(trace)) check_pairs(trace, faults);
    check_streams(trace, faults);
    check_memory(trace, faults);
    check_memory_totals(trace, faults);
    check_steps(trace, faults);
    check_predictions(trace, faults);
    return faults;
}

}  // namespace shardscope::traces::analysis
