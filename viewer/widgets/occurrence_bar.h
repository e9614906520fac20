// One line under a table: the place of the chosen row's events in the timeline. Buttons go to the longest of
// them and to the previous and next one from the selected event. Drawing layer (Dear ImGui); frame thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "viewer/model/session.h"

namespace shardscope::viewer {

// Rows of DeviceEvents or HostRanges, sorted by start.
using Occurrences = std::shared_ptr<const std::vector<std::uint32_t>>;

// `events` is nullptr during the search for them. For scripts: "<id>.longest", "<id>.previous", "<id>.next",
// "<id>.occurrence" ("3 of 32").
void draw_occurrences(const char* id, Session& session, const std::string& name, EventKind kind,
                      const Occurrences& events);

// The action of a double-click: shows the longest.
void go_to_longest(Session& session, EventKind kind, const Occurrences& events);

}  // namespace shardscope::viewer
