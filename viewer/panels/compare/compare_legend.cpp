// See compare_legend.h.
#include "viewer/panels/compare/compare_legend.h"

#include <fmt/core.h>
#include <imgui.h>

#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer {

void draw_run_legend(const ComparedRuns& runs) {
    std::vector<LegendItem> entries;
    for (std::size_t r = 0; r < runs.heads.size(); ++r)
        entries.push_back({fmt::format("{}  {}", r + 1, runs.heads[r].name), runs.heads[r].color});
    legend(entries);
}

bool choice_button(const char* label, bool chosen, const std::string& item) {
    ImGui::PushStyleColor(ImGuiCol_Button, chosen ? theme::accent() : theme::raised());
    ImGui::PushStyleColor(ImGuiCol_Text, chosen ? theme::ground() : theme::text());
    const bool clicked = ImGui::Button(label);
    ImGui::PopStyleColor(2);
    items::mark(item, chosen ? "chosen" : "");
    return clicked;
}

std::vector<std::string> names_of(const ComparedRuns& runs) {
    std::vector<std::string> names;
    for (const RunHead& head : runs.heads) names.push_back(head.name);
    return names;
}

}  // namespace shardscope::viewer
