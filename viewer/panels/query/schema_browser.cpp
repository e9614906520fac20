// See schema_browser.h.
#include "viewer/panels/query/schema_browser.h"

#include <algorithm>

#include <fmt/core.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "traces/schema/text.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::panels {
namespace {

bool wanted(const traces::query::SchemaObject& object, const std::string& filter) {
    if (filter.empty() || traces::schema::contains_but_for_case(object.name, filter)) return true;
    return std::any_of(object.columns.begin(), object.columns.end(), [&](const traces::query::SchemaItem& c) {
        return traces::schema::contains_but_for_case(c.name, filter);
    });
}

void tip(const std::string& title, const std::string& said) {
    if (!ImGui::IsItemHovered() || said.empty()) return;
    ImGui::BeginTooltip();
    draw::text(title);
    ImGui::Separator();
    draw::begin_wrap(ImGui::GetFontSize() * 30);
    draw::text(said);
    draw::end_wrap();
    ImGui::EndTooltip();
}

void draw_columns(const traces::query::SchemaObject& object) {
    if (!object.error.empty()) draw::note(object.error);
    for (const traces::query::SchemaItem& column : object.columns) {
        ImGui::BeginGroup();
        draw::text(column.name);
        const std::string kind = !column.unit.empty() ? column.unit : column.type;
        if (!kind.empty()) {
            ImGui::SameLine(0, ImGui::GetFontSize() * 0.6F);
            draw::text_fit_dim(kind);
        }
        ImGui::EndGroup();
        tip(column.type.empty() ? column.name : column.name + "  " + column.type, column.meaning);
    }
}

}  // namespace

std::optional<std::string> SchemaBrowser::draw(const std::vector<traces::query::SchemaObject>& objects) {
    std::optional<std::string> picked;
    ImGui::SetNextItemWidth(-1);
    ImGui::InputTextWithHint("##filter", "Find a table or column", &filter_);
    draw::items::mark("query.schema.filter", filter_);
    ImGui::BeginChild("objects");
    bool views = false, tables = false;
    for (const traces::query::SchemaObject& object : objects) {
        if (!wanted(object, filter_)) continue;
        bool& headed = object.view ? views : tables;
        if (!headed) draw::heading(object.view ? "Views" : "Tables");
        headed = true;
        ImGui::PushID(object.name.c_str());
        const std::string shown = draw::fit_text(
            object.name, ImGui::GetContentRegionAvail().x - ImGui::GetTreeNodeToLabelSpacing());
        const bool open =
            ImGui::TreeNodeEx("object", ImGuiTreeNodeFlags_SpanAvailWidth | ImGuiTreeNodeFlags_OpenOnArrow,
                              "%s", shown.c_str());
        draw::items::mark(fmt::format("query.schema.{}", object.name), object.name);
        if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left))
            picked = object.name;
        tip(object.name, object.meaning.empty() ? "Double-click: write a SELECT"
                                                : object.meaning + "\nDouble-click: write a SELECT");
        if (open) {
            draw_columns(object);
            ImGui::TreePop();
        }
        ImGui::PopID();
    }
    if (!views && !tables) draw::note("No match.");
    ImGui::EndChild();
    return picked;
}

}  // namespace shardscope::viewer::panels
