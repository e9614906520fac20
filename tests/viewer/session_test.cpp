// Session files: every field comes back, the traces are found again, and what is damaged, newer, foreign,
// missing or changed is said in a sentence.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/viewer/mlp_sample.h"
#include "tests/viewer/text_viewer.h"
#include "traces/store/write/writer.h"
#include "viewer/app/session_file.h"
#include "viewer/model/fields.h"
#include "viewer/model/go_to_place.h"
#include "viewer/model/same_event.h"

namespace shardscope::viewer::app {
namespace TEST_FILE {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A session in which no field has its default value.
model::SavedSession full_session() {
    model::RowArrangement rows;
    rows.grouping = model::RowArrangement::Grouping::kind;
    rows.collapsed = {"rank 0"};
    rows.hidden = {"rank 1/memory"};
    rows.pinned = {"rank 0/stream 7"};
    rows.order = {"rank 1", "rank 0"};
    rows.filter = "gather";
    const model::Place place{
        .visible = model::TimeRange{-5, 50},
        .limit = model::TimeRange{10, 20},
        .lit = model::TimeRange{11, 12},
        .cursor = 15,
        .area = model::MarkedArea{.time = {1, 2}, .rows = {"rank 0"}, .name = "gemm \"x\"\n"},
        .rows = rows,
        .rank = 3,
        .selected =
            {.kind = model::EventKind::range, .start = 7, .name = "f\xC3\xB6rward", .rank = 2, .detail = 4},
        .module = 5,
        .unit = 6};
    const model::View view{
        .panel = "memory", .color_by = model::ColorBy::name, .content = "{}", .place = place};
    model::SavedSession session;
    session.traces = {{.path = "../a b.sqlite",
                       .merged = {"../a b.sqlite", "c.sqlite"},
                       .identity = model::TraceIdentity{"run", "content", 9'007'199'254'740'993},
                       .place = place,
                       .marks = {{.from = 1, .to = 2, .text = "slow"}},
                       .views = {{.key = 9, .name = "peak", .view = view}}}};
    session.active = "../a b.sqlite";
    session.panel = "query";
    session.panes = "query | timeline";
    session.second = "start";
    session.color_by = model::ColorBy::unit;
    session.contents = {{"query", "SELECT 1"}};
    return session;
}

// Calls visit(path, is_default) for every field, and the fields of structs inside it.
template <class T, class Visit>
void each_leaf(const T& value, const std::string& path, const Visit& visit) {
    if constexpr (model::HasFields<T>) {
        fields(value,
               [&](const char* key, const auto& member) { each_leaf(member, path + "." + key, visit); });
    } else if constexpr (requires { value.has_value(); }) {
        visit(path, !value.has_value());
        if (value) each_leaf(*value, path, visit);
    } else if constexpr (requires { value.front(); } && !std::is_same_v<T, std::string>) {
        visit(path, value.empty());
        if (!value.empty()) each_leaf(value.front(), path + "[0]", visit);
    } else {
        visit(path, value == T{});
    }
}

TEST(SavedSession, ComesBackWithEveryField) {
    const model::SavedSession session = full_session();
    std::size_t leaves = 0;
    each_leaf(session, "session", [&](const std::string& path, bool is_default) {
        ++leaves;
        EXPECT_FALSE(is_default) << path << " has its default value: this test says nothing of it";
    });
    EXPECT_GT(leaves, 60U);
    const model::ReadSession read = model::parse_session(model::session_text(session));
    EXPECT_EQ(read.session, session);
    EXPECT_THAT(read.left_out, IsEmpty());
    EXPECT_EQ(model::parse_session(model::session_text({})).session, model::SavedSession{});
}

TEST(SavedSession, SaysWhyATextIsNone) {
    for (const auto& [text, why] : std::initializer_list<std::pair<const char*, const char*>>{
             {"", "damaged"},
             {"{\"shardscope_session\": 1", "damaged"},
             {"[]", "it is not a session: it has no key shardscope_session"},
             {"{\"traceEvents\": []}", "it is not a session"},
             {"{\"shardscope_session\": \"1\"}", "it is not a session"},
             {"{\"shardscope_session\": 2}",
              "a newer version of shardscope-view wrote it (format 2, this one reads 1)"}}) {
        try {
            model::parse_session(text);
            ADD_FAILURE() << text;
        } catch (const std::runtime_error& error) {
            EXPECT_THAT(error.what(), HasSubstr(why)) << text;
        }
    }
}

TEST(SavedSession, LeavesOutWhatCannotBeRead) {
    const model::ReadSession read = model::parse_session(
        R"({"shardscope_session": 1, "color_by": "loss", "contents": {"query": "SELECT 1", "plan": 3}, "traces": [
            {"path": "a", "place": {"visible": [9, 3], "rank": 1e3, "selected": {"kind": "ghost", "start_ns": 5}}},
            {"place": {}}, {"path": "b", "marks": [{"from_ns": 9223372036854775807, "to_ns": 1}, {"text": "ok"}]}]})");
    EXPECT_THAT(read.left_out,
                testing::UnorderedElementsAre("traces[0].place.visible", "traces[0].place.rank",
                                              "traces[0].place.selected.kind", "traces[1]",
                                              "traces[2].marks[0]", "color_by", "contents.plan"));
    ASSERT_EQ(read.session.traces.size(), 2U);
    EXPECT_EQ(read.session.traces[0].place.selected.start, 5);
    EXPECT_EQ(read.session.traces[1].marks.size(), 1U);
    EXPECT_EQ(read.session.contents.at("query"), "SELECT 1");
    EXPECT_EQ(model::some_of({"a", "b", "c", "d", "e"}), "a, b, c and 2 more");
    EXPECT_EQ(model::some_of({"a", "b"}), "a and b");
}

// --- with traces

class SessionFileTest : public testing::Test {
  protected:
    SessionFileTest() {
        std::string name = (std::filesystem::temp_directory_path() / "shardscope-session-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
        folder_ = name;
        std::filesystem::create_directories(path("runs"));
        write_trace("runs/run.sqlite", 2);
    }
    ~SessionFileTest() override {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    std::string path(const std::string& name) const { return folder_ + "/" + name; }
    void write_trace(const std::string& name, int ranks, int steps = 2) const {
        traces::store::DatabaseWriter writer({.path = path(name), .overwrite = true});
        write_mlp_sample({.per_linear = true, .ranks = ranks, .steps = steps}, writer);
        writer.finish(20'000'000, 0);
    }
    static std::string read(const std::string& file) {
        std::ifstream in(file, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    // A session of one trace with a place, saved; returns what it holds.
    model::SavedSession save(const std::string& name) const {
        Viewer viewer;
        model::Session& session = viewer.program.session;
        viewer.program.open(path("runs/run.sqlite"));
        viewer.settle();
        session.choose_rank(1);
        session.selected = {model::EventKind::device, 9};
        session.selected_module = session.trace()->modules.back().id;
        session.selected_unit = traces::store::UnitIndex(0);
        session.current()->visible = {1'000'000, 9'000'000};
        session.current()->limit = model::TimeRange{2'000'000, 3'000'000};
        session.current()->cursor = 2'500'000;
        session.current()->area = model::MarkedArea{{2'000'000, 3'000'000}, {"rank 0"}, ""};
        session.current()->rows.collapsed = {"rank 1"};
        session.current()->marks->marks.add({5, 5, "here"});
        session.current()->marks->set_view({3, "a view", {.panel = "timeline"}});
        session.color_by = model::ColorBy::module;
        viewer.program.show("query");
        viewer.text(2) = "SELECT 42";
        save_session(viewer.program, path(name));
        return session_of(viewer.program);
    }

    std::string folder_;
};

TEST_F(SessionFileTest, OpensAtTheSamePlaces) {
    const model::SavedSession saved = save("a.shardscope-session");
    EXPECT_EQ(saved.traces.front().place.rank, 1);
    EXPECT_THAT(read(path("a.shardscope-session")), HasSubstr("\"path\": \"runs/run.sqlite\""));
    Viewer viewer;
    write_trace("runs/other.sqlite", 1);
    viewer.program.open(path("runs/other.sqlite"));
    viewer.text(1) = "a search of before";
    viewer.program.open(path("a.shardscope-session"));
    viewer.settle();
    EXPECT_THAT(viewer.program.problems, IsEmpty());
    ASSERT_EQ(viewer.program.session.open.size(), 1U);
    EXPECT_EQ(viewer.program.session.current()->notice, "");
    EXPECT_EQ(session_of(viewer.program), saved);
    EXPECT_EQ(viewer.text(2), "SELECT 42");
    EXPECT_EQ(viewer.text(1), "");
    EXPECT_EQ(viewer.program.session_path, path("a.shardscope-session"));
}

// The panes of both windows are exchanged while the second is drawn.
TEST_F(SessionFileTest, TheSecondWindowLeavesOpeningToTheFirst) {
    save("a.shardscope-session");
    Viewer viewer;
    Program& program = viewer.program;
    ASSERT_TRUE(program.arrange("timeline"));
    ASSERT_TRUE(program.arrange_second("query"));
    std::swap(program.panes, *program.elsewhere);
    program.in_second = true;
    EXPECT_EQ(session_of(program).panes, "timeline");
    EXPECT_EQ(session_of(program).second, "query");
    program.open(path("a.shardscope-session"));
    EXPECT_TRUE(program.elsewhere.has_value());
    EXPECT_THAT(program.session.open, IsEmpty());
    EXPECT_EQ(program.wanted_session, path("a.shardscope-session"));
    EXPECT_TRUE(program.working()) << "the first window draws another frame";
}

TEST_F(SessionFileTest, ReportsPanesThatCannotBeArranged) {
    save("a.shardscope-session");
    auto json = nlohmann::json::parse(read(path("a.shardscope-session")));
    json["panes"] = "timeline / nothing";
    std::ofstream(path("a.shardscope-session")) << json;
    Viewer viewer;
    viewer.program.open(path("a.shardscope-session"));
    EXPECT_THAT(viewer.program.problems, Contains(HasSubstr("its panes cannot be arranged")));
    EXPECT_EQ(viewer.program.session.open.size(), 1U) << "the rest is opened";
}

TEST_F(SessionFileTest, OpensWhereItWasCopiedTo) {
    model::SavedSession saved = save("a.shardscope-session");
    std::filesystem::create_directories(path("elsewhere"));
    std::filesystem::rename(path("runs"), path("elsewhere/runs"));
    std::filesystem::copy(path("a.shardscope-session"), path("elsewhere/a.shardscope-session"));
    Viewer viewer;
    viewer.program.open(path("elsewhere/a.shardscope-session"));
    viewer.settle();
    EXPECT_EQ(viewer.program.session.current()->notice, "");
    EXPECT_EQ(session_of(viewer.program).traces.front().place, saved.traces.front().place);
    // Beside the trace, without its folder.
    std::filesystem::copy(path("a.shardscope-session"), path("elsewhere/runs/a.shardscope-session"));
    Viewer beside;
    beside.program.open(path("elsewhere/runs/a.shardscope-session"));
    beside.settle();
    EXPECT_EQ(beside.program.session.current()->notice, "");
    EXPECT_NE(beside.program.session.trace(), nullptr) << beside.program.session.current()->error;
}

TEST_F(SessionFileTest, SaysThatATraceHasChangedAndWhatItLacks) {
    save("a.shardscope-session");
    write_trace("runs/run.sqlite", 1, 1);
    Viewer viewer;
    viewer.program.open(path("a.shardscope-session"));
    viewer.settle();
    const std::string notice = viewer.program.session.current()->notice;
    EXPECT_THAT(notice,
                HasSubstr("run.sqlite is another trace than the one that the session was saved with, and it "
                          "lacks rank 1"));
    EXPECT_EQ(viewer.program.session.current()->visible, (model::TimeRange{1'000'000, 9'000'000}));
}

TEST_F(SessionFileTest, KeepsATraceThatIsMissing) {
    const model::SavedSession saved = save("a.shardscope-session");
    std::filesystem::rename(path("runs/run.sqlite"), path("gone.sqlite"));
    Viewer viewer;
    viewer.program.open(path("a.shardscope-session"));
    viewer.settle();
    EXPECT_THAT(viewer.program.session.current()->error, HasSubstr("runs/run.sqlite"));
    save_session(viewer.program, path("a.shardscope-session"));
    std::filesystem::rename(path("gone.sqlite"), path("runs/run.sqlite"));
    Viewer again;
    again.program.open(path("a.shardscope-session"));
    again.settle();
    EXPECT_EQ(session_of(again.program).traces, saved.traces);
}

TEST_F(SessionFileTest, ADamagedFileChangesNothingAndIsNotOverwritten) {
    std::ofstream(path("a.shardscope-session")) << "{\"shardscope_session\": 1, \"tra";
    Viewer viewer;
    viewer.program.open(path("runs/run.sqlite"));
    viewer.program.open(path("a.shardscope-session"));
    viewer.program.open(path("absent.shardscope-session"));
    viewer.settle();
    EXPECT_EQ(viewer.program.session.open.size(), 1U);
    ASSERT_EQ(viewer.program.problems.size(), 2U);
    EXPECT_THAT(viewer.program.problems[0],
                HasSubstr("a.shardscope-session: this session cannot be opened: it is damaged"));
    EXPECT_THAT(viewer.program.problems[1], HasSubstr("No such file"));
    EXPECT_EQ(viewer.program.session_path, "");
    try {
        save_session(viewer.program, path("a.shardscope-session"));
        ADD_FAILURE();
    } catch (const std::runtime_error& error) {
        EXPECT_THAT(error.what(), HasSubstr("it is left as it is, since it is damaged"));
    }
    EXPECT_EQ(read(path("a.shardscope-session")), "{\"shardscope_session\": 1, \"tra");
    EXPECT_THROW(save_session(viewer.program, path("no folder/a.shardscope-session")), std::runtime_error);
}

TEST_F(SessionFileTest, OpensWhatItCanAndSaysTheRest) {
    std::ofstream(path("a.shardscope-session"))
        << R"({"shardscope_session": 1, "panel": "loss", "traces": [{"path": "runs/run.sqlite", "place": {"rank": "x"}}]})";
    Viewer viewer;
    viewer.program.open(path("a.shardscope-session"));
    viewer.settle();
    EXPECT_NE(viewer.program.session.trace(), nullptr);
    EXPECT_THAT(viewer.program.problems,
                ElementsAre(HasSubstr("opened without what cannot be read: traces[0].place.rank."),
                            HasSubstr("its panel \"loss\" is not in this version of the viewer")));
}

TEST_F(SessionFileTest, AddsItsMarksAndViewsToThoseBesideTheTrace) {
    save("a.shardscope-session");
    Viewer viewer;
    viewer.program.open(path("runs/run.sqlite"));
    viewer.settle();
    model::MarkFile& marks = *viewer.program.session.current()->marks;
    marks.marks.add({7, 7, "mine"});
    marks.set_view({3, "my view", {.panel = "query"}});
    marks.save();
    viewer.program.open(path("a.shardscope-session"));
    viewer.settle();
    const model::MarkFile& both = *viewer.program.session.current()->marks;
    EXPECT_EQ(both.marks.all().size(), 2U);
    ASSERT_EQ(both.views.size(), 2U);
    EXPECT_EQ(both.view(3)->name, "my view");
    EXPECT_EQ(both.view(1)->name, "a view");
}

// --- identity

TEST_F(SessionFileTest, AnIdentityIsOfTheContent) {
    const auto identity = [&](const std::string& name) {
        model::Session session;
        session.open_file(path(name));
        while (session.loading()) session.poll();
        return model::identity_of(*session.trace());
    };
    std::filesystem::copy(path("runs/run.sqlite"), path("copy.sqlite"));
    write_trace("longer.sqlite", 2, 3);
    const model::TraceIdentity first = identity("runs/run.sqlite");
    EXPECT_EQ(identity("copy.sqlite"), first);
    EXPECT_NE(identity("longer.sqlite").content, first.content);
    EXPECT_GT(first.events, 0);
}

TEST(EventPlace, IsFoundAgainForEveryEvent) {
    const model::TracePtr trace = mlp_sample({.per_linear = true, .ranks = 2}, "run");
    int events = 0;
    for (const model::EventKind kind : {model::EventKind::device, model::EventKind::range,
                                        model::EventKind::runtime, model::EventKind::wait}) {
        for (std::int64_t i = 0;; i += 7) {
            const model::SelectedEvent event{kind, i};
            const model::EventPlace place = model::place_of(*trace, event);
            if (place.kind == model::EventKind::none) break;
            EXPECT_EQ(model::event_at(*trace, place), event) << i;
            ++events;
        }
    }
    EXPECT_GT(events, 30);
    EXPECT_EQ(model::event_at(*trace, {model::EventKind::device, 5, "absent"}), model::SelectedEvent{});
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::app
