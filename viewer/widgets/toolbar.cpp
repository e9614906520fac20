// See toolbar.h.
#include "viewer/widgets/toolbar.h"

#include <algorithm>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/analysis/base/shown_ranks.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/segmented.h"

namespace shardscope::viewer::widgets {
namespace {

constexpr std::size_t kRankButtons = 8;  // more ranks than this are chosen from a list

void choose_trace(model::Session& session, float width) {
    const model::OpenTrace* current = session.current();
    const std::string name = current != nullptr ? current->name : std::string();
    ImGui::SetNextItemWidth(width);
    const std::string shown = draw::fit_in_combo(name, width);
    const bool open = ImGui::BeginCombo("##trace", shown.c_str());
    if (!open && shown != name && ImGui::IsItemHovered()) draw::full_text_tip(name);
    draw::items::mark("app.trace", shown);
    if (!open) return;
    for (std::size_t i = 0; i < session.open.size(); ++i) {
        if (session.open[i].trace == nullptr) continue;
        ImGui::PushID(static_cast<int>(i));
        if (ImGui::Selectable(session.open[i].name.c_str(), i == session.active)) session.set_active(i);
        ImGui::PopID();
    }
    ImGui::EndCombo();
}

void choose_rank_by_button(model::Session& session, const traces::store::Trace& trace) {
    for (std::size_t i = 0; i < trace.ranks.size(); ++i) {
        const traces::store::RankIndex rank(i);
        const bool chosen = session.rank == rank;
        if (i > 0) ImGui::SameLine(0, 2);
        if (on_button(fmt::format("{}##rank", trace.ranks[i].number), chosen)) session.rank = rank;
    }
}

// "Rank" and a button for each.
float width_of_buttons(const traces::store::Trace& trace) {
    float width = ImGui::CalcTextSize("Rank").x + ImGui::GetStyle().ItemSpacing.x;
    for (const traces::store::Rank& rank : trace.ranks)
        width += draw::button_width(fmt::format("{}", rank.number)) + 2;
    return width;
}

void choose_rank_by_list(model::Session& session, const traces::store::Trace& trace) {
    const std::size_t index = std::min(session.rank.at(), trace.ranks.size() - 1);
    ImGui::SetNextItemWidth(ImGui::GetFontSize() * 6);
    if (!ImGui::BeginCombo("##rank", fmt::format("{}", trace.ranks[index].number).c_str())) return;
    for (std::size_t i = 0; i < trace.ranks.size(); ++i) {
        if (ImGui::Selectable(fmt::format("{}", trace.ranks[i].number).c_str(), i == index))
            session.rank = traces::store::RankIndex(i);
    }
    ImGui::EndCombo();
}

}  // namespace

void draw_choosers(model::Session& session, bool with_rank) {
    const float font = ImGui::GetFontSize(), gap = font * 1.2F, room = ImGui::GetContentRegionAvail().x;
    const model::TracePtr trace = session.trace();
    const bool ranks = with_rank && trace != nullptr && trace->ranks.size() > 1;
    const bool traces = session.ready().size() > 1;
    // In a narrow pane the list of traces is narrower, then ranks are in a list.
    const float narrow = traces ? font * 9 + gap : 0;
    const bool buttons =
        ranks && trace->ranks.size() <= kRankButtons && narrow + width_of_buttons(*trace) <= room;
    if (traces) {
        const float rest = !ranks ? 0 : buttons ? width_of_buttons(*trace) + gap : font * 9 + gap;
        choose_trace(session, std::clamp(room - rest, std::min(room, font * 9), font * 16));
        ImGui::SameLine(0, gap);
    }
    if (ranks) {
        ImGui::AlignTextToFramePadding();
        ImGui::TextDisabled("Rank");
        ImGui::SameLine();
        if (buttons) {
            choose_rank_by_button(session, *trace);
        } else {
            choose_rank_by_list(session, *trace);
        }
        ImGui::SameLine(0, gap);
    }
}

void draw_waiting(const model::Session& session, std::string_view what) {
    const std::string failure = session.analyses.failure();
    draw::note(failure.empty() ? fmt::format("Computing {} ...", what) : failure);
}

void draw_limit_note(const model::Session& session) {
    const model::OpenTrace* entry = session.current();
    if (entry == nullptr || !entry->limit) return;
    draw::note(fmt::format("Only {} to {} of the trace: a time filter is set.",
                           draw::format_duration(static_cast<double>(entry->limit->from)),
                           draw::format_duration(static_cast<double>(entry->limit->to))));
}

void draw_shown_ranks(const traces::store::Trace& trace) {
    std::string said = traces::analysis::shown_ranks_sentence(trace);
    if (said.empty()) return;
    for (const std::string& like : traces::analysis::ranks_like_it(trace))
        said += (said.ends_with('.') ? " " : ". ") + like;
    draw::note(said);
    draw::items::mark("app.shown_ranks", said);
}

void big_number(std::string_view t) {
    // A second font of the atlas is the large one; if there is none the text is scaled.
    const ImFontAtlas& fonts = *ImGui::GetIO().Fonts;
    if (fonts.Fonts.Size > 1) {
        ImGui::PushFont(fonts.Fonts[1]);
        draw::text(t);
        ImGui::PopFont();
        return;
    }
    ImGui::SetWindowFontScale(1.9F);
    draw::text(t);
    ImGui::SetWindowFontScale(1);
}

}  // namespace shardscope::viewer::widgets
