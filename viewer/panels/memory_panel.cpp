// Memory: the curve of allocated device bytes of one rank by category, and what lived at the peak.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <imgui.h>

#include "viewer/app/session.h"
#include "viewer/app/theme.h"
#include "viewer/draw/chart.h"
#include "viewer/draw/format.h"
#include "viewer/draw/text.h"
#include "viewer/panels/memory_chart.h"
#include "viewer/panels/panel.h"
#include "viewer/panels/toolbar.h"

namespace shardscope::viewer {
namespace {

using traces::MemoryCategory;
using traces::MemoryHolder;
using traces::RankMemory;

constexpr ImGuiTableFlags kTableFlags = ImGuiTableFlags_RowBg | ImGuiTableFlags_PadOuterX |
                                        ImGuiTableFlags_ScrollY | ImGuiTableFlags_NoSavedSettings;

double percent_of(std::int64_t bytes, std::int64_t whole) {
    return whole > 0 ? 100.0 * static_cast<double>(bytes) / static_cast<double>(whole) : 0.0;
}

// "of step 2, 12.3 ms after its start", or the time alone outside every step.
std::string moment(const traces::Trace& trace, int rank_index, std::int64_t time) {
    for (const traces::Step& step : trace.steps) {
        if (step.rank != rank_index || time < step.start || time >= step.end) continue;
        return fmt::format("in step {}, {} after its start", step.number,
                           format_duration(static_cast<double>(time - step.start)));
    }
    return fmt::format("at {}", format_duration(static_cast<double>(time)));
}

bool has_prediction(const RankMemory& memory) {
    return memory.predicted_peak_bytes >= 0 && memory.prediction_applies;
}

void prediction_columns(bool shown) {
    if (!shown) return;
    const float font = ImGui::GetFontSize();
    ImGui::TableSetupColumn("Predicted\nMB", ImGuiTableColumnFlags_WidthFixed, font * 4.5F);
    ImGui::TableSetupColumn("Difference\nbytes", ImGuiTableColumnFlags_WidthFixed, font * 5);
}

// The two cells of those columns: the memory account's bytes, and how many more were measured.
void prediction_cells(std::int64_t bytes, std::int64_t predicted) {
    ImGui::TableNextColumn();
    text_right(format_mb(predicted, false));
    ImGui::TableNextColumn();
    const std::int64_t more = bytes - predicted;
    if (more == 0) return text_right_dim("=");
    text_right((more > 0 ? "+" : "") + format_count(more));
}

void category_row(std::string_view name, ImU32 color, std::int64_t bytes, std::int64_t peak,
                  std::optional<std::int64_t> predicted) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    if (color != 0) swatch(color);
    text(name);
    ImGui::TableNextColumn();
    text_right(format_count(bytes));
    ImGui::TableNextColumn();
    text_right(format_mb(bytes, false));
    ImGui::TableNextColumn();
    const double percent = percent_of(bytes, peak);
    cell_bar(color != 0 ? percent / 100 : 0, color, format_decimal(percent, 2));
    if (predicted) prediction_cells(bytes, *predicted);
}

void draw_categories(const RankMemory& memory, ImVec2 size) {
    const float font = ImGui::GetFontSize();
    const bool predicted = has_prediction(memory);
    const auto if_predicted = [&](std::int64_t bytes) {
        return predicted ? std::optional(bytes) : std::nullopt;
    };
    if (!ImGui::BeginTable("categories", predicted ? 6 : 4, kTableFlags, size)) return;
    ImGui::TableSetupScrollFreeze(0, 1);
    ImGui::TableSetupColumn("At the peak, by category", ImGuiTableColumnFlags_WidthStretch);
    ImGui::TableSetupColumn("Allocated\nbytes", ImGuiTableColumnFlags_WidthFixed, font * 7);
    ImGui::TableSetupColumn("\nMB", ImGuiTableColumnFlags_WidthFixed, font * 4.5F);
    ImGui::TableSetupColumn("Share\n%", ImGuiTableColumnFlags_WidthFixed, font * 4.5F);
    prediction_columns(predicted);
    headers_row(1);
    category_row("Peak", 0, memory.peak_bytes, memory.peak_bytes, if_predicted(memory.predicted_peak_bytes));
    for (std::size_t c = 0; c < memory.at_peak.size(); ++c) {
        category_row(spaced(traces::kMemoryCategoryNames[c]), category_color(static_cast<MemoryCategory>(c)),
                     memory.at_peak[c], memory.peak_bytes, if_predicted(memory.predicted_at_peak[c]));
    }
    ImGui::EndTable();
}

void draw_holders(const char* id, const char* title, const std::vector<MemoryHolder>& holders,
                  std::int64_t peak, ImVec2 size) {
    const float font = ImGui::GetFontSize();
    const float width = size.x > 0 ? size.x : ImGui::GetContentRegionAvail().x;
    const bool predicted = !holders.empty() && holders.front().predicted && width > font * 24;  // names first
    if (!ImGui::BeginTable(id, predicted ? 5 : 3, kTableFlags, size)) return;
    ImGui::TableSetupScrollFreeze(0, 1);
    ImGui::TableSetupColumn(title, ImGuiTableColumnFlags_WidthStretch);
    ImGui::TableSetupColumn("Allocated\nMB", ImGuiTableColumnFlags_WidthFixed, font * 4.5F);
    ImGui::TableSetupColumn("Share\n%", ImGuiTableColumnFlags_WidthFixed, font * 4.5F);
    prediction_columns(predicted);
    headers_row(1);
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(holders.size()));
    while (clipper.Step()) {
        for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
            const MemoryHolder& holder = holders[static_cast<std::size_t>(i)];
            const double percent = percent_of(holder.bytes, peak);
            ImGui::TableNextRow();
            ImGui::TableNextColumn();
            text_fit(holder.name);
            ImGui::TableNextColumn();
            text_right(format_mb(holder.bytes, false));
            ImGui::TableNextColumn();
            cell_bar(percent / 100, theme::accent(), format_decimal(percent, 2));
            if (predicted) prediction_cells(holder.bytes, holder.predicted.value_or(0));
        }
    }
    ImGui::EndTable();
}

class MemoryPanel final : public Panel {
  public:
    std::string_view name() const override { return "memory"; }
    std::string_view title() const override { return "Memory"; }

    void draw(Session& session, const Frame&) override {
        draw_choosers(session);
        ImGui::NewLine();
        const TracePtr trace = session.trace();
        const auto report = session.analyses.memory(trace, Session::selection(*session.current()));
        const auto curve = session.analyses.curve(trace, session.rank);
        if (report == nullptr || curve == nullptr) return draw_waiting(session, "the memory curve");
        const RankMemory* memory = chosen_rank(report->ranks, session);
        if (memory == nullptr || curve->empty()) {
            return note("This trace holds no allocations of this rank.");
        }
        draw_headline(*trace, session.rank, *memory);
        draw_limit_note(session);
        draw_legend(*memory, *curve);

        const float tables = std::min(ImGui::GetFontSize() * 19, ImGui::GetContentRegionAvail().y * 0.55F);
        const float height = std::max(ImGui::GetFontSize() * 6, ImGui::GetContentRegionAvail().y - tables);
        draw_charts(*trace, session, *memory, *curve, height);
        draw_tables(*memory);
        curve_ = curve;  // kept until the charts have folded another one
    }

  private:
    // The whole time at the left; at the right the step of the peak, allocation by allocation.
    void draw_charts(const traces::Trace& trace, const Session& session, const RankMemory& memory,
                     const std::vector<traces::MemoryPoint>& curve, float height) {
        const float font = ImGui::GetFontSize();
        MemoryChart::Input all{&trace, session.rank, curve, &memory, trace.first_ns, trace.last_ns};
        if (const auto limit = session.current()->limit) {
            all.from = limit->from;
            all.to = limit->to;
        }
        const float gap = font * 1.2F;
        const float left = (ImGui::GetContentRegionAvail().x - gap) * 0.58F;
        const float inner = height - ImGui::GetTextLineHeightWithSpacing();
        ImGui::BeginChild("time", {left, height});
        dim_line("Over time");
        over_time_.draw_over_time(all, {ImGui::GetContentRegionAvail().x, inner});
        ImGui::EndChild();
        ImGui::SameLine(0, gap);
        ImGui::BeginChild("order", {0, height});
        const CurvePart part = part_of_peak(trace, session.rank, curve, memory.peak_time_ns);
        MemoryChart::Input detail = all;
        detail.curve = std::span(curve).subspan(part.first, part.count);
        dim_line(fmt::format("{}: {} allocations and frees, in their order",
                             part.step >= 0 ? fmt::format("Step {}", part.step) : "Around the peak",
                             format_count(static_cast<std::int64_t>(part.count))));
        in_order_.draw_in_order(detail, {ImGui::GetContentRegionAvail().x, inner});
        ImGui::EndChild();
    }

    static void dim_line(std::string_view line) {
        ImGui::PushStyleColor(ImGuiCol_Text, theme::text_dim());
        text(line);
        ImGui::PopStyleColor();
    }

    static void draw_headline(const traces::Trace& trace, int rank_index, const RankMemory& memory) {
        const float font = ImGui::GetFontSize();
        const ImVec2 at = ImGui::GetCursorPos();
        big_number(format_mb(memory.peak_bytes));
        const float right = ImGui::GetItemRectSize().x + font;
        ImGui::SetCursorPos({at.x + right, at.y + font * 0.05F});
        text(fmt::format("peak allocated of rank {}: {} bytes, {}", memory.rank,
                         format_count(memory.peak_bytes), moment(trace, rank_index, memory.peak_time_ns)));
        ImGui::SetCursorPos({at.x + right, at.y + font * 1.1F});
        ImGui::PushStyleColor(ImGuiCol_Text, theme::text_dim());
        text(prediction(memory) + reserved(memory));
        ImGui::PopStyleColor();
        ImGui::SetCursorPos({at.x, at.y + font * 2.4F});
    }

    static std::string prediction(const RankMemory& memory) {
        if (memory.predicted_peak_bytes < 0) return "No prediction is stored.";
        const std::int64_t off = memory.peak_bytes - memory.predicted_peak_bytes;
        const std::string compared = !memory.prediction_applies ? "of the whole run"
                                     : off == 0                 ? "exact"
                                                : fmt::format("off by {} bytes", format_count(off));
        return fmt::format("Predicted {}, {}{}.", format_mb(memory.predicted_peak_bytes), compared,
                           memory.predicted_where.empty() ? "" : " (" + memory.predicted_where + ")");
    }

    static std::string reserved(const RankMemory& memory) {
        return memory.reserved_bytes > 0
                   ? fmt::format("  Reserved at most {}.", format_mb(memory.reserved_bytes))
                   : "";
    }

    // The categories that ever hold anything, in the order of the stack.
    void draw_legend(const RankMemory& memory, const std::vector<traces::MemoryPoint>& curve) {
        if (legend_of_ != curve.data()) {
            legend_of_ = curve.data();
            used_ = memory.at_peak;
            for (const traces::MemoryPoint& point : curve) {
                for (std::size_t c = 0; c < used_.size(); ++c) used_[c] = std::max(used_[c], point.bytes[c]);
            }
        }
        std::vector<LegendItem> items;
        for (std::size_t c = 0; c < used_.size(); ++c) {
            if (used_[c] > 0)
                items.push_back({spaced(traces::kMemoryCategoryNames[c]),
                                 category_color(static_cast<MemoryCategory>(c))});
        }
        legend(items);
    }

    // As many tables as there is room for: categories, then units, then modules.
    static void draw_tables(const RankMemory& memory) {
        const float font = ImGui::GetFontSize();
        const ImVec2 left = ImGui::GetContentRegionAvail();
        const float gap = font * 1.2F;
        const bool parts = !memory.units.empty() && memory.units.front().predicted;
        const float least_categories = font * (has_prediction(memory) ? 42.0F : 33.0F);
        const float least_holders = font * (parts ? 26.0F : 18.0F);
        const bool wide = left.x > least_categories + 2 * (gap + least_holders);
        const float categories = std::max(least_categories, left.x * (wide ? 0.36F : 0.6F));
        const float rest = left.x - categories - gap;
        const bool alone = rest < font * 12;
        draw_categories(memory, {alone ? left.x : categories, left.y});
        if (alone) return;
        ImGui::SameLine(0, gap);
        const bool by_buffer = memory.units.size() < 2;            // one unit says little: then by buffer
        const float holders = wide ? (rest - gap) * 0.45F : rest;  // names of modules are longer
        draw_holders("units", by_buffer ? "By buffer" : "By FSDP unit",
                     by_buffer ? memory.buffers : memory.units, memory.peak_bytes, {holders, left.y});
        if (!wide) return;
        ImGui::SameLine(0, gap);
        draw_holders("modules", "By module", memory.modules, memory.peak_bytes, {0, left.y});
    }

    MemoryChart over_time_, in_order_;
    std::shared_ptr<const std::vector<traces::MemoryPoint>> curve_;
    const void* legend_of_ = nullptr;
    traces::CategoryBytes used_{};
};

}  // namespace

std::unique_ptr<Panel> make_memory_panel() {
    return std::make_unique<MemoryPanel>();
}

}  // namespace shardscope::viewer
