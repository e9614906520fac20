// Advice: the findings of the rules as cards: the evidence in figures, what to change, and a link to the
// place.
#include <algorithm>
#include <array>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/analysis/advice/advice.h"
#include "traces/analysis/advice/advice_place.h"
#include "traces/store/columns/trace.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/model/why_empty.h"
#include "viewer/panels/advice/advice_rows.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/card.h"
#include "viewer/widgets/toolbar.h"
#include "viewer/widgets/try_it.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::AdvicePlace;
using traces::analysis::AdviceReport;
using traces::analysis::Finding;
using traces::analysis::FindingWeight;

theme::Color weight_color(FindingWeight weight) {
    if (weight == FindingWeight::serious) return theme::bad();
    return weight == FindingWeight::notable ? theme::accent() : theme::text_dim();
}

// A label, and text that wraps beside it.
void labelled(std::string_view label, const std::string& said, float indent) {
    if (said.empty()) return;
    draw::text_dim(label);
    ImGui::SameLine(indent);  // relative to the card's group
    ImGui::BeginGroup();
    draw::text(said);
    ImGui::EndGroup();
}

// The same for a line that the user can copy.
void copyable(const char* id, std::string_view label, const std::string& said, float indent) {
    if (said.empty()) return;
    draw::text_dim(label);
    ImGui::SameLine(indent);
    ImGui::PushID(id);
    if (ImGui::SmallButton("Copy")) ImGui::SetClipboardText(said.c_str());
    ImGui::PopID();
    ImGui::SameLine();
    draw::text_in(theme::good(), said);
}

// The figures side by side: the value large enough to read at a glance, its name below.
void draw_figures(const Finding& finding) {
    const float font = ImGui::GetFontSize();
    bool first = true;
    for (const traces::analysis::AdviceFigure& figure : finding.figures) {
        const std::string value = figure_text(figure), label = draw::spaced(figure.name);
        const float width =
            std::max(ImGui::CalcTextSize(value.c_str()).x, ImGui::CalcTextSize(label.c_str()).x);
        if (!first) {
            ImGui::SameLine(0, font * 1.8F);
            if (ImGui::GetContentRegionAvail().x < width) ImGui::NewLine();
        }
        first = false;
        ImGui::BeginGroup();
        draw::text(value);
        draw::text_dim(label);
        ImGui::EndGroup();
        draw::items::value(fmt::format("advice.{}.{}", finding.id, figure.name), value);
    }
}

bool nothing_to_look_at(const traces::store::Trace& trace) {
    return trace.events() == 0 && trace.collectives.size() == 0 && trace.counters.size() == 0;
}

class AdvicePanel final : public model::Panel {
  public:
    std::string_view name() const override { return "advice"; }

    void draw(model::Session& session, const model::Frame&) override {
        widgets::draw_choosers(session, false);
        if (session.ready().size() > 1) ImGui::NewLine();
        const auto report = session.analyses.analysis<AdviceReport>(
            "advice", session.trace(), model::Session::selection(*session.current()),
            [](const traces::store::Trace& t, const traces::analysis::Selection& s) {
                return traces::analysis::advice(t, s);
            });
        if (report == nullptr) return widgets::draw_waiting(session, "the advice");
        widgets::draw_limit_note(session);
        for (const std::string& said : report->notes) draw::note(said);
        if (report->findings.empty()) {
            if (nothing_to_look_at(*session.trace())) return draw::note(model::why_empty("advice"));
            draw::note(
                fmt::format("None of {} rules found its evidence in this trace: nothing to change was found.",
                            report->rules));
            return;
        }
        draw::heading(fmt::format("{} of {} rules found evidence", report->findings.size(), report->rules));
        draw::note("Largest gain first; time gains come from simulating the run with the change.");
        ImGui::BeginChild("cards");
        for (const std::size_t i : by_weight(*report)) draw_card(session, report->findings[i]);
        ImGui::EndChild();
        follow(session);
    }

  private:
    void draw_card(model::Session& session, const Finding& finding) {
        const theme::Color color = weight_color(finding.weight);
        widgets::draw_card(fmt::format("advice.{}", finding.id),
                           fmt::format("{}: {}", finding.title, finding.what), color, [&](float right) {
                               draw_head(session, finding, color, right);
                               draw_body(finding, right);
                               try_.draw(session, finding.id, fmt::format("advice.{}.try", finding.id),
                                         right);
                           });
    }

    void draw_head(model::Session& session, const Finding& finding, theme::Color color, float right) {
        const float font = ImGui::GetFontSize(), start = ImGui::GetCursorScreenPos().x;
        const std::string weight(
            traces::analysis::kFindingWeightNames[static_cast<std::size_t>(finding.weight)]);
        ImGui::AlignTextToFramePadding();
        draw::text(finding.title);
        ImGui::SameLine(0, font * 0.8F);
        draw::text_in(color, weight);
        const std::string panel(panel_of(finding.id, !session.trace()->units.empty()));
        const std::string open = panel.empty() ? "" : fmt::format("Open {}", draw::spaced(panel));
        const float padding = ImGui::GetStyle().FramePadding.x * 2;
        float wide = open.empty() ? 0 : ImGui::CalcTextSize(open.c_str()).x + padding;
        const bool place = has_place(finding.id), can_try = !finding.job_setting.empty();
        if (can_try) wide += ImGui::CalcTextSize("Try it").x + padding + font * 0.4F;
        if (place) wide += ImGui::CalcTextSize("Show me").x + padding + font * 0.4F;
        const float left = right - wide - start;  // relative to the card's group
        // Below the title in a narrow pane.
        if (left > ImGui::GetItemRectMax().x - start + font) ImGui::SameLine(left);
        if (place) {
            if (draw::named_button("Show me", fmt::format("advice.{}.show", finding.id)))
                wanted_ = std::string(finding.id);
            ImGui::SameLine(0, font * 0.4F);
        }
        if (can_try) {
            if (draw::named_button("Try it", fmt::format("advice.{}.try", finding.id)))
                try_.open(session, finding.id, model::changes_to_try(finding.job_setting, *session.trace()));
            ImGui::SameLine(0, font * 0.4F);
        }
        if (!open.empty()) {
            if (draw::named_button(open.c_str(), fmt::format("advice.{}.open", finding.id)))
                session.wanted_panel = panel;
        }
    }

    static void draw_body(const Finding& finding, float right) {
        const float font = ImGui::GetFontSize(), indent = font * 6;
        const float wrap = right - ImGui::GetWindowPos().x;
        draw::begin_wrap(wrap);
        draw::text(finding.what);
        ImGui::Dummy({0, font * 0.15F});
        draw_figures(finding);
        ImGui::Dummy({0, font * 0.15F});
        labelled("Change", finding.change, indent);
        copyable("job", "Job file", finding.job_setting, indent);
        copyable("pytorch", "PyTorch", finding.pytorch, indent);
        labelled("Expected", finding.expected, indent);
        draw::end_wrap();
    }

    // "Show me" was clicked: the place is searched for off the frame thread.
    void follow(model::Session& session) {
        if (wanted_.empty()) return;
        const std::string rule = wanted_;
        const auto place = session.analyses.analysis<std::optional<AdvicePlace>>(
            "place of advice " + rule, session.trace(), model::Session::selection(*session.current()),
            [rule](const traces::store::Trace& t, const traces::analysis::Selection& s) {
                return traces::analysis::advice_place(t, s, rule);
            });
        if (place == nullptr) return;
        wanted_.clear();
        if (!place->has_value()) {
            session.wanted_panel = panel_of(rule);
            return;
        }
        go_to_place(session, **place);
    }

    std::string wanted_;  // a finding's id
    widgets::TryIt try_;
};

}  // namespace

std::unique_ptr<model::Panel> make_advice_panel() {
    return std::make_unique<AdvicePanel>();
}

}  // namespace shardscope::viewer::panels
