// Start: the answers to the five questions that a trace is opened for, each a card that leads to its
// evidence; for several open runs, first what tells them apart.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/analysis/answers/answers.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/model/why_empty.h"
#include "viewer/panels/advice/advice_rows.h"
#include "viewer/panels/start/start_rows.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/card.h"
#include "viewer/widgets/toolbar.h"
#include "viewer/widgets/try_it.h"

namespace shardscope::viewer::panels {
namespace {

using traces::analysis::AdvicePlace;
using traces::analysis::Answer;
using traces::analysis::RunAnswers;

constexpr float kHeadline = 9.8F;       // the width of the figures' column, in font sizes
constexpr float kRoomForHeadline = 45;  // the narrowest card that has one

// Opens the panel with the evidence, with the rank and the unit that the answer is about.
void open_evidence(model::Session& session, const Answer& answer) {
    const model::TracePtr trace = session.trace();
    if (answer.rank >= 0) session.choose_rank(answer.rank);
    if (!answer.unit.empty()) {
        session.selected_unit = {};
        for (std::size_t u = 0; u < trace->units.size(); ++u) {
            if (trace->units[u].name == answer.unit) session.selected_unit = traces::store::UnitIndex(u);
        }
    }
    session.wanted_panel = panel_of(answer);
}

class StartPanel final : public model::Panel {
  public:
    std::string_view name() const override { return "start"; }

    void draw(model::Session& session, const model::Frame&) override {
        ImGui::BeginChild("answers");
        draw_compared(session);
        widgets::draw_choosers(session, false);
        if (session.ready().size() > 1) ImGui::NewLine();
        const auto run = session.analyses.analysis<RunAnswers>(
            "answers", session.trace(), model::Session::selection(*session.current()),
            [](const traces::store::Trace& t, const traces::analysis::Selection& s) {
                return traces::analysis::answers(t, s);
            });
        if (run == nullptr) {
            widgets::draw_waiting(session, "the answers");
        } else {
            widgets::draw_limit_note(session);
            widgets::draw_shown_ranks(*session.trace());
            for (const Answer& answer : run->answers) draw_answer(session, answer);
            for (const std::string& said : run->notes) draw::note(said);
            if (std::none_of(run->answers.begin(), run->answers.end(),
                             [](const Answer& answer) { return answer.known && !answer.figures.empty(); }))
                draw::note(model::why_empty("start"));
        }
        ImGui::EndChild();
        follow(session);
    }

  private:
    // The open runs as wholes.
    void draw_compared(model::Session& session) {
        std::vector<model::TracePtr> runs;
        std::vector<std::string> names;
        std::vector<traces::analysis::Selection> selections;
        std::string key = "answers that compare";
        for (const model::OpenTrace& entry : session.open) {
            if (!entry.trace || model::holds_only_plan(*entry.trace)) continue;
            runs.push_back(entry.trace);
            names.push_back(entry.name);
            selections.push_back(model::Session::selection(entry));
            key += "\n" + entry.name;
            if (entry.limit) key += fmt::format(" {}:{}", entry.limit->from, entry.limit->to);
        }
        if (runs.size() < 2) return;
        const auto compared = session.analyses.get<std::vector<Answer>>(
            key, runs, [names, selections](const std::vector<model::TracePtr>& of) {
                std::vector<const traces::store::Trace*> all;
                all.reserve(of.size());
                for (const model::TracePtr& trace : of) all.push_back(trace.get());
                return traces::analysis::compared_answers(all, names, selections);
            });
        if (compared == nullptr) return widgets::draw_waiting(session, "the comparison");
        draw::heading(fmt::format("{} runs", runs.size()));
        for (const Answer& answer : *compared) draw_answer(session, answer);
    }

    void draw_answer(model::Session& session, const Answer& answer) {
        const std::string item = item_of(answer);
        widgets::draw_card(item, answer.says, answer.known ? theme::accent() : theme::line(),
                           [&](float right) { draw_contents(session, answer, item, right); });
    }

    void draw_contents(model::Session& session, const Answer& answer, const std::string& item, float right) {
        const float font = ImGui::GetFontSize();
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const bool place = has_place(answer);
        const std::string open = fmt::format("Open {}", panel_of(answer));
        const float buttons = draw::button_width("Open distributed");  // the widest
        const bool wide = right - at.x > kRoomForHeadline * font;
        const float text_from = wide ? at.x + kHeadline * font : at.x;
        const float text_to = std::max(text_from + font * 8, right - buttons - font);
        // The answer: a click leads to its evidence.
        ImGui::BeginGroup();
        if (wide) {
            ImGui::SetCursorScreenPos({at.x, at.y + font * 0.35F});
            const std::string figure = headline(answer);
            ImGui::PushStyleColor(ImGuiCol_Text, figure.empty() ? theme::text_dim() : theme::text());
            widgets::big_number(figure.empty() ? (answer.known ? "none" : "?") : figure);
            ImGui::PopStyleColor();
            draw::items::value(item + ".figure", figure);
        }
        ImGui::SetCursorScreenPos({text_from, at.y});
        ImGui::BeginGroup();
        draw::begin_wrap(text_to - ImGui::GetWindowPos().x + ImGui::GetScrollX());
        draw::text_dim(asks(answer));
        draw::text_in(answer.known ? theme::text() : theme::text_dim(), answer.says);
        if (!answer.setting.empty()) draw::text_in(theme::good(), answer.setting);
        draw::end_wrap();
        ImGui::EndGroup();
        ImGui::EndGroup();
        const ImVec2 end{text_to, std::max(ImGui::GetItemRectMax().y, at.y + font)};
        ImGui::SetCursorScreenPos(at);
        if (draw::place_button("answer", {end.x - at.x, end.y - at.y})) open_evidence(session, answer);
        draw::items::mark(item + ".answer", answer.says);
        if (ImGui::IsItemHovered()) ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
        ImGui::SetCursorScreenPos({right - buttons, at.y});
        ImGui::BeginGroup();
        if (draw::named_button(open.c_str(), item + ".open")) open_evidence(session, answer);
        if (place && draw::named_button("Show me", item + ".show")) wanted_ = Wanted{session.trace(), answer};
        if (!answer.setting.empty() && !answer.compares && draw::named_button("Try it", item + ".try"))
            try_.open(session, item, model::changes_to_try(answer.setting, *session.trace()));
        ImGui::EndGroup();
        if (!try_.is_open(item)) return;
        ImGui::SetCursorScreenPos({text_from, std::max(end.y, ImGui::GetItemRectMax().y) + font * 0.5F});
        ImGui::BeginGroup();
        try_.draw(session, item, item + ".try", right);
        ImGui::EndGroup();
    }

    // "Show me" was clicked: the place is searched for off the frame thread.
    void follow(model::Session& session) {
        if (wanted_ && wanted_->trace.lock() != session.trace()) wanted_.reset();
        if (!wanted_) return;
        const Answer answer = wanted_->answer;
        const auto place = session.analyses.analysis<std::optional<AdvicePlace>>(
            fmt::format("place of answer {} {} {}", item_of(answer), answer.unit, answer.rule),
            session.trace(), model::Session::selection(*session.current()),
            [answer](const traces::store::Trace& t, const traces::analysis::Selection& s) {
                return traces::analysis::answer_place(t, s, answer);
            });
        if (place == nullptr) return;
        wanted_.reset();
        if (!place->has_value()) return open_evidence(session, answer);
        go_to_place(session, **place);
    }

    struct Wanted {
        std::weak_ptr<const traces::store::Trace> trace;
        Answer answer;
    };
    std::optional<Wanted> wanted_;
    widgets::TryIt try_;
};

}  // namespace

std::unique_ptr<model::Panel> make_start_panel() {
    return std::make_unique<StartPanel>();
}

}  // namespace shardscope::viewer::panels
