// See try_it.h.
#include "viewer/widgets/try_it.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include <fmt/core.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/theme/theme.h"

namespace shardscope::viewer::widgets {
namespace {

using model::TrialResult;

std::string duration(double us) {
    return draw::format_duration(us * 1e3);
}

// "+1.20 ms (+3.0 %)"; "none" if both are equal.
std::string difference(double before, double after, const std::string& size) {
    if (before == after) return "none";
    const char* sign = after > before ? "+" : "-";
    if (before == 0) return sign + size;
    return fmt::format("{}{} ({})", sign, size, draw::format_change(after, before));
}

void cell(const std::string& name, const std::string& text, ImU32 ink) {
    ImGui::TableNextColumn();
    ImGui::PushStyleColor(ImGuiCol_Text, ink);
    draw::text_right(text);
    ImGui::PopStyleColor();
    draw::items::mark(name, text);
}

void figure_row(const std::string& name, const char* label, double before, double after,
                const std::pair<std::string, std::string>& texts, const std::string& size) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    draw::text_dim(label);
    cell(name + ".before", texts.first, theme::text());
    cell(name + ".after", texts.second, theme::text());
    const ImU32 ink = before == after ? theme::text_dim() : after < before ? theme::good() : theme::bad();
    cell(name + ".difference", difference(before, after, size), ink);
}

void draw_figures(const std::string& name, const TrialResult& result) {
    const float font = ImGui::GetFontSize();
    constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_RowBg;
    if (!ImGui::BeginTable("figures", 4, kFlags)) return;
    ImGui::TableSetupColumn("", 0, font * 13);
    for (int c = 0; c < 3; ++c) ImGui::TableSetupColumn("", 0, font * (c == 2 ? 12 : 8));
    ImGui::TableNextColumn();
    for (const char* title : {"as recorded", "changed", "difference"}) {
        ImGui::TableNextColumn();
        draw::text_right_dim(title);
    }
    const auto& [before, after] = std::pair(result.before, result.after);
    if (result.times) {
        figure_row(name + ".step", "Step time", before.step_us, after.step_us,
                   {duration(before.step_us), duration(after.step_us)},
                   duration(std::abs(after.step_us - before.step_us)));
        figure_row(name + ".exposed", "Exposed communication", before.exposed_us, after.exposed_us,
                   {duration(before.exposed_us), duration(after.exposed_us)},
                   duration(std::abs(after.exposed_us - before.exposed_us)));
    }
    figure_row(name + ".peak", "Peak memory", static_cast<double>(before.peak_bytes),
               static_cast<double>(after.peak_bytes),
               {draw::format_size(before.peak_bytes), draw::format_size(after.peak_bytes)},
               draw::format_size(std::abs(after.peak_bytes - before.peak_bytes)));
    ImGui::EndTable();
}

// How far to trust it: the replay of the unchanged run beside the recorded one.
std::string trust(const TrialResult& result) {
    std::string said = "Both columns are replays of the recorded run.";
    if (!result.times) said += " The trace has no times, so only memory is compared.";
    if (result.off_percent) {
        said += fmt::format(
            " That as recorded is {:.1f} % {} than the recorded step of {}: judge the differences "
            "by that.",
            std::abs(*result.off_percent), *result.off_percent < 0 ? "shorter" : "longer",
            duration(result.recorded_step_us));
    }
    if (result.earlier) said += " The trace has grown since they were made.";
    return said;
}

}  // namespace

void TryIt::open(model::Session& session, std::string_view item, std::string changes) {
    item_ = item;
    text_ = std::move(changes);
    tried_ = text_;
    reveal_ = settling_ = true;
    const model::TracePtr trace = session.trace();
    if (text_.empty() || session.trials.busy() || session.trials.result(*trace, text_) != nullptr) return;
    session.trials.start(trace, session.current()->files(), text_);
}

void TryIt::draw(model::Session& session, std::string_view item, std::string_view name_of_item, float right) {
    if (!is_open(item)) return;
    const std::string name(name_of_item);
    const model::Trials& trials = session.trials;
    const traces::store::Trace& trace = *session.trace();
    ImGui::PushID("try it");
    draw::begin_wrap(right - ImGui::GetWindowPos().x + ImGui::GetScrollX());
    draw_line(session, name, right);
    const TrialResult* result = trials.result(trace, tried_);
    if (trials.runs(trace, tried_)) {
        draw::text_dim(trials.progress());
        draw::items::value(name + ".progress", trials.progress());
    } else if (result == nullptr) {
        draw::text_dim(trials.busy() ? "Another change is being tried."
                                     : "Section.key = value, several separated by commas; Enter tries them.");
    } else if (!result->error.empty()) {
        draw::text_in(theme::bad(), result->error);
        draw::items::mark(name + ".error", result->error);
    } else {
        draw_figures(name, *result);
        std::string said = trust(*result);
        for (const std::string& unknown : result->unknown) said += " " + unknown;
        draw::text_dim(said);
        draw::items::value(name + ".trust", said);
        draw_ways(session, name, *result);
    }
    draw::end_wrap();
    ImGui::PopID();
    if (!reveal_) return;
    const float bottom = ImGui::GetWindowPos().y + ImGui::GetWindowSize().y;
    if (ImGui::GetCursorScreenPos().y + ImGui::GetFontSize() > bottom) ImGui::SetScrollHereY(1);
    reveal_ = trials.runs(trace, tried_) || std::exchange(settling_, false);
}

void TryIt::draw_line(model::Session& session, const std::string& name, float right) {
    const float font = ImGui::GetFontSize();
    model::Trials& trials = session.trials;
    const float buttons = draw::button_width("Cancel") + draw::button_width("Close") + font;
    ImGui::SetNextItemWidth(std::clamp(right - ImGui::GetCursorScreenPos().x - buttons, font * 8, font * 44));
    const bool entered =
        ImGui::InputTextWithHint("##changes", "fsdp.wrap = root, fsdp.backward_prefetch = NONE", &text_,
                                 ImGuiInputTextFlags_EnterReturnsTrue);
    draw::items::mark(name + ".changes", text_);
    ImGui::SameLine(0, font * 0.4F);
    if (trials.runs(*session.trace(), tried_)) {
        if (draw::named_button("Cancel", name + ".cancel")) trials.cancel();
    } else if (draw::named_button("Try", name + ".run") || entered) {
        if (!trials.busy()) {
            tried_ = text_;
            trials.start(session.trace(), session.current()->files(), tried_);
        }
    }
    ImGui::SameLine(0, font * 0.4F);
    if (draw::named_button("Close", name + ".close")) close();
}

void TryIt::draw_ways(model::Session& session, const std::string& name, const TrialResult& result) const {
    const float gap = ImGui::GetFontSize() * 0.4F;
    const auto button = [&](const char* label, const char* what) {
        const bool clicked = draw::named_button(label, name + "." + what);
        ImGui::SameLine(0, gap);
        return clicked;
    };
    const std::string title = fmt::format("{} with {}", session.current()->name, tried_);
    const std::string panel = button("Compare with the run", "compare")    ? "compare"
                              : button("Open simulated trace", "timeline") ? "timeline"
                                                                           : "";
    if (!result.job.empty()) {
        if (button("Copy as job file", "copy_job")) ImGui::SetClipboardText(result.job.c_str());
        if (button("Save as job file...", "save_job"))
            session.wanted_save = model::TextToSave{"changed.toml", result.job};
    }
    if (!result.pytorch.empty() && button("Copy lines of PyTorch", "copy_pytorch"))
        ImGui::SetClipboardText(result.pytorch.c_str());
    ImGui::NewLine();
    if (result.job.empty()) draw::text_dim("No job file: the trace does not store the job of its run.");
    if (panel.empty()) return;
    session.wanted_trace = {result.trace, title, panel};
}

}  // namespace shardscope::viewer::widgets
