// Metrics (SHARD_METRICS) survive export and import, joining, merging and slicing, and the view `metrics` has
// them together with the losses.
#include <cmath>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/kineto_text.h"
#include "tests/traces/outcome.h"
#include "tests/traces/part_files.h"
#include "tests/traces/temporary_folder.h"
#include "traces/analysis/training/metrics.h"
#include "traces/export/chrome_trace.h"
#include "traces/export/csv_tables.h"
#include "traces/import/import.h"
#include "traces/import/open.h"
#include "traces/merge/merge.h"
#include "traces/merge/slice.h"
#include "traces/store/load/loader.h"
#include "traces/store/sqlite/sqlite.h"

namespace shardscope::traces {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MetricRows : public ::testing::Test {
  protected:
    // Part of a job in which rank 0 reports the whole job's metrics, and rank 1 one of its own.
    std::string part(const char* name, std::vector<int> ranks) {
        PartSpec spec;
        spec.path = folder_ / name;
        spec.ranks = ranks;
        spec.pid = 500 + ranks.front();
        for (const int rank : ranks) {
            if (rank == 0) {
                spec.metrics = {
                    {"learning_rate", {.step = 0, .sample = 8, .time = kStepNs, .value = 0.5}},
                    {"learning_rate", {.step = 1, .sample = 16, .time = 2 * kStepNs, .value = 0.25}},
                    {"note", {.time = 3 * kStepNs + kStepNs / 2, .value = std::nan("")}},
                };
            } else {
                spec.metrics.push_back(
                    {"accuracy", {.step = 1, .time = 2 * kStepNs, .rank = rank, .value = 1}});
            }
        }
        write_part(spec);
        return spec.path;
    }
    static std::vector<std::string> texts(const store::Trace& trace) {
        std::vector<std::string> result;
        for (const schema::MetricRow& row : trace.metrics)
            result.push_back(fmt::format("{} {} {} {} {}", trace.strings[row.name], row.rank, row.step,
                                         row.sample, row.value));
        return result;
    }
    static auto are_all() {
        return ElementsAre("note -1 -1 -1 nan", "learning_rate -1 0 8 0.5", "learning_rate -1 1 16 0.25",
                           "accuracy 1 1 -1 1");
    }

    TemporaryFolder folder_;
};

TEST_F(MetricRows, AreLoadedInOrder) {
    const auto trace = store::load_trace(part("run.sqlite", {0, 1}));
    EXPECT_THAT(texts(*trace), are_all());
    EXPECT_EQ(trace->metrics[1].time, kStepNs);
}

TEST_F(MetricRows, SurviveExportAndImport) {
    const std::string run = part("run.sqlite", {0, 1}), chrome = folder_ / "run.json";
    exports::export_chrome(run, chrome);
    // JSON has no number for what is not one.
    EXPECT_THAT(texts(*importer::open_any({chrome})),
                ElementsAre("learning_rate -1 0 8 0.5", "learning_rate -1 1 16 0.25", "accuracy 1 1 -1 1"));
    exports::export_csv(run, folder_ / "csv", false);
    EXPECT_THAT(bytes_of(folder_ / "csv/metrics.csv"),
                AllOf(HasSubstr("rank,step,sample,time_ns,name,value\r\n"),
                      HasSubstr(fmt::format(",1,16,{},learning_rate,0.25\r\n", 2 * kStepNs)),
                      HasSubstr(",0,8,"), HasSubstr(",loss,2.5\r\n")));
}

TEST_F(MetricRows, SurviveJoiningMergingAndSlicing) {
    const std::string a = part("a.sqlite", {0}), b = part("b.sqlite", {1});
    EXPECT_THAT(texts(*importer::open_any({a, b})), are_all());
    const std::string merged = folder_ / "merged.sqlite", slice = folder_ / "slice.sqlite";
    merge::merge_traces({.inputs = {a, b}, .output = merged});
    EXPECT_THAT(texts(*store::load_trace(merged)), are_all());
    merge::slice_trace({.input = merged, .output = slice, .choice = {.first_step = 1, .last_step = 1}});
    EXPECT_THAT(texts(*store::load_trace(slice)),
                ElementsAre("learning_rate -1 1 16 0.25", "accuracy 1 1 -1 1"));
}

TEST_F(MetricRows, OfTheJobAreMergedOnceFromSlicesOfItsRanks) {
    const std::string run = part("run.sqlite", {0, 1}), merged = folder_ / "merged.sqlite";
    const std::string first = folder_ / "0.sqlite", second = folder_ / "1.sqlite";
    merge::slice_trace({.input = run, .output = first, .choice = {.ranks = {{0, 0}}}});
    merge::slice_trace({.input = run, .output = second, .choice = {.ranks = {{1, 1}}}});
    EXPECT_THAT(texts(*store::load_trace(first)),
                ElementsAre("note -1 -1 -1 nan", "learning_rate -1 0 8 0.5", "learning_rate -1 1 16 0.25"));
    merge::merge_traces({.inputs = {first, second}, .output = merged});
    EXPECT_THAT(texts(*store::load_trace(merged)), are_all());
    // Other clocks make other times of the same values.
    store::Database(second, store::Database::Mode::read_write)
        .execute("UPDATE SHARD_METRICS SET time = time + 300 WHERE step NOT NULL");
    const std::string shifted = folder_ / "shifted.sqlite";
    merge::merge_traces({.inputs = {first, second}, .output = shifted});
    EXPECT_THAT(texts(*store::load_trace(shifted)), are_all());
}

// Two ranks mark their own accuracy in step 1, and say another step; one metric was recorded already.
TEST_F(MetricRows, AreMadeOfMarksWhenTheRunEnds) {
    PartSpec spec;
    spec.path = folder_ / "marks.sqlite";
    spec.ranks = {0, 1};
    spec.marks = {{0, kStepNs + 10 * kUs, "metric accuracy=0.25"},
                  {1, kStepNs + 20 * kUs, "metric accuracy=0.75 bad=x learning_rate=0.5"},
                  {1, kStepNs + 30 * kUs, "metric accuracy=1 step=7 sample=64"},
                  {1, kStepNs + 950 * kUs, "metric accuracy=2"}};  // between two steps
    spec.metrics = {{"learning_rate", {.step = 1, .time = kStepNs + 20 * kUs, .rank = 1, .value = 0.5}}};
    write_part(spec);
    const auto all = ElementsAre("accuracy 1 -1 -1 2", "accuracy 0 1 -1 0.25", "learning_rate 1 1 -1 0.5",
                                 "accuracy 1 1 -1 0.75", "accuracy 1 7 64 1");
    EXPECT_THAT(texts(*store::load_trace(spec.path)), all);
    // A row and its mark are one value.
    const auto points = [](const store::Trace& trace) {
        std::size_t count = 0;
        for (const auto& curve : analysis::metrics_report(trace).curves)
            if (curve.rank >= 0) count += curve.points.size();
        return count;
    };
    EXPECT_EQ(points(*store::load_trace(spec.path)), 5U);
    const std::string slice = folder_ / "slice.sqlite", merged = folder_ / "merged.sqlite";
    const std::string other = part("other.sqlite", {2});
    merge::merge_traces({.inputs = {spec.path, other}, .output = merged});
    EXPECT_EQ(points(*store::load_trace(merged)), 6U);
    merge::slice_trace({.input = spec.path, .output = slice, .choice = {.ranks = {{1, 1}}}});
    EXPECT_EQ(points(*store::load_trace(slice)), 4U);
}

// A thread without a rank is its process's if that has one rank; else its value is of no rank, once.
TEST_F(MetricRows, OfAThreadWithoutARankAreItsProcessesOnlyRanks) {
    for (const auto& [ranks, rank] : {std::pair{std::vector{0}, 0}, {std::vector{0, 1}, -1}}) {
        PartSpec spec;
        spec.path = folder_ / fmt::format("of_{}.sqlite", ranks.size());
        spec.ranks = ranks;
        spec.marks = {{9, kStepNs + 10 * kUs, "metric words=2"}};
        write_part(spec);
        const auto trace = store::load_trace(spec.path);
        EXPECT_EQ(trace->metrics.size(), rank < 0 ? 0U : 1U);
        const auto report = analysis::metrics_report(*trace, {}, "words");
        ASSERT_EQ(report.curves.size(), 1U);
        EXPECT_EQ(report.curves[0].rank, rank);
        EXPECT_EQ(report.curves[0].points.size(), 1U);
    }
}

TEST_F(MetricRows, AreMadeOfAKinetoTracesAnnotations) {
    const std::string json = folder_ / "kineto.json", imported = folder_ / "kineto.sqlite";
    std::ofstream(json) << kineto(
        R"({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "pid": 42, "tid": 43, "ts": 90, "dur": 80, "args": {}},
{"ph": "X", "cat": "user_annotation", "name": "metric loss=2.5 lr=0.125", "pid": 42, "tid": 43, "ts": 100, "dur": 1, "args": {}},
)" + std::string(kOneLaunch));
    importer::import_files({.inputs = {json}, .output = imported});
    EXPECT_THAT(texts(*store::load_trace(imported)),
                ::testing::UnorderedElementsAre("loss 0 4 -1 2.5", "lr 0 4 -1 0.125"));
}

TEST_F(MetricRows, AreOneViewWithTheLosses) {
    store::Database database(part("run.sqlite", {0, 1}), store::Database::Mode::read_only);
    const auto number = [&](const char* sql) { return database.integer(sql); };
    EXPECT_EQ(number("SELECT count(*) FROM metrics"), 5);
    EXPECT_EQ(number("SELECT count(*) FROM metrics WHERE name = 'loss' AND step = 0 AND value = 2.5"), 1);
    EXPECT_EQ(number("SELECT sample FROM metrics WHERE name = 'loss'"), 8);
    EXPECT_EQ(number("SELECT time_ns FROM metrics WHERE name = 'loss'"), kStepNs);
    EXPECT_EQ(number("SELECT count(*) FROM metrics WHERE name = 'note' AND value IS NULL AND step IS NULL"),
              1);
    EXPECT_EQ(number("SELECT rank FROM metrics WHERE name = 'accuracy'"), 1);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces
