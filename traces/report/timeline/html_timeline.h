// The timeline of a trace as one HTML file for people without the viewer: rows of ranks, threads, streams and
// counters that a script of its own zooms and searches, with nothing loaded from elsewhere. Every text of the
// trace is data of the script, which shows it as text, or is escaped.
//
// The file has a size that it does not exceed. What does not fit is folded (folds.h), the shortest events
// first, and the page says what was folded.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "traces/analysis/base/selection.h"
#include "traces/lanes/lane.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::report {

// 0xRRGGBB by Paint; the same as in the viewer.
inline constexpr std::array<std::uint32_t, lanes::kKindPaints> kTimelineColors = {
    0x5BA8E6, 0x35B48B, 0xEBD75E, 0xE8873A,                                          // device events
    0x6F7F93, 0x9A86D3, 0xD58BB5, 0x4A5361, 0x97872B, 0xF2B872, 0x556375, 0x948872,  // host ranges
    0x4F8C96, 0xC04FA8, 0x8A94A3, 0xC04FA8, 0xB4E3A0};

struct TimelineOptions {
    std::string title;                     // empty: the name of the file
    bool redact = false;                   // omits names of machines and paths
    std::uint64_t most_bytes = 5'000'000;  // of the file
};

struct TimelinePage {
    std::string html;
    std::int64_t events = 0;   // in the selection, each in its row
    std::int64_t folded = 0;   // of these
    std::int64_t folds = 0;    // into which they are folded
    std::int64_t shorter = 0;  // nanoseconds; only shorter events are folded
    std::string sentence;      // says what is folded
};

// The selection has nothing that a timeline shows, or does not fit into the size. The text is one sentence.
class NoTimeline : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// The trace is named after `path`. Throws NoTimeline.
TimelinePage html_timeline(const store::Trace& trace, const std::string& path,
                           const analysis::Selection& selection, const TimelineOptions& options = {});

}  // namespace shardscope::traces::report
