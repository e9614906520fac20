// Links as text, and saved views and links as a user meets them: the trace under another name, changed, or
// not open; links that are damaged, hostile or lead to a place that is gone.
#include "viewer/model/link.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viewer/mlp_sample.h"
#include "tests/viewer/text_viewer.h"
#include "traces/store/write/writer.h"
#include "viewer/app/actions.h"
#include "viewer/model/fields.h"
#include "viewer/model/go_to_place.h"

namespace shardscope::viewer::app {
namespace TEST_FILE {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

model::Link full_link() {
    return {
        .trace = "a b&c=d%.sqlite",
        .identity = {"run", "content", 2677},
        .view = {.panel = "timeline",
                 .color_by = model::ColorBy::unit,
                 .content = "SELECT \"x\" FROM k\n-- \xC3\xB6",
                 .place = {
                     .visible = model::TimeRange{-5, 50},
                     .limit = model::TimeRange{10, 20},
                     .lit = model::TimeRange{11, 12},
                     .cursor = 15,
                     .area = model::MarkedArea{.time = {1, 2}, .rows = {"rank 0"}, .name = "gemm"},
                     .rows = {},
                     .rank = 3,
                     .selected =
                         {.kind = model::EventKind::range, .start = 7, .name = "123", .rank = 2, .detail = 4},
                     .module = 5,
                     .unit = 6}}};
}

TEST(Link, ComesBackWithEveryField) {
    const model::Link link = full_link();
    int fields_of_link = 0;
    fields(link, [&](const char* key, const auto& member) {
        ++fields_of_link;
        EXPECT_NE(model::field_json(member), model::field_json(std::remove_cvref_t<decltype(member)>{}))
            << key << " has its default value: this test says nothing of it";
    });
    EXPECT_EQ(fields_of_link, 20);
    const std::string text = model::link_text(link);
    EXPECT_EQ(text.find_first_of(" \"<>\n\\^`{|}"), std::string::npos) << text;
    for (const std::string& copied : {text, " \n" + text + "\r\n"}) {
        const model::ReadLink read = model::parse_link(copied);
        EXPECT_EQ(read.link, link);
        EXPECT_THAT(read.left_out, IsEmpty());
    }
}

TEST(Link, SaysWhyATextIsNone) {
    for (const auto& [text, why] : std::initializer_list<std::pair<std::string, const char*>>{
             {"", "it does not begin with shardscope:"},
             {"https://example.org", "it does not begin with shardscope:"},
             {"shardscope:", "it has no version"},
             {"shardscope:0?id=a", "it has no version"},
             {"shardscope:2?id=a", "a newer version of shardscope-view made it (format 2, this one reads 1)"},
             {"shardscope:1", "it names no trace"},
             {"shardscope:1?trace=a&&&=&==", "it names no trace"},
             {"shardscope:1?id=%4", "\"%4\" is no character"},
             {"shardscope:1?id=%zz", "\"%zz\" is no character"},
             {"shardscope:1?id=" + std::string(20'000, 'a'), "it is longer than 16384 characters"},
             {"shardscope:1?area=" + std::string(16'000, '['), "it names no trace"}}) {
        try {
            model::parse_link(text);
            ADD_FAILURE() << text;
        } catch (const std::runtime_error& error) {
            EXPECT_THAT(error.what(), HasSubstr(why)) << text.substr(0, 100);
        }
    }
}

TEST(Link, LeavesOutWhatCannotBeRead) {
    const model::ReadLink read = model::parse_link(
        "shardscope:1?id=a&visible=9,3&limit=1&rank=x&unit=99999999999&event=ghost&colour=red&panel=memory&"
        "limit=4,5");
    EXPECT_THAT(read.left_out, testing::UnorderedElementsAre("visible", "rank", "unit", "event"));
    EXPECT_EQ(read.link.view.panel, "memory");
    EXPECT_EQ(read.link.view.place.limit, (model::TimeRange{4, 5}));
}

// --- with traces

class PlacesTest : public testing::Test {
  protected:
    PlacesTest() {
        std::string name = (std::filesystem::temp_directory_path() / "shardscope-places-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
        folder_ = name;
        write_trace("run.sqlite", 3);
        viewer_.program.open(path("run.sqlite"));
        viewer_.settle();
    }
    ~PlacesTest() override {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    std::string path(const std::string& name) const { return folder_ + "/" + name; }
    void write_trace(const std::string& name, int steps, int ranks = 2) const {
        traces::store::DatabaseWriter writer({.path = path(name), .overwrite = true});
        write_mlp_sample({.per_linear = true, .ranks = ranks, .steps = steps}, writer);
        writer.finish(20'000'000, 0);
    }
    // Goes to a place that no other test trace has by itself.
    static void go_somewhere(Viewer& viewer) {
        model::Session& session = viewer.program.session;
        viewer.program.show("query");
        viewer.text(2) = "SELECT 42";
        session.choose_rank(1);
        session.current()->visible = {1'000'000, 2'000'000};
        session.current()->limit = model::TimeRange{1'200'000, 1'400'000};
        session.selected = {model::EventKind::device, 9};
    }
    std::string link_to_somewhere() {
        go_somewhere(viewer_);
        copy_link(viewer_.program);
        return viewer_.program.to_clipboard;
    }
    static void leave(Viewer& viewer) {
        viewer.program.show("start");
        viewer.text(2) = "";
        viewer.program.session.selected = {};
        viewer.program.session.fit();
        viewer.program.session.current()->limit.reset();
        viewer.program.session.rank = traces::store::RankIndex(0);
    }
    static model::Place place(const Viewer& viewer) {
        return model::place_of(viewer.program.session, viewer.program.session.active);
    }

    std::string folder_;
    Viewer viewer_;
};

TEST_F(PlacesTest, AViewIsShownAgainByItsKey) {
    go_somewhere(viewer_);
    const model::Place there = place(viewer_);
    ASSERT_TRUE(run_action("save_view_4", viewer_.program));
    EXPECT_EQ(viewer_.program.notice, "View 4 is \"Query, 1.20 ms to 1.40 ms\" now.");
    leave(viewer_);
    ASSERT_TRUE(run_action("view_4", viewer_.program));
    EXPECT_EQ(place(viewer_), there);
    EXPECT_EQ(viewer_.program.shown().name(), "query");
    EXPECT_EQ(viewer_.text(2), "SELECT 42");
    // In another viewer, with the trace as it was read anew.
    rename_view(viewer_.program, 4, "the gap");
    Viewer other;
    other.program.open(path("run.sqlite"));
    other.settle();
    EXPECT_EQ(title_of(*find_action("view_4"), other.program), "4  the gap");
    EXPECT_EQ(title_of(*find_action("view_5"), other.program), "Go to view 5");
    go_to_view(other.program, 4);
    EXPECT_EQ(place(other), there);
    go_to_view(other.program, 5);
    EXPECT_EQ(other.program.notice, "No view 5 is saved for this trace; Ctrl+Shift+5 saves what is shown.");
    save_view(other.program, 4);
    EXPECT_THAT(other.program.notice, HasSubstr("It was \"the gap\"."));
    remove_view(other.program, 4);
    EXPECT_EQ(view_name(other.program, 4), "");
    Viewer none;
    save_view(none.program, 1);
    EXPECT_EQ(none.program.notice, "Open a trace first.");
}

TEST_F(PlacesTest, ALinkLeadsToTheSamePlaceInACopy) {
    const std::string link = link_to_somewhere();
    std::filesystem::copy(path("run.sqlite"), path("copy.sqlite"));
    write_trace("other.sqlite", 2);
    Viewer other;
    follow_link(other.program, link);  // as on the command line, before the files are read
    other.program.open(path("copy.sqlite"));
    other.program.open(path("other.sqlite"));
    other.settle();
    EXPECT_THAT(other.program.problems, IsEmpty());
    EXPECT_FALSE(other.program.link);
    EXPECT_EQ(other.program.session.current()->name, "copy.sqlite");
    EXPECT_EQ(place(other), place(viewer_));
    EXPECT_EQ(other.text(2), "SELECT 42");
}

TEST_F(PlacesTest, ALinkFindsItsTraceAmongTheRecentFilesOrWaitsForIt) {
    const std::string link = link_to_somewhere();
    std::filesystem::create_directories(path("old"));
    write_trace("old/run.sqlite", 2);
    Viewer other;
    other.program.recent = {path("old/run.sqlite"), path("absent/run.sqlite"), path("run.sqlite")};
    follow_link(other.program, link);
    for (int i = 0; i < 4; ++i) other.settle();
    EXPECT_THAT(other.program.problems, IsEmpty());
    ASSERT_EQ(other.program.session.open.size(), 1U);  // the other run.sqlite is closed again
    EXPECT_EQ(place(other), place(viewer_));

    Viewer waits;
    waits.program.open(path("old/run.sqlite"));
    follow_link(waits.program, link);
    for (int i = 0; i < 4; ++i) waits.settle();
    EXPECT_THAT(waits.program.problems,
                ElementsAre(HasSubstr(
                    "and no open trace has this content; open it, and the link goes to its place.")));
    std::filesystem::rename(path("run.sqlite"), path("moved.sqlite"));
    waits.program.open(path("moved.sqlite"));
    waits.settle();
    EXPECT_THAT(waits.program.problems, IsEmpty());
    EXPECT_EQ(place(waits), place(viewer_));
}

TEST_F(PlacesTest, ALinkToAPlaceThatIsGoneSaysWhatAndGoesToTheRest) {
    model::Link link = model::parse_link(link_to_somewhere()).link;
    link.view.panel = "loss";
    link.view.place.rank = 7;
    link.view.place.selected.name = "absent";
    link.view.place.unit = 1234;
    leave(viewer_);
    follow_link(viewer_.program, model::link_text(link));
    viewer_.settle();
    EXPECT_THAT(viewer_.program.problems,
                ElementsAre(testing::MatchesRegex(
                    "run.sqlite lacks rank 7, the event \"absent\" at .* and 2 more.|"
                    "run.sqlite lacks rank 7, the event \"absent\" at .*, unit 1234 and 1 more.")));
    EXPECT_EQ(viewer_.program.session.current()->limit, (model::TimeRange{1'200'000, 1'400'000}));
    link.view.place = {.visible = model::TimeRange{1'000'000'000'000, 1'000'000'000'001}};
    viewer_.program.problems.clear();
    follow_link(viewer_.program, model::link_text(link));
    viewer_.settle();
    EXPECT_THAT(viewer_.program.problems,
                ElementsAre(HasSubstr("lacks the visible time and the panel \"loss\"")));
    EXPECT_EQ(viewer_.program.session.current()->visible,
              model::Session::whole(*viewer_.program.session.trace()));
}

TEST_F(PlacesTest, ALinkOfARunThatHasGrownSaysSo) {
    model::Link link = model::parse_link(link_to_somewhere()).link;
    link.identity.content = "of another time";
    link.identity.events = 5;
    const auto follow = [&] {
        follow_link(viewer_.program, model::link_text(link));
        viewer_.settle();
        return viewer_.program.problems.empty() ? std::string() : viewer_.program.problems.back();
    };
    EXPECT_THAT(follow(), HasSubstr("run.sqlite has changed since the link was made: 5 events then, "));
    link.identity.run = "another run";
    EXPECT_THAT(follow(), HasSubstr("no open trace has this content"));
}

TEST_F(PlacesTest, ADamagedLinkChangesNothing) {
    const model::Place before = place(viewer_);
    for (const std::string& link : {std::string("shardscope:1?id=%"), std::string(1 << 20, 's'),
                                    "shardscope:1?id=" + std::string(1 << 20, '%')}) {
        viewer_.program.problems.clear();
        follow_link(viewer_.program, link);
        viewer_.settle();
        ASSERT_EQ(viewer_.program.problems.size(), 1U);
        EXPECT_THAT(viewer_.program.problems[0], HasSubstr("The link cannot be followed: it "));
        EXPECT_LT(viewer_.program.problems[0].size(), 200U);
    }
    EXPECT_EQ(place(viewer_), before);
    viewer_.program.problems.clear();
    follow_link(viewer_.program, "shardscope:1?id=a&trace=x%0A%1B%FF" + std::string(500, 'y'));
    viewer_.settle();
    EXPECT_THAT(viewer_.program.problems, ElementsAre(HasSubstr("The link is to x")));
    EXPECT_EQ(viewer_.program.problems[0].find_first_of("\n\x1B\xFF"), std::string::npos);
    EXPECT_LT(viewer_.program.problems[0].size(), 250U);
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::app
