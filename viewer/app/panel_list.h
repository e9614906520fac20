// The panels' names in the order of the rail and of their keys, with the groups that the rail shows them in.
// No Dear ImGui; any thread.
#pragma once

#include <array>
#include <string_view>

namespace shardscope::viewer {

struct PanelEntry {
    std::string_view name, title, group;
};

// make_panels() makes one of each, in this order.
inline constexpr std::array<PanelEntry, 16> kPanelList = {{
    {"runs", "Runs", "Trace"},
    {"timeline", "Timeline", "Trace"},
    {"modules", "Module View", "Model"},
    {"units", "Units", "Model"},
    {"memory", "Memory", "Model"},
    {"summary", "Execution Summary", "Model"},
    {"operators", "Operators", "Work"},
    {"kernels", "Kernels", "Work"},
    {"collectives", "Collectives", "Work"},
    {"distributed", "Distributed", "Work"},
    {"shardmap", "Shard map", "Work"},
    {"idle", "Idle & Path", "Answers"},
    {"advice", "Advice", "Answers"},
    {"compare", "Compare", "Questions"},
    {"query", "Query", "Questions"},
    {"plan", "Plan", "Questions"},
}};

constexpr std::string_view panel_group(std::string_view name) {
    for (const PanelEntry& entry : kPanelList) {
        if (entry.name == name) return entry.group;
    }
    return "";
}

// On its tab, in menus and in the palette; the name of a panel that is not in the list.
constexpr std::string_view panel_title(std::string_view name) {
    for (const PanelEntry& entry : kPanelList) {
        if (entry.name == name) return entry.title;
    }
    return name;
}

}  // namespace shardscope::viewer
