// SQL in the viewer: its answers, its limits, hostile and changing files, and the link from a row to its
// place.
#include <filesystem>
#include <fstream>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "tests/viewer/panel_fixture.h"
#include "traces/query/shipped_queries.h"
#include "traces/store/write/writer.h"
#include "viewer/panels/query/query_history.h"
#include "viewer/panels/query/query_runner.h"
#include "viewer/panels/query/query_table.h"
#include "viewer/timeline/tracks.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class Folder {
  public:
    Folder() {
        std::string path = (fs::temp_directory_path() / "shardscope-query-XXXXXX").string();
        path_ = ::mkdtemp(path.data());
    }
    ~Folder() { fs::remove_all(path_); }
    std::string file(const std::string& name) const { return path_ + "/" + name; }

  private:
    std::string path_;
};

void write_sample(const std::string& path, const MlpSample& sample = {}) {
    traces::store::DatabaseWriter writer({.path = path});
    write_mlp_sample(sample, writer);
    writer.finish(20'000'000, 0);
}

// Changes a file as another program could.
void change(const std::string& path, const char* sql) {
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(handle, sql, nullptr, nullptr, &error), SQLITE_OK) << (error ? error : "");
    sqlite3_close(handle);
}

// Waits for up to a minute; after that the query is stopped, and the test continues.
bool comes_to_rest(QueryRunner& runner) {
    for (int i = 0; i < 60'000 && runner.running(); ++i) {
        runner.poll();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (!runner.running()) return true;
    runner.stop();
    return false;
}

QueryAnswer ask(QueryRunner& runner, const std::string& path, const std::string& sql,
                QueryLimits limits = {}) {
    runner.run({path}, sql, limits);
    EXPECT_TRUE(comes_to_rest(runner)) << sql;
    return runner.answer() != nullptr ? *runner.answer() : QueryAnswer{};
}

class QueryTest : public testing::Test {
  protected:
    QueryTest() { write_sample(path_); }
    Folder folder_;
    std::string path_ = folder_.file("run.sqlite");
    QueryRunner runner_;
};

TEST_F(QueryTest, EveryShippedQueryRuns) {
    for (const traces::query::ShippedQuery& query : traces::query::shipped_queries()) {
        const QueryAnswer answer = ask(runner_, path_, std::string(query.sql));
        EXPECT_EQ(answer.error, "") << query.name;
        EXPECT_FALSE(traces::query::question_of(query.sql).empty()) << query.name;
    }
}

TEST_F(QueryTest, RowsBeyondTheLimitAreNotComputedAndTheResultSaysSo) {
    QueryLimits limits;
    limits.rows = 10;
    const std::string endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    const QueryAnswer answer = ask(runner_, path_, endless, limits);
    ASSERT_EQ(answer.error, "");
    EXPECT_EQ(answer.results.front().rows.size(), 10U);
    EXPECT_TRUE(answer.results.front().cut);
    EXPECT_FALSE(ask(runner_, path_, "SELECT 1").results.front().cut);
}

TEST_F(QueryTest, AQueryStopsAtItsTimeLimitAndOnDemand) {
    const std::string endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    QueryLimits limits;
    limits.time = std::chrono::milliseconds(50);
    EXPECT_THAT(ask(runner_, path_, endless, limits).error, HasSubstr("time limit"));
    limits.time = {};
    runner_.run({path_}, endless, limits);
    runner_.stop();
    ASSERT_TRUE(comes_to_rest(runner_));
    EXPECT_EQ(runner_.answer()->error, "The query was stopped.");
}

TEST_F(QueryTest, AnErrorHasItsPlace) {
    const auto place = [&](const std::string& sql) {
        const QueryAnswer answer = ask(runner_, path_, sql);
        EXPECT_NE(answer.error, "") << sql;
        return answer.error_offset;
    };
    EXPECT_EQ(place("SELECT 1;\n  SELECT missing FROM kernels"), 19U);
    EXPECT_EQ(place("SELECT 1 FROM"), 13U) << "the SQL is incomplete at its end";
    EXPECT_EQ(place("SELECT 1; DELETE FROM NVTX_EVENTS"), 10U);
    EXPECT_EQ(place("SELECT abs('x', 2)"), 7U);
    EXPECT_FALSE(ask(runner_, path_, "SELECT 1").error_offset);
}

TEST_F(QueryTest, ARunnerThatGoesAwayStopsItsQuery) {
    auto runner = std::make_unique<QueryRunner>();
    runner->run({path_},
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
                {.time = {}});
    QueryRunner& itself = *runner;
    const auto gone = std::async(std::launch::async, [&] { runner.reset(); });
    const bool stopped = gone.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
    EXPECT_TRUE(stopped);
    if (!stopped) itself.stop();  // otherwise this test would wait for it, too
}

TEST_F(QueryTest, NothingCanBeWrittenOrReachedFromIt) {
    for (const char* sql : {"DELETE FROM NVTX_EVENTS", "DROP VIEW kernels", "ATTACH '/etc/passwd' AS other",
                            "CREATE TABLE mine (a)"}) {
        EXPECT_NE(ask(runner_, path_, sql).error, "") << sql;
    }
    EXPECT_EQ(ask(runner_, path_, "SELECT count(*) FROM kernels").error, "");
}

TEST_F(QueryTest, AHostileSchemaIsAMessage) {
    change(path_,
           "DROP VIEW kernels; CREATE VIEW kernels AS SELECT load_extension('evil') AS name, 1 AS rank;"
           "CREATE VIEW broken AS SELECT * FROM no_such_table;"
           "CREATE TRIGGER t AFTER INSERT ON NVTX_EVENTS BEGIN SELECT 1; END;");
    EXPECT_NE(ask(runner_, path_, "SELECT * FROM kernels").error, "");
    EXPECT_NE(ask(runner_, path_, "SELECT * FROM broken").error, "");
    runner_.load_schema({path_});
    ASSERT_TRUE(comes_to_rest(runner_));
    const auto schema = runner_.schema({path_});
    ASSERT_NE(schema, nullptr);
    const auto broken =
        std::find_if(schema->begin(), schema->end(), [](const auto& o) { return o.name == "broken"; });
    ASSERT_NE(broken, schema->end());
    EXPECT_NE(broken->error, "");
}

TEST_F(QueryTest, TheSchemaSaysWhatColumnsMean) {
    runner_.load_schema({path_});
    ASSERT_TRUE(comes_to_rest(runner_));
    const auto schema = runner_.schema({path_});
    ASSERT_NE(schema, nullptr);
    const auto kernels =
        std::find_if(schema->begin(), schema->end(), [](const auto& o) { return o.name == "kernels"; });
    ASSERT_NE(kernels, schema->end());
    EXPECT_TRUE(kernels->view);
    EXPECT_FALSE(kernels->meaning.empty());
    const auto start = std::find_if(kernels->columns.begin(), kernels->columns.end(),
                                    [](const auto& c) { return c.name == "start_ns"; });
    ASSERT_NE(start, kernels->columns.end());
    EXPECT_EQ(start->unit, "ns");
    EXPECT_FALSE(start->meaning.empty());
}

TEST_F(QueryTest, AFileThatIsReplacedTruncatedOrGoneIsAMessageOrTheNewAnswer) {
    const std::string count = "SELECT count(*) AS n FROM kernels";
    EXPECT_EQ(ask(runner_, path_, count).error, "");
    fs::remove(path_);
    EXPECT_NE(ask(runner_, path_, count).error, "");
    write_sample(path_, {.steps = 1});
    EXPECT_EQ(ask(runner_, path_, count).error, "");
    fs::resize_file(path_, fs::file_size(path_) / 2);
    EXPECT_NE(ask(runner_, path_, count).error, "");
    std::ofstream(path_) << "no database";
    EXPECT_NE(ask(runner_, path_, count).error, "");
}

TEST_F(QueryTest, AChromeTraceIsAskedInATemporaryDatabase) {
    const std::string json = folder_.file("trace.json");
    std::ofstream(json) << R"({"traceEvents": [
        {"ph": "X", "name": "gemm", "cat": "kernel", "pid": 0, "tid": 7, "ts": 10, "dur": 5,
         "args": {"device": 0, "stream": 7, "correlation": 1}},
        {"ph": "X", "name": "relu", "cat": "kernel", "pid": 0, "tid": 7, "ts": 20, "dur": 3,
         "args": {"device": 0, "stream": 7, "correlation": 2}}]})";
    const QueryAnswer answer = ask(runner_, json, "SELECT name, duration_ns FROM kernels ORDER BY start_ns");
    ASSERT_EQ(answer.error, "");
    ASSERT_EQ(answer.results.front().rows.size(), 2U);
    EXPECT_EQ(std::get<std::string>(answer.results.front().rows[0][0]), "gemm");
    EXPECT_EQ(std::get<std::int64_t>(answer.results.front().rows[1][1]), 3000);
    EXPECT_THAT(answer.note, HasSubstr("temporary"));
}

// --- the result as a table --------------------------------------------------------------------------------

std::shared_ptr<const QueryTable> table_of(std::vector<std::string> columns,
                                           std::vector<std::vector<traces::store::QueryValue>> rows) {
    auto result = std::make_shared<traces::store::QueryResult>();
    result->columns = std::move(columns);
    result->rows = std::move(rows);
    return std::make_shared<QueryTable>(result);
}

TEST(QueryTable, AColumnIsOfNumbersWhereDoublesHoldThemAll) {
    const auto table = table_of({"start_ns", "id", "name", "nothing", "name"},
                                {{std::int64_t{1'234'567}, std::int64_t{1} << 60, "a", std::monostate{}, "x"},
                                 {std::monostate{}, std::int64_t{5}, "b", std::monostate{}, 1.5}});
    EXPECT_TRUE(table->is_number(0));
    EXPECT_FALSE(table->is_number(1));  // 2^60 + 1 would be 2^60
    EXPECT_FALSE(table->is_number(2));
    EXPECT_FALSE(table->is_number(3));
    EXPECT_EQ(table->columns()[0].unit, "ns");
    EXPECT_EQ(table->text(0, 0), "1,234,567");
    EXPECT_EQ(table->text(0, 1), "1152921504606846976");  // exact
    EXPECT_EQ(table->text(1, 0), "-");
    EXPECT_EQ(table->columns()[4].id, "name_2");  // the keys of an export are unique
}

TEST(QueryTable, ARowsPlaceIsInColumnsOfTime) {
    const auto table =
        table_of({"rank", "start_us", "duration_ns"}, {{std::int64_t{3}, 1.5, std::int64_t{200}}});
    const auto place = place_of(*table, find_places({"rank", "start_us", "duration_ns"}), 0);
    ASSERT_TRUE(place);
    EXPECT_EQ(place->from, 1500);
    EXPECT_EQ(place->to, 1700);
    EXPECT_EQ(place->rank, 3);
    EXPECT_TRUE(find_places({"START", "End"}).known());
    EXPECT_FALSE(find_places({"name", "total_us"}).known());
}

TEST(QueryTable, APlotKeepsEveryExtremeOfAColumn) {
    std::vector<PlotPoint> points;
    for (int i = 0; i < 1000; ++i) points.push_back({static_cast<double>(i), i == 503 ? 99.0 : 1.0});
    const PlotRange range = plot_range(points);
    EXPECT_GT(range.y_high, 99);
    const auto folded = fold_plot(points, range, 100);
    EXPECT_EQ(folded.size(), 100U);
    double highest = 0;
    for (const PlotColumn& column : folded) highest = std::max(highest, column.highest);
    EXPECT_EQ(highest, 99);
    EXPECT_EQ(folded.front().column, 0);
    EXPECT_EQ(folded.back().column, 99);
}

TEST(QueryTable, APlotShowsWhatIsBelowZero) {
    const std::vector<PlotPoint> both = {{0, -4}, {1, 2}};
    const PlotRange range = plot_range(both);
    EXPECT_LT(range.y_low, -4);  // slightly more than the lowest
    EXPECT_GT(range.y_high, 2);
    const std::vector<PlotPoint> below = {{0, -4}, {1, -2}};
    EXPECT_EQ(plot_range(below).y_high, 0);  // zero is visible, and nothing above it
    const std::vector<PlotPoint> above = {{0, 4}, {1, 2}};
    EXPECT_EQ(plot_range(above).y_low, 0);
}

PlotAxes axes_of(std::vector<std::string> columns, std::vector<traces::store::QueryValue> row) {
    return choose_axes(*table_of(std::move(columns), {row, row}));
}

TEST(QueryPlot, IsOverStepsTimesOrSizesAndShowsAnotherMeaning) {
    const std::int64_t n = 7;
    const auto axes = [&](std::vector<std::string> columns, std::vector<traces::store::QueryValue> row) {
        const PlotAxes a = axes_of(columns, std::move(row));
        const auto name = [&](int c) {
            return c < 0 ? std::string("row") : columns[static_cast<std::size_t>(c)];
        };
        return a.y < 0 ? std::string("nothing") : name(a.y) + " over " + name(a.x);
    };
    EXPECT_EQ(axes({"rank", "step", "start_ns", "duration_ns"}, {n, n, n, n}), "duration_ns over step");
    EXPECT_EQ(axes({"start_ns", "end_ns", "duration_ns"}, {n, n, n}), "duration_ns over start_ns");
    EXPECT_EQ(axes({"name", "calls", "total_us"}, {"gemm", n, 1.5}), "total_us over row");
    EXPECT_EQ(axes({"bytes", "mean_us"}, {n, 1.5}), "mean_us over bytes");
    EXPECT_EQ(axes({"name", "bytes"}, {"a", n}), "bytes over row") << "a size alone is what is plotted";
    EXPECT_EQ(axes({"step"}, {n}), "step over row");
    EXPECT_EQ(axes({"step", "loss"}, {n, 0.5}), "loss over step");
    EXPECT_EQ(axes({"name"}, {"a"}), "nothing");
}

TEST(QueryPlot, BarsAreAsFarApartAsTheNearestTwo) {
    EXPECT_EQ(bar_distance(std::vector<PlotPoint>{{4, 1}, {0, 1}, {2.5, 1}, {4, 2}}), 1.5);
    EXPECT_EQ(bar_distance(std::vector<PlotPoint>{{4, 1}, {4, 2}}), 1);
    EXPECT_EQ(bar_distance({}), 1);
}

// --- history -----------------------------------------------------------------------------------------------

TEST(QueryHistory, HoldsEachQueryOnceNewestFirst) {
    QueryHistory history;
    for (const char* sql : {"SELECT 1", "SELECT 2", "SELECT 1", "  \n"}) history.add(sql);
    EXPECT_THAT(history.entries(), ElementsAre("SELECT 1", "SELECT 2"));
    for (int i = 0; i < 100; ++i) history.add("SELECT " + std::to_string(i));
    EXPECT_EQ(history.entries().size(), QueryHistory::kMost);
    EXPECT_EQ(history.entries().front(), "SELECT 99");
}

TEST(QueryHistory, IsRestored) {
    QueryHistory history;
    history.add("SELECT 'a\n\"b\"' -- \u00e4");
    history.add("SELECT 2");
    QueryHistory next;
    next.from_text(history.to_text());
    EXPECT_EQ(next.entries(), history.entries());
    EXPECT_EQ(QueryHistory().to_text(), "");
}

TEST(QueryHistory, IsBounded) {
    QueryHistory history;
    history.add("SELECT 'old'");
    history.add("SELECT '" + std::string(QueryHistory::kMostBytes, 'x') + "'");
    EXPECT_EQ(history.entries().size(), 2U);
    EXPECT_EQ(history.to_text(), "") << "the newest alone is too large";
    history.add("SELECT 'new'");
    EXPECT_EQ(history.to_text(), R"(["SELECT 'new'"])");
}

TEST(QueryHistory, BearsAnyText) {
    QueryHistory history;
    history.add("SELECT 1");
    for (const char* text : {"", "{", "17", "[1,2]", "{\"a\":1}", "[[\"x\"]]", "\xFF"}) {
        history.from_text(text);
        EXPECT_THAT(history.entries(), ElementsAre("SELECT 1")) << text;
    }
    history.from_text("[\"SELECT 3\",\"\"]");
    EXPECT_THAT(history.entries(), ElementsAre("SELECT 3"));
}

TEST(SavedQueries, AreSortedByNameReplacedAndDeleted) {
    SavedQueries queries;
    EXPECT_TRUE(queries.save("b", "SELECT 1"));
    EXPECT_TRUE(queries.save("a", "SELECT 2"));
    EXPECT_TRUE(queries.save("b", "SELECT 3"));
    EXPECT_THAT(queries.entries(), ElementsAre(SavedQuery{"a", "SELECT 2"}, SavedQuery{"b", "SELECT 3"}));
    queries.remove("a");
    EXPECT_FALSE(queries.has("a"));
    for (std::size_t i = 0; i < SavedQueries::kMost; ++i) queries.save(std::to_string(i), "SELECT 1");
    EXPECT_EQ(queries.entries().size(), SavedQueries::kMost);
    EXPECT_FALSE(queries.save("one more", "SELECT 1"));
    EXPECT_TRUE(queries.save("b", "SELECT 4")) << "one that is there can be replaced";
}

TEST(SavedQueries, AreRestoredFromTheirTextAndFromNoOther) {
    SavedQueries queries;
    queries.save("\"quoted\"\n", "SELECT 'ä'");
    SavedQueries next;
    next.from_text(queries.to_text());
    EXPECT_EQ(next.entries(), queries.entries());
    for (const char* text : {"", "{", "17", "[\"a\"]", "[1,2]", "\xFF"}) {
        next.from_text(text);
        EXPECT_EQ(next.entries(), queries.entries()) << text;
    }
    next.from_text(R"(["", "SELECT 1", "no SQL", " "])");
    EXPECT_THAT(next.entries(), testing::IsEmpty());
}

TEST(SavedQueries, RefuseWhatCannotBeSaved) {
    EXPECT_EQ(SavedQueries::refusal("a", "SELECT 1"), "");
    EXPECT_THAT(SavedQueries::refusal(" ", "SELECT 1"), HasSubstr("name"));
    EXPECT_THAT(SavedQueries::refusal("a", " "), HasSubstr("no SQL"));
    EXPECT_THAT(SavedQueries::refusal("a", std::string(SavedQueries::kMostBytes + 1, 'x')),
                HasSubstr("64 KiB"));
}

// --- the panel ---------------------------------------------------------------------------------------------

class QueryPanelTest : public PanelsTest {
  protected:
    QueryPanelTest() {
        draw::items::keep(true);
        write_sample(path_);
        session_.open_file(path_);
        while (session_.loading()) session_.poll();
    }
    void settle(model::Panel& panel) {
        do {
            frame(panel, 1600, 820);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        } while (panel.busy());
        for (int i = 0; i < 3; ++i) {
            frame(panel, 1600, 820);
            while (panel.busy()) frame(panel, 1600, 820);
        }
        draw::items::begin_frame();
    }
    Folder folder_;
    std::string path_ = folder_.file("run.sqlite");
};

TEST_F(QueryPanelTest, AsksADatabaseAtOnceAndShowsItsSchema) {
    const auto panel = make_panel("query");
    settle(*panel);
    EXPECT_THAT(item("query.status"), HasSubstr(" row"));
    EXPECT_EQ(item("query.schema.kernels"), "kernels");
    EXPECT_TRUE(draw::items::find("query.result.row.0"));
}

TEST_F(QueryPanelTest, ExecutedQueriesStayInTheHistory) {
    const auto panel = make_panel("query");
    settle(*panel);
    EXPECT_EQ(item("query.history"), "0") << "what the panel asks by itself is not the person's";
    click(*panel, "query.run");
    settle(*panel);
    EXPECT_EQ(item("query.history"), "1");
    const auto next = make_panel("query");
    next->restore(panel->saved());
    settle(*next);
    click(*next, "query.history");
    EXPECT_THAT(item("query.history.0"), HasSubstr("SELECT"));
}

TEST_F(QueryPanelTest, KeepsSavedQueriesAndReadsAnOlderHistory) {
    const auto panel = make_panel("query");
    panel->restore(R"({"history":["SELECT 1"],"saved":["mine","SELECT 2"]})");
    settle(*panel);
    EXPECT_EQ(item("query.history"), "1");
    EXPECT_EQ(item("query.shipped"), "1");
    EXPECT_EQ(panel->saved(), R"({"history":["SELECT 1"],"saved":["mine","SELECT 2"]})");
    panel->restore(R"(["SELECT 3","SELECT 4"])");
    settle(*panel);
    EXPECT_EQ(item("query.history"), "2");
    EXPECT_EQ(item("query.shipped"), "1") << "an older text has no saved queries";
    panel->restore("{\"saved\":17}");
    EXPECT_THAT(panel->saved(), HasSubstr("mine"));
}

TEST_F(QueryPanelTest, AQueryWaitsForThePanelsOwnReading) {
    // Another program locks the database, so reading the schema waits.
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &other), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
    const auto panel = make_panel("query");
    for (int i = 0; i < 2; ++i) frame(*panel, 1600, 820);
    ASSERT_TRUE(panel->busy());
    const auto editor = draw::items::find("query.sql");
    ASSERT_TRUE(editor);

    ImGuiIO& io = ImGui::GetIO();
    io.MousePos = {(editor->min.x + editor->max.x) / 2, (editor->min.y + editor->max.y) / 2};
    frame(*panel, 1600, 820);
    for (const bool down : {true, false}) {
        io.MouseDown[0] = down;
        frame(*panel, 1600, 820);
    }
    for (const bool down : {true, false}) {
        hold_key(ImGuiKey_Enter, down, true);
        for (int i = 0; i < 2; ++i) frame(*panel, 1600, 820);
    }
    EXPECT_TRUE(panel->busy()) << "the reading ended before Ctrl+Enter";
    EXPECT_EQ(item("query.history"), "0");
    sqlite3_close(other);
    settle(*panel);
    EXPECT_EQ(item("query.history"), "1");
    EXPECT_THAT(item("query.status"), HasSubstr(" row"));
}

TEST_F(QueryPanelTest, ARowWithTimesLeadsToItsEvent) {
    const traces::store::Trace& trace = *session_.trace();
    const auto event = trace.device.size() / 2;
    const RowPlace place{trace.device.start[event], trace.device.end[event],
                         trace.ranks[trace.device.rank[event]].number};
    const auto found = static_cast<std::size_t>(device_event_at(trace, place));
    ASSERT_LT(found, trace.device.size());
    EXPECT_EQ(trace.device.start[found], place.from);
    EXPECT_EQ(trace.device.end[found], place.to);
    EXPECT_EQ(trace.device.rank[found], trace.device.rank[event]);
    EXPECT_EQ(device_event_at(trace, {place.from, place.to + 1, place.rank}), -1);
}

TEST_F(QueryPanelTest, AResultWithSpansIsRowsOfTheTimeline) {
    const traces::store::Trace& trace = *session_.trace();
    const std::int64_t start = trace.device.start[0], end = trace.device.end[0];
    const int rank = trace.ranks[trace.device.rank[0]].number;
    const std::vector<std::string> columns = {"rank", "name", "start_ns", "end_ns"};
    const auto table = table_of(columns, {{std::int64_t{rank}, "own", start, end},
                                          {std::int64_t{rank}, "around", start - 1, end + 5},
                                          {std::int64_t{rank}, "later", end + 5, end + 9},
                                          {std::int64_t{77}, "of no rank here", start, end},
                                          {std::monostate{}, "of no rank", start, end},
                                          {std::int64_t{rank}, "nowhere", std::monostate{}, end}});
    model::ResultRows result;
    result.number = 3;
    result.spans = result_spans(*table, find_places(columns), trace);
    ASSERT_EQ(result.spans.size(), 5U) << "a row without a start has no place";
    EXPECT_EQ(result.spans[0].event, (model::SelectedEvent{model::EventKind::device, 0}));
    EXPECT_EQ(result.spans[1].event, model::SelectedEvent{});

    const timeline::Tracks plain = timeline::make_tracks(trace);
    const timeline::Tracks with = timeline::make_tracks(trace, &result);
    EXPECT_EQ(with.result, 3);
    ASSERT_EQ(with.tracks.size(), plain.tracks.size() + 3);
    const timeline::Track& none = with.tracks[plain.tracks.size()];
    EXPECT_EQ(none.label, "result");
    const timeline::Track& own = with.tracks[plain.tracks.size() + 1];
    EXPECT_EQ(own.label, fmt::format("rank {}", rank));
    ASSERT_EQ(own.lanes.size(), 2U) << "what overlaps is in lanes";
    EXPECT_EQ(own.name(0, 0), "around");
    EXPECT_EQ(own.name(0, 1), "later");
    EXPECT_EQ(own.name(1, 0), "own");
    // The event is still found in its stream, not in the result.
    const auto place = timeline::find_event(trace, with, result.spans[0].event);
    ASSERT_TRUE(place);
    EXPECT_LT(static_cast<std::size_t>(place->track), plain.tracks.size());
    EXPECT_TRUE(result_spans(*table_of({"start_ns"}, {{start}}), find_places({"start_ns"}), trace).empty());
}

TEST_F(QueryPanelTest, SpansThatOverlapTooOftenAreCounted) {
    model::ResultRows result;
    result.number = 1;
    for (int i = 0; i < 40; ++i) result.spans.push_back({0, 100 + i, 0, {}, "x"});
    const auto tracks = timeline::result_tracks(*session_.trace(), result);
    ASSERT_EQ(tracks.size(), 1U);
    EXPECT_EQ(tracks[0].lanes.size(), 32U);
    EXPECT_EQ(tracks[0].label, "rank 0, 32 of 40 rows");
}

TEST_F(QueryPanelTest, ItsDatabaseHasTheTracesTimes) {
    QueryRunner runner;
    const QueryAnswer answer =
        ask(runner, path_,
            "SELECT start_ns, end_ns, rank FROM kernels WHERE NOT communication ORDER BY start_ns");
    ASSERT_EQ(answer.error, "");
    const auto table =
        std::make_shared<QueryTable>(std::make_shared<traces::store::QueryResult>(answer.results.front()));
    const RowPlaces places = find_places(answer.results.front().columns);
    for (const std::size_t row : {std::size_t{0}, table->rows() / 2, table->rows() - 1}) {
        EXPECT_GE(device_event_at(*session_.trace(), *place_of(*table, places, row)), 0) << row;
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
