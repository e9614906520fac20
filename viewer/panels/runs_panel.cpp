// Runs: what is open, as one table: a column for each file with its facts, its faults and its configuration.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <imgui.h>

#include "viewer/app/session.h"
#include "viewer/app/theme.h"
#include "viewer/draw/format.h"
#include "viewer/draw/text.h"
#include "viewer/panels/panel.h"
#include "viewer/panels/toolbar.h"

namespace shardscope::viewer {
namespace {

using traces::TraceInfo;

// One open file as this panel shows it; `info` is nullptr while it is read or worked out.
struct Column {
    std::size_t index = 0;
    const OpenTrace* entry = nullptr;
    std::shared_ptr<const TraceInfo> info;
    std::shared_ptr<const std::vector<std::string>> faults;
};

std::string value_of(const TraceInfo& info, const std::string& key) {
    const auto it = std::find_if(info.config.begin(), info.config.end(),
                                 [&](const auto& pair) { return pair.first == key; });
    return it == info.config.end() ? "-" : it->second;
}

std::vector<std::string> keys_of(const std::vector<Column>& columns) {
    std::vector<std::string> keys;
    for (const Column& column : columns) {
        if (column.info == nullptr) continue;
        for (const auto& [key, value] : column.info->config) {
            if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
        }
    }
    return keys;
}

void label_cell(std::string_view label) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::PushStyleColor(ImGuiCol_Text, theme::text_dim());
    text(label);
    ImGui::PopStyleColor();
}

void heading_row(std::string_view label) {
    ImGui::TableNextRow(ImGuiTableRowFlags_None, ImGui::GetFontSize() * 2);
    ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg0, theme::raised());
    ImGui::TableNextColumn();
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + ImGui::GetFontSize() * 0.4F);
    text(label);
}

class RunsPanel final : public Panel {
  public:
    std::string_view name() const override { return "runs"; }
    std::string_view title() const override { return "Runs"; }
    bool needs_trace() const override { return false; }

    void draw(Session& session, const Frame&) override {
        if (session.open.empty()) {
            return note(
                "No trace is open. Drop a file here, or name one on the command line: shardscope-view "
                "run.sqlite");
        }
        std::vector<Column> columns;
        for (std::size_t i = 0; i < session.open.size(); ++i) {
            Column column{i, &session.open[i], nullptr, nullptr};
            if (column.entry->trace != nullptr) {
                column.info = session.analyses.info(column.entry->trace);
                column.faults = session.analyses.faults(column.entry->trace);
            }
            columns.push_back(std::move(column));
        }
        draw_table(session, columns);
    }

  private:
    void draw_table(Session& session, const std::vector<Column>& columns) {
        const float font = ImGui::GetFontSize();
        const float first = font * 15;
        // Few files share the width; many keep a readable one each and scroll.
        const bool scrolls =
            first + font * 18 * static_cast<float>(columns.size()) > ImGui::GetContentRegionAvail().x;
        const ImGuiTableFlags flags = (scrolls ? ImGuiTableFlags_ScrollX : 0) | ImGuiTableFlags_ScrollY |
                                      ImGuiTableFlags_RowBg | ImGuiTableFlags_PadOuterX |
                                      ImGuiTableFlags_BordersInnerV | ImGuiTableFlags_NoSavedSettings;
        // Another number of runs is another table: widths start anew.
        const std::string id = fmt::format("runs {}", columns.size());
        if (!ImGui::BeginTable(id.c_str(), static_cast<int>(columns.size()) + 1, flags)) return;
        ImGui::TableSetupScrollFreeze(1, 1);
        ImGui::TableSetupColumn("##label", ImGuiTableColumnFlags_WidthFixed, first);
        for (const Column& column : columns) {
            ImGui::TableSetupColumn(
                fmt::format("##{}", column.index).c_str(),
                scrolls ? ImGuiTableColumnFlags_WidthFixed : ImGuiTableColumnFlags_WidthStretch,
                scrolls ? font * 18 : 1.0F);
        }
        draw_names(session, columns);
        draw_facts(columns);
        draw_faults(columns);
        draw_config(columns);
        draw_counts(columns);
        ImGui::EndTable();
    }

    static void draw_names(Session& session, const std::vector<Column>& columns) {
        ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
        ImGui::TableNextColumn();
        text("File");
        for (const Column& column : columns) {
            ImGui::TableNextColumn();
            ImGui::PushID(static_cast<int>(column.index));
            swatch(run_color(column.entry->color));
            const bool active = column.index == session.active;
            const std::string shown = fit_text(column.entry->name, ImGui::GetContentRegionAvail().x);
            ImGui::PushStyleColor(ImGuiCol_Text, active ? theme::accent() : theme::text());
            if (ImGui::Selectable(shown.c_str(), false) && column.entry->trace != nullptr)
                session.set_active(column.index);
            ImGui::PopStyleColor();
            if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", column.entry->path.c_str());
            ImGui::PopID();
        }
    }

    using Get = std::function<std::string(const TraceInfo&)>;
    static void fact(const std::vector<Column>& columns, std::string_view label, const Get& get) {
        label_cell(label);
        for (const Column& column : columns) {
            ImGui::TableNextColumn();
            if (column.info != nullptr) text_fit(get(*column.info));
        }
    }

    static void draw_facts(const std::vector<Column>& columns) {
        label_cell("State");
        for (const Column& column : columns) {
            ImGui::TableNextColumn();
            draw_state(column);
        }
        fact(columns, "Ranks", [](const TraceInfo& i) { return format_count(i.ranks); });
        fact(columns, "Steps", [](const TraceInfo& i) { return format_count(i.steps); });
        fact(columns, "Duration", [](const TraceInfo& i) { return format_duration(i.duration_ms * 1e6); });
        fact(columns, "Device",
             [](const TraceInfo& i) { return i.device.empty() ? std::string("not said") : i.device; });
        fact(columns, "Started (UTC)", [](const TraceInfo& i) { return i.started_utc; });
        fact(columns, "Schema version", [](const TraceInfo& i) {
            return i.schema_version > 0 ? format_count(i.schema_version) : std::string("not ours");
        });
        fact(columns, "Events dropped", [](const TraceInfo& i) { return format_count(i.dropped); });
    }

    static void draw_state(const Column& column) {
        ImGui::PushTextWrapPos(0);
        if (!column.entry->error.empty()) {
            ImGui::PushStyleColor(ImGuiCol_Text, theme::bad());
            text(column.entry->error);
            ImGui::PopStyleColor();
        } else if (column.entry->loading()) {
            text(fmt::format("reading, {:.0f} %", 100 * column.entry->progress));
        } else if (column.info != nullptr) {
            text(column.info->ended ? "ended" : "did not end: killed, or still running");
        }
        ImGui::PopTextWrapPos();
    }

    static void draw_faults(const std::vector<Column>& columns) {
        label_cell("Check");
        for (const Column& column : columns) {
            ImGui::TableNextColumn();
            if (column.faults == nullptr) continue;
            if (column.faults->empty()) text("whole");
            ImGui::PushTextWrapPos(0);
            ImGui::PushStyleColor(ImGuiCol_Text, theme::bad());
            for (const std::string& fault : *column.faults) text(fault);
            ImGui::PopStyleColor();
            ImGui::PopTextWrapPos();
        }
    }

    static void draw_counts(const std::vector<Column>& columns) {
        std::vector<std::string> names;
        for (const Column& column : columns) {
            if (column.info == nullptr) continue;
            for (const auto& [name, count] : column.info->counts) {
                if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
            }
        }
        if (names.empty()) return;
        heading_row("Rows");
        for (const std::string& name : names) {
            fact(columns, spaced(name), [&](const TraceInfo& info) {
                const auto it = std::find_if(info.counts.begin(), info.counts.end(),
                                             [&](const auto& p) { return p.first == name; });
                return it == info.counts.end() ? std::string("-") : format_count(it->second);
            });
        }
    }

    static void draw_config(const std::vector<Column>& columns) {
        const std::vector<std::string> keys = keys_of(columns);
        if (keys.empty()) return;
        heading_row("Configuration");
        for (const std::string& key : keys) {
            std::vector<std::string> values;
            for (const Column& column : columns) {
                if (column.info != nullptr) values.push_back(value_of(*column.info, key));
            }
            const bool differs =
                std::any_of(values.begin(), values.end(), [&](const auto& v) { return v != values.front(); });
            label_cell(key);
            if (differs)
                ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg1,
                                       (theme::accent() & 0x00FFFFFFU) | 0x2A000000U);
            for (const Column& column : columns) {
                ImGui::TableNextColumn();
                if (column.info != nullptr) text_fit(value_of(*column.info, key));
            }
        }
    }
};

}  // namespace

std::unique_ptr<Panel> make_runs_panel() {
    return std::make_unique<RunsPanel>();
}

}  // namespace shardscope::viewer
