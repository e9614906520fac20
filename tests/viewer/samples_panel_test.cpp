// The Samples panel: its boxes, functions, threads and search computed without drawing, and the panel drawn
// without a screen.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viewer/panel_fixture.h"
#include "traces/store/columns/column_sink.h"
#include "viewer/panels/samples/samples_rows.h"
#include "viewer/tables/table_order.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using namespace traces;

constexpr std::int64_t kMs = 1'000'000;

void add_thread(store::ColumnSink& sink, int pid, int tid, const char* name, int rank) {
    sink.add(schema::ThreadRow{.global_tid = schema::global_tid(pid, tid), .name = name, .rank = rank});
}

void add_sample(store::ColumnSink& sink, std::int64_t time, int pid, int tid, std::string_view stack,
                std::int64_t weight = kMs, std::string_view event = "cpu-clock") {
    schema::SampleRow row{.time = time, .weight = weight};
    row.global_tid = schema::global_tid(pid, tid);
    row.event = sink.intern(event);
    row.stack = sink.intern(stack);
    sink.add(row);
}

// 10 ms of processor time: rank 0's main thread computes for 6 ms and copies for 1 ms, its second thread
// computes for 1 ms; rank 1 waits in the kernel for 2 ms. A sample at each ms.
std::unique_ptr<store::Trace> two_processes() {
    store::ColumnSink sink;
    for (int rank = 0; rank < 2; ++rank)
        sink.add(schema::RankRow{.rank = rank, .device = rank, .global_pid = schema::global_pid(100 + rank)});
    add_thread(sink, 100, 100, "python3", 0);
    add_thread(sink, 100, 150, "pt_autograd_0", 0);
    add_thread(sink, 101, 101, "python3", 1);
    for (int i = 0; i < 10; ++i) {
        const std::int64_t time = i * kMs;
        if (i < 6)
            add_sample(sink, time, 100, 100, "sgemm(float*) (libblas.so)\nforward (train)\nmain (train)");
        if (i == 6) add_sample(sink, time, 100, 100, "memcpy (libc.so)\nforward (train)\nmain (train)");
        if (i == 7) add_sample(sink, time, 100, 150, "sgemm(float*) (libblas.so)\nbackward (train)");
        if (i > 7) add_sample(sink, time, 101, 101, "[kernel]\nmain (train)");
    }
    return sink.take();
}

std::shared_ptr<const ShownSamples> shown(const store::Trace& trace,
                                          const analysis::SampleFilter& filter = {}) {
    auto samples = std::make_shared<ShownSamples>();
    samples->report = analysis::samples_report(trace, {}, filter);
    samples->threads = thread_choices(trace, samples->report.threads);
    return samples;
}

// "function weight at x-x" of each cell of a row.
std::vector<std::string> texts(const FlameLayout& layout, std::size_t row, const ShownSamples& samples) {
    std::vector<std::string> all;
    for (const FlameCell& cell : layout.rows.at(row)) {
        const auto& node = samples.report.tree[static_cast<std::size_t>(cell.node)];
        all.push_back(fmt::format("{}{} {} at {}-{}", node_label(node),
                                  cell.callees > 0 ? fmt::format(" calls {}", cell.callees) : "",
                                  cell.weight / kMs, cell.x, cell.x + cell.width));
    }
    return all;
}

TEST(SamplesRows, AFrameIsAFunctionOfALibrary) {
    EXPECT_EQ(frame_parts("f(int, A<(B)1>) (lib x.so)").function, "f(int, A<(B)1>)");
    EXPECT_EQ(frame_parts("f(int, A<(B)1>) (lib x.so)").module, "lib x.so");
    EXPECT_EQ(frame_parts("f(int)").function, "f(int)");
    EXPECT_EQ(frame_parts("[kernel]").module, "");
    EXPECT_EQ(frame_parts(" (x)").function, " (x)");
    EXPECT_EQ(frame_parts("").function, "");
}

TEST(SamplesRows, BoxesAreAsWideAsTheirWeight) {
    const auto trace = two_processes();
    const auto samples = shown(*trace);
    const FlameLayout layout = flame_layout(samples->report.tree, 0, 1000, 2, 100);
    EXPECT_EQ(layout.rows.size(), 5U);
    EXPECT_EQ(layout.hidden, 0);
    EXPECT_THAT(texts(layout, 0, *samples), ElementsAre("all threads 10 at 0-1000"));
    EXPECT_THAT(texts(layout, 1, *samples), ElementsAre("python3 9 at 0-900", "pt_autograd_0 1 at 900-1000"))
        << "threads of the same name are one box";
    EXPECT_THAT(texts(layout, 2, *samples), ElementsAre("main 9 at 0-900", "backward 1 at 900-1000"));
    EXPECT_THAT(texts(layout, 3, *samples),
                ElementsAre("forward 7 at 0-700", "[kernel] 2 at 700-900", "sgemm(float*) 1 at 900-1000"));
    EXPECT_EQ(layout.at(2, 899)->node, layout.rows[2][0].node);
    EXPECT_EQ(layout.at(2, 900)->node, layout.rows[2][1].node);
    EXPECT_EQ(layout.at(4, 750), nullptr) << "under [kernel] is nothing";
    EXPECT_EQ(layout.at(9, 0), nullptr);
}

TEST(SamplesRows, ANodeThatIsShownWholeIsBelowItsCallers) {
    const auto trace = two_processes();
    const auto samples = shown(*trace);
    const auto& tree = samples->report.tree;
    const std::vector<std::string> path = {"python3", "main (train)", "forward (train)"};
    const int forward = node_at(tree, path);
    EXPECT_THAT(path_of(tree, forward), testing::ElementsAreArray(path));
    EXPECT_EQ(node_at(tree, {"python3", "main (train)", "gone"}),
              tree[static_cast<std::size_t>(forward)].parent);
    EXPECT_EQ(node_at({}, path), 0);
    const FlameLayout layout = flame_layout(tree, forward, 700, 2, 100);
    EXPECT_THAT(texts(layout, 2, *samples), ElementsAre("main 9 at 0-700"));
    EXPECT_THAT(texts(layout, 3, *samples), ElementsAre("forward 7 at 0-700"));
    EXPECT_THAT(texts(layout, 4, *samples), ElementsAre("sgemm(float*) 6 at 0-600", "memcpy 1 at 600-700"));
    const int sgemm = largest_of(tree, "sgemm(float*) (libblas.so)");
    EXPECT_EQ(tree[static_cast<std::size_t>(sgemm)].parent, forward) << "not the second thread's";
    EXPECT_EQ(largest_of(tree, "python3"), 0) << "a thread is no function";
}

TEST(SamplesRows, CalleesThatCannotBeSeenAreTogether) {
    const auto trace = two_processes();
    const auto samples = shown(*trace);
    const FlameLayout layout = flame_layout(samples->report.tree, 0, 20, 3, 100);
    EXPECT_THAT(texts(layout, 1, *samples),
                ElementsAre("python3 9 at 0-18", "all threads calls 1 1 at 18-20"));
    EXPECT_THAT(texts(layout, 4, *samples),
                ElementsAre("sgemm(float*) 6 at 0-12", "forward calls 1 1 at 12-14"));
    EXPECT_EQ(layout.hidden, 2);
    // No more cells than asked for: what is narrower grows.
    const FlameLayout few = flame_layout(samples->report.tree, 0, 1000, 3, 6);
    std::size_t cells = 0;
    for (const auto& row : few.rows) cells += row.size();
    EXPECT_LE(cells, 6U);
    EXPECT_GT(few.narrowest, 3);
}

TEST(SamplesRows, ThreadsAreByProcess) {
    const auto trace = two_processes();
    const auto samples = shown(*trace);
    std::vector<std::string> labels;
    for (const ThreadChoice& choice : samples->threads)
        labels.push_back(fmt::format("{}{}: {}", choice.inside ? "  " : "", choice.label, choice.samples));
    EXPECT_THAT(labels,
                ElementsAre("All threads: 10", "Process 100 (python3), rank 0: 8", "  python3: 7",
                            "  pt_autograd_0: 1", "Process 101 (python3), rank 1: 2", "  python3: 2"));
    const auto one = shown(*trace, {.process = schema::global_pid(100)});
    EXPECT_EQ(one->report.samples, 8);
    EXPECT_EQ(one->threads.size(), 6U) << "the others can still be chosen";
    EXPECT_EQ(shown(*trace, {.thread = schema::global_tid(100, 150)})->report.total, kMs);
    EXPECT_EQ(shown(*trace, {.thread = schema::global_tid(7, 7)})->report.samples, 0);
}

TEST(SamplesRows, ASearchCountsEachStackOnce) {
    const auto trace = two_processes();
    const std::atomic<bool> go = false;
    const FoundFrames found = find_frames(shown(*trace), "MAIN", go);
    EXPECT_EQ(found.weight, 9 * kMs);
    EXPECT_EQ(found.functions.size(), 1U);
    const FoundFrames train = find_frames(shown(*trace), "(train)", go);
    EXPECT_EQ(train.weight, 10 * kMs) << "main and forward are in the same stacks";
    EXPECT_EQ(train.functions.size(), 3U);
    EXPECT_EQ(find_frames(shown(*trace), "python3", go).functions.size(), 0U) << "threads are not searched";
}

TEST(SamplesRows, WeightsOverTimeAreOfTheChosenThreads) {
    store::ColumnSink sink;
    add_thread(sink, 7, 7, "a", -1);
    add_thread(sink, 7, 8, "b", -1);
    // Both for 50 ms, then one of them; 101 ms in all.
    for (int i = 0; i <= 100; ++i) {
        add_sample(sink, i * kMs, 7, 7, "f (p)");
        if (i < 50) add_sample(sink, i * kMs, 7, 8, "f (p)");
    }
    const auto trace = sink.take();
    const WeightsOverTime both = weights_over_time(*trace, "cpu-clock", {}, 2);
    EXPECT_THAT(both.parts, ElementsAre(100 * kMs, 51 * kMs));
    EXPECT_EQ(both.most, 100 * kMs);
    EXPECT_EQ(both.part_ns(), 50.0 * kMs);
    const WeightsOverTime one =
        weights_over_time(*trace, "cpu-clock", {.thread = schema::global_tid(7, 8)}, 2);
    EXPECT_THAT(one.parts, ElementsAre(50 * kMs, 0));
    EXPECT_EQ(weights_over_time(*trace, "cpu-clock", {}, 500).parts.size(), 18U) << "eight samples in each";
    EXPECT_EQ(weights_over_time(*trace, "cpu-clock", {.thread = schema::global_tid(7, 8)}, 500).parts.size(),
              6U);
    EXPECT_EQ(weights_over_time(*trace, "cycles", {}, 2).most, 0);
}

TEST(SamplesRows, WeightsHaveTheirUnit) {
    analysis::SamplesReport report;
    report.event = "cycles";
    EXPECT_EQ(weight_text(report, 12345), "12,345 cycles");
    EXPECT_EQ(rate_text(report, 3'000'000, 1e9), "3.000 M cycles/s");
    report.is_time = true;
    EXPECT_EQ(weight_text(report, 12'345'000), "12.35 ms");
    EXPECT_EQ(rate_text(report, 3'000'000, 2e6), "1.50 cores");
}

class SamplesPanelTest : public PanelsTest {
  protected:
    SamplesPanelTest() {
        draw::items::keep(true);
        tables::table_memory().clear();
    }
    ~SamplesPanelTest() override { tables::table_memory().clear(); }
    // The last part of the names of the boxes in this row.
    std::string box(const std::string& place) { return item("samples.box." + place); }
    void choose(const std::string& label) {
        click(*panel_, "samples.threads");
        click(*panel_, "samples.threads." + label);
    }
    void limit(std::int64_t from, std::int64_t to) {
        session_.current()->limit = model::TimeRange{from, to};
        draw(*panel_);
    }

    void frame_without_log() {
        ImGui::NewFrame();
        ImGui::SetNextWindowPos({0, 0});
        ImGui::SetNextWindowSize({1600, 820});
        ImGui::Begin("window", nullptr, ImGuiWindowFlags_NoDecoration);
        panel_->draw(session_, {});
        ImGui::End();
        ImGui::Render();
    }

    std::unique_ptr<model::Panel> panel_ = make_panel("samples");
};

TEST_F(SamplesPanelTest, ShowsStacksAndFunctions) {
    session_.add_trace(two_processes(), "two");
    draw(*panel_);
    EXPECT_EQ(item("samples.summary"), "10 samples of cpu-clock, 10.00 ms of processor time; 6 functions");
    EXPECT_EQ(item("samples.flame"), "5 rows");
    EXPECT_EQ(box("2.0"), "main: 9.00 ms");
    EXPECT_EQ(item("samples.functions.rows"), "6");
    EXPECT_EQ(item("samples.functions.sgemm(float*) (libblas.so).self_percent"), "70.00");
    EXPECT_EQ(item("samples.functions.sgemm(float*) (libblas.so).self_us"), "7,000.0");
    EXPECT_EQ(item("samples.functions.main (train).total_percent"), "90.00");
    EXPECT_EQ(item("samples.functions.main (train).samples"), "0");
    EXPECT_FALSE(draw::items::find("samples.event.cpu-clock")) << "there is one event";
}

TEST_F(SamplesPanelTest, FollowsTheTimeFilterAndTheThreads) {
    session_.add_trace(two_processes(), "two");
    draw(*panel_);
    limit(6 * kMs, 9 * kMs);
    EXPECT_THAT(clipboard_, HasSubstr("a time filter is set"));
    EXPECT_THAT(item("samples.summary"), HasSubstr("3 samples of cpu-clock, 3.00 ms"));
    choose("Process 100 (python3), rank 0");
    EXPECT_THAT(item("samples.summary"), HasSubstr("2 samples of cpu-clock, 2.00 ms"));
    choose("pt_autograd_0");
    EXPECT_EQ(item("samples.threads"), "pt_autograd_0");
    EXPECT_EQ(box("2.0"), "backward: 1.00 ms");
    limit(0, kMs);
    EXPECT_THAT(clipboard_, HasSubstr("Thread 150 has no sample in the time filter."));
    EXPECT_EQ(item("samples.threads"), "Thread 150");
    choose("All threads");
    EXPECT_THAT(item("samples.summary"), HasSubstr("1 sample of cpu-clock, 1.00 ms"));
    limit(50 * kMs, 60 * kMs);
    EXPECT_THAT(clipboard_, HasSubstr("No sample lies in the time filter."));
}

TEST_F(SamplesPanelTest, ADragOnTheStripSetsTheTimeFilter) {
    session_.add_trace(two_processes(), "two");
    draw(*panel_);
    EXPECT_EQ(item("samples.strip"), "1.11 cores")
        << "10 ms in the 9 ms between the first sample and the last";
    const auto strip = draw::items::find("samples.strip");
    const float y = (strip->min.y + strip->max.y) / 2, width = strip->max.x - strip->min.x;
    ImGuiIO& io = ImGui::GetIO();
    io.MousePos = {strip->min.x + width * 0.5F, y};
    frame(*panel_, 1600, 820);
    io.MouseDown[0] = true;
    frame(*panel_, 1600, 820);
    io.MousePos.x = strip->min.x + width * 0.9F;
    frame(*panel_, 1600, 820);
    EXPECT_FALSE(session_.current()->limit);
    io.MouseDown[0] = false;
    frame(*panel_, 1600, 820);
    ASSERT_TRUE(session_.current()->limit);
    EXPECT_NEAR(static_cast<double>(session_.current()->limit->from), 4.5 * kMs, 0.01 * kMs);
    EXPECT_NEAR(static_cast<double>(session_.current()->limit->to), 8.1 * kMs, 0.01 * kMs);
    draw(*panel_);
    EXPECT_THAT(item("samples.summary"), HasSubstr("4 samples of cpu-clock")) << "at 5 to 8 ms";
    click(*panel_, "samples.strip");
    EXPECT_NEAR(static_cast<double>(*session_.current()->cursor), 4.5 * kMs, 0.01 * kMs);
    // Where no sample is selected, the strip says where there are some.
    limit(50 * kMs, 60 * kMs);
    EXPECT_EQ(item("samples.strip"), "1.11 cores");
}

TEST_F(SamplesPanelTest, AClickShowsABoxWholeAndKeysGoBack) {
    session_.add_trace(two_processes(), "two");
    draw(*panel_);
    EXPECT_FALSE(draw::items::find("samples.all"));
    click(*panel_, "samples.box.3.0");
    EXPECT_EQ(box("3.0"), "forward: 7.00 ms");
    EXPECT_EQ(box("4.1"), "memcpy: 1.00 ms");
    const auto wide = draw::items::find("samples.box.3.0"), main = draw::items::find("samples.box.2.0");
    EXPECT_EQ(wide->min.x, main->min.x);
    EXPECT_EQ(wide->max.x, main->max.x) << "its callers are as wide";
    EXPECT_FALSE(draw::items::find("samples.box.2.1"));
    // Another time: the zoom stays where its stack is.
    limit(0, 2 * kMs);
    EXPECT_EQ(box("3.0"), "forward: 2.00 ms");
    EXPECT_FALSE(draw::items::find("samples.box.4.1"));
    limit(0, 10 * kMs);
    panel_->act("samples_caller", session_);
    draw(*panel_);
    EXPECT_EQ(box("3.1"), "[kernel]: 2.00 ms");
    panel_->act("samples_callee", session_);
    draw(*panel_);
    EXPECT_FALSE(draw::items::find("samples.box.3.1"));
    click(*panel_, "samples.all");
    EXPECT_EQ(box("2.1"), "backward: 1.00 ms");
    click(*panel_, "samples.box.3.0");
    panel_->act("samples_all", session_);
    draw(*panel_);
    EXPECT_TRUE(draw::items::find("samples.box.2.1"));
    panel_->act("samples_caller", session_);
    draw(*panel_);
    EXPECT_TRUE(draw::items::find("samples.box.2.1")) << "above all is nothing";
}

TEST_F(SamplesPanelTest, FindsFunctions) {
    session_.add_trace(two_processes(), "two");
    panel_->show_content(R"(["find sgemm"])", session_);
    settle(*panel_);
    EXPECT_EQ(item("samples.found"), "1 function, 70.00 %");
    EXPECT_EQ(item("samples.functions.rows"), "1");
    EXPECT_TRUE(draw::items::find("samples.functions.sgemm(float*) (libblas.so)"));
    panel_->show_content(R"(["find nothing of this name"])", session_);
    settle(*panel_);
    EXPECT_EQ(item("samples.found"), "no such function");
    EXPECT_EQ(item("samples.functions.rows"), "0");
    panel_->show_content("", session_);
    settle(*panel_);
    EXPECT_EQ(item("samples.functions.rows"), "6");
    EXPECT_FALSE(draw::items::find("samples.found"));
}

TEST_F(SamplesPanelTest, ARowMarksItsFunctionAndShowsItWhole) {
    session_.add_trace(two_processes(), "two");
    draw(*panel_);
    const std::string row = "samples.functions.sgemm(float*) (libblas.so)";
    click(*panel_, row, false, kNearLeft);
    EXPECT_EQ(panel_->content(session_), R"x(["function sgemm(float*) (libblas.so)"])x");
    for (int i = 0; i < 60; ++i) frame(*panel_, 1600, 820);  // a second: the clicks are not a double click
    click(*panel_, row, false, kNearLeft);
    EXPECT_EQ(panel_->content(session_), "") << "a second click marks none";
    for (int i = 0; i < 60; ++i) frame(*panel_, 1600, 820);
    click(*panel_, row, true, kNearLeft);
    EXPECT_EQ(box("4.0"), "sgemm(float*): 6.00 ms");
    EXPECT_FALSE(draw::items::find("samples.box.4.1"));
}

TEST_F(SamplesPanelTest, IsRestored) {
    session_.add_trace(two_processes(), "two");
    draw(*panel_);
    choose("Process 100 (python3), rank 0");
    click(*panel_, "samples.box.3.0");
    const std::string content = panel_->content(session_);
    const auto other = make_panel("samples");
    other->show_content(content, session_);
    draw(*other);
    EXPECT_EQ(item("samples.threads"), "Process 100 (python3), rank 0");
    EXPECT_EQ(box("3.0"), "forward: 7.00 ms");
    EXPECT_EQ(other->content(session_), content);
    for (const char* odd : {"x", "[]", R"(["thread x", "process", "in", "event none", "what"])"}) {
        other->show_content(odd, session_);
        draw(*other);
    }
    EXPECT_THAT(clipboard_, HasSubstr("No sample is of this event."));
    click(*other, "samples.event.cpu-clock");
    EXPECT_TRUE(draw::items::find("samples.summary"));
}

TEST_F(SamplesPanelTest, OfSeveralEventsShowsOneAtATime) {
    store::ColumnSink sink;
    add_thread(sink, 7, 7, "a", -1);
    add_sample(sink, 0, 7, 7, "f (p)", 1000, "cycles");
    add_sample(sink, 1, 7, 7, "f (p)", 500, "cycles");
    add_sample(sink, 2, 7, 7, "g (p)", 3, "page-faults");
    session_.add_trace(sink.take(), "events");
    draw(*panel_);
    EXPECT_EQ(item("samples.summary"), "2 samples of cycles, 1,500 cycles; 1 function");
    EXPECT_EQ(item("samples.functions.f (p).self_weight"), "1,500");
    click(*panel_, "samples.event.page-faults");
    EXPECT_EQ(item("samples.summary"), "1 sample of page-faults, 3 page-faults; 1 function");
    EXPECT_EQ(box("2.0"), "g: 3 page-faults");
}

TEST_F(SamplesPanelTest, SaysWhyThereIsNothing) {
    session_.add_trace(std::make_shared<store::Trace>(), "nothing");
    EXPECT_THAT(draw(*panel_), HasSubstr("This trace holds no samples of threads"));
}

TEST_F(SamplesPanelTest, ThreadsAndZoomAreOfOneTraceAndStayWhenItGrows) {
    session_.add_trace(two_processes(), "two");
    session_.add_trace(two_processes(), "others");
    session_.set_active(0);
    draw(*panel_);
    choose("Process 100 (python3), rank 0");
    click(*panel_, "samples.box.3.0");
    const std::string content = panel_->content(session_);
    session_.set_active(1);
    draw(*panel_);
    EXPECT_EQ(item("samples.threads"), "All threads");
    EXPECT_EQ(panel_->content(session_), "");
    panel_->show_content(content, session_);
    draw(*panel_);
    EXPECT_EQ(box("3.0"), "forward: 7.00 ms");
    // As after a reload.
    const model::TracePtr before = session_.trace();
    session_.open[1].trace = two_processes();
    panel_->closed(*before, session_.trace());
    draw(*panel_);
    EXPECT_EQ(box("3.0"), "forward: 7.00 ms");
    EXPECT_EQ(panel_->content(session_), content);
}

TEST_F(SamplesPanelTest, KeepsNothingOfATraceThatIsClosed) {
    session_.add_trace(two_processes(), "two");
    panel_->show_content(R"(["find sgemm"])", session_);
    settle(*panel_);
    const std::weak_ptr<const store::Trace> trace = session_.trace();
    session_.close(0);
    for (const model::GoneTrace& gone : session_.take_gone()) panel_->closed(*gone.trace, gone.successor);
    session_.poll();
    EXPECT_TRUE(trace.expired()) << trace.use_count() << " still keep it";
}

// 100,000 stacks that are all different. Each of the outer ten of their 25 levels has twice the boxes of the
// one above, so that most rows have 782 boxes.
TEST_F(SamplesPanelTest, StaysCheapWithManyStacksAndInAnySize) {
    ImGui::GetIO().BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;  // as in the OpenGL backend
    store::ColumnSink sink;
    add_thread(sink, 7, 7, "a", -1);
    for (int i = 0; i < 100'000; ++i) {
        std::string stack = fmt::format("f_{} (p)", i);
        for (int level = 23; level >= 0; --level)
            stack += fmt::format("\nf{}_{} (p)", level, i >> std::max(7, 17 - level));
        add_sample(sink, i, 7, 7, stack);
    }
    session_.add_trace(sink.take(), "many");
    panel_->show_content(R"(["find f0_0"])", session_);  // draw() logs each row of a table
    settle(*panel_);
    EXPECT_THAT(item("samples.summary"), HasSubstr("100,000 samples of cpu-clock"));
    EXPECT_EQ(item("samples.found"), "1 function, 100.00 %");
    for (const float size : {1.0F, 60.0F, 300.0F, 1000.0F}) draw(*panel_, size, size);
    panel_->show_content("", session_);
    draw::items::keep(false);
    double fastest = 1;
    for (int i = 0; i < 10; ++i) {
        const auto start = std::chrono::steady_clock::now();
        frame_without_log();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        fastest = std::min(fastest, took.count());
        EXPECT_LT(ImGui::GetDrawData()->TotalVtxCount, 4 * 12'000);
    }
    EXPECT_LT(fastest, 0.01) << "a frame of what is already laid out";
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
