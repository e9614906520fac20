// One line under a table: where the chosen row's events are in the timeline. Buttons go to the longest of
// them and to the one before and after the event that is selected. Drawing layer (Dear ImGui); frame thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "viewer/model/session.h"

namespace shardscope::viewer {

// Rows of DeviceEvents or HostRanges, in order of start.
using Occurrences = std::shared_ptr<const std::vector<std::uint32_t>>;

// `events` is nullptr while they are looked for. For scripts: "<id>.longest", "<id>.previous", "<id>.next",
// "<id>.occurrence" ("3 of 32").
void draw_occurrences(const char* id, Session& session, const std::string& name, EventKind kind,
                      const Occurrences& events);

// What a double click does: shows the longest.
void go_to_longest(Session& session, EventKind kind, const Occurrences& events);

}  // namespace shardscope::viewer
