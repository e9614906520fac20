// Where the parts in the compare panel's tables are in a run: what a click on a row shows in the timeline.
// Pure search over columns, no drawing; any thread.
#pragma once

#include <string>

#include "traces/analysis/compare/compare_parts.h"
#include "viewer/model/session.h"

namespace shardscope::viewer::panels {

struct PartPlace {
    bool found = false;
    model::TimeRange time;
    traces::store::RankIndex rank;  // none: of a thread that belongs to no rank
    model::SelectedEvent event;
    int module = -1;  // ModuleRow::id, for a module that has one
};

// The longest event of the part in the selection: a kernel of that name, a collective of that operation and
// unit, a unit's gather or reduction of that phase, an operator's or a module's call.
PartPlace longest_of_part(const traces::store::Trace& trace, traces::analysis::CompareBy by,
                          const std::string& name, const traces::analysis::Selection& selection);

}  // namespace shardscope::viewer::panels
