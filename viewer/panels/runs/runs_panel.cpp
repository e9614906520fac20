// Runs: the open files side by side: key figures, configuration with what differs, the results of check,
// hosts and devices; and the way from here to the other panels.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/model/why_empty.h"
#include "viewer/panels/runs/runs_rows.h"
#include "viewer/tables/table.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/kept_model.h"
#include "viewer/widgets/segmented.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

constexpr std::size_t kNotesShown = 200;  // lines; a damaged trace may have a thousand faults

std::vector<RunFacts> facts_of(model::Session& session) {
    std::vector<RunFacts> runs;
    for (const model::OpenTrace& entry : session.open) {
        RunFacts& run = runs.emplace_back();
        run.entry = &entry;
        if (entry.trace == nullptr) continue;
        run.info = session.analyses.info(entry.trace);
        run.faults = session.analyses.faults(entry.trace);
        run.notes = session.analyses.analysis<std::vector<std::string>>(
            "notes", entry.trace, {}, [](const traces::store::Trace& t, const traces::analysis::Selection&) {
                return traces::analysis::check_notes(t);
            });
        run.figures = session.analyses.analysis<traces::analysis::Comparison>(
            "key figures", entry.trace, model::Session::selection(entry),
            [](const traces::store::Trace& t, const traces::analysis::Selection& s) {
                return traces::analysis::compare({&t}, s);
            });
    }
    return runs;
}

// What the tables are made from: they are made again only when it changes.
std::string signature(const std::vector<RunFacts>& runs) {
    std::string text;
    for (const RunFacts& run : runs) {
        text +=
            fmt::format("{}|{}|{}|{}|{}|{}\n", run.entry->name, run.entry->color, state_of(run),
                        static_cast<const void*>(run.info.get()), static_cast<const void*>(run.faults.get()),
                        static_cast<const void*>(run.figures.get()));
    }
    return text;
}

void bullet(std::string_view line, ImU32 color) {
    ImGui::PushStyleColor(ImGuiCol_Text, color);
    ImGui::Bullet();
    ImGui::SameLine();
    draw::begin_wrap();
    constexpr std::size_t kLongest = 600;  // bytes: more of a very long name would not help
    draw::text(line.size() <= kLongest ? std::string(line) : std::string(line.substr(0, kLongest)) + " ...");
    draw::end_wrap();
    ImGui::PopStyleColor();
}

class RunsPanel final : public model::Panel {
  public:
    std::string_view name() const override { return "runs"; }
    bool needs_timeline() const override { return false; }
    bool needs_trace() const override { return false; }

    void closed(const traces::store::Trace&, const model::TracePtr&) override { devices_model_.forget(); }

    void draw(model::Session& session, const model::Frame&) override {
        if (session.open.empty()) {
            return draw::note(
                "No trace is open. Drop a file here, or name one on the command line: shardscope-view "
                "run.sqlite");
        }
        const std::vector<RunFacts> runs = facts_of(session);
        const std::string changed = signature(runs);
        const float font = ImGui::GetFontSize();
        draw_runs(session, runs, changed);
        draw_errors(runs);
        ImGui::Dummy({0, font * 0.2F});
        if (session.trace() == nullptr) return;
        draw_links(session);
        widgets::draw_limit_note(session);
        ImGui::Dummy({0, font * 0.2F});

        const float gap = font * 1.2F;
        const ImVec2 left = ImGui::GetContentRegionAvail();
        // Side by side if the configuration has room for a column of each run (its table's widths).
        const float wanted = font * (14 + 9 * static_cast<float>(runs.size()));
        const bool two = (left.x - gap) * 0.55F > std::max(wanted, font * 30);
        if (!two) {
            constexpr std::array<std::string_view, 4> kAll = {"Check", "Devices", "Rows", "Configuration"};
            widgets::segmented("runs.view", kAll, view_);
            if (view_ != kConfiguration) return draw_view(session, runs, changed);
            return draw_configuration(runs, changed);
        }
        ImGui::BeginChild("configuration", {(left.x - gap) * 0.55F, left.y});
        draw_configuration(runs, changed);
        ImGui::EndChild();
        ImGui::SameLine(0, gap);
        ImGui::BeginChild("more", {0, left.y});
        constexpr std::array<std::string_view, 3> kViews = {"Check", "Devices", "Rows"};
        if (view_ == kConfiguration) view_ = kCheck;
        widgets::segmented("runs.view", kViews, view_);
        draw_view(session, runs, changed);
        ImGui::EndChild();
    }

  private:
    enum View { kCheck, kDevices, kRows, kConfiguration };

    void draw_runs(model::Session& session, const std::vector<RunFacts>& runs, const std::string& changed) {
        const float line = ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().CellPadding.y;
        // The header has two lines.
        const float wanted = line * static_cast<float>(runs.size() + 1) + ImGui::GetTextLineHeight() + 2;
        const float height = std::min(wanted, ImGui::GetContentRegionAvail().y * 0.45F);
        const auto model = runs_model_.of(nullptr, changed, [&] { return runs_table(runs); });
        if (runs_.seen != model.get()) runs_.seen = model.get();
        runs_.chosen = session.active;
        const tables::TableEvents events =
            draw_table("runs.files", model, runs_, {.size = {0, height}, .filter = false, .name = "runs"});
        if (events.hovered && *events.hovered < runs.size())
            ImGui::SetTooltip("%s", runs[*events.hovered].entry->path.c_str());
        const auto row = events.opened ? events.opened : events.clicked;
        if (!row || *row >= runs.size()) return;
        if (*row != session.active) session.set_active(*row);
        if (events.opened && runs[*row].entry->trace != nullptr) session.wanted_panel = "timeline";
    }

    static void draw_errors(const std::vector<RunFacts>& runs) {
        for (const RunFacts& run : runs) {
            if (!run.entry->error.empty())
                bullet(fmt::format("{}: {}", run.entry->name, run.entry->error), theme::bad());
        }
    }

    // The chosen run, with links to panels that show it.
    static void draw_links(model::Session& session) {
        const float font = ImGui::GetFontSize();
        ImGui::AlignTextToFramePadding();
        draw::swatch(theme::run_color(session.current()->color));
        draw::text(draw::fit_text(session.current()->name, font * 20));
        draw::items::value("runs.value.active", session.current()->name);
        struct Link {
            const char *label, *panel;
        };
        const traces::store::Trace& trace = *session.trace();
        const bool timeline = !model::holds_only_plan(trace);
        bool first = true;
        constexpr std::array<Link, 7> kLinks = {{{"Plan", "plan"},
                                                 {"Timeline", "timeline"},
                                                 {"Modules", "modules"},
                                                 {"Memory", "memory"},
                                                 {"Summary", "summary"},
                                                 {"Advice", "advice"},
                                                 {"Compare", "compare"}}};
        for (const Link& link : kLinks) {
            const bool plan = link.panel == std::string_view("plan");
            if (plan ? !model::holds_plan(trace) : !timeline) continue;
            if (link.panel == std::string_view("compare") && session.ready().size() < 2) continue;
            ImGui::SameLine(0, first ? font * 1.2F : font * 0.3F);
            first = false;
            draw::flow(draw::button_width(link.label));
            if (draw::named_button(link.label, fmt::format("runs.go.{}", link.panel)))
                session.wanted_panel = link.panel;
        }
    }

    void draw_configuration(const std::vector<RunFacts>& runs, const std::string& changed) {
        if (counted_ != changed) {
            count_ = count_configuration(runs);
            counted_ = changed;
        }
        const ConfigurationCount count = count_;
        if (count.keys == 0) {
            return draw::note(model::why_empty("runs"));
        }
        const auto read =
            std::count_if(runs.begin(), runs.end(), [](const RunFacts& r) { return r.info != nullptr; });
        ImGui::AlignTextToFramePadding();
        if (read > 1) {
            widgets::toggle_button("runs.only_differences", "Only what differs", only_differences_);
            ImGui::SameLine(0, ImGui::GetFontSize());
            draw::text_fit_dim(fmt::format("{} of {} settings differ{}", count.different, count.keys,
                                           count.different == 1 ? "s" : ""));
            draw::items::value("runs.value.differences", fmt::format("{}", count.different));
        } else {
            draw::text(fmt::format("Configuration: {} setting{}", count.keys, count.keys == 1 ? "" : "s"));
        }
        const bool only = only_differences_ && read > 1;
        if (only && count.different == 0) return draw::note("Every setting is the same.");
        draw_table("runs.configuration",
                   configuration_model_.of(nullptr, changed + (only ? "only" : ""),
                                           [&] { return configuration_table(runs, only); }),
                   configuration_, {.name = "configuration"});
    }

    void draw_view(model::Session& session, const std::vector<RunFacts>& runs, const std::string& changed) {
        const RunFacts& run = runs[session.active];
        if (view_ == kDevices) {
            draw_table(
                "runs.devices",
                devices_model_.of(run.entry->trace, "", [&] { return devices_table(*run.entry->trace); }),
                devices_, {.filter = false, .name = "ranks and devices"});
        } else if (view_ == kRows) {
            draw_table("runs.counts", counts_model_.of(nullptr, changed, [&] { return counts_table(runs); }),
                       counts_, {.filter = false, .name = "rows"});
        } else {
            ImGui::BeginChild("check");
            draw_check(run);
            ImGui::EndChild();
        }
    }

    static void draw_check(const RunFacts& run) {
        if (run.info == nullptr || run.faults == nullptr || run.notes == nullptr)
            return draw::note("Checking the trace ...");
        const std::vector<std::string> faults = *faults_of(run);
        if (run.entry->running())
            bullet(fmt::format("The run is in progress ({}); everything written so far is shown.",
                               run_state_in_short(*run.entry)),
                   theme::good());
        if (faults.empty())
            bullet(run.entry->running() ? "No fault was found." : "No fault was found: the trace is whole.",
                   theme::good());
        draw::items::value("runs.value.faults", fmt::format("{}", faults.size()));
        draw_lines(faults, theme::bad());
        draw_lines(*run.notes, theme::text());
        std::vector<std::string> noted;
        for (const auto& line : run.info->noted) {
            if (noted.size() > kNotesShown) break;
            noted.push_back(fmt::format("{}  {}", draw::format_duration(line.time_ms * 1e6), line.text));
        }
        if (!noted.empty()) draw::heading("What the recorder noted");
        draw_lines(noted, theme::text_dim());
        draw::heading("File");
        fact("Path", run.entry->path);
        fact("Written by", run.info->schema_version > 0
                               ? fmt::format("Shardscope, schema {}", run.info->schema_version)
                               : std::string("another tool"));
        fact("Started (UTC)", run.info->started_utc.empty() ? "unknown" : run.info->started_utc);
        fact("Device", run.info->device.empty() ? "unknown" : run.info->device);
    }

    static void draw_lines(const std::vector<std::string>& lines, ImU32 color) {
        const std::size_t shown = std::min(lines.size(), kNotesShown);
        for (std::size_t i = 0; i < shown; ++i) bullet(lines[i], color);
        if (lines.size() > shown)
            draw::note(fmt::format("... {} more",
                                   draw::format_count(static_cast<std::int64_t>(lines.size() - shown))));
    }

    static void fact(std::string_view label, const std::string& value) {
        draw::text_dim(label);
        ImGui::SameLine(ImGui::GetFontSize() * 8);
        draw::text_fit(value);
    }

    bool only_differences_ = false;
    ConfigurationCount count_;
    std::string counted_;  // the trace that count_ belongs to
    int view_ = kCheck;
    widgets::KeptModel runs_model_, configuration_model_, counts_model_, devices_model_;
    tables::TableState runs_, configuration_, counts_, devices_;
};

}  // namespace

std::unique_ptr<model::Panel> make_runs_panel() {
    return std::make_unique<RunsPanel>();
}

}  // namespace shardscope::viewer::panels
