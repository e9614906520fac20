// The timeline's tools, without drawing: undo of zoom, measuring, marks and their file, finding, the links of
// an event, the strip of the whole trace.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/traces/run_builder.h"
#include "tests/viewer/mlp_sample.h"
#include "traces/analysis/waits/wait_names.h"
#include "traces/store/columns/column_sink.h"
#include "viewer/model/marks.h"
#include "viewer/timeline/color_modes.h"
#include "viewer/timeline/event_fields.h"
#include "viewer/timeline/find_text.h"
#include "viewer/timeline/gap_names.h"
#include "viewer/timeline/links.h"
#include "viewer/timeline/measure.h"
#include "viewer/timeline/minimap.h"
#include "viewer/timeline/tracks.h"
#include "viewer/timeline/zoom_history.h"

namespace shardscope::viewer::timeline {
namespace TEST_FILE {

namespace fs = std::filesystem;

// --- undo of zoom -------------------------------------------------------------------------------------

TEST(ZoomHistory, GoesBackToWhatWasShownAndForwardAgain) {
    ZoomHistory history;
    history.see({0, 1000});
    history.see({400, 500});  // a tenth: an entry of its own
    history.see({440, 450});
    EXPECT_EQ(history.back(), (model::TimeSpan{400, 500}));
    EXPECT_EQ(history.back(), (model::TimeSpan{0, 1000}));
    EXPECT_EQ(history.back(), std::nullopt);
    EXPECT_EQ(history.forward(), (model::TimeSpan{400, 500}));
    EXPECT_EQ(history.forward(), (model::TimeSpan{440, 450}));
    EXPECT_EQ(history.forward(), std::nullopt);
}

TEST(ZoomHistory, TakesSmallMovesForOneStepUntilTheyAddUp) {
    ZoomHistory history;
    history.see({0, 1000});
    // Turns of the wheel by 0.8: 1000, 800, 640 and 512 are within a factor of two of where the entry began,
    // 409 is not: a second entry begins at 512.
    for (const std::int64_t length : {800, 640, 512, 409}) history.see({0, length});
    EXPECT_EQ(history.back(), (model::TimeSpan{0, 512}));
    EXPECT_EQ(history.back(), (model::TimeSpan{0, 1000}));
    EXPECT_EQ(history.back(), std::nullopt);
}

TEST(ZoomHistory, EndsAStepWhereHalfOfTheViewHasGone) {
    ZoomHistory history;
    history.see({0, 1000});
    for (std::int64_t moved = 100; moved <= 600; moved += 100) history.see({moved, moved + 1000});
    EXPECT_EQ(history.back(), (model::TimeSpan{500, 1500}));
    EXPECT_EQ(history.back(), (model::TimeSpan{0, 1000}));
}

TEST(ZoomHistory, ForgetsWhatCameAfterOnceAnotherWayIsTaken) {
    ZoomHistory history;
    history.see({0, 1000});
    history.see({0, 100});
    history.back();
    history.see({900, 1000});
    EXPECT_EQ(history.forward(), std::nullopt);
    EXPECT_EQ(history.back(), (model::TimeSpan{0, 1000}));
}

// --- measuring ----------------------------------------------------------------------------------------

Lane lane_of_two() {
    Lane lane;
    lane.add(100, 200, {model::EventKind::device, 0}, 0);
    lane.add(260, 300, {model::EventKind::device, 1}, 0);
    lane.finish();
    return lane;
}

TEST(Measure, IsCaughtByTheNearestEdgeWithinReach) {
    const Lane lane = lane_of_two();
    EXPECT_EQ(nearest_edge(lane, 104, 10), 100);
    EXPECT_EQ(nearest_edge(lane, 195, 10), 200);
    EXPECT_EQ(nearest_edge(lane, 229, 40), 200);  // 29 from 200, 31 from 260
    EXPECT_EQ(nearest_edge(lane, 231, 40), 260);
    EXPECT_EQ(nearest_edge(lane, 150, 10), std::nullopt);
    EXPECT_EQ(nearest_edge(lane, 999, 800), 300);
    EXPECT_EQ(nearest_edge(lane, 0, 200), 100);
    EXPECT_EQ(nearest_edge(Lane(), 0, 200), std::nullopt);
}

TEST(Measure, SaysItsEndsToTheNanosecondWhicheverWayItWasDragged) {
    const Measure backwards{2'500'001, 1'000'000};
    EXPECT_EQ(backwards.length(), 1'500'001);
    EXPECT_EQ(measure_text(backwards), "1.500001 ms from 1.000000 ms to 2.500001 ms");
}

// --- marks --------------------------------------------------------------------------------------------

TEST(Marks, StaySortedAndGetNamesOfTheirOwn) {
    model::MarkBook book;
    book.add({500, 500, ""});
    book.add({100, 300, ""});
    EXPECT_EQ(book.add({100, 100, ""}), 0u);
    ASSERT_EQ(book.all().size(), 3u);
    EXPECT_EQ(book.all()[0].text, "mark 2");
    EXPECT_EQ(book.all()[1].text, "range 1");
    EXPECT_EQ(book.all()[2].text, "mark 1");
    EXPECT_EQ(book.after(100), 2u);
    EXPECT_EQ(book.before(500), 1u);
    EXPECT_EQ(book.before(100), std::nullopt);
    EXPECT_EQ(book.edges(), (std::vector<std::int64_t>{100, 100, 300, 500}));
}

TEST(Marks, ComeBackFromTheirText) {
    model::MarkBook book;
    book.add({-5, -5, "before \"the\" start\n"});
    book.add({9'007'199'254'740'993, 9'007'199'254'740'995, "beyond 2^53"});
    model::KeptBeside kept{book, {}};
    EXPECT_EQ(model::parse_marks(marks_json(kept, "/data/run.sqlite")), kept);
    EXPECT_THAT(marks_json(kept, ""), testing::HasSubstr("\"shardscope_marks\": 1"));
    kept.set_view({2, "slow step", {.panel = "memory", .place = {.rank = 3}}});
    kept.set_view({1, "the start", {}});
    EXPECT_EQ(model::parse_marks(marks_json(kept, "/data/run.sqlite")), kept);
    EXPECT_EQ(kept.views.front().name, "the start");
    EXPECT_THAT(marks_json(kept, ""), testing::HasSubstr("\"shardscope_marks\": 2"));
}

TEST(Marks, WithInvalidUtf8AreStillWritten) {
    model::MarkBook book;
    book.add({1, 1, "a\xff\xfe"});
    EXPECT_EQ(model::parse_marks(model::marks_json({book, {}}, "x")).marks.all().size(), 1u);
}

TEST(Marks, BeyondWhatAViewCanShowAreRefusedWithASentence) {
    for (const char* mark : {R"({"from_ns": -9223372036854775807})", R"({"from_ns": 9223372036854775807})",
                             R"({"from_ns": 0, "to_ns": 9223372036854775807})"}) {
        try {
            model::parse_marks(std::string(R"({"shardscope_marks": 1, "marks": [)") + mark + "]}");
            ADD_FAILURE() << mark;
        } catch (const std::runtime_error& error) {
            EXPECT_THAT(error.what(), testing::HasSubstr("mark 1 is at "));
        }
    }
}

TEST(Marks, AreRefusedWithASentenceWhereTheTextIsNone) {
    for (const char* text : {"", "{", "[]", "{}", "{\"shardscope_marks\": 99, \"marks\": []}",
                             "{\"shardscope_marks\": 1, \"marks\": [{\"text\": 5}]}",
                             "{\"shardscope_marks\": 2, \"marks\": [], \"views\": 5}",
                             "{\"shardscope_marks\": 2, \"marks\": [], \"views\": [{\"key\": 10}]}"}) {
        EXPECT_THROW(model::parse_marks(text), std::runtime_error) << text;
    }
}

class MarkFileTest : public testing::Test {
  protected:
    MarkFileTest() : folder_(fs::temp_directory_path() / ("shardscope-marks-" + std::to_string(::getpid()))) {
        fs::create_directories(folder_);
        trace_ = (folder_ / "run.sqlite").string();
        std::ofstream(trace_) << "a trace";
        if (const char* state = std::getenv("XDG_STATE_HOME")) state_before_ = state;
        ::setenv("XDG_STATE_HOME", (folder_ / "state").c_str(), 1);
    }
    ~MarkFileTest() override {
        if (state_before_.empty()) {
            ::unsetenv("XDG_STATE_HOME");
        } else {
            ::setenv("XDG_STATE_HOME", state_before_.c_str(), 1);
        }
        std::error_code error;
        fs::permissions(folder_, fs::perms::owner_all, error);
        fs::remove_all(folder_, error);
    }
    static std::string text_of(const fs::path& path) {
        std::ifstream in(path);
        return {std::istreambuf_iterator<char>(in), {}};
    }

    fs::path folder_;
    std::string trace_, state_before_;
};

TEST_F(MarkFileTest, IsNextToTheTraceWhichIsNotTouched) {
    model::MarkFile file(trace_);
    file.marks.add({10, 20, "slow step"});
    file.save();
    EXPECT_EQ(file.problem(), "");
    EXPECT_EQ(file.path(), trace_ + ".marks.json");
    EXPECT_EQ(model::MarkFile(trace_).marks, file.marks);
    EXPECT_EQ(text_of(trace_), "a trace");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()),
              2);  // no part of a file
}

TEST_F(MarkFileTest, GoesToTheStateFolderWhereItsOwnCannotBeWritten) {
    // A folder with the file's name prevents everybody, even root, from writing it.
    fs::create_directories(trace_ + ".marks.json");
    model::MarkFile file(trace_);
    file.marks.add({10, 10, "here"});
    file.save();
    EXPECT_EQ(file.problem(), "");
    EXPECT_TRUE(file.path().starts_with((folder_ / "state" / "shardscope" / "marks").string()))
        << file.path();
    EXPECT_EQ(model::MarkFile(trace_).marks, file.marks);
}

TEST_F(MarkFileTest, DoesNotTouchAFileThatIsNotAMarksFile) {
    std::ofstream(trace_ + ".marks.json") << "precious notes";
    model::MarkFile file(trace_);
    EXPECT_NE(file.problem(), "");
    file.marks.add({1, 1, ""});
    file.save();
    EXPECT_EQ(text_of(trace_ + ".marks.json"), "precious notes");
    EXPECT_EQ(file.marks.all().size(), 1u);  // in memory
}

TEST_F(MarkFileTest, WritesNothingForATraceWithoutAFile) {
    model::MarkFile file((folder_ / "in memory").string());
    file.marks.add({1, 1, ""});
    file.save();
    EXPECT_EQ(file.problem(), "");
    EXPECT_FALSE(fs::exists(folder_ / "in memory.marks.json"));
}

// --- finding ------------------------------------------------------------------------------------------

class FindTest : public testing::Test {
  protected:
    model::TracePtr trace_ = mlp_sample({.per_linear = true, .ranks = 2}, "run");
    std::atomic<bool> cancel_{false};

    // The count by a slow and obvious search.
    std::size_t count_by_hand(const std::string& text) const {
        std::size_t n = 0;
        const auto count = [&](model::EventKind kind, std::size_t size) {
            for (std::size_t i = 0; i < size; ++i) {
                const model::SelectedEvent event{kind, static_cast<std::int64_t>(i)};
                const bool named = name_of(*trace_, event).find(text) != std::string_view::npos;
                const bool labelled = kind == model::EventKind::device && trace_->device.collective[i] >= 0 &&
                                      bar_label(*trace_, event).find(text) != std::string::npos;
                n += named || labelled ? 1 : 0;
            }
        };
        count(model::EventKind::device, trace_->device.size());
        count(model::EventKind::range, trace_->ranges.size());
        count(model::EventKind::runtime, trace_->runtime.size());
        count(model::EventKind::mark, trace_->marks.size());
        return n;
    }
};

TEST_F(FindTest, FindsEveryEventWhoseNameHoldsTheTextInOrderOfTime) {
    const FoundEvents found = find_text(*trace_, "Linear", cancel_);
    EXPECT_GT(found.size(), 0u);
    EXPECT_EQ(found.size(), count_by_hand("Linear"));
    for (std::size_t i = 1; i < found.size(); ++i) {
        EXPECT_LE(time_of(*trace_, found.event(i - 1)).start, time_of(*trace_, found.event(i)).start);
    }
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found.place_of(*trace_, found.event(i)), i);
}

TEST_F(FindTest, DoesNotMindTheCaseOfLetters) {
    EXPECT_EQ(find_text(*trace_, "lInEaR", cancel_).size(), find_text(*trace_, "Linear", cancel_).size());
    EXPECT_EQ(find_text(*trace_, "no such thing", cancel_).size(), 0u);
    EXPECT_EQ(find_text(*trace_, "", cancel_).size(), 0u);
}

TEST_F(FindTest, FindsCollectivesByWhatTheirBarsSay) {
    const std::size_t c = first_with_value(trace_->device.collective);
    ASSERT_LT(c, trace_->device.size());
    const model::SelectedEvent event{model::EventKind::device, static_cast<std::int64_t>(c)};
    EXPECT_TRUE(find_text(*trace_, bar_label(*trace_, event), cancel_).place_of(*trace_, event));
}

TEST_F(FindTest, ContinuesFromTheSelectionAndWrapsAround) {
    const FoundEvents found = find_text(*trace_, "Linear", cancel_);
    const std::size_t last = found.size() - 1;
    EXPECT_EQ(found.after(*trace_, {}, trace_->first_ns), 0u);
    EXPECT_EQ(found.before(*trace_, {}, trace_->first_ns), last);
    EXPECT_EQ(found.after(*trace_, found.event(3), 0), 4u);
    EXPECT_EQ(found.before(*trace_, found.event(3), 0), 2u);
    EXPECT_EQ(found.after(*trace_, found.event(last), 0), 0u);
    EXPECT_EQ(found.before(*trace_, found.event(0), 0), last);
}

TEST_F(FindTest, StopsOnRequest) {
    cancel_ = true;
    EXPECT_EQ(find_text(*trace_, "Linear", cancel_).size(), 0u);
}

TEST_F(FindTest, RunsDuringFramesAndDropsEarlierInput) {
    Finder finder;
    EXPECT_EQ(finder.of(trace_, ""), nullptr);
    finder.of(trace_, "L");
    finder.of(trace_, "Li");
    std::shared_ptr<const FoundEvents> found;
    for (int i = 0; found == nullptr && i < 20'000; ++i) {
        found = finder.of(trace_, "Linear");
        if (found == nullptr) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->size(), count_by_hand("Linear"));
    EXPECT_FALSE(finder.busy());
    EXPECT_EQ(finder.of(trace_, "Linear"), found);
}

TEST_F(FindTest, ShowsMatchesAsATableWithUnits) {
    const auto found = std::make_shared<const FoundEvents>(find_text(*trace_, "Linear", cancel_));
    const MatchTable table(trace_, found);
    ASSERT_EQ(table.rows(), found->size());
    const EventTime time = time_of(*trace_, found->event(0));
    EXPECT_DOUBLE_EQ(table.number(0, 2), static_cast<double>(time.start) / 1e6);
    EXPECT_DOUBLE_EQ(table.number(0, 3), static_cast<double>(time.end - time.start) / 1e3);
    EXPECT_EQ(table.text(0, 0), bar_label(*trace_, found->event(0)));
}

TEST_F(FindTest, NextOfTheSameNameStaysOnItsRank) {
    const FoundEvents found = find_text(*trace_, "ncclDevKernel", cancel_);
    ASSERT_GT(found.size(), 0u);
    const model::SelectedEvent first = found.event(0);
    const auto next = same_name(*trace_, first, true);
    ASSERT_TRUE(next);
    EXPECT_EQ(name_of(*trace_, *next), name_of(*trace_, first));
    EXPECT_EQ(trace_->device.rank[static_cast<std::size_t>(next->index)],
              trace_->device.rank[static_cast<std::size_t>(first.index)]);
    EXPECT_EQ(same_name(*trace_, *next, false), first);
    EXPECT_EQ(same_name(*trace_, first, false), std::nullopt);
    EXPECT_EQ(same_name(*trace_, {}, true), std::nullopt);
}

// --- what belongs together ----------------------------------------------------------------------------

class LinksTest : public FindTest {
  protected:
    model::SelectedEvent first_collective() const {
        for (std::size_t i = 0; i < trace_->device.size(); ++i) {
            if (trace_->device.collective[i] >= 0)
                return {model::EventKind::device, static_cast<std::int64_t>(i)};
        }
        return {};
    }
    CollectiveIndex index_ = index_collectives(*trace_);
};

TEST_F(LinksTest, TieTheRanksPartsOfACollective) {
    const model::SelectedEvent event = first_collective();
    const Links links = find_links(*trace_, event, &index_);
    ASSERT_EQ(links.parts.size(), 2u);  // two ranks
    EXPECT_NE(std::find(links.parts.begin(), links.parts.end(), event), links.parts.end());
    const auto start = [&](model::SelectedEvent e) { return time_of(*trace_, e).start; };
    for (const model::SelectedEvent& part : links.parts) EXPECT_LE(start(part), start(links.last_arrival));
    // Both parts lead to the same links.
    for (const model::SelectedEvent& part : links.parts)
        EXPECT_EQ(find_links(*trace_, part, &index_).parts, links.parts);
    EXPECT_TRUE(find_links(*trace_, event, nullptr).parts.empty());  // the index is not computed yet
}

TEST_F(LinksTest, TieACallToWhatItLaunchedAndBack) {
    for (std::size_t i = 0; i < trace_->device.size(); ++i) {
        if (trace_->device.launch[i] < 0) continue;
        const model::SelectedEvent event{model::EventKind::device, static_cast<std::int64_t>(i)};
        const Links links = find_links(*trace_, event, &index_);
        ASSERT_EQ(links.launch, (model::SelectedEvent{model::EventKind::runtime, trace_->device.launch[i]}));
        const Links back = find_links(*trace_, links.launch, &index_);
        EXPECT_NE(std::find(back.launched.begin(), back.launched.end(), event), back.launched.end());
        return;
    }
    FAIL() << "nothing was launched";
}

TEST_F(LinksTest, TieTheForwardOfAModuleToItsBackward) {
    std::size_t pairs = 0;
    for (std::size_t i = 0; i < trace_->ranges.size(); ++i) {
        if (trace_->ranges.kind[i] != traces::store::RangeKind::backward || trace_->ranges.module[i] < 0)
            continue;
        const model::SelectedEvent backward{model::EventKind::range, static_cast<std::int64_t>(i)};
        const Links links = find_links(*trace_, backward, &index_);
        if (links.forward.kind == model::EventKind::none) continue;
        ++pairs;
        const auto f = static_cast<std::size_t>(links.forward.index);
        EXPECT_EQ(trace_->ranges.module[f], trace_->ranges.module[i]);
        EXPECT_LT(trace_->ranges.start[f], trace_->ranges.start[i]);
        EXPECT_EQ(find_links(*trace_, links.forward, &index_).backwards, std::vector{backward});
    }
    EXPECT_GT(pairs, 0u);
}

TEST_F(LinksTest, ArrowsLeadFromTheLaunchAndFromTheRankThatArrivedLast) {
    const Links links = find_links(*trace_, first_collective(), &index_);
    const std::vector<Arrow> arrows = arrows_of(links);
    const auto of = [&](Arrow::Kind kind) {
        return std::count_if(arrows.begin(), arrows.end(), [=](const Arrow& a) { return a.kind == kind; });
    };
    EXPECT_EQ(of(Arrow::Kind::launch), links.launch.kind == model::EventKind::none ? 0 : 1);
    EXPECT_EQ(of(Arrow::Kind::collective), 1);  // to the one other rank
}

TEST_F(LinksTest, FieldsShowTheWaitAndTheTransferOfACollective) {
    const model::SelectedEvent event = first_collective();
    const auto i = static_cast<std::size_t>(event.index);
    const traces::analysis::CollectiveMatch* match = index_.match_of(event.index);
    ASSERT_NE(match, nullptr);
    const EventDetails details = all_fields(*trace_, event, {&index_, nullptr});
    const auto value = [&](const std::string& label) {
        for (const Detail& detail : details.rows) {
            if (detail.label == label) return detail.value;
        }
        return std::string();
    };
    EXPECT_EQ(value("end"), instant_text(trace_->device.end[i]));
    EXPECT_NE(value("transfer"), "");
    EXPECT_NE(value("wait for other ranks"), "");
    EXPECT_NE(value("bus bandwidth"), "");
    EXPECT_TRUE(value("last to arrive").starts_with("rank ")) << value("last to arrive");
    // No label occurs twice, because each has one meaning.
    for (const Detail& a : details.rows) {
        EXPECT_EQ(std::count_if(details.rows.begin(), details.rows.end(),
                                [&](const Detail& b) { return b.label == a.label; }),
                  1)
            << a.label;
    }
    EXPECT_TRUE(fields_text(details).starts_with(details.title + "\n"));
}

// --- waits --------------------------------------------------------------------------------------------

// Rank 1 arrives 200 us after rank 0 at a collective that a kernel of each waits for.
model::TracePtr late_rank() {
    traces::RunBuilder run(2);
    for (const int rank : {0, 1}) {
        run.kernel(rank, 0, 90'000, 10);
        run.collective(rank, rank == 0 ? 100'000 : 300'000, 400'000,
                       {.sequence = 1, .group = 1, .group_size = 2, .launched = 20});
        run.runtime(rank, 30, 31, "cudaEventRecord");
        run.runtime(rank, 32, 33, "cudaStreamWaitEvent");
        run.kernel(rank, 400'000, 500'000, 40);
    }
    return run.take();
}

std::int64_t device_event(const traces::store::Trace& trace, std::size_t rank, std::int64_t start) {
    for (std::size_t i = 0; i < trace.device.size(); ++i) {
        if (trace.device.rank[i] == rank && trace.device.start[i] == start)
            return static_cast<std::int64_t>(i);
    }
    return -1;
}

TEST(Waits, AreFieldsLinksAndArrows) {
    const model::TracePtr trace = late_rank();
    const traces::analysis::TraceWaits waits(*trace);
    const model::SelectedEvent gather{model::EventKind::device, device_event(*trace, 0, 100'000)},
        kernel{model::EventKind::device, device_event(*trace, 0, 400'000)},
        last{model::EventKind::device, device_event(*trace, 1, 300'000)};
    const auto value = [&](model::SelectedEvent event, std::string_view label) {
        for (const Detail& detail : all_fields(*trace, event, {nullptr, nullptr, &waits}).rows) {
            if (detail.label == label) return detail.value;
        }
        return std::string();
    };
    EXPECT_EQ(value(gather, "exposed"), "300.0 \u00b5s (100.00 %)");
    EXPECT_EQ(value(gather, "cause of exposure"),
              "late rank 200.0 \u00b5s (rank 1), nothing to hide it 100.0 \u00b5s");
    EXPECT_EQ(value(gather, "waiting for it"), "gemm 310.0 \u00b5s");
    EXPECT_EQ(value(kernel, "waited for"), "all_gather 110.0 \u00b5s, rank 1 in all_gather 200.0 \u00b5s");
    EXPECT_EQ(value(kernel, "exposed"), "");  // only communication and copies

    const CollectiveIndex index = index_collectives(*trace);
    const Links links = find_links(*trace, kernel, &index, &waits.finder);
    EXPECT_EQ(links.waited_for, std::vector{gather});
    EXPECT_EQ(find_links(*trace, gather, &index, &waits.finder).waiting, std::vector{kernel});
    const std::vector<Arrow> arrows = arrows_of(links);
    EXPECT_EQ(std::count(arrows.begin(), arrows.end(), Arrow{Arrow::Kind::wait, gather, kernel}), 1);
    // The other rank's part has an arrow as a part already.
    const Links of_last = find_links(*trace, last, &index, &waits.finder);
    EXPECT_EQ(of_last.waiting.size(), 2u);
    const std::vector<Arrow> of_part = arrows_of(of_last);
    EXPECT_EQ(std::count_if(of_part.begin(), of_part.end(),
                            [](const Arrow& arrow) { return arrow.kind == Arrow::Kind::wait; }),
              1);
}

TEST(Waits, NameTheGapsOfAStream) {
    const model::TracePtr trace = late_rank();
    const traces::analysis::TraceWaits waits(*trace);
    const Tracks tracks = make_tracks(*trace);
    const model::SelectedEvent kernel{model::EventKind::device, device_event(*trace, 0, 400'000)};
    const auto place = find_event(*trace, tracks, kernel);
    ASSERT_TRUE(place);
    const Track& track = tracks.tracks[static_cast<std::size_t>(place->track)];
    EXPECT_EQ(event_after_gap(track, place->lane, 200'000), kernel.index);
    EXPECT_EQ(event_after_gap(track, place->lane, 50'000), std::nullopt);   // busy
    EXPECT_EQ(event_after_gap(track, place->lane, 600'000), std::nullopt);  // after the last event
    GapNames gaps;
    EXPECT_THAT(gaps.before(waits, kernel.index).names,
                ::testing::ElementsAre("all_gather", "rank 1 in all_gather", "all_gather"));
}

TEST(Waits, ColourEventsByTheCauseOfTheirExposure) {
    const model::TracePtr trace = late_rank();
    const traces::analysis::TraceWaits waits(*trace);
    const Tracks tracks = make_tracks(*trace);
    const TrackPaints paints(*trace, tracks, model::ColorBy::cause, &waits.finder);
    const auto paint = [&](std::size_t rank, std::int64_t start) {
        const auto place =
            find_event(*trace, tracks, {model::EventKind::device, device_event(*trace, rank, start)});
        return paints.of(tracks, place->track, place->lane).paint(place->item);
    };
    using traces::analysis::ExposureCause;
    EXPECT_EQ(paint(0, 100'000), kFirstCause + static_cast<int>(ExposureCause::late_rank));
    EXPECT_EQ(paint(1, 300'000), kFirstCause + static_cast<int>(ExposureCause::nothing));
    EXPECT_EQ(paint(0, 400'000), kNoHue);
    ASSERT_FALSE(paints.legend().empty());
    EXPECT_EQ(paints.legend().front().name, "late rank");
}

// --- the strip of the whole trace ---------------------------------------------------------------------

TEST(Minimap, HoldsTheExactBusyTimeOfTheRanksInHoweverManySlices) {
    const model::TracePtr trace = mlp_sample({.per_linear = true, .ranks = 2}, "run");
    // The union of each rank's events by a sweep, which is slow and obvious.
    double busy = 0;
    for (std::size_t rank = 0; rank < trace->ranks.size(); ++rank) {
        std::int64_t until = INT64_MIN;
        for (std::size_t i = 0; i < trace->device.size(); ++i) {
            if (trace->device.rank[i] != rank) continue;
            const std::int64_t from = std::max(trace->device.start[i], until);
            if (trace->device.end[i] > from) busy += static_cast<double>(trace->device.end[i] - from);
            until = std::max(until, trace->device.end[i]);
        }
    }
    for (const int slices : {1, 7, 100, 4096}) {
        const Minimap map = make_minimap(*trace, slices);
        ASSERT_EQ(map.slices.size(), static_cast<std::size_t>(slices));
        const model::TimeView view{map.whole.from, map.whole.to, static_cast<double>(slices)};
        double sum = 0;
        for (int s = 0; s < slices; ++s) {
            const MinimapSlice& slice = map.slices[static_cast<std::size_t>(s)];
            EXPECT_GE(slice.busy, slice.communication);
            EXPECT_LE(slice.busy, 1.0F);
            sum += static_cast<double>(slice.busy) *
                   static_cast<double>(view.column_start(s + 1, slices) - view.column_start(s, slices));
        }
        // Slices are floats: seven digits.
        EXPECT_NEAR(sum * static_cast<double>(trace->ranks.size()), busy, busy * 1e-5) << slices;
    }
}

TEST(Minimap, DistinguishesKernelsCopiesAndCommunication) {
    // A kernel in [0, 400), a copy in [200, 600) of which the kernel covers half, and a collective in [500,
    // 1000) of which the copy covers a fifth: 40 % kernels, 20 % only copies, 40 % only communication.
    traces::store::ColumnSink sink;
    sink.add(traces::schema::RankRow{.global_pid = traces::schema::global_pid(1)});
    const auto kernel = [&](const char* name, std::int64_t start, std::int64_t end, int stream) {
        traces::schema::KernelRow row;
        row.start = start;
        row.end = end;
        row.stream = stream;
        row.global_pid = traces::schema::global_pid(1);
        row.short_name = row.demangled_name = sink.intern(name);
        sink.add(row);
    };
    kernel("gemm", 0, 400, 7);
    kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 500, 1000, 9);
    traces::schema::MemcpyRow copy;
    copy.start = 200;
    copy.end = 600;
    copy.stream = 8;
    copy.global_pid = traces::schema::global_pid(1);
    sink.add(copy);
    copy.end = 1000;
    copy.stream = 10;
    copy.copy_kind = traces::schema::kCopyDiskToHost;  // a file: not the device's
    sink.add(copy);
    const Minimap map = make_minimap(*sink.take(), 1);
    ASSERT_EQ(map.slices.size(), 1U);
    EXPECT_FLOAT_EQ(map.slices[0].busy, 1);
    EXPECT_FLOAT_EQ(map.slices[0].communication, 0.4F);
    EXPECT_FLOAT_EQ(map.slices[0].copies, 0.2F);
}

TEST(Minimap, IsEmptyForAnEmptyTrace) {
    traces::store::Trace trace;
    const Minimap map = make_minimap(trace, 100);
    for (const MinimapSlice& slice : map.slices) EXPECT_EQ(slice, MinimapSlice());
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::timeline
