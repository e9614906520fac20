// See strip.h.
#include "viewer/draw/strip.h"

#include <algorithm>
#include <array>
#include <map>

namespace shardscope::viewer::draw {
namespace {

using traces::store::DeviceKind;
using Times = std::array<double, traces::store::kDeviceKinds>;  // ns by kind

// Adds the event's time to every column that it touches.
void add_event(std::vector<Times>& columns, double start, double end, double from, double width,
               DeviceKind kind) {
    const auto last = static_cast<int>(columns.size()) - 1;
    const int first = std::clamp(static_cast<int>((start - from) / width), 0, last);
    for (int i = first; i <= last; ++i) {
        const double left = from + width * i;
        if (left >= end) break;
        columns[static_cast<std::size_t>(i)][static_cast<std::size_t>(kind)] +=
            std::max(0.0, std::min(end, left + width) - std::max(start, left));
    }
}

std::vector<StripRun> to_runs(const std::vector<Times>& columns, double width) {
    std::vector<StripRun> runs;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const auto largest = std::max_element(columns[i].begin(), columns[i].end());
        if (*largest <= 0) continue;
        double total = 0;
        for (const double ns : columns[i]) total += ns;
        StripRun run{static_cast<int>(i), 1, static_cast<float>(std::min(1.0, total / width)),
                     static_cast<DeviceKind>(largest - columns[i].begin())};
        if (run.busy > 0.999F) run.busy = 1;
        const bool same = !runs.empty() && runs.back().first + runs.back().count == run.first &&
                          runs.back().busy == run.busy && runs.back().kind == run.kind;
        if (same) {
            ++runs.back().count;
        } else {
            runs.push_back(run);
        }
    }
    return runs;
}

}  // namespace

std::string stream_title(const traces::store::DeviceStream& stream) {
    return stream.name.empty() ? "stream " + std::to_string(stream.id) : stream.name;
}

std::vector<StripRow> fold_streams(const traces::store::Trace& trace, traces::store::RankIndex rank,
                                   std::int64_t from, std::int64_t to, int columns) {
    if (columns <= 0 || to <= from) return {};
    const double width = static_cast<double>(to - from) / columns;
    std::map<std::uint16_t, std::vector<Times>> streams;
    const traces::store::DeviceEvents& events = trace.device;
    for (std::size_t i = 0; i < events.size() && events.start[i] < to; ++i) {
        if (events.rank[i] != rank.column() || events.end[i] <= from) continue;
        auto& stream = streams[events.stream[i]];
        stream.resize(static_cast<std::size_t>(columns));
        add_event(stream, static_cast<double>(events.start[i]),
                  static_cast<double>(std::min(events.end[i], to)), static_cast<double>(from), width,
                  events.kind[i]);
    }
    std::vector<StripRow> rows;
    for (const auto& [stream, times] : streams) {
        const bool known = stream < trace.streams.size();
        rows.push_back(
            {stream_title(known ? trace.streams[stream] : traces::store::DeviceStream{rank, stream, ""}),
             to_runs(times, width)});
    }
    return rows;
}

}  // namespace shardscope::viewer::draw
