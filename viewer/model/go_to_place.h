// Takes the place from the open traces, and goes to it there again. Frame thread only. No Dear ImGui.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "viewer/model/session.h"

namespace shardscope::viewer::model {

// Of a trace that is not active without its selection, which belongs to the active one.
Place place_of(const Session& session, std::size_t index);

// The trace must be read. Returns what it does not have (any more): "rank 7", "the event \"gemm\" at 1.5 ms".
std::vector<std::string> go_to_place(Session& session, std::size_t index, const Place& place);

// Goes to the place that OpenTrace::wanted asks for, and adds its marks. The entry's notice says what is
// gone, and that the trace is not the one that was saved.
void take_wanted(Session& session, std::size_t index);

}  // namespace shardscope::viewer::model
