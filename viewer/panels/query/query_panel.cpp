// Query: SQL on the open trace, with its schema beside it, predefined queries, and the way from a row to its
// place in the timeline.
#include <algorithm>
#include <array>

#include <fmt/core.h>
#include <imgui.h>

#include "traces/query/shipped_queries.h"
#include "traces/store/grouped.h"
#include "viewer/draw/format.h"
#include "viewer/draw/items.h"
#include "viewer/draw/text.h"
#include "viewer/model/panel.h"
#include "viewer/model/result_rows.h"
#include "viewer/model/session.h"
#include "viewer/panels/query/query_lists.h"
#include "viewer/panels/query/query_plot.h"
#include "viewer/panels/query/query_runner.h"
#include "viewer/panels/query/query_table.h"
#include "viewer/panels/query/schema_browser.h"
#include "viewer/panels/query/sql_editor.h"
#include "viewer/panels/query/sql_text.h"
#include "viewer/tables/table.h"
#include "viewer/theme/theme.h"
#include "viewer/widgets/segmented.h"
#include "viewer/widgets/toolbar.h"

namespace shardscope::viewer::panels {
namespace {

struct TimeLimit {
    const char* label;
    std::optional<std::chrono::nanoseconds> time;
};
const std::array<TimeLimit, 4> kTimes = {{{"5 s", std::chrono::seconds(5)},
                                          {"30 s", std::chrono::seconds(30)},
                                          {"5 min", std::chrono::minutes(5)},
                                          {"no limit", {}}}};
constexpr std::array<std::size_t, 3> kRows = {1'000, 100'000, 1'000'000};

class QueryPanel final : public model::Panel {
  public:
    QueryPanel() { table_.all_columns = kAllColumns; }
    std::string_view name() const override { return "query"; }
    bool needs_timeline() const override { return false; }
    bool busy() const override { return runner_.running(); }
    std::string saved() const override { return lists_.saved(); }
    void restore(std::string_view saved) override { lists_.restore(saved); }
    std::string content(const model::Session&) const override {
        return editor_.sql() == first_sql() ? "" : editor_.sql();
    }
    void show_content(std::string_view content, model::Session&) override {
        editor_.set(content.empty() ? first_sql() : std::string(content), true);
    }

    void draw(model::Session& session, const model::Frame&) override {
        runner_.poll();
        const TraceFiles files = session.current()->files();
        notice_trace(session, files);
        widgets::draw_choosers(session, false);
        draw_toolbar(session, files);
        const float font = ImGui::GetFontSize(), width = ImGui::GetContentRegionAvail().x;
        const float browser = std::clamp(width * 0.26F, font * 15, font * 26);
        const bool beside = width > font * 36;
        ImGui::BeginChild("schema", beside ? ImVec2{browser, 0} : ImVec2{0, font * 12});
        draw_schema(session, files);
        ImGui::EndChild();
        if (beside) ImGui::SameLine(0, font);
        ImGui::BeginChild("sql");
        draw_editor(session, files);
        offer_views(session, files);
        draw_answer(session, files);
        ImGui::EndChild();
        if (runner_.running()) session.note_work();
    }

  private:
    static std::string first_sql() {
        for (const traces::query::ShippedQuery& query : traces::query::shipped_queries())
            if (query.name == "kernels_by_time") return std::string(query.sql);
        return {};
    }

    static constexpr bool kAllColumns = true;  // a column that the query names is always shown

    // Another trace makes the results obsolete; those of one that has grown stay until the same SQL has new
    // ones. A database is queried immediately, so that the page is not empty; a trace that must be imported
    // first waits for the user.
    void notice_trace(model::Session& session, const TraceFiles& files) {
        if (shown_.lock() == session.trace()) return;
        if (runner_.running()) return;  // for the previous trace: waits for its answer
        shown_ = session.trace();
        stamps_ = model::stamps_of(files);
        const bool grown = files == shown_files_ && answer_ != nullptr && answer_->error.empty();
        shown_files_ = files;
        if (grown) {
            again_ = true;
            runner_.run(files, answer_->sql, limits_);
            return;
        }
        again_ = false;
        answer_ = nullptr;
        models_.clear();
        ignore_ = runner_.answer();
        asked_once_ = run_next_ = false;
        runner_.import_exports(false);
    }

    // An export of Nsight Systems has the tables, but none of our views.
    bool has_views(const TraceFiles& files) const {
        const auto schema = runner_.schema(files);
        return schema != nullptr && std::any_of(schema->begin(), schema->end(),
                                                [](const traces::query::SchemaObject& o) { return o.view; });
    }
    void offer_views(model::Session& session, const TraceFiles& files) {
        if (runner_.running() || runner_.schema(files) == nullptr || !runner_.schema_error().empty() ||
            has_views(files))
            return;
        draw::note(
            "This database has none of the views that the queries use: it is an export of another tool. "
            "Write SQL for its tables, or import it to a temporary database that has the views.");
        if (draw::named_button("Import with views", "query.import_views")) {
            runner_.import_exports(true);
            own_work_ = true;
            runner_.load_schema(files);
            session.note_work();
        }
    }

    void first_questions(model::Session& session, const TraceFiles& files) {
        if (runner_.running()) return;
        if (run_next_) return run(session, files);
        if (runner_.schema(files) == nullptr && schema_asked_ != files) {
            if (files.size() != 1 || !traces::query::is_database(files.front())) return;
            schema_asked_ = files;
            own_work_ = true;
            runner_.load_schema(files);
            return;
        }
        if (!asked_once_ && has_views(files) && files.size() == 1 &&
            traces::query::is_database(files.front())) {
            asked_once_ = true;
            own_work_ = true;
            runner_.run(files, editor_.sql(), limits_);
        }
    }

    // The user's query waits until the panel's own first query and the reading of the schema have ended.
    void run(model::Session& session, const TraceFiles& files) {
        if (runner_.running()) {
            run_next_ = own_work_ || again_;
            return;
        }
        run_next_ = own_work_ = again_ = false;
        asked_once_ = true;
        lists_.was_run(editor_.sql());
        runner_.run(files, editor_.sql(), limits_);
        session.note_work();
    }

    void draw_toolbar(model::Session& session, const TraceFiles& files) {
        const float font = ImGui::GetFontSize(), gap = font * 0.5F;
        if (runner_.running() && !again_) {
            if (draw::named_button("Stop", "query.stop")) {
                run_next_ = false;
                runner_.stop();
            }
        } else {
            if (draw::named_button("Run", "query.run")) run(session, files);
        }
        if (ImGui::IsItemHovered()) ImGui::SetTooltip("Ctrl+Enter in the editor runs the query, too.");
        ImGui::SameLine(0, gap);
        lists_.draw(editor_);
        ImGui::SameLine(0, font);
        draw::flow(ImGui::CalcTextSize("at most").x + font * 16.5F);
        draw_limits();
        first_questions(session, files);
    }

    void draw_limits() {
        const float font = ImGui::GetFontSize();
        ImGui::AlignTextToFramePadding();
        ImGui::TextDisabled("at most");
        ImGui::SameLine(0, font * 0.4F);
        ImGui::SetNextItemWidth(font * 6);
        const auto chosen = std::find_if(kTimes.begin(), kTimes.end(),
                                         [&](const TimeLimit& t) { return t.time == limits_.time; });
        if (ImGui::BeginCombo("##time", chosen != kTimes.end() ? chosen->label : "")) {
            for (const TimeLimit& limit : kTimes)
                if (ImGui::Selectable(limit.label, limit.time == limits_.time)) limits_.time = limit.time;
            ImGui::EndCombo();
        }
        ImGui::SameLine(0, font * 0.4F);
        ImGui::SetNextItemWidth(font * 9.5F);
        const auto rows = [](std::size_t n) {
            return traces::store::counted(static_cast<std::int64_t>(n), "row", "rows");
        };
        if (ImGui::BeginCombo("##rows", rows(limits_.rows).c_str())) {
            for (const std::size_t n : kRows)
                if (ImGui::Selectable(rows(n).c_str(), n == limits_.rows)) limits_.rows = n;
            ImGui::EndCombo();
        }
    }

    void draw_schema(model::Session& session, const TraceFiles& files) {
        const auto schema = runner_.schema(files);
        if (schema != nullptr) {
            if (!runner_.schema_error().empty()) return draw::note(runner_.schema_error());
            if (const auto picked = browser_.draw(*schema)) editor_.set(sql_of(*picked));
            return;
        }
        if (runner_.running()) return draw::note("Reading the schema ...");
        draw::note(
            "A query needs a database that is not packed. This trace is imported into a temporary one, which "
            "may "
            "take a while.");
        if (draw::named_button("Import and list its tables", "query.import")) {
            schema_asked_ = files;
            own_work_ = true;
            runner_.load_schema(files);
            session.note_work();
        }
    }

    static std::string sql_of(const std::string& table) {
        return fmt::format("SELECT * FROM {} LIMIT 1000\n", sql_name(table));
    }

    void draw_editor(model::Session& session, const TraceFiles& files) {
        const float font = ImGui::GetFontSize();
        const float height = std::clamp(ImGui::GetContentRegionAvail().y * 0.3F, font * 5, font * 15);
        const bool marked = answer_ != nullptr && !runner_.running() && answer_->sql == editor_.sql();
        if (editor_.draw(height, runner_.schema(files), marked ? answer_->error_offset : std::nullopt))
            run(session, files);
        if (session.trace()->ended && model::stamps_of(files) != stamps_) {
            draw::text_in(
                theme::bad(),
                "The file has changed since it was opened: answers come from the new one, other panels "
                "show the old one. Reload it to see it whole.");
        }
    }

    void take_answer() {
        const auto answer = runner_.answer();
        if (answer == nullptr || answer == answer_ || answer == ignore_) return;
        const bool again = std::exchange(again_, false);
        if (again && !answer->error.empty()) {
            ignore_ = answer;  // what was found before stays
            return;
        }
        const int chosen = chosen_result_;
        answer_ = answer;
        chosen_result_ = answer->results.empty() ? 0 : static_cast<int>(answer->results.size()) - 1;
        if (again) chosen_result_ = std::min(chosen, chosen_result_);
        models_.clear();
        for (const traces::store::QueryResult& result : answer->results)
            models_.push_back(std::make_shared<QueryTable>(
                std::shared_ptr<const traces::store::QueryResult>(answer, &result)));
        if (again) return;
        table_ = {};
        table_.all_columns = kAllColumns;
    }

    void draw_answer(model::Session& session, const TraceFiles& files) {
        take_answer();
        if (runner_.running() && !again_) {
            const double seconds = runner_.running_seconds();
            draw::note(seconds < 0.3 ? std::string("Running ...")
                                     : fmt::format("Running ... {:.1f} s", seconds));
            draw::items::value("query.status", "running");
            return;
        }
        if (answer_ == nullptr) {
            draw::note(
                runner_.schema(files) != nullptr
                    ? "Write SQL above and press Ctrl+Enter. The views and tables are listed on the left."
                    : "Write SQL above and press Ctrl+Enter: the trace is imported first.");
            return;
        }
        if (!answer_->error.empty()) {
            draw::wrapped_in(theme::bad(), answer_->error);
            draw::items::value("query.status", answer_->error);
            return;
        }
        draw_result(session);
    }

    void draw_result(model::Session& session) {
        const float font = ImGui::GetFontSize();
        const auto at =
            static_cast<std::size_t>(std::clamp(chosen_result_, 0, static_cast<int>(models_.size()) - 1));
        const traces::store::QueryResult& result = answer_->results[at];
        std::string status =
            fmt::format("{} row{} in {}", draw::format_count(static_cast<std::int64_t>(result.rows.size())),
                        result.rows.size() == 1 ? "" : "s", draw::format_duration(answer_->seconds * 1e9));
        if (result.cut) status += "; there are more: raise the limit of rows, or narrow the query";
        if (!answer_->note.empty()) status += ". " + answer_->note;
        draw::items::value("query.status", status);
        if (models_.size() > 1) {
            std::vector<std::string> labels;
            for (std::size_t i = 0; i < models_.size(); ++i) labels.push_back(fmt::format("{}", i + 1));
            const std::vector<std::string_view> views(labels.begin(), labels.end());
            widgets::segmented("query.result_number", views, chosen_result_);
            ImGui::SameLine(0, font);
        }
        static constexpr std::array<std::string_view, 2> kViews = {"Table", "Table and plot"};
        widgets::segmented("query.view", kViews, view_);
        ImGui::SameLine(0, font);
        const RowPlaces places = find_places(result.columns);
        const auto& model = models_[at];
        draw_timeline_buttons(session, *model, places);
        ImGui::AlignTextToFramePadding();
        draw::text_fit(status);
        if (result.rows.empty()) return draw::note("The query found no row.");
        const float whole = ImGui::GetContentRegionAvail().y;
        const float plot = view_ == 1 ? std::max(font * 11, whole * 0.48F) : 0;
        if (view_ == 1) {
            const auto& order = plot_order_.of(model, table_.sort, table_.filter);
            plot_.draw(model, order, {ImGui::GetContentRegionAvail().x, plot});
        }
        // In a small window the page scrolls, so that some rows are always in sight.
        const float left = ImGui::GetContentRegionAvail().y - ImGui::GetFrameHeightWithSpacing();
        const float height = left < font * 9 ? font * 9 : 0;
        const tables::TableEvents events =
            draw_table("query.result", model, table_, {.size = {0, height}, .name = "query"});
        if (events.hovered && places.known() && !events.clicked)
            ImGui::SetTooltip("Click: show it in the timeline");
        const auto row = events.go_to();
        if (!row) return;
        if (const auto place = place_of(*model, places, *row)) go_to(session, *place);
    }

    // A result with spans of time can be shown among the timeline's rows.
    void draw_timeline_buttons(model::Session& session, const QueryTable& table, const RowPlaces& places) {
        model::OpenTrace& entry = *session.current();
        if (places.spans() && table.rows() > 0) {
            if (draw::named_button("To the timeline", "query.to_timeline")) {
                auto rows = std::make_shared<model::ResultRows>();
                rows->number = ++results_shown_;
                rows->trace = entry.trace;
                rows->spans = result_spans(table, places, *entry.trace);
                entry.result = std::move(rows);
                session.wanted_panel = "timeline";
            }
            if (ImGui::IsItemHovered())
                ImGui::SetTooltip("Shows these rows as bars in a group of the timeline, Query result");
            ImGui::SameLine(0, ImGui::GetFontSize() * 0.5F);
        }
        if (entry.result == nullptr) return;
        if (draw::named_button("Off the timeline", "query.off_timeline")) entry.result = nullptr;
        ImGui::SameLine(0, ImGui::GetFontSize());
    }

    static void go_to(model::Session& session, const RowPlace& place) {
        const traces::store::Trace& trace = *session.trace();
        const auto rank = place.rank ? trace.rank_of_number(*place.rank) : traces::store::RankIndex();
        model::SelectedEvent event;
        if (const auto device = device_event_at(trace, place); device >= 0) {
            event = {model::EventKind::device, device};
        } else if (const auto range = host_range_at(trace, place); range >= 0) {
            event = {model::EventKind::range, range};
        }
        session.go_to({place.from, place.to}, rank, event);
    }

    SqlEditor editor_{first_sql()};
    QueryLimits limits_;
    QueryLists lists_;
    QueryRunner runner_;
    SchemaBrowser browser_;
    TraceFiles schema_asked_;
    std::weak_ptr<const traces::store::Trace> shown_;
    TraceFiles shown_files_;
    bool again_ = false;                    // the answer's SQL runs again for the trace, which has grown
    std::vector<model::FileStamp> stamps_;  // of the files when the trace was first seen here
    bool asked_once_ = false;               // a query of this trace has been run
    bool own_work_ = false;  // the panel's own first query is running, or the schema is being read
    bool run_next_ = false;  // runs the user's query once that has ended
    std::shared_ptr<const QueryAnswer> answer_, ignore_;
    std::vector<std::shared_ptr<const QueryTable>> models_;  // parallel to its results
    int chosen_result_ = 0, view_ = 0;
    tables::TableState table_;
    int results_shown_ = 0;
    tables::TableOrder plot_order_;
    QueryPlot plot_;
};

}  // namespace

std::unique_ptr<model::Panel> make_query_panel() {
    return std::make_unique<QueryPanel>();
}

}  // namespace shardscope::viewer::panels
