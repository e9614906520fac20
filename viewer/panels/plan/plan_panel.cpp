// Plan: a planner's results for the configurations of a job (SHARD_PLAN): memory against time as a picture,
// every row in a table, the chosen one in words, and the way to its simulated trace.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/store/plan/plan_parts.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/session.h"
#include "viewer/model/why_empty.h"
#include "viewer/panels/plan/plan_chart.h"
#include "viewer/panels/plan/plan_details.h"
#include "viewer/panels/plan/plan_picture.h"
#include "viewer/panels/plan/plan_rows.h"
#include "viewer/tables/table.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/segmented.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

class PlanPanel final : public model::Panel {
  public:
    std::string_view name() const override { return "plan"; }
    bool needs_trace() const override { return false; }  // it finds the plan among the open files
    bool needs_timeline() const override { return false; }

    void closed(const traces::store::Trace& trace, const model::TracePtr& successor) override {
        if (list_ == nullptr || list_->trace.get() != &trace) return;
        again_of_ = successor != nullptr && chosen_ ? trace.path : "";
        again_number_ = chosen_ ? list_->items[*chosen_].row->number : 0;
        chosen_.reset();
        table_ = {};
        state_.forget_model();
        picture_ = {};
        picture_key_ = {-1, -1};
        list_.reset();
    }

    void draw(model::Session& session, const model::Frame&) override {
        const model::OpenTrace* entry = choose_plan(session);
        if (entry == nullptr) return say_how(session);
        const auto list = session.analyses.get<PlanList>(
            "plan", {entry->trace},
            [](const std::vector<model::TracePtr>& t) { return plan_list(t.front()); });
        if (list == nullptr) return widgets::draw_waiting(session, "the plan");
        take(list);
        plan_file_ = entry->name;
        draw_head();
        if (list_->items.empty()) return draw::note("The planner tried no configuration.");
        refresh();
        draw_body(session);
    }

    void act(std::string_view action, model::Session& session) override {
        if (list_ == nullptr || list_->items.empty()) return;
        if (action == "plan_slower" || action == "plan_faster")
            return along_the_front(action == "plan_faster");
        if (action == "let_go") return choose(std::nullopt);
        if (!chosen_) return;
        const PlanItem& item = list_->items[*chosen_];
        if (action == "plan_open") open_plan_row(session, *list_->trace, item, plan_file_);
        if (action == "plan_copy_job" && !item.row->job.empty())
            ImGui::SetClipboardText(item.row->job.c_str());
        if (action == "plan_save_job" && !item.row->job.empty()) save_plan_job(session, item);
    }

  private:
    // --- which plan ---------------------------------------------------------------------------------------

    // The active file if it holds a plan; else the plan shown last, or the first that is open.
    model::OpenTrace* choose_plan(model::Session& session) {
        std::vector<model::OpenTrace*> plans;
        for (model::OpenTrace& entry : session.open)
            if (entry.trace != nullptr && model::holds_plan(*entry.trace)) plans.push_back(&entry);
        if (plans.empty()) return nullptr;
        const model::TracePtr last = last_.lock();
        model::OpenTrace* shown = plans.front();
        for (model::OpenTrace* plan : plans)
            if (plan->trace == last) shown = plan;
        for (model::OpenTrace* plan : plans)
            if (plan == session.current()) shown = plan;
        if (plans.size() > 1) {
            const float width = ImGui::GetFontSize() * 20;
            ImGui::SetNextItemWidth(width);
            if (ImGui::BeginCombo("##plan", draw::fit_in_combo(shown->name, width).c_str())) {
                for (model::OpenTrace* plan : plans) {
                    ImGui::PushID(plan);
                    if (ImGui::Selectable(plan->name.c_str(), plan == shown)) {
                        session.set_active(static_cast<std::size_t>(plan - session.open.data()));
                        shown = plan;
                    }
                    ImGui::PopID();
                }
                ImGui::EndCombo();
            }
            draw::items::mark("plan.file", shown->name);
        }
        last_ = shown->trace;
        return shown;
    }

    static void say_how(const model::Session& session) {
        const model::OpenTrace* entry = session.current();
        if (entry != nullptr && entry->loading())
            return draw::note(fmt::format("Reading {} ...", entry->name));
        draw::note(model::why_empty("plan"));
    }

    void take(const std::shared_ptr<const PlanList>& list) {
        if (list_ == list) return;
        // A reloaded file keeps the row; a new one starts with the best.
        const bool again = again_of_ == list->trace->path;
        const int number = again ? again_number_ : 0;
        again_of_.clear();
        list_ = list;
        table_ = {};
        time_ = static_cast<int>(list->same_batch ? PlanTime::step : PlanTime::sample);
        const std::size_t same = again ? item_of(*list, number) : 0;
        chosen_.reset();
        if (!list->items.empty()) chosen_ = same < list->items.size() ? same : 0;
        scroll_ = true;
    }

    // --- the rows of the picture and the table ------------------------------------------------------------

    void refresh() {
        const auto key = std::make_tuple(show_, repeated_, theme::appearance());
        if (table_.model == nullptr || key != table_key_) {
            table_ = plan_table(*list_, static_cast<PlanShow>(show_), repeated_);
            table_key_ = key;
            state_.seen = table_.model.get();  // the chosen row is set below
            scroll_ = true;
            picture_key_ = {-1, -1};
        }
        if (picture_key_ != std::make_pair(time_, memory_)) {
            picture_ = plan_picture(*list_, table_.items, static_cast<PlanTime>(time_),
                                    static_cast<PlanMemory>(memory_));
            picture_key_ = {time_, memory_};
        }
    }

    void choose(std::optional<std::size_t> item) {
        if (chosen_ != item) scroll_ = true;
        chosen_ = item;
    }

    // Moves to the next point of the front; to the fastest if none is chosen.
    void along_the_front(bool faster) {
        const auto on_front = [](const PlanItem& item) { return item.fate == PlanFate::front; };
        const auto front =
            static_cast<std::size_t>(std::count_if(list_->items.begin(), list_->items.end(), on_front));
        if (front == 0) return;
        if (!chosen_ || *chosen_ >= front) return choose(0);  // the list starts with the front, fastest first
        if (faster && *chosen_ > 0) choose(*chosen_ - 1);
        if (!faster && *chosen_ + 1 < front) choose(*chosen_ + 1);
    }

    // --- drawing ------------------------------------------------------------------------------------------

    void draw_head() {
        const std::string counts = plan_counts(*list_);
        draw::wrapped(counts);
        draw::items::value("plan.counts", counts);
        if (const std::string none = nothing_fits(*list_); !none.empty()) {
            draw::wrapped_in(theme::bad(), none);
            draw::items::value("plan.nothing_fits", none);
        }
        if (list_->trace->config_value("plan.complete") == "false")
            draw::note("The search was stopped before its end: this is the Pareto front of what was tried.");
    }

    void draw_controls() {
        static constexpr std::array<std::string_view, 3> kShow = {"All", "What fits", "Pareto front"};
        static constexpr std::array<std::string_view, 2> kTime = {"Per step", "Per sample"};
        static constexpr std::array<std::string_view, 2> kPeakOrReserved = {"Peak", "Reserved"};
        const float gap = ImGui::GetFontSize();
        widgets::segmented("plan.show", kShow, show_);
        ImGui::SameLine(0, gap);
        widgets::segmented("plan.time", kTime, time_);
        ImGui::SameLine(0, gap);
        widgets::segmented("plan.memory", kPeakOrReserved, memory_);
        ImGui::SameLine(0, gap);
        widgets::toggle_button("plan.repeated", "Repeated figures", repeated_);
        if (ImGui::IsItemHovered()) ImGui::SetTooltip("Also rows whose figures are those of an earlier row");
        refresh();
        draw_legend();
    }

    void draw_legend() const {
        std::vector<draw::LegendItem> keys;
        for (std::size_t f = 0; f < kPlanFates; ++f) {
            if (list_->counts[f] == 0) continue;
            const auto fate = static_cast<PlanFate>(f);
            keys.push_back({fmt::format("{} ({})", fate_words(fate),
                                        draw::format_count(static_cast<std::int64_t>(list_->counts[f]))),
                            fate_color(fate)});
        }
        legend(keys);
    }

    void draw_body(model::Session& session) {
        const float font = ImGui::GetFontSize(), gap = font * 1.2F;
        const ImVec2 room = ImGui::GetContentRegionAvail();
        const bool wide = room.x > font * 78;
        if (wide) {
            const float high = std::clamp(room.y * 0.55F, font * 18, font * 34);
            ImGui::BeginChild("picture",
                              {room.x - gap - std::clamp(room.x * 0.42F, font * 32, font * 50), high});
            draw_controls();
            draw_picture(session, ImGui::GetContentRegionAvail().y);
            ImGui::EndChild();
            ImGui::SameLine(0, gap);
            ImGui::BeginChild("details", {0, high});
            draw_details(session);
            ImGui::EndChild();
            return draw_rows(session);
        }
        draw_controls();
        draw_picture(session, ImGui::GetContentRegionAvail().y * 0.46F);
        static constexpr std::array<std::string_view, 2> kViews = {"Table", "Chosen row"};
        widgets::segmented("plan.view", kViews, view_);
        if (view_ == 0) return draw_rows(session);
        ImGui::BeginChild("details");
        draw_details(session);
        ImGui::EndChild();
    }

    void draw_picture(model::Session& session, float height) {
        const PlanChartLook look = {.time = static_cast<PlanTime>(time_),
                                    .memory = static_cast<PlanMemory>(memory_),
                                    .chosen = chosen_,
                                    .in_table = in_table()};
        const ImVec2 size{ImGui::GetContentRegionAvail().x, std::max(ImGui::GetFontSize() * 9, height)};
        const PlanChartEvents events = draw_plan_chart(*list_, picture_, look, size);
        if (picture_.points.empty() && picture_.untimed.empty())
            draw::note("The memory peak is unknown for all of these rows.");
        if (events.hovered) draw_tip(list_->items[*events.hovered]);
        if (events.clicked) choose(events.clicked);
        if (events.opened) open_plan_row(session, *list_->trace, list_->items[*events.opened], plan_file_);
    }

    // The rows that pass the table's filter.
    std::vector<bool> in_table() const {
        std::vector<bool> shown;
        const auto order = state_.order.shared();
        if (state_.filter.empty() || order == nullptr) return shown;
        shown.resize(list_->items.size());
        for (const std::uint32_t row : *order)
            if (row < table_.items.size()) shown[table_.items[row]] = true;
        return shown;
    }

    void draw_rows(model::Session& session) {
        if (!table_.alike.empty()) {
            draw::text_fit_dim("All rows: " + table_.alike);
        }
        state_.chosen.reset();
        for (std::size_t r = 0; r < table_.items.size() && chosen_; ++r)
            if (table_.items[r] == *chosen_) state_.chosen = r;
        if (scroll_) state_.scroll_to_chosen = true;
        scroll_ = false;
        const tables::TableEvents events = draw_table("plan.rows", table_.model, state_, {.name = "plan"});
        if (events.clicked && *events.clicked < table_.items.size()) chosen_ = table_.items[*events.clicked];
        if (events.opened && *events.opened < table_.items.size())
            open_plan_row(session, *list_->trace, list_->items[table_.items[*events.opened]], plan_file_);
    }

    void draw_tip(const PlanItem& item) const {
        draw::begin_tip(fmt::format("Row {}, {}", item.row->number, fate_words(item.fate)));
        for (const PlanFact& fact : plan_choices(*list_, item)) draw::tip_row(fact.label, fact.value);
        for (const PlanFact& fact : plan_figures(*list_, *item.row)) draw::tip_row(fact.label, fact.value);
        for (std::size_t c = 0; c < item.row->at_peak.size(); ++c) {
            if (item.row->at_peak[c] <= 0) continue;
            draw::tip_row(draw::spaced(traces::schema::kMemoryCategoryNames[c]),
                          draw::format_mb(item.row->at_peak[c]),
                          theme::category_color(static_cast<traces::schema::MemoryCategory>(c)));
        }
        ImGui::EndTable();
        const std::string& why = item.row->why.empty() ? item.row->reason : item.row->why;
        if (!why.empty()) {
            ImGui::Separator();
            draw::begin_wrap(ImGui::GetFontSize() * 34);
            draw::text(std::string_view(why).substr(0, 600));
            draw::end_wrap();
        }
        ImGui::EndTooltip();
    }

    void draw_details(model::Session& session) {
        if (!chosen_) return draw::note("Choose a row: a point of the picture or a line of the table.");
        const auto parts = session.analyses.get<std::vector<traces::store::PlanPart>>(
            "plan parts", {list_->trace}, [](const std::vector<model::TracePtr>& t) {
                return traces::store::load_plan_parts(t.front()->path);
            });
        draw_plan_details(session, *list_, list_->items[*chosen_], plan_file_, parts.get());
    }

    std::weak_ptr<const traces::store::Trace> last_;
    std::shared_ptr<const PlanList> list_;
    std::string plan_file_;
    std::string again_of_;  // the path of a reloaded plan; its chosen row is restored
    int again_number_ = 0;
    std::optional<std::size_t> chosen_;  // index into PlanList::items
    bool scroll_ = false;                // scroll the table to the chosen row

    int show_ = 0, time_ = 0, memory_ = 0, view_ = 0;
    bool repeated_ = false;
    PlanTable table_;
    std::tuple<int, bool, theme::Appearance> table_key_;
    tables::TableState state_;
    PlanPicture picture_;
    std::pair<int, int> picture_key_{-1, -1};
};

}  // namespace

std::unique_ptr<model::Panel> make_plan_panel() {
    return std::make_unique<PlanPanel>();
}

}  // namespace shardscope::viewer::panels
