// See plan_details.h.
#include "viewer/panels/plan/plan_details.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <imgui.h>

#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

using traces::schema::PlanRow;
using traces::store::PlanPart;

// A button, pale and inactive if `on` is false.
bool button(const char* label, const char* item, bool on = true) {
    draw::flow(draw::button_width(label));
    ImGui::PushStyleVar(ImGuiStyleVar_Alpha, ImGui::GetStyle().Alpha * (on ? 1.0F : 0.45F));
    const bool clicked = ImGui::Button(label);
    ImGui::PopStyleVar();
    draw::items::mark(item, on ? label : "off");
    ImGui::SameLine(0, ImGui::GetFontSize() * 0.4F);
    return clicked && on;
}

void draw_buttons(model::Session& session, const PlanList& list, const PlanItem& item,
                  const std::string& plan_file) {
    const bool job = !item.row->job.empty(), busy = session.simulation.busy();
    if (button("Open simulated trace", "plan.open", (job || !item.row->trace.empty()) && !busy))
        open_plan_row(session, *list.trace, item, plan_file);
    if (button("Copy as job file", "plan.copy_job", job)) ImGui::SetClipboardText(item.row->job.c_str());
    if (button("Save job file...", "plan.save_job", job)) save_plan_job(session, item);
    if (button("Copy as flags", "plan.copy_flags", !item.settings.empty()))
        ImGui::SetClipboardText(plan_flags(item.settings).c_str());
    ImGui::NewLine();
    if (!job && is_known(item.fate)) {  // the plan was lifted from a trace: there is no job to simulate
        const std::string_view lifted = list.trace->config_value("plan.trace");
        draw::note(
            fmt::format("The file holds no job of this row. Its simulated trace: shardscope-train plan {} "
                        "--write {} --as row-{}.sqlite, with the options of this plan.",
                        lifted.empty() ? "..." : lifted, item.row->number, item.row->number));
    }
    if (busy) {
        const std::string progress = session.simulation.progress();
        draw::wrapped(progress);
        draw::items::value("plan.progress", progress);
        if (button("Cancel", "plan.cancel")) session.simulation.cancel();
        ImGui::NewLine();
    } else if (!session.simulation.error().empty()) {
        draw::wrapped_in(theme::bad(), session.simulation.error());
        draw::items::value("plan.error", session.simulation.error());
    }
}

// Label and value in two columns, with as many pairs side by side as fit.
void draw_facts_table(const char* id, const std::vector<PlanFact>& facts) {
    const float font = ImGui::GetFontSize();
    const int pairs = ImGui::GetContentRegionAvail().x > font * 30 ? 2 : 1;
    if (facts.empty() || !ImGui::BeginTable(id, pairs * 2, ImGuiTableFlags_SizingStretchSame)) return;
    for (const PlanFact& fact : facts) {
        ImGui::TableNextColumn();
        draw::text_dim(fact.label);
        ImGui::TableNextColumn();
        draw::text_fit(fact.value);
        if (draw::items::kept()) draw::items::mark("plan.value." + fact.label, fact.value);
    }
    ImGui::EndTable();
}

// The composition of the peak: a bar, and a line for each category, the largest first.
void draw_peak(const PlanRow& row) {
    const float font = ImGui::GetFontSize();
    if (row.peak_bytes <= 0) return;
    std::vector<std::pair<std::int64_t, std::size_t>> parts;
    for (std::size_t c = 0; c < row.at_peak.size(); ++c)
        if (row.at_peak[c] > 0) parts.emplace_back(row.at_peak[c], c);
    std::sort(parts.rbegin(), parts.rend());
    draw::heading("At the peak");
    std::vector<draw::Segment> segments;
    segments.reserve(parts.size());
    for (const auto& [bytes, c] : parts)
        segments.push_back({static_cast<double>(bytes),
                            theme::category_color(static_cast<traces::schema::MemoryCategory>(c)),
                            {}});
    const float width = ImGui::GetContentRegionAvail().x;
    const double full = static_cast<double>(std::max(row.peak_bytes, row.limit_bytes));
    const ImVec2 at = ImGui::GetCursorScreenPos();
    stacked_bar(at, {width, font * 1.1F}, segments, full, false);
    if (row.limit_bytes > 0) {  // the larger value is the bar's whole width
        const float x = at.x + width * static_cast<float>(static_cast<double>(row.limit_bytes) / full);
        ImGui::GetWindowDrawList()->AddRectFilled({x - 2, at.y - 2}, {x, at.y + font * 1.1F + 2},
                                                  theme::bad());
    }
    ImGui::Dummy({width, font * 1.3F});
    if (ImGui::BeginTable("peak", 3, ImGuiTableFlags_SizingStretchProp)) {
        for (const auto& [bytes, c] : parts) {
            ImGui::TableNextColumn();
            draw::swatch(theme::category_color(static_cast<traces::schema::MemoryCategory>(c)));
            draw::text(draw::spaced(traces::schema::kMemoryCategoryNames[c]));
            ImGui::TableNextColumn();
            draw::text_right(draw::format_mb(bytes));
            if (draw::items::kept())
                draw::items::mark(fmt::format("plan.peak.{}", traces::schema::kMemoryCategoryNames[c]),
                                  draw::format_mb(bytes));
            ImGui::TableNextColumn();
            draw::text_right_dim(draw::format_percent(100.0 * static_cast<double>(bytes) /
                                                      static_cast<double>(row.peak_bytes)));
        }
        ImGui::EndTable();
    }
    const auto most = [](const char* what, const std::string& name, std::int64_t bytes) {
        if (!name.empty() && bytes > 0)
            draw::text_dim(fmt::format("Most of a {}: {}, {}", what, name, draw::format_mb(bytes)));
    };
    draw::begin_wrap();
    most("unit", row.peak_unit, row.peak_unit_bytes);
    most("module", row.peak_module, row.peak_module_bytes);
    if (!row.moment.empty()) draw::text_dim("Reached in: " + row.moment);
    draw::end_wrap();
}

std::string gb(double bytes) {
    return draw::format_decimal(bytes / (1 << 20), 1);
}

// The memory by formula beside the simulated peak, as shardscope-train plan prints it.
void draw_anatomy(const std::vector<PlanPart>& parts) {
    if (parts.empty()) return;
    const PlanPart& head = parts.front();
    draw::heading("Memory by formula, beside the simulated peak");
    draw::begin_wrap();
    draw::text_dim(fmt::format("{} parameters over {} device{}, ZeRO stage {}{}",
                               draw::format_count(head.parameters), draw::format_count(head.devices),
                               head.devices == 1 ? "" : "s", head.stage,
                               head.offloaded ? ", offloaded to the host" : ""));
    draw::end_wrap();
    constexpr std::array<const char*, 7> kTitles = {"MiB",     "stage 0", "stage 1",  "stage 2",
                                                    "stage 3", "formula", "simulated"};
    if (!ImGui::BeginTable("anatomy", static_cast<int>(kTitles.size()),
                           ImGuiTableFlags_SizingStretchProp | ImGuiTableFlags_RowBg))
        return;
    for (const char* title : kTitles) {
        ImGui::TableNextColumn();
        title == kTitles.front() ? draw::text_dim(title) : draw::text_right_dim(title);
    }
    const auto line = [](const std::string& name,
                         const std::array<double, traces::store::kZeroStages>& stages, int stage, double here,
                         double simulated, bool known) {
        ImGui::TableNextColumn();
        draw::text(name);
        for (std::size_t z = 0; z < stages.size(); ++z) {
            ImGui::TableNextColumn();
            const std::string value = known ? gb(stages[z]) : "-";
            static_cast<int>(z) == stage ? draw::text_right(value) : draw::text_right_dim(value);
        }
        ImGui::TableNextColumn();
        draw::text_right(known ? gb(here) : "-");
        if (draw::items::kept())
            draw::items::mark(fmt::format("plan.anatomy.{}.formula", name), known ? gb(here) : "-");
        ImGui::TableNextColumn();
        draw::text_right(gb(simulated));
        if (draw::items::kept())
            draw::items::mark(fmt::format("plan.anatomy.{}.simulated", name), gb(simulated));
    };
    PlanPart sum;
    sum.known = true;
    for (const PlanPart& part : parts) {
        line(part.part, part.by_stage, part.stage, part.formula, part.simulated, part.known);
        for (std::size_t z = 0; z < sum.by_stage.size(); ++z) sum.by_stage[z] += part.by_stage[z];
        sum.formula += part.formula;
        sum.simulated += part.simulated;
        sum.known = sum.known && part.known;
    }
    line("sum", sum.by_stage, head.stage, sum.formula, sum.simulated, sum.known);
    ImGui::EndTable();
    draw::note("The formulas ignore the schedule: docs/planning.md says what each omits.");
}

}  // namespace

void draw_plan_details(model::Session& session, const PlanList& list, const PlanItem& item,
                       const std::string& plan_file, const std::vector<PlanPart>* parts) {
    const PlanRow& row = *item.row;
    const float font = ImGui::GetFontSize();
    draw::swatch(fate_color(item.fate));
    const std::string title = fmt::format("Row {}, {}", row.number, fate_words(item.fate));
    draw::text(title);
    draw::items::value("plan.title", title);
    ImGui::Dummy({0, font * 0.1F});
    draw_buttons(session, list, item, plan_file);
    ImGui::Dummy({0, font * 0.1F});
    const std::string& why = row.why.empty() ? row.reason : row.why;
    if (!why.empty()) {
        draw::begin_wrap();
        constexpr std::size_t kLongest = 1200;  // bytes; planners write far less
        draw::text(why.size() <= kLongest ? why : why.substr(0, kLongest) + " ...");
        draw::end_wrap();
        draw::items::value("plan.why", why);
        ImGui::Dummy({0, font * 0.1F});
    }
    draw_facts_table("figures", plan_figures(list, row));
    draw_peak(row);
    draw::heading("Settings");
    draw_facts_table("choices", plan_choices(list, item));
    if (parts == nullptr) return;
    std::vector<PlanPart> own;
    std::copy_if(parts->begin(), parts->end(), std::back_inserter(own),
                 [&](const PlanPart& part) { return part.number == row.number; });
    draw_anatomy(own);
}

void open_plan_row(model::Session& session, const traces::store::Trace& plan, const PlanItem& item,
                   const std::string& plan_file) {
    namespace fs = std::filesystem;
    if (session.simulation.busy()) return;
    const std::string name = fmt::format("row {} of {}", item.row->number, plan_file);
    for (const model::OpenTrace& entry : session.open) {
        if (entry.name == name && entry.error.empty()) return session.open_simulated(entry.path, name);
    }
    // A trace that the planner wrote: at its path, or beside the plan, with which it may have been moved.
    if (!item.row->trace.empty()) {
        const fs::path written(item.row->trace);
        for (const fs::path& path : {written, fs::path(plan.path).parent_path() / written.filename()}) {
            std::error_code error;
            if (fs::is_regular_file(path, error)) return session.open_simulated(path.string(), "");
        }
    }
    session.simulation.start(item.row->job, name);
}

void save_plan_job(model::Session& session, const PlanItem& item) {
    session.wanted_save = model::TextToSave{fmt::format("row-{}.toml", item.row->number), item.row->job};
}

}  // namespace shardscope::viewer::panels
