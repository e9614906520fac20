// What stands at the top of most panels: which trace, which rank; and what is said while there is nothing to
// show. Drawing layer (Dear ImGui); frame thread only.
#pragma once

#include <string_view>

#include "viewer/model/session.h"

namespace shardscope::viewer {

// Choosers of the active trace (where several are open) and of the rank (where it has several), in one line.
// Leaves the cursor on that line where it drew anything, so that a panel's own controls may follow.
void draw_choosers(Session& session, bool with_rank = true);

// The rank's entry of a report (which has a `rank` number), nullptr where the report has none for the chosen
// rank.
template <class RankReport>
const RankReport* chosen_rank(const std::vector<RankReport>& reports, const Session& session) {
    const TracePtr trace = session.trace();
    if (trace == nullptr || reports.empty()) return nullptr;
    const auto index = static_cast<std::size_t>(session.rank);
    if (index >= trace->ranks.size()) return &reports.front();
    for (const RankReport& report : reports) {
        if (report.rank == trace->ranks[index].number) return &report;
    }
    return nullptr;
}

// Says that an analysis is being worked out, or why it failed.
void draw_waiting(const Session& session, std::string_view what);

// One line where a limit range is set: what is shown is only a part.
void draw_limit_note(const Session& session);

// One line where a simulated run's trace shows a few ranks that stand for all.
void draw_shown_ranks(const traces::Trace& trace);

// Text that goes on in a new line between words, never inside a number or a dotted name; dimmed unless said.
void draw_facts(std::string_view text, bool dimmed = true);

// Text in the larger size, for the one figure that matters.
void big_number(std::string_view text);

}  // namespace shardscope::viewer
