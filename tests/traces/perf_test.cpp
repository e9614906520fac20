// The text of `perf script`: its lines, the samples of its threads, and what the analysis makes of them.
#include <fstream>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/outcome.h"
#include "tests/traces/temporary_folder.h"
#include "traces/analysis/samples/flame.h"
#include "traces/export/chrome_trace.h"
#include "traces/import/import.h"
#include "traces/import/open.h"
#include "traces/import/perf/perf_line.h"
#include "traces/merge/merge.h"
#include "traces/merge/slice.h"
#include "traces/report/flame_graph.h"
#include "traces/report/report.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// As perf 6.1 prints it. Two threads; times rise by 1 ms.
constexpr std::string_view kText =
    "# ========\n"
    "# captured on    : Sat Nov 28 20:53:01 2026\n"
    "#\n"
    "train data  4242/4242 [001] 16922.001000:    1000000 cpu-clock:u: \n"
    "\t            116b hot+0x22 (/opt/job/train)\n"
    "\t            1200 main+0x10 (/opt/job/train)\n"
    "\n"
    "train data  4242/4242 [001] 16922.002000:    1000000 cpu-clock:u: \n"
    "\t            1180 cold+0x2 (/opt/job/train)\n"
    "\t            116b hot+0x30 (/opt/job/train)\n"
    "\t            1200 main+0x10 (/opt/job/train)\n"
    "\n"
    "loader  4242/4250 [000] 16922.003000:    3000000 cpu-clock:u: \n"
    "\t    7f33a2b1c0d0 std::vector<int, std::allocator<int> >::push_back(int const&)+0x8 "
    "(/usr/lib/libx.so.6)\n"
    "\t    7f33a2b1c1d0 [unknown] ([vdso])\n"
    "\n"
    "train data  4242/4242 [001] 16922.004000:    1000000 cpu-clock:u: \n"
    "\t            1199 again+0x2 (/opt/job/train)\n"
    "\t            119b again+0x12 (/opt/job/train)\n"
    "\t            1200 main+0x10 (/opt/job/train)\n"
    "\n";

class Perf : public ::testing::Test {
  protected:
    std::string file(std::string_view text, const char* name = "perf.txt") {
        std::ofstream(folder_ / name, std::ios::binary) << text;
        return folder_ / name;
    }
    static std::vector<std::string> functions(const store::Trace& trace) {
        std::vector<std::string> texts;
        for (const analysis::FunctionTime& f : analysis::samples_report(trace).functions)
            texts.push_back(fmt::format("{} {} {} {}", f.name, f.self, f.total, f.samples));
        return texts;
    }
    static auto are_all() {
        return ElementsAre(
            "std::vector<int, std::allocator<int> >::push_back(int const&) (libx.so.6) 3000000 "
            "3000000 1",
            "hot (train) 1000000 2000000 1", "again (train) 1000000 1000000 1",
            "cold (train) 1000000 1000000 1", "[unknown] ([vdso]) 0 3000000 0", "main (train) 0 3000000 0");
    }

    TemporaryFolder folder_;
};

TEST(PerfLine, OfASampleHasEachField) {
    using importer::read_perf_sample;
    const auto sample =
        read_perf_sample("train data  4242/4250 [003] 16922.928625:    1003009 cpu-clock:u: ");
    ASSERT_TRUE(sample);
    EXPECT_EQ(sample->program, "train data");
    EXPECT_EQ(sample->pid, 4242);
    EXPECT_EQ(sample->tid, 4250);
    EXPECT_EQ(sample->cpu, 3);
    EXPECT_EQ(sample->time, 16'922'928'625'000);
    EXPECT_EQ(sample->period, 1'003'009);
    EXPECT_EQ(sample->event, "cpu-clock");

    const auto bare = read_perf_sample("hot  3365 16922.928625012: cycles: ffff 116b main+0x2 (/tmp/hot)");
    ASSERT_TRUE(bare);
    EXPECT_EQ(bare->pid, -1);
    EXPECT_EQ(bare->tid, 3365);
    EXPECT_EQ(bare->cpu, -1);
    EXPECT_EQ(bare->time, 16'922'928'625'012);
    EXPECT_EQ(bare->period, 1);
    EXPECT_EQ(bare->rest, "ffff 116b main+0x2 (/tmp/hot)");

    // A program's name may look like anything, and an event have colons of its own.
    EXPECT_EQ(read_perf_sample("a: 1.5x: b 7 1.5: sched:sched_switch: x")->event, "sched:sched_switch");
    EXPECT_EQ(read_perf_sample("a 7 1.5: 9 cpu/cycles,name=x/P: ")->event, "cpu/cycles,name=x/P");
    for (const char* other : {"", "text", "a b 1.5: cycles:", "a 7 1.: cycles:", "a 7 1.5: cycles",
                              "a 7 x.5: 1 y:", "a -7 1.5: cycles:", "a 7 99999999999.5: cycles:",
                              "a 7/x 1.5: cycles:", "a 7 [x] 1.5: cycles:", "a 7 1.0123456789: cycles:"})
        EXPECT_FALSE(read_perf_sample(other)) << other;
}

TEST(PerfLine, OfAFrameIsTheFunctionAndItsLibrary) {
    using importer::read_perf_frame;
    EXPECT_EQ(read_perf_frame("\t 116b hot+0x22 (/tmp/hot)"), "hot (hot)");
    EXPECT_EQ(read_perf_frame(" 7f [unknown] ([kernel.kallsyms])"), "[unknown] ([kernel.kallsyms])");
    EXPECT_EQ(read_perf_frame(" 7f operator+(A, B) (/lib/a b (deleted))"),
              "operator+(A, B) (/lib/a b (deleted))");
    EXPECT_EQ(read_perf_frame(" 7f (/lib/libc.so.6)"), "[unknown] (libc.so.6)");
    EXPECT_EQ(read_perf_frame(" 7f f+0xzz (x)"), "f+0xzz (x)");
    for (const char* other : {"", " ", "7f", "xyz main (a)"}) EXPECT_FALSE(read_perf_frame(other)) << other;
}

TEST_F(Perf, HasThreadsSamplesAndFunctions) {
    const auto trace = importer::open_any({file(kText)});
    ASSERT_EQ(trace->samples.size(), 4U);
    EXPECT_EQ(trace->first_ns, 0);
    EXPECT_EQ(trace->last_ns, 3'000'000);
    EXPECT_THAT(trace->samples.cpu, ElementsAre(1, 1, 0, 1));
    ASSERT_EQ(trace->threads.size(), 2U);
    EXPECT_EQ(trace->threads[0].name, "train data");
    EXPECT_EQ(trace->threads[1].name, "loader");
    EXPECT_EQ(trace->threads[0].global_tid & ~std::int64_t{0xFFFFFF},
              trace->threads[1].global_tid & ~std::int64_t{0xFFFFFF});
    EXPECT_THAT(functions(*trace), are_all());
    const analysis::SamplesReport report = analysis::samples_report(*trace);
    EXPECT_EQ(report.event, "cpu-clock");
    EXPECT_TRUE(report.is_time);
    EXPECT_EQ(report.samples, 4);
    EXPECT_EQ(report.total, 6'000'000);
    EXPECT_DOUBLE_EQ(report.functions.front().self_percent, 50);
}

TEST_F(Perf, IsOneTreeOfStacks) {
    const auto trace = importer::open_any({file(kText)});
    const analysis::SamplesReport report = analysis::samples_report(*trace);
    EXPECT_EQ(
        folded_stacks(report),
        "loader;[unknown] ([vdso]);std::vector<int, std::allocator<int> >::push_back(int const&) (libx.so.6) "
        "3000000\n"
        "train data;main (train);hot (train) 1000000\n"
        "train data;main (train);hot (train);cold (train) 1000000\n"
        "train data;main (train);again (train);again (train) 1000000\n");
    // Each node's weight is its own and its children's.
    for (const analysis::FlameNode& node : report.tree) {
        std::int64_t sum = node.self;
        for (const int child : node.children) sum += report.tree[static_cast<std::size_t>(child)].total;
        EXPECT_EQ(sum, node.total) << node.frame;
    }
    const std::string svg = report::flame_graph_svg(report, "a <b>");
    EXPECT_THAT(svg, HasSubstr("a &lt;b&gt;"));
    EXPECT_THAT(svg, HasSubstr("<title>hot (train): 2.0 ms, 33.33 %, 1.0 ms itself</title>"));
    EXPECT_THAT(svg, HasSubstr("std::vector&lt;int, std::allocator&lt;int&gt; &gt;"));
    EXPECT_THAT(svg, HasSubstr("4 samples of cpu-clock, 6.0 ms"));
    EXPECT_THAT(svg, Not(HasSubstr("too narrow")));
}

TEST_F(Perf, IsLimitedToASelection) {
    const auto trace = importer::open_any({file(kText)});
    analysis::Selection selection{.from_ns = 1'000'000, .to_ns = 3'000'000};
    EXPECT_EQ(analysis::samples_report(*trace, selection).samples, 2);
    selection.rank = 0;
    EXPECT_EQ(analysis::samples_report(*trace, selection).samples, 2);
    EXPECT_EQ(analysis::samples_report(*trace, {}, {.event = "cycles"}).samples, 0);
    EXPECT_THAT(analysis::samples_report(*trace, {}, {.event = "cycles"}).other_events,
                ElementsAre("cpu-clock"));
    EXPECT_EQ(analysis::samples_report(*trace, {}, {}, 2).functions.size(), 2U);
    EXPECT_EQ(analysis::samples_report(*trace, {}, {}, 2).distinct, 6);
}

TEST_F(Perf, IsLimitedToAThread) {
    const auto trace = importer::open_any({file(kText)});
    const auto report = analysis::samples_report(*trace, {}, {.thread = trace->threads[1].global_tid});
    EXPECT_EQ(report.total, 3'000'000);
    EXPECT_EQ(report.distinct, 2);
    ASSERT_EQ(report.threads.size(), 2U) << "whatever the filter";
    EXPECT_EQ(report.threads[0].samples, 3);
    EXPECT_EQ(report.threads[1].weight, 3'000'000);
    EXPECT_EQ(analysis::samples_report(*trace, {}, {.process = schema::global_pid(4242)}).samples, 4);
    EXPECT_EQ(analysis::samples_report(*trace, {}, {.process = schema::global_pid(4250)}).samples, 0);
}

TEST_F(Perf, ShowsNarrowCalleesTogether) {
    const auto trace = importer::open_any({file(kText)});
    const analysis::SamplesReport report = analysis::samples_report(*trace);
    // Six pixels: one for each ms. hot() and again() are as wide as main() together.
    const analysis::FlameBoxes boxes = flame_boxes(report.tree, 0, 6, 1.5);
    ASSERT_EQ(boxes.narrow.size(), 2U);
    EXPECT_EQ(report.tree[static_cast<std::size_t>(boxes.narrow[0].caller)].frame, "main (train)");
    EXPECT_EQ(boxes.narrow[0].weight, 1'000'000) << "again()";
    EXPECT_EQ(boxes.narrow[0].width, 1);
    EXPECT_EQ(report.tree[static_cast<std::size_t>(boxes.narrow[1].caller)].frame, "hot (train)");
    EXPECT_EQ(boxes.hidden, 2);
    EXPECT_EQ(boxes.deepest, 3);
}

TEST_F(Perf, OfSeveralEventsCountsOneAtATime) {
    const auto trace =
        importer::open_any({file("a 7 1.0: 10 cycles:\n 1 f+0x1 (p)\n\na 7 1.1: 20 cycles:\n 1 f+0x1 "
                                 "(p)\n\na 7 1.2: 5 faults:\n 1 g+0x1 (p)\n")});
    const analysis::SamplesReport report = analysis::samples_report(*trace);
    EXPECT_EQ(report.event, "cycles");
    EXPECT_FALSE(report.is_time);
    EXPECT_EQ(report.total, 30);
    EXPECT_THAT(report.other_events, ElementsAre("faults"));
    EXPECT_EQ(analysis::samples_report(*trace, {}, {.event = "faults"}).total, 5);
    const std::string table = report::render(report, report::Format::table);
    EXPECT_THAT(table, HasSubstr("2 samples of cycles; 1 function\n"));
    EXPECT_THAT(table, HasSubstr("Other events, with --event: faults\n"));
    EXPECT_THAT(table, Not(HasSubstr("µs")));
}

TEST_F(Perf, SurvivesImportExportMergeAndSlice) {
    const std::string imported = folder_ / "perf.sqlite", chrome = folder_ / "perf.json";
    importer::import_files({.inputs = {file(kText)}, .output = imported});
    EXPECT_THAT(functions(*store::load_trace(imported)), are_all());
    exports::export_chrome(imported, chrome);
    EXPECT_THAT(functions(*importer::open_any({chrome})), are_all());
    store::Database database(imported, store::Database::Mode::read_only);
    EXPECT_EQ(database.integer("SELECT sum(weight) FROM samples WHERE function = 'hot (train)'"), 1'000'000);
    EXPECT_EQ(database.integer("SELECT count(*) FROM samples WHERE thread = 'loader' AND rank = 0"), 1);

    const std::string slice = folder_ / "slice.sqlite", merged = folder_ / "merged.sqlite";
    merge::slice_trace(
        {.input = imported, .output = slice, .choice = {.from_ns = 1'000'000, .to_ns = 3'000'000}});
    EXPECT_EQ(store::load_trace(slice)->samples.size(), 2U);
    const std::string one = file(kText, "rank0.txt"), two = file(kText, "rank1.txt");
    importer::import_files({.inputs = {one, two}, .output = merged});
    for (const auto& trace : {importer::open_any({one, two}), store::load_trace(merged)}) {
        EXPECT_EQ(trace->samples.size(), 8U);
        EXPECT_EQ(trace->ranks.size(), 2U);
        EXPECT_EQ(analysis::samples_report(*trace, {.rank = 1}).total, 6'000'000);
        EXPECT_EQ(analysis::samples_report(*trace).total, 12'000'000);
    }
}

TEST_F(Perf, SaysWhichLineIsDamaged) {
    const std::string damaged = std::string(kText) + "what \x01 is this\n" + std::string(kText);
    const std::string path = file(damaged);
    EXPECT_THAT(refusal_of([&] { importer::open_any({path}); }),
                HasSubstr(fmt::format("{} at byte {}: \"what ? is this\" is neither a sample nor a frame",
                                      path, kText.size())));
    const auto trace = importer::open_any({path}, {.partial = true});
    EXPECT_EQ(trace->samples.size(), 8U);
    EXPECT_THAT(trace->diagnostics.at(0).text,
                HasSubstr(fmt::format("1 line could not be read, the first at byte {}", kText.size())));
}

TEST_F(Perf, WithoutStacksSaysHowToRecordThem) {
    const auto trace = importer::open_any({file("a 7 1.0: 10 cycles:  1 f+0x1 (p)\na 7 1.1: 10 cycles: \n")});
    EXPECT_EQ(trace->samples.size(), 2U);
    EXPECT_EQ(trace->diagnostics.at(0).text, "1 of 2 samples have no stack; perf record -g records stacks");
    EXPECT_THAT(functions(*trace), ElementsAre("[unknown] 10 10 1", "f (p) 10 10 1"));
}

TEST_F(Perf, OfAProgramWhoseNameCouldBeAnAddressHasEachSample) {
    const auto trace =
        importer::open_any({file("              dd  7/7 1.0: 10 cycles:  1 f+0x1 (p)\n              dd  7/7 "
                                 "1.1: 10 cycles:  1 f+0x1 (p)\n")});
    EXPECT_EQ(trace->samples.size(), 2U);
    EXPECT_THAT(functions(*trace), ElementsAre("f (p) 20 20 2"));
}

TEST_F(Perf, HasNoSampleTwiceAtAChunksEdge) {
    std::string text;
    for (int i = 0; i < 30'000; ++i)
        text += fmt::format("a {}/7 {}.5: 2 cycles:\n\t 1 f+0x1 (p)\n\t 2 main+0x1 (p)\n\n", 7, i);
    ASSERT_GT(text.size(), std::size_t{1} << 20);
    const auto trace = importer::open_any({file(text)});
    EXPECT_EQ(trace->samples.size(), 30'000U);
    EXPECT_EQ(analysis::samples_report(*trace).functions.front().self, 60'000);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces
