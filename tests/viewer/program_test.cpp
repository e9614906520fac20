// The program without its window: session, analyses outside the frame thread, actions, command line, folders.
#include <atomic>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viewer/mlp_sample.h"
#include "traces/store/write/writer.h"
#include "viewer/app/actions.h"
#include "viewer/app/changed_keys.h"
#include "viewer/app/folder_listing.h"
#include "viewer/app/options.h"
#include "viewer/app/redraw.h"
#include "viewer/model/session.h"
#include "viewer/panels/idle/path_rows.h"
#include "viewer/theme/theme.h"
#include "viewer/timeline/color_modes.h"

namespace shardscope::viewer::app {
namespace TEST_FILE {

using testing::ElementsAre;
using testing::HasSubstr;

class Folder {
  public:
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "shardscope-view-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
        path_ = name;
    }
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

void write_sample(const std::string& path, bool per_linear) {
    traces::store::DatabaseWriter writer({.path = path});
    write_mlp_sample({.per_linear = per_linear}, writer);
    writer.finish(20'000'000, 0);
}

void finish_loading(model::Session& session) {
    for (int i = 0; session.loading() && i < 5000; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        session.poll();
    }
    ASSERT_FALSE(session.loading());
}

// --- session
// ------------------------------------------------------------------------------------------------

TEST(Session, OpensSeveralFilesOnThreads) {
    const Folder folder;
    std::filesystem::create_directories(folder / "a");
    std::filesystem::create_directories(folder / "b");
    write_sample(folder / "a/run.sqlite", false);
    write_sample(folder / "b/run.sqlite", true);
    model::Session session;
    session.open_file(folder / "a/run.sqlite");
    session.open_file(folder / "b/run.sqlite");
    EXPECT_EQ(session.trace(), nullptr);
    finish_loading(session);
    ASSERT_EQ(session.ready().size(), 2U);
    EXPECT_EQ(session.open[0].name, "a/run.sqlite");  // two files with the same name
    EXPECT_EQ(session.open[1].name, "b/run.sqlite");
    EXPECT_NE(session.open[0].color, session.open[1].color);
    EXPECT_LT(session.open[0].visible.from, session.trace()->first_ns);
    EXPECT_GT(session.open[0].visible.to, session.trace()->last_ns);
    EXPECT_FALSE(session.open[0].limit);
}

TEST(Session, SaysWhyAFileIsNotATrace) {
    const Folder folder;
    std::ofstream(folder / "notes.txt") << "not a trace\n";
    model::Session session;
    session.open_file(folder / "notes.txt");
    session.open_file(folder / "absent.sqlite");
    finish_loading(session);
    EXPECT_THAT(session.open[0].error, HasSubstr("notes.txt"));
    EXPECT_THAT(session.open[1].error, HasSubstr("absent.sqlite"));
    EXPECT_TRUE(session.ready().empty());
}

TEST(Session, ClosesTheActiveTraceAndAnyOther) {
    model::Session session;
    for (const char* name : {"one", "two", "three"}) session.add_trace(mlp_sample({}, name), name);
    session.set_active(2);
    session.close(0);
    EXPECT_EQ(session.current()->name, "three");
    session.close(1);
    EXPECT_EQ(session.current()->name, "two");
    session.close(0);
    EXPECT_EQ(session.current(), nullptr);
    EXPECT_EQ(session.trace(), nullptr);
    session.close(0);  // nothing is open, and nothing happens
}

TEST(Session, KeepsTheRankWithinTheTrace) {
    model::Session session;
    session.add_trace(mlp_sample({.ranks = 4}, "four"), "four");
    session.add_trace(mlp_sample({.ranks = 2}, "two"), "two");
    session.set_active(0);
    session.rank = traces::store::RankIndex(3);
    session.selected = {model::EventKind::device, 5};
    session.set_active(1);
    EXPECT_EQ(session.rank, traces::store::RankIndex(1));
    EXPECT_EQ(session.selected.kind, model::EventKind::none);
}

TEST(Session, GivesEachTraceTheRequestedRange) {
    model::Session session;
    session.first_range = model::TimeRange{1000, 2000};
    session.add_trace(mlp_sample({}, "run"), "run");
    EXPECT_EQ(session.current()->visible, (model::TimeRange{1000, 2000}));
    EXPECT_EQ(model::Session::selection(*session.current()).from_ns, 1000);
    EXPECT_EQ(model::Session::selection(*session.current()).to_ns, 2000);
}

// --- analyses
// -----------------------------------------------------------------------------------------------

template <class Ask>
auto wait_for(model::AnalysisCache& cache, Ask ask) {
    auto result = ask();
    for (int i = 0; !result && i < 5000; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        result = ask();
    }
    EXPECT_FALSE(cache.busy());
    return result;
}

TEST(AnalysisCache, AnswersWhenItIsDoneAndKeepsTheAnswer) {
    model::AnalysisCache cache;
    const model::TracePtr trace = mlp_sample({}, "run");
    const auto summary = wait_for(cache, [&] { return cache.summary(trace); });
    ASSERT_NE(summary, nullptr);
    EXPECT_EQ(summary->ranks.size(), 2U);
    EXPECT_EQ(cache.summary(trace), summary);
    traces::analysis::Selection part;
    part.from_ns = 0;
    part.to_ns = 5'000'000;
    EXPECT_EQ(cache.summary(trace, part), nullptr);  // another query
    cache.forget(trace);
    EXPECT_EQ(cache.summary(trace), nullptr);  // queried again
}

// The window is closed: the trace that an analysis reads stays until the analysis ends, and nothing waits for
// it.
TEST(AnalysisCache, DoesNotWaitForAnAbandonedAnalysis) {
    struct Steps {
        std::promise<void> begun, may_end, ended;
    };
    const auto steps = std::make_shared<Steps>();
    {
        model::AnalysisCache cache;
        const auto slow = [steps](const std::vector<model::TracePtr>& traces) {
            steps->begun.set_value();
            steps->may_end.get_future().wait();
            EXPECT_EQ(traces.front()->ranks.size(), 2U);
            steps->ended.set_value();
            return 1;
        };
        EXPECT_EQ(cache.get<int>("slow", {mlp_sample({}, "run")}, slow), nullptr);
        steps->begun.get_future().wait();
        EXPECT_TRUE(cache.abandon());
    }
    steps->may_end.set_value();
    steps->ended.get_future().wait();
}

TEST(AnalysisCache, AbandonsNothingIfNoAnalysisRuns) {
    model::AnalysisCache cache;
    ASSERT_NE(wait_for(cache, [trace = mlp_sample({}, "run"), &cache] { return cache.summary(trace); }),
              nullptr);
    EXPECT_FALSE(cache.abandon());
}

TEST(AnalysisCache, NamesTheAnalysisThatFailedAndContinues) {
    model::AnalysisCache cache;
    const model::TracePtr trace = mlp_sample({}, "run");
    const auto fail = [](const auto&) -> int { throw std::runtime_error("out of luck"); };
    for (int i = 0; i < 5000 && cache.failure().empty(); ++i) {
        EXPECT_EQ(cache.get<int>("fails", {trace}, fail), nullptr);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_THAT(cache.failure(), HasSubstr("out of luck"));
    EXPECT_NE(wait_for(cache, [&] { return cache.info(trace); }), nullptr);
}

TEST(AnalysisCache, AFailureIsReportedOnRequestAndRemovedWithItsTrace) {
    model::AnalysisCache cache;
    const model::TracePtr bad = mlp_sample({}, "bad"), good = mlp_sample({}, "good");
    const auto fail = [](const auto&) -> int { throw std::runtime_error("out of luck"); };
    for (int i = 0; i < 5000 && cache.failure().empty(); ++i) {
        cache.get<int>("fails", {bad}, fail);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_NE(cache.failure(), "");
    cache.begin_frame();  // a query for another trace: the earlier failure does not affect it
    EXPECT_NE(wait_for(cache, [&] { return cache.info(good); }), nullptr);
    EXPECT_EQ(cache.failure(), "");
    cache.begin_frame();  // the query again: the answer is known
    EXPECT_EQ(cache.get<int>("fails", {bad}, fail), nullptr);
    EXPECT_FALSE(cache.busy());
    EXPECT_THAT(cache.failure(), HasSubstr("out of luck"));
    cache.forget(bad);
    EXPECT_EQ(cache.failure(), "");
}

TEST(AnalysisCache, AsksOfATraceThatWasReadAgainWhatWasOnShowOfTheOneBefore) {
    model::AnalysisCache cache;
    const model::TracePtr before = mlp_sample({}, "run"), after = mlp_sample({}, "run");
    const auto one = [](const auto& t) { return static_cast<int>(t.front()->ranks.size()); };
    const auto ask = [&](const model::TracePtr& of) { return cache.get<int>("ranks", {of}, one); };
    const auto sum = [](const auto&) { return 0; };
    ASSERT_NE(wait_for(cache, [&] { return cache.get<int>("long ago", {before}, sum); }), nullptr);
    cache.begin_frame();
    cache.begin_frame();
    ASSERT_NE(wait_for(cache, [&] { return ask(before); }), nullptr);
    ASSERT_NE(wait_for(cache, [&] { return cache.derived<int>("derived", {before}, sum); }), nullptr);
    cache.renew(before, after);
    for (int i = 0; i < 5000 && cache.busy_with(after); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_NE(ask(after), nullptr);                                   // without a wait
    EXPECT_EQ(cache.derived<int>("derived", {after}, sum), nullptr);  // it may contain data of `before`
    EXPECT_EQ(cache.get<int>("long ago", {after}, sum), nullptr);     // no panel queries it
}

// A panel of many runs makes more queries per frame than unused results are kept.
TEST(AnalysisCache, KeepsEverythingThatEveryFrameRequests) {
    model::AnalysisCache cache;
    const model::TracePtr trace = mlp_sample({}, "run");
    constexpr int kQuestions = 400;
    std::atomic<int> made = 0;
    bool all = false;
    for (int frame = 0; frame < 5000 && !all; ++frame) {
        all = true;
        for (int q = 0; q < kQuestions; ++q) {
            const auto answer = cache.get<int>(std::to_string(q), {trace}, [&made](const auto&) {
                ++made;
                return 1;
            });
            all = all && answer != nullptr;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(all);
    EXPECT_EQ(made, kQuestions) << "nothing is worked out twice";
}

// --- actions
// ------------------------------------------------------------------------------------------------

class NamedPanel final : public model::Panel {
  public:
    explicit NamedPanel(std::string name) : name_(std::move(name)) {}
    std::string_view name() const override { return name_; }
    void draw(model::Session&, const model::Frame&) override {}
    void act(std::string_view action, model::Session&) override { acted = action; }
    std::string acted;

  private:
    std::string name_;
};

void add_panels(Program& program) {
    for (const char* name : {"runs", "timeline", "modules", "summary", "memory", "compare"}) {
        program.panels.push_back(std::make_unique<NamedPanel>(name));
    }
}

void run(Program& program, std::string_view id) {
    for (const Action& action : actions()) {
        if (action.id == id) return action.run(program);
    }
    FAIL() << "no action " << id;
}

TEST(Actions, EachHasItsOwnNameHelpAndKeys) {
    std::set<std::string_view> ids;
    std::set<std::string> keys;
    for (const Action& action : actions()) {
        EXPECT_TRUE(ids.insert(action.id).second) << action.id;
        EXPECT_FALSE(action.title.empty());
        EXPECT_FALSE(action.keys.empty()) << action.id;
        // A key may have another meaning in another panel, but not if it has a global meaning.
        for (const model::Chord& chord : action.keys)
            EXPECT_TRUE(keys.insert(chord_text(chord) + " " + std::string(action.panel)).second)
                << chord_text(chord);
    }
    for (const Action& action : actions()) {
        if (action.panel.empty()) continue;
        for (const model::Chord& chord : action.keys)
            EXPECT_EQ(keys.count(chord_text(chord) + " "), 0U) << action.id << " " << chord_text(chord);
    }
}

TEST(Actions, EveryPanelHasAKey) {
    Program program;
    add_panels(program);
    for (const auto& panel : program.panels) {
        run(program, panel->name());
        EXPECT_EQ(program.shown().name(), panel->name());
    }
}

TEST(Actions, MoveTheVisibleRange) {
    Program program;
    add_panels(program);
    program.show("timeline");
    program.session.add_trace(mlp_sample({}, "run"), "run");
    const model::TimeRange all = program.session.current()->visible;
    run(program, "zoom_in");
    const model::TimeRange near = program.session.current()->visible;
    EXPECT_NEAR(static_cast<double>(near.length()), 0.75 * static_cast<double>(all.length()), 2);
    run(program, "later");
    EXPECT_GT(program.session.current()->visible.from, near.from);
    EXPECT_EQ(program.session.current()->visible.length(), near.length());
    run(program, "limit");
    EXPECT_EQ(program.session.current()->limit, program.session.current()->visible);
    // Actions that need the timeline's rows or the history of zooms belong to the panel.
    for (const char* id : {"fit", "zoom_to", "back"}) {
        run(program, id);
        EXPECT_EQ(static_cast<NamedPanel&>(program.shown()).acted, id);
    }
}

TEST(Actions, EscapeLetsGoOfOneThingAtATime) {
    Program program;
    add_panels(program);
    program.session.add_trace(mlp_sample({}, "run"), "run");
    program.session.selected = {model::EventKind::device, 1};
    run(program, "limit");
    run(program, "help");
    run(program, "let_go");
    EXPECT_FALSE(program.help);
    EXPECT_EQ(program.session.selected.kind, model::EventKind::device);
    run(program, "let_go");
    EXPECT_EQ(program.session.selected.kind, model::EventKind::none);
    EXPECT_TRUE(program.session.current()->limit);
    run(program, "let_go");
    EXPECT_FALSE(program.session.current()->limit);
}

TEST(Actions, DoNothingHarmfulWithoutATrace) {
    Program program;
    add_panels(program);
    for (const Action& action : actions()) action.run(program);
    EXPECT_TRUE(program.quit);
}

TEST(Actions, ReachTheVisiblePanel) {
    Program program;
    add_panels(program);
    program.show("timeline");
    run(program, "scroll_down");
    EXPECT_EQ(static_cast<NamedPanel&>(program.shown()).acted, "scroll_down");
    for (const Action& action : actions()) {
        EXPECT_EQ(is_available(action, program), action.panel.empty() || action.panel == "timeline")
            << action.id;
    }
    program.show("memory");
    for (const Action& action : actions()) EXPECT_EQ(is_available(action, program), action.panel.empty());
}

const Action& action_of(std::string_view id) {
    const Action* action = find_action(id);
    EXPECT_NE(action, nullptr) << id;
    return *action;
}

TEST(ChangedKeys, TakeAKeyFromActionsThatAreAvailableAtTheSameTime) {
    Program program;
    const model::Chord z{model::Key::z};
    EXPECT_EQ(change_key(action_of("next_rank"), &z, program),
              "Z is \"Next rank\" now. \"Zoom to the selection or the measure\" has lost it.");
    EXPECT_EQ(keys_text(action_of("next_rank"), program), "Z");
    EXPECT_EQ(keys_text(action_of("zoom_to"), program), "");
    // The timeline's and the schedule's keys never meet.
    const model::Chord w{model::Key::w};
    EXPECT_EQ(change_key(action_of("schedule_fit"), &w, program),
              "W is \"Fit the step\" now. \"Zoom in\" has lost it.");
    EXPECT_EQ(keys_text(action_of("zoom_in"), program), "W");
    EXPECT_EQ(keys_text(action_of("schedule_in"), program), "");
    // One of two keys is lost.
    const model::Chord left{model::Key::left};
    change_key(action_of("fit"), &left, program);
    EXPECT_EQ(keys_text(action_of("earlier"), program), "A");
    EXPECT_EQ(change_key(action_of("fit"), nullptr, program), "\"Fit the whole trace\" has no key now.");
    EXPECT_EQ(changed_keys(saved_keys(program.keys)), program.keys);
}

TEST(ChangedKeys, IgnoreWhatNamesNoActionOrKey) {
    const ChangedKeys keys = changed_keys({{"fit", {"Alt+Shift+F", "Hyper+F"}}, {"fly", {"F"}}});
    ASSERT_EQ(keys.size(), 1U);
    EXPECT_THAT(keys.at("fit"), ElementsAre(model::Chord{model::Key::f, false, true, true}));
}

TEST(Keys, AreWrittenAsOnAKeyboard) {
    EXPECT_EQ(model::chord_text({model::Key::o, true}), "Ctrl+O");
    EXPECT_EQ(model::chord_text({model::Key::f, false, true}), "Shift+F");
    EXPECT_EQ(model::chord_text({model::Key::slash, false, true}), "?");
}

// --- command line
// -------------------------------------------------------------------------------------------

TEST(Range, IsInMillisecondsUnlessItSaysSo) {
    EXPECT_EQ(parse_range("10:20"), (model::TimeRange{10'000'000, 20'000'000}));
    EXPECT_EQ(parse_range("1.5:2"), (model::TimeRange{1'500'000, 2'000'000}));
    EXPECT_EQ(parse_range("500us:2ms"), (model::TimeRange{500'000, 2'000'000}));
    EXPECT_EQ(parse_range("7ns:1s"), (model::TimeRange{7, 1'000'000'000}));
    for (const char* bad : {"", ":", "1", "1:", ":2", "2:1", "1:1", "1h:2h", "a:b", "1:2:3", "nan:2",
                            "1:1e300", "-9e9s:9e9s"}) {  // whose length does not fit into 64 bits
        EXPECT_EQ(parse_range(bad), std::nullopt) << bad;
    }
}

TEST(SizeOption, IsWidthTimesHeight) {
    const auto size = parse_size("1280x720");
    ASSERT_TRUE(size);
    EXPECT_EQ(size->width, 1280);
    EXPECT_EQ(size->height, 720);
    for (const char* bad :
         {"", "x", "1280", "1280x", "x720", "10x10", "99999x100", "1280x720x3", "-100x100"}) {
        EXPECT_FALSE(parse_size(bad)) << bad;
    }
}

// --- folders
// ------------------------------------------------------------------------------------------------

TEST(FolderListing, ShowsFoldersFirstAndFilesThatMayBeTraces) {
    const Folder folder;
    std::filesystem::create_directories(folder / "zoo");
    for (const char* name : {"b.sqlite", "a.db", "c.json.gz", "notes.txt", ".hidden.sqlite"})
        std::ofstream(folder / name) << "12345";
    const auto names = [](const FolderListing& listing) {
        std::vector<std::string> all;
        for (const FolderEntry& entry : listing.entries) all.push_back(entry.name);
        return all;
    };
    EXPECT_THAT(names(list_folder(folder.path(), false)),
                ElementsAre("zoo", "a.db", "b.sqlite", "c.json.gz"));
    EXPECT_THAT(names(list_folder(folder.path() + "/", true)),
                ElementsAre("zoo", "a.db", "b.sqlite", "c.json.gz", "notes.txt"));
    EXPECT_EQ(list_folder(folder.path(), false).entries[1].bytes, 5);
    EXPECT_THAT(list_folder(folder / "absent", false).error, HasSubstr("absent"));
}

TEST(FolderListing, IsSortedByNameDateOrSize) {
    std::vector<FolderEntry> entries = {
        {"b", false, 5, 30}, {"a", false, 5, 10}, {"c", false, 1, 20}, {"z", true}};
    const auto sorted = [&](EntryOrder order, bool descending) {
        sort_entries(entries, order, descending);
        std::string names;
        for (const FolderEntry& entry : entries) names += entry.name;
        return names;
    };
    EXPECT_EQ(sorted(EntryOrder::name, false), "zabc");
    EXPECT_EQ(sorted(EntryOrder::name, true), "zcba");
    EXPECT_EQ(sorted(EntryOrder::modified, true), "zbca");
    EXPECT_EQ(sorted(EntryOrder::bytes, true), "zabc");
    EXPECT_EQ(sorted(EntryOrder::bytes, false), "zcab");
    const Folder folder;
    std::ofstream(folder / "now.sqlite") << "1";
    EXPECT_NEAR(static_cast<double>(list_folder(folder.path(), true).entries.at(0).modified),
                static_cast<double>(std::time(nullptr)), 60);
    EXPECT_TRUE(has_typed("Rank0.json", "k0.J"));
    EXPECT_FALSE(has_typed("Rank0.json", "rank1"));
}

TEST(Title, NamesTheActiveTrace) {
    Program program;
    EXPECT_EQ(program.title(), "Shardscope");
    program.session.open_file("/nowhere/run.sqlite");
    EXPECT_EQ(program.title(), "run.sqlite - Shardscope");
}

// --- when a frame is drawn
// -----------------------------------------------------------------------------------------------

TEST(Redraw, AnIdleWindowDrawsNoFrame) {
    Redraw redraw;
    EXPECT_TRUE(redraw.due({}, false, false));  // the first frame
    int frames = 0;
    // An hour without input: a check every half second, and no frame.
    EXPECT_EQ(Redraw::patience({}), 0.5);
    for (int look = 0; look < 7200; ++look) frames += redraw.due({}, false, false) ? 1 : 0;
    EXPECT_EQ(frames, 0);
    EXPECT_TRUE(redraw.due({}, true, false));
    EXPECT_FALSE(redraw.due({}, false, false));
}

TEST(Redraw, WorkDrawsItsProgressAndOnceMoreWhatItCameTo) {
    Redraw redraw;
    (void)redraw.due({}, false, false);
    for (int look = 0; look < 5; ++look) EXPECT_TRUE(redraw.due({.working = true}, false, false));
    EXPECT_TRUE(redraw.due({}, false, false));
    EXPECT_FALSE(redraw.due({}, false, false));
    EXPECT_TRUE(redraw.due({}, false, true));  // a file has changed
    EXPECT_TRUE(redraw.due({}, false, false));
    EXPECT_FALSE(redraw.due({}, false, false));
    EXPECT_LE(Redraw::patience({.working = true}), 0.1);
}

// A trace that is being written is read again, and its age is shown, at a frame a second each at most.
TEST(Redraw, WhatIsReadAgainQuietlyDrawsNothingAndATickOnce) {
    Redraw redraw;
    (void)redraw.due({}, false, false);
    for (int look = 0; look < 5; ++look) EXPECT_FALSE(redraw.due({.quietly = true}, false, false));
    EXPECT_EQ(Redraw::patience({.quietly = true}), 0.1);
    EXPECT_TRUE(redraw.due({.quietly = true}, false, false, true));
    EXPECT_FALSE(redraw.due({}, false, false));
}

TEST(Redraw, AnimationsAreDrawnSixtyTimesPerSecond) {
    Redraw redraw;
    EXPECT_EQ(Redraw::patience({.working = true, .moving = true}), 1.0 / 60);
    for (int look = 0; look < 60; ++look) EXPECT_TRUE(redraw.due({.moving = true}, false, false));
    EXPECT_FALSE(redraw.due({}, false, false));
}

// --- colours
// ------------------------------------------------------------------------------------------------

// One colour has one meaning in all panels.
TEST(Theme, HasOneColourForAKindAndNoOtherForTheSame) {
    using traces::analysis::TimeCategory;
    using traces::store::DeviceKind;
    using traces::store::RangeKind;
    EXPECT_EQ(theme::range_color(RangeKind::data_loader),
              theme::time_category_color(TimeCategory::data_loader));
    EXPECT_EQ(theme::runtime_color(), theme::time_category_color(TimeCategory::runtime));
    EXPECT_EQ(theme::kind_color(DeviceKind::communication),
              theme::time_category_color(TimeCategory::communication));
    std::set<theme::Color> different = {theme::waiting_color(), theme::exposed_color(),
                                        theme::runtime_color(), theme::overlapped_color(),
                                        theme::transfer_color()};
    for (int k = 0; k < traces::store::kDeviceKinds; ++k)
        different.insert(theme::kind_color(static_cast<DeviceKind>(k)));
    for (const RangeKind kind :
         {RangeKind::annotation, RangeKind::module, RangeKind::backward, RangeKind::step,
          RangeKind::data_loader, RangeKind::communication, RangeKind::operation})
        different.insert(theme::range_color(kind));
    EXPECT_EQ(different.size(), 5U + traces::store::kDeviceKinds + 7U);
    EXPECT_EQ(timeline::paint_color(timeline::kTransferPaint), theme::transfer_color());
    EXPECT_EQ(timeline::paint_color(timeline::kArrivalPaint), theme::waiting_color());
    EXPECT_EQ(panels::path_kind_color(traces::analysis::PathKind::waiting), theme::waiting_color());
}

TEST(Theme, DistinguishesKinds) {
    EXPECT_EQ(theme::rgb(0x123456), 0xFF563412U);
    std::set<theme::Color> kinds;
    for (int k = 0; k < traces::store::kDeviceKinds; ++k)
        kinds.insert(theme::kind_color(static_cast<traces::store::DeviceKind>(k)));
    EXPECT_EQ(kinds.size(), 4U);
    std::set<theme::Color> categories;
    for (int c = 0; c < traces::schema::kMemoryCategories; ++c) {
        categories.insert(theme::category_color(static_cast<traces::schema::MemoryCategory>(c)));
    }
    EXPECT_EQ(categories.size(), 8U);
    EXPECT_EQ(theme::run_color(0), theme::run_color(8));
    EXPECT_EQ(theme::run_color(-1), theme::run_color(7));
}

// The colour of a compared run must differ from every kind of work and every category of memory or time.
TEST(Theme, HasColoursForRunsThatNothingElseHas) {
    std::set<theme::Color> others = {theme::waiting_color(),  theme::exposed_color(),
                                     theme::runtime_color(),  theme::overlapped_color(),
                                     theme::transfer_color(), theme::no_hue_color()};
    for (int k = 0; k < traces::store::kDeviceKinds; ++k)
        others.insert(theme::kind_color(static_cast<traces::store::DeviceKind>(k)));
    for (int k = 0; k < traces::store::kRangeKinds; ++k)
        others.insert(theme::range_color(static_cast<traces::store::RangeKind>(k)));
    for (int c = 0; c < traces::schema::kMemoryCategories; ++c)
        others.insert(theme::category_color(static_cast<traces::schema::MemoryCategory>(c)));
    for (int c = 0; c < traces::analysis::kTimeCategories; ++c)
        others.insert(theme::time_category_color(static_cast<traces::analysis::TimeCategory>(c)));
    std::set<theme::Color> runs;
    for (int run = 0; run < 8; ++run) {
        EXPECT_EQ(others.count(theme::run_color(run)), 0U) << run;
        runs.insert(theme::run_color(run));
    }
    EXPECT_EQ(runs.size(), 8U);
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::app
