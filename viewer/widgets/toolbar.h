// The top of most panels: choice of trace and rank; and the message while there is nothing to show. Drawing
// layer (Dear ImGui); frame thread only.
#pragma once

#include <string_view>

#include "viewer/model/session.h"

namespace shardscope::viewer::widgets {

// Choosers of the active trace (if several are open) and of the rank (if it has several), on one line. Leaves
// the cursor on that line if it drew anything, so that a panel's own controls may follow.
void draw_choosers(model::Session& session, bool with_rank = true);

// The chosen rank's entry in a report (whose entries have a `rank` number), nullptr if there is none.
template <class RankReport>
const RankReport* chosen_rank(const std::vector<RankReport>& reports, const model::Session& session) {
    const model::TracePtr trace = session.trace();
    if (trace == nullptr || reports.empty()) return nullptr;
    const std::size_t index = session.rank.at();
    if (index >= trace->ranks.size()) return &reports.front();
    for (const RankReport& report : reports) {
        if (report.rank == trace->ranks[index].number) return &report;
    }
    return nullptr;
}

// Shows that an analysis is being computed, or why it failed.
void draw_waiting(const model::Session& session, std::string_view what);

// One line if a limit range is set: only a part is shown.
void draw_limit_note(const model::Session& session);

// One line if a simulated run's trace shows a few ranks that represent all.
void draw_shown_ranks(const traces::store::Trace& trace);

// Text in the larger size, for the one figure that matters.
void big_number(std::string_view text);

}  // namespace shardscope::viewer::widgets
