// See rows.h.
#include "traces/report/timeline/rows.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/memory/memory_curves.h"
#include "traces/lanes/counter_words.h"

namespace shardscope::traces::report {
namespace {

// From the first selected step's start to the last one's end, of its host step or its device work, within the
// time range; all of the trace if nothing is selected.
analysis::Interval selected_span(const store::Trace& trace, const analysis::Selection& selection) {
    analysis::Interval span{trace.first_ns, trace.last_ns + 1};
    if (selection.first_step || selection.last_step) {
        bool any = false;
        const analysis::TraceSteps steps = analysis::find_steps(trace);
        for (const store::RankIndex rank : selected_ranks(trace, selection)) {
            for (const analysis::StepWindow& step : steps.ranks[rank.at()].steps) {
                if (!selection.has_step(step.number)) continue;
                const std::int64_t end = std::max(step.host.end, step.window.end);
                span.start = any ? std::min(span.start, step.host.start) : step.host.start;
                span.end = any ? std::max(span.end, end) : end;
                any = true;
            }
        }
    }
    span.start = std::max(span.start, selection.from_ns.value_or(span.start));
    span.end = std::max(span.start + 1, std::min(span.end, selection.to_ns.value_or(span.end)));
    return span;
}

class Rows {
  public:
    Rows(const store::Trace& trace, const analysis::Selection& selection, TimelineRows& rows)
        : trace_(trace), selection_(selection), rows_(rows) {}

    void all_groups() {
        if (!selection_.rank) group("Collectives", {}, true);
        for (const store::RankIndex rank : selected_ranks(trace_, selection_))
            group(fmt::format("Rank {}", trace_.ranks[rank.at()].number), rank, false);
        if (selection_.rank) return;
        group("Other threads", {}, false);
        for (std::size_t c = 0; c < rows_.tracks.counters.size(); ++c) {
            const lanes::CounterTrack& counter = rows_.tracks.counters[c];
            if (counter.rank.known()) continue;
            const std::string label = label_of_counters(counter);
            if (rows_.groups.empty() || rows_.groups.back().label != label)
                rows_.groups.push_back({label, {}, {}});
            curve(rows_.groups.size() - 1, counter);
        }
    }

  private:
    // Of a counter of no rank.
    std::string label_of_counters(const lanes::CounterTrack& counter) const {
        if (counter.metric) return "Metrics";
        if (counter.host == schema::StringId::empty) return "Other processes";
        return fmt::format("Host {}", trace_.strings[counter.host]);
    }
    void curve(std::size_t group, const lanes::CounterTrack& counter) {
        lanes::CounterWords words = lanes::counter_words(trace_.strings[counter.name], counter.device);
        TimelineCurve curve{.group = group,
                            .label = std::move(words.label),
                            .unit = std::string(words.unit),
                            .is_bytes = words.unit == "bytes",
                            .is_counter = true,
                            .time = {},
                            .value = {}};
        for (const auto& [time, value] : counter.points) {
            curve.time.push_back(time);
            curve.value.push_back(value);
        }
        rows_.curves.push_back(std::move(curve));
    }
    void group(const std::string& label, store::RankIndex rank, bool joined) {
        const std::size_t group = rows_.groups.size();
        const std::size_t curves = rows_.curves.size(), rows = rows_.rows.size();
        if (rank.known()) memory(group, rank);
        for (std::size_t t = 0; t < rows_.tracks.tracks.size(); ++t) {
            const lanes::Track& track = rows_.tracks.tracks[t];
            const bool is_joined = track.kind == lanes::Track::Kind::collectives;
            if (track.rank == rank && is_joined == joined) rows_.rows.push_back({group, t});
        }
        for (const lanes::CounterTrack& counter : rows_.tracks.counters) {
            if (!joined && rank.known() && counter.rank == rank) curve(group, counter);
        }
        if (curves == rows_.curves.size() && rows == rows_.rows.size()) return;
        rows_.groups.push_back(
            {label, rank.known() ? trace_.ranks[rank.at()].device_name : std::string(), rank});
    }
    void memory(std::size_t group, store::RankIndex rank) {
        if (rank.at() >= rows_.tracks.has_memory.size() || !rows_.tracks.has_memory[rank.at()]) return;
        analysis::ByteCurve bytes = analysis::allocated_curve(trace_, rank);
        rows_.curves.push_back({group, "allocated", "bytes", true, false, std::move(bytes.time),
                                std::vector<double>(bytes.bytes.begin(), bytes.bytes.end())});
    }

    const store::Trace& trace_;
    const analysis::Selection& selection_;
    TimelineRows& rows_;
};

}  // namespace

TimelineRows timeline_rows(const store::Trace& trace, const analysis::Selection& selection) {
    TimelineRows rows;
    rows.time = selected_span(trace, selection);
    rows.tracks = lanes::make_tracks(trace);
    Rows(trace, selection, rows).all_groups();
    return rows;
}

}  // namespace shardscope::traces::report
