// State that is restored at the next start, files that change while they are open, and colours for
// colour-blind users.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viewer/mlp_sample.h"
#include "traces/lanes/lane.h"
#include "traces/report/timeline/html_timeline.h"
#include "traces/store/write/writer.h"
#include "viewer/app/saved_state.h"
#include "viewer/model/file_stamp.h"
#include "viewer/model/same_event.h"
#include "viewer/theme/theme.h"
#include "viewer/timeline/color_modes.h"

namespace shardscope::viewer::app {
namespace TEST_FILE {

using testing::HasSubstr;

class StateTest : public testing::Test {
  protected:
    StateTest() {
        std::string name = (std::filesystem::temp_directory_path() / "shardscope-state-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
        folder_ = name;
        tables::table_memory().clear();
    }
    ~StateTest() override {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
        tables::table_memory().clear();
        theme::set_appearance(theme::Appearance::dark);
    }
    std::string path(const std::string& name) const { return folder_ + "/" + name; }

    static void write_sample(const std::string& file, int ranks) {
        traces::store::DatabaseWriter writer({.path = file, .overwrite = true});
        write_mlp_sample({.per_linear = true, .ranks = ranks}, writer);
        writer.finish(20'000'000, 0);
    }
    static void settle(model::Session& session) {
        for (int i = 0; (session.loading() || i == 0) && i < 20'000; ++i) {
            session.poll();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        ASSERT_FALSE(session.loading());
    }

    std::string folder_;
};

class PlainPanel final : public model::Panel {
  public:
    explicit PlainPanel(std::string name) : name_(std::move(name)) {}
    std::string_view name() const override { return name_; }
    void draw(model::Session&, const model::Frame&) override {}
    std::string saved() const override { return kept; }
    void restore(std::string_view saved) override { kept = saved; }
    std::string kept;

  private:
    std::string name_;
};

void add_panels(Program& program) {
    for (const char* name : {"runs", "timeline", "memory"})
        program.panels.push_back(std::make_unique<PlainPanel>(name));
}

TEST_F(StateTest, IsRestored) {
    SavedState state;
    state.session.traces = {{.path = "/a/run.sqlite", .place = {.limit = model::TimeRange{10, 20}}},
                            {.path = "/b.json", .merged = {"/b.json", "/c.json"}}};
    state.session.active = "/b.json";
    state.session.panel = "memory";
    state.session.color_by = model::ColorBy::unit;
    state.session.panes = "timeline /40 (memory | runs)";
    state.session.second = "units";
    state.second_desk = {800, 600, false};
    state.appearance = "light";
    state.zoom = 150;
    state.rail = RailWidth::narrow;
    state.follow = state.keep_columns = false;
    state.recent = {"/a/run.sqlite"};
    state.desk = {1280, 720, true};
    state.keys = {{"fit", {"Ctrl+J"}}, {"zoom_in", {}}};
    state.panels = {{"query", "select 1"}};
    state.tables = {{"units", {"gather_us", true, {"bytes"}}}};
    std::vector<std::string> left_out;
    EXPECT_EQ(parse_state(to_json(state), left_out), state);
    EXPECT_THAT(left_out, testing::IsEmpty());
    EXPECT_EQ(write_state(path("deep/down/viewer.json"), state), "");
    std::string message;
    EXPECT_EQ(read_state(path("deep/down/viewer.json"), message), state);
    EXPECT_EQ(message, "");
    const auto mode = std::filesystem::status(path("deep/down/viewer.json")).permissions();
    EXPECT_EQ(mode & (std::filesystem::perms::group_all | std::filesystem::perms::others_all),
              std::filesystem::perms::none);
}

TEST_F(StateTest, ReadsTheTracesOfAnOlderState) {
    std::vector<std::string> left_out;
    const SavedState state = parse_state(R"({
        "traces": [{"path": "/a.sqlite", "merged": [], "visible": [10, 20], "limit": [12, 15],
                    "rows": "{\"grouping\": \"kind\", \"hidden\": [\"rank 0\"]}"},
                   {"path": "/b.sqlite", "merged": [], "visible": [1, 2], "limit": null, "rows": ""}],
        "window": {"width": 0, "height": 0, "maximized": true}})",
                                         left_out);
    EXPECT_THAT(left_out, testing::IsEmpty());
    ASSERT_EQ(state.session.traces.size(), 2U);
    const model::Place& place = state.session.traces[0].place;
    EXPECT_EQ(place.visible, (model::TimeRange{10, 20}));
    EXPECT_EQ(place.limit, (model::TimeRange{12, 15}));
    EXPECT_EQ(place.rows.grouping, model::RowArrangement::Grouping::kind);
    EXPECT_THAT(place.rows.hidden, testing::ElementsAre("rank 0"));
    EXPECT_EQ(state.session.traces[1].place.visible, (model::TimeRange{1, 2}));
    EXPECT_EQ(state.session.traces[1].place.limit, std::nullopt);
    EXPECT_TRUE(state.desk.maximized);
}

TEST_F(StateTest, AWindowThatNoScreenHasIsNotRestored) {
    std::vector<std::string> left_out;
    for (const char* size : {R"({"width": 5, "height": 700})", R"({"width": 800, "height": 99999})", "{}"})
        EXPECT_EQ(parse_state(fmt::format(R"({{"window": {}}})", size), left_out).desk, Desk{}) << size;
}

TEST_F(StateTest, ADamagedStateIsIgnoredWithAMessage) {
    for (const char* text : {"", "{", "[]", "\xff\xfe"}) {
        std::ofstream(path("viewer.json"), std::ios::binary | std::ios::trunc) << text;
        std::string message;
        EXPECT_FALSE(read_state(path("viewer.json"), message)) << text;
        EXPECT_THAT(message, HasSubstr("viewer.json: the saved state is damaged")) << text;
    }
    std::string message;
    EXPECT_FALSE(read_state(path("absent.json"), message));
    EXPECT_EQ(message, "");  // a first start has no error
}

TEST_F(StateTest, WhatCannotBeReadIsLeftOutWithAMessageAndTheRestRestored) {
    for (const auto& [value, place] : std::initializer_list<std::pair<const char*, const char*>>{
             {R"("zoom": "large")", "zoom"},
             {R"("zoom": 18446744073709551615)", "zoom"},
             {R"("follow": 1)", "follow"},
             {R"("traces": [{}])", "traces[0]"},
             {R"("traces": [{"path": 5}])", "traces[0].path"},
             {R"("tables": 5)", "tables"},
             {R"("keys": {"fit": ["F", 7]})", "keys.fit[1]"},
             {R"("traces": [{"path": "a", "place": {"visible": [1]}}])", "traces[0].place.visible"},
             {R"("traces": [{"path": "a", "place": {"limit": [0, 9223372036854775807]}}])",
              "traces[0].place.limit"}}) {
        std::ofstream(path("viewer.json"), std::ios::binary | std::ios::trunc)
            << fmt::format(R"({{"panel": "memory", {}}})", value);
        std::string message;
        const auto state = read_state(path("viewer.json"), message);
        ASSERT_TRUE(state) << value;
        EXPECT_EQ(state->session.panel, "memory");
        EXPECT_EQ(state->zoom, 100);
        EXPECT_THAT(message, HasSubstr(fmt::format("without what cannot be read: {}", place))) << value;
    }
}

TEST_F(StateTest, IsKeptWhereTheSystemKeepsStates) {
    ::setenv("XDG_STATE_HOME", "/states", 1);
    EXPECT_EQ(state_path(), "/states/shardscope/viewer.json");
    ::setenv("XDG_STATE_HOME", "relative", 1);
    ::setenv("HOME", "/home/someone", 1);
    EXPECT_EQ(state_path(), "/home/someone/.local/state/shardscope/viewer.json");
    ::unsetenv("XDG_STATE_HOME");
    EXPECT_THAT(write_state("/proc/shardscope/viewer.json", {}), HasSubstr("cannot be saved"));
}

TEST_F(StateTest, ReopensTheTracesThatWereOpen) {
    write_sample(path("one.sqlite"), 2);
    write_sample(path("two.sqlite"), 2);
    SavedState state;
    {
        Program program;
        add_panels(program);
        program.open(path("one.sqlite"));
        program.open(path("two.sqlite"));
        settle(program.session);
        program.arrange("timeline /25 memory");
        program.arrange_second("runs");
        program.second_desk = {900, 700, false};
        program.show("memory");
        program.session.open[1].visible = {1000, 9000};
        program.session.open[1].limit = model::TimeRange{2000, 3000};
        program.set_appearance(theme::Appearance::light);
        program.set_zoom(150);
        static_cast<PlainPanel&>(*program.panels[1]).kept = "order";
        tables::table_memory()["units"] = {"bytes", true, {}};
        state = state_of(program);
    }
    std::filesystem::remove(path("one.sqlite"));
    theme::set_appearance(theme::Appearance::dark);
    tables::table_memory().clear();
    Program program;
    add_panels(program);
    restore(state, program, true);
    ASSERT_EQ(program.session.open.size(), 1U);  // a missing file is ignored
    settle(program.session);
    EXPECT_EQ(program.session.current()->name, "two.sqlite");
    EXPECT_EQ(program.session.current()->visible, (model::TimeRange{1000, 9000}));
    EXPECT_EQ(program.session.current()->limit, (model::TimeRange{2000, 3000}));
    EXPECT_EQ(program.shown().name(), "memory");
    EXPECT_EQ(program.panes.text(), "timeline /25 memory");
    ASSERT_TRUE(program.elsewhere);
    EXPECT_EQ(program.elsewhere->text(), "runs");
    EXPECT_EQ(program.second_desk.width, 900);
    EXPECT_EQ(theme::appearance(), theme::Appearance::light);
    EXPECT_EQ(program.zoom, 150);
    EXPECT_EQ(program.recent.front(), path("two.sqlite"));
    EXPECT_EQ(static_cast<PlainPanel&>(*program.panels[1]).kept, "order");
    EXPECT_EQ(tables::table_memory()["units"].sorted_by, "bytes");
}

TEST_F(StateTest, PanesOfPanelsThatAreGoneAreNotRestored) {
    Program program;
    add_panels(program);
    SavedState state;
    state.session.panes = "timeline | crystal_ball";
    state.session.panel = "memory";
    state.session.second = "memory | memory";
    restore(state, program, false);
    EXPECT_EQ(program.panes.text(), "memory");
    EXPECT_FALSE(program.elsewhere);
    // A panel is in one window.
    EXPECT_FALSE(program.arrange_second("timeline | memory"));
    EXPECT_TRUE(program.arrange_second("timeline | runs"));
    EXPECT_FALSE(program.arrange("memory | runs"));
    program.show("runs");
    EXPECT_EQ(program.panes.text(), "memory");
    EXPECT_EQ(program.elsewhere->shown(), "runs");
    program.put(0, "timeline");
    EXPECT_EQ(program.panes.text(), "timeline");
    EXPECT_EQ(program.elsewhere->text(), "memory | runs");
}

// --- files that change

TEST_F(StateTest, SaysWhatBecameOfAFile) {
    std::ofstream(path("a")) << "12345";
    const model::FileStamp before = model::stamp_of(path("a"));
    EXPECT_EQ(change_of(before, model::stamp_of(path("a"))), "");
    std::ofstream(path("a"), std::ios::app) << "6";
    EXPECT_EQ(change_of(before, model::stamp_of(path("a"))), "has changed since it was read");
    std::filesystem::resize_file(path("a"), 1);
    EXPECT_EQ(change_of(before, model::stamp_of(path("a"))), "is shorter than when it was read");
    std::ofstream(path("b")) << "12345";
    std::filesystem::rename(path("b"), path("a"));
    EXPECT_EQ(change_of(before, model::stamp_of(path("a"))), "was replaced by another file");
    std::filesystem::remove(path("a"));
    EXPECT_EQ(change_of(before, model::stamp_of(path("a"))), "is gone");
}

TEST_F(StateTest, AFileThatWasReplacedStaysInSightUntilItIsReadAgain) {
    write_sample(path("run.sqlite"), 2);
    model::Session session;
    session.open_file(path("run.sqlite"));
    settle(session);
    session.selected = {model::EventKind::device, 3};
    const std::int64_t start = session.trace()->device.start[3];
    write_sample(path("new.sqlite"), 4);
    std::filesystem::rename(path("new.sqlite"), path("run.sqlite"));
    bool news = false;
    for (int i = 0; i < 3000 && !news; ++i) {
        news = session.poll_files();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(news);
    EXPECT_THAT(session.current()->notice, HasSubstr("was replaced by another file"));
    EXPECT_EQ(session.trace()->ranks.size(), 2U);
    const model::TimeRange limit{1'000'000, 2'000'000};
    session.current()->limit = limit;
    session.reload(0);
    settle(session);
    EXPECT_EQ(session.trace()->ranks.size(), 4U);
    EXPECT_EQ(session.current()->notice, "");
    EXPECT_EQ(session.current()->limit, limit);
    ASSERT_EQ(session.selected.kind, model::EventKind::device);  // the same event, wherever it is now
    EXPECT_EQ(session.trace()->device.start[static_cast<std::size_t>(session.selected.index)], start);
}

// The new file has a rank and a unit before those that are selected.
TEST_F(StateTest, AReloadKeepsTheSelectedRankAndUnit) {
    const auto write = [&](const std::vector<int>& ranks, const std::vector<int>& units) {
        traces::store::DatabaseWriter writer({.path = path("run.sqlite"), .overwrite = true});
        for (const int rank : ranks) writer.add(traces::schema::RankRow{.rank = rank, .device = rank});
        for (const int id : units) writer.add(traces::schema::UnitRow{.id = id, .name = "unit"});
        writer.finish(20'000'000, 0);
    };
    write({1}, {4});
    model::Session session;
    session.open_file(path("run.sqlite"));
    settle(session);
    ASSERT_TRUE(session.choose_rank(1));
    session.selected_unit = session.trace()->unit_of_id(4);
    write({0, 1}, {2, 4});
    session.reload(0);
    settle(session);
    ASSERT_EQ(session.trace()->ranks.size(), 2U);
    EXPECT_EQ(session.trace()->ranks[session.rank.at()].number, 1);
    EXPECT_EQ(session.trace()->units.at(session.selected_unit.at()).id, 4);
}

TEST_F(StateTest, AFileThatWasTruncatedLeavesWhatWasRead) {
    write_sample(path("run.sqlite"), 2);
    model::Session session;
    session.open_file(path("run.sqlite"));
    settle(session);
    std::filesystem::resize_file(path("run.sqlite"), 100);
    session.reload(0);
    settle(session);
    EXPECT_NE(session.trace(), nullptr);
    EXPECT_THAT(session.current()->notice, HasSubstr("What was read before is still shown."));
    EXPECT_EQ(session.current()->error, "");
}

TEST_F(StateTest, AGrowingRunIsReloaded) {
    const std::string file = path("live.sqlite");
    traces::store::DatabaseWriter writer({.path = file});
    write_mlp_sample({.per_linear = true, .ranks = 2, .steps = 1}, writer);
    writer.commit();
    model::Session session;
    session.open_file(file);
    settle(session);
    ASSERT_NE(session.trace(), nullptr) << session.current()->error;
    ASSERT_FALSE(session.trace()->ended);
    const std::size_t before = session.trace()->device.size();
    traces::schema::KernelRow kernel;
    kernel.start = 15'000'000;
    kernel.end = 15'001'000;
    kernel.stream = 7;
    kernel.correlation = 1'000'000;
    kernel.short_name = writer.intern("later");
    writer.add(kernel);
    writer.commit();
    bool grown = false;
    for (int i = 0; i < 10'000 && !grown; ++i) {
        session.poll_files();
        session.poll();
        grown = session.trace()->device.size() > before;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(grown);
    EXPECT_EQ(session.current()->notice, "");
    EXPECT_THAT(run_state(*session.current()), HasSubstr("running, step 1, "));
    session.current()->grew.reset();  // as after a while without growth
    EXPECT_EQ(run_state(*session.current()), "stopped a moment ago without finishing");
}

// --- colours

// The HTML timeline is drawn without the viewer, in its colours. A mark is as light or dark as the text.
TEST(Colors, OfTheHtmlTimelineAreTheViewers) {
    for (int paint = 0; paint < traces::lanes::kKindPaints; ++paint) {
        if (paint == traces::lanes::kMarkPaint) continue;
        const std::uint32_t color = traces::report::kTimelineColors[static_cast<std::size_t>(paint)];
        EXPECT_EQ(theme::rgb(color), timeline::paint_color(static_cast<traces::lanes::Paint>(paint)))
            << traces::lanes::paint_name(static_cast<traces::lanes::Paint>(paint));
    }
}

using Rgb = std::array<double, 3>;

// sRGB to linear light (IEC 61966-2-1).
Rgb linear(theme::Color color) {
    Rgb out{};
    for (int i = 0; i < 3; ++i) {
        const double c = static_cast<double>(color >> (8 * i) & 0xFF) / 255;
        out[static_cast<std::size_t>(i)] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
    }
    return out;
}

// Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency"
// (IEEE TVCG 15(6), 2009), matrices for severity 1.0, applied to linear light.
constexpr double kProtanopia[3][3] = {
    {0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}};
constexpr double kDeuteranopia[3][3] = {
    {0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}};

Rgb seen(const Rgb& light, const double (&eye)[3][3]) {
    Rgb out{};
    for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t j = 0; j < 3; ++j) out[i] += eye[i][j] * light[j];
        out[i] = std::clamp(out[i], 0.0, 1.0);
    }
    return out;
}

// CIE 1976 L*a*b* with the white of sRGB (D65); their distance is Delta E*ab.
Rgb lab(const Rgb& c) {
    const double x = (0.4124 * c[0] + 0.3576 * c[1] + 0.1805 * c[2]) / 0.95047;
    const double y = 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
    const double z = (0.0193 * c[0] + 0.1192 * c[1] + 0.9505 * c[2]) / 1.08883;
    const auto f = [](double t) { return t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116; };
    return {116 * f(y) - 16, 500 * (f(x) - f(y)), 200 * (f(y) - f(z))};
}

double distance(const Rgb& a, const Rgb& b) {
    return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

TEST(Colours, DifferPerKindForColourBlindUsers) {
    constexpr double kApart = 15;  // Delta E*ab; about 2.3 is just noticeable side by side
    for (int a = 0; a < traces::store::kDeviceKinds; ++a) {
        for (int b = 0; b < a; ++b) {
            const Rgb x = linear(theme::kind_color(static_cast<traces::store::DeviceKind>(a)));
            const Rgb y = linear(theme::kind_color(static_cast<traces::store::DeviceKind>(b)));
            EXPECT_GT(distance(lab(x), lab(y)), kApart) << a << " " << b;
            EXPECT_GT(distance(lab(seen(x, kProtanopia)), lab(seen(y, kProtanopia))), kApart)
                << a << " " << b;
            EXPECT_GT(distance(lab(seen(x, kDeuteranopia)), lab(seen(y, kDeuteranopia))), kApart)
                << a << " " << b;
        }
    }
}

// Both for runs next to each other, of which there are seldom more than four, and for runs next to kinds of
// work.
TEST(Colours, DifferPerRunAndFromThoseOfKinds) {
    constexpr double kApart = 15;
    for (int a = 0; a < 4; ++a) {
        const Rgb x = linear(theme::run_color(a));
        for (int b = 0; b < a; ++b) {
            const Rgb y = linear(theme::run_color(b));
            EXPECT_GT(distance(lab(x), lab(y)), kApart) << a << " " << b;
            EXPECT_GT(distance(lab(seen(x, kProtanopia)), lab(seen(y, kProtanopia))), kApart)
                << a << " " << b;
            EXPECT_GT(distance(lab(seen(x, kDeuteranopia)), lab(seen(y, kDeuteranopia))), kApart)
                << a << " " << b;
        }
    }
    for (int run = 0; run < 8; ++run) {
        for (int kind = 0; kind < traces::store::kDeviceKinds; ++kind) {
            const Rgb x = linear(theme::run_color(run)),
                      y = linear(theme::kind_color(static_cast<traces::store::DeviceKind>(kind)));
            EXPECT_GT(distance(lab(x), lab(y)), kApart) << run << " " << kind;
        }
    }
}

TEST(Colours, TextIsLegibleInBothAppearances) {
    // Web Content Accessibility Guidelines 2.1, contrast ratio: 4.5 for text, 3 for large text and icons.
    const auto luminance = [](theme::Color c) {
        const Rgb l = linear(c);
        return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2];
    };
    const auto contrast = [&](theme::Color a, theme::Color b) {
        const double x = luminance(a), y = luminance(b);
        return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
    };
    for (const theme::Appearance appearance : {theme::Appearance::dark, theme::Appearance::light}) {
        theme::set_appearance(appearance);
        for (const theme::Color ground : {theme::ground(), theme::surface(), theme::raised()}) {
            EXPECT_GE(contrast(theme::text(), ground), 7);
            EXPECT_GE(contrast(theme::text_dim(), ground), 4.5);
            EXPECT_GE(contrast(theme::bad(), ground), 4.5);
            EXPECT_GE(contrast(theme::accent(), ground), 3);
        }
    }
    theme::set_appearance(theme::Appearance::dark);
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::app
