// The printed results: tables compared with golden texts, JSON by its fixed keys, CSV by its lines.
#include "traces/report/report.h"

#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/traces/outcome.h"
#include "tests/traces/report_samples.h"
#include "traces/analysis/compare/compare_parts.h"
#include "traces/analysis/fsdp/units.h"
#include "traces/analysis/memory/allocations.h"
#include "traces/analysis/modules/operators.h"
#include "traces/analysis/path/critical_path.h"

namespace shardscope::traces::report {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

template <typename Result>
Json json_of(const Result& result) {
    const std::string text = render(result, Format::json);
    EXPECT_EQ(text.back(), '\n');
    return Json::parse(text);
}

// clang-format off
constexpr const char* kSummaryTable =
R"(Rank 0: mean of 2 steps (1 at the end cut off and excluded); median 1,990.0 µs, host step 1,700.0 µs
Category           Time (µs)  Percent
─────────────────  ─────────  ───────
Average Step Time    2,000.0   100.00
Kernel               1,500.0    75.00
Memcpy                   0.0     0.00
Memset                   0.0     0.00
Communication            0.0     0.00
Runtime                  0.0     0.00
DataLoader               0.0     0.00
CPU Exec                 0.0     0.00
Other                  500.0    25.00

Rank 1: mean of 0 steps
Category           Time (µs)  Percent
─────────────────  ─────────  ───────
Average Step Time        0.0     0.00
Kernel                   0.0     0.00
Memcpy                   0.0     0.00
Memset                   0.0     0.00
Communication            0.0     0.00
Runtime                  0.0     0.00
DataLoader               0.0     0.00
CPU Exec                 0.0     0.00
Other                    0.0     0.00
A step's time is its window: from the end of the device work before it to the end of its own. The host step is its range
on the host. The median excludes the trace's first step.
)";

constexpr const char* kModulesTable =
R"(Rank 0
                                                           Host              Device  Backward
                                                    Host   self    Device      self    device              Gathered
Module                         Calls  Operators     (µs)   (µs)      (µs)      (µs)      (µs)  Parameters     (MiB)
─────────────────────────────  ─────  ─────────  ───────  ─────  ────────  ────────  ────────  ──────────  ────────
MLP_0                             20          0  1,200.0  110.0  12,345.3       0.0   8,000.0      65,792      0.00
├─ FullyShardedDataParallel_1     20          0  1,000.0  200.0  12,345.3       0.0   8,000.0      65,792     10.00
│  └─ Linear_0                    20         20    800.0  800.0  12,345.3  12,345.3   8,000.0      65,792      0.00
└─ ReLU_0                         20         20     90.0   90.0       0.0       0.0       0.0           0      0.00

                               Reduced   Peak
Module                           (MiB)  (MiB)
─────────────────────────────  ───────  ─────
MLP_0                             0.00   4.00
├─ FullyShardedDataParallel_1     5.00   3.00
│  └─ Linear_0                    0.00   0.00
└─ ReLU_0                         0.00   0.00

Rank 1: no module ranges
)";

constexpr const char* kMemoryTable =
R"(Allocated device memory

Rank 2: peak 3.00 MiB (3,145,728 bytes) at 1,234.500 ms; predicted 3,145,216 bytes (measured +512 bytes), in first step,
backward; reserved 4.00 MiB
At the peak            MiB      Bytes  Share (%)  Predicted MiB  Difference (bytes)
────────────────────  ────  ─────────  ─────────  ─────────────  ──────────────────
parameters            1.00  1,048,576      33.33           1.00                   0
unsharded_parameters  0.00          0       0.00           0.00                   0
gradients             0.00          0       0.00           0.00                   0
unsharded_gradients   0.00          0       0.00           0.00                   0
optimizer_state       0.00          0       0.00           0.00                   0
activations           2.00  2,097,152      66.67           2.00                 512
communication         0.00          0       0.00           0.00                   0
other                 0.00          0       0.00           0.00                   0
────────────────────  ────  ─────────  ─────────  ─────────────  ──────────────────
total                 3.00  3,145,728     100.00           3.00                 512

By unit     MiB      Bytes  Share (%)
─────────  ────  ─────────  ─────────
net.0      2.00  2,097,152      66.67
(no unit)  1.00  1,048,576      33.33
)";

constexpr const char* kExplanationTable =
R"(Allocated device memory; difference = measured - predicted, "=" the same

Rank 2: peak 3.00 MiB (3,145,728 bytes) at 1,234.500 ms, in step 1, backward; reached by allocating 3.00 MiB for "x"
(unit net.0, module Linear_0)
Predicted by the memory account: 3.00 MiB (3,145,216 bytes), in first step, backward

By category               Bytes   MiB  Share (%)  Predicted (bytes)  (MiB)  Difference (bytes)  (MiB)    (%)
────────────────────  ─────────  ────  ─────────  ─────────────────  ─────  ──────────────────  ─────  ─────
parameters            1,048,576  1.00      33.33          1,048,576   1.00                   =      =      =
unsharded_parameters          0  0.00       0.00                  0   0.00                   =      =      =
gradients                     0  0.00       0.00                  0   0.00                   =      =      =
unsharded_gradients           0  0.00       0.00                  0   0.00                   =      =      =
optimizer_state               0  0.00       0.00                  0   0.00                   =      =      =
activations           2,097,152  2.00      66.67          2,096,640   2.00                +512   0.00  +0.02
communication                 0  0.00       0.00                  0   0.00                   =      =      =
other                         0  0.00       0.00                  0   0.00                   =      =      =
────────────────────  ─────────  ────  ─────────  ─────────────────  ─────  ──────────────────  ─────  ─────
total                 3,145,728  3.00     100.00          3,145,216   3.00                +512   0.00  +0.02

By unit        Bytes   MiB  Share (%)  Predicted (bytes)  (MiB)  Difference (bytes)  (MiB)    (%)
─────────  ─────────  ────  ─────────  ─────────────────  ─────  ──────────────────  ─────  ─────
net.0      2,097,152  2.00      66.67          2,096,640   2.00                +512   0.00  +0.02
(no unit)  1,048,576  1.00      33.33          1,048,576   1.00                   =      =      =
─────────  ─────────  ────  ─────────  ─────────────────  ─────  ──────────────────  ─────  ─────
total      3,145,728  3.00     100.00          3,145,216   3.00                +512   0.00  +0.02

By module        Bytes   MiB  Share (%)  Predicted (bytes)  (MiB)  Difference (bytes)  (MiB)    (%)
───────────  ─────────  ────  ─────────  ─────────────────  ─────  ──────────────────  ─────  ─────
(no module)  3,145,728  3.00     100.00          3,145,216   3.00                +512   0.00  +0.02
───────────  ─────────  ────  ─────────  ─────────────────  ─────  ──────────────────  ─────  ─────
total        3,145,728  3.00     100.00          3,145,216   3.00                +512   0.00  +0.02

By buffer      Bytes   MiB  Share (%)  Predicted (bytes)  (MiB)  Difference (bytes)  (MiB)      (%)
─────────  ─────────  ────  ─────────  ─────────────────  ─────  ──────────────────  ─────  ───────
x          3,145,728  3.00     100.00          3,144,704   3.00              +1,024   0.00    +0.03
y                  0  0.00       0.00                512   0.00                -512   0.00  -100.00
─────────  ─────────  ────  ─────────  ─────────────────  ─────  ──────────────────  ─────  ───────
total      3,145,728  3.00     100.00          3,145,216   3.00                +512   0.00    +0.02

             Peak                                                                          Pool
By      allocated         Active  Reserved  Predicted         Difference                   grew
step      (bytes)  (MiB)   (MiB)     (MiB)    (bytes)  (MiB)     (bytes)  (MiB)    (%)  (times)
──────  ─────────  ─────  ──────  ────────  ─────────  ─────  ──────────  ─────  ─────  ───────
0       2,097,152   2.00    2.00      3.00  2,097,152   2.00           =      =      =        5
1 to 2  3,145,728   3.00    3.00      4.00  3,145,216   3.00        +512   0.00  +0.02        0

Reserved against allocated                        Bytes   MiB
────────────────────────────────────────────  ─────────  ────
allocated, peak (in the host's order)         3,145,728  3.00
active, peak (until the last stream used it)  3,145,728  3.00
reserved, peak (held by the pool)             4,194,304  4.00
reserved when allocated is at its peak        4,194,304  4.00
  of which cached (not allocated)             1,048,576  1.00
most allocated while reserved is at its peak  3,145,728  3.00
most active while reserved is at its peak     3,670,016  3.50
Fragmentation: 25.00 % of the reserved peak was never allocated at the same time, 12.50 % never active.
The pool grew 7 times (cudaMalloc), 5 of them in steps.
)";

constexpr const char* kCollectivesTable =
R"(MiB of the full buffer; GB = 10^9 bytes
                                   Time  Transfer  Waiting  Exposed   algbw   busbw
Rank  Operation   Count    MiB     (µs)      (µs)     (µs)     (µs)  (GB/s)  (GB/s)  Count/step  MiB/step
────  ──────────  ─────  ─────  ───────  ────────  ───────  ───────  ──────  ──────  ──────────  ────────
   0  all_gather     32  64.00  4,000.0   3,000.0  1,000.0    500.0  22.370  16.777       16.00     32.00
2 collectives are without a counterpart on another rank: the whole time counts as transfer.
)";

constexpr const char* kCompareTable =
R"(Per rank, mean of the ranks   root.sqlite  block.sqlite      vs. first run
────────────────────────────  ───────────  ────────────  ─────────────────
fsdp.wrap                            root  module:Block
train.extra                             -             1
Ranks                                   4             4
Steps                                  18            18
────────────────────────────  ───────────  ────────────  ─────────────────
Step time, median (µs)            1,990.0       1,990.0                  =
Step time, mean (µs)              2,000.0       2,010.0  ~ +10.0 (+0.50 %)
Step time, spread (µs)               20.0          20.0                  =
  Kernel (µs)                     1,500.0       1,500.0                  =
  Memcpy (µs)                         0.0           0.0                  =
  Memset (µs)                         0.0           0.0                  =
  Communication (µs)                  0.0           0.0                  =
  Runtime (µs)                        0.0           0.0                  =
  DataLoader (µs)                     0.0           0.0                  =
  CPU Exec (µs)                       0.0           0.0                  =
  Other (µs)                        500.0         500.0                  =
Communication (us/step)             400.0         400.0                  =
  exposed (us/step)                 200.0         100.0  -100.0 (-50.00 %)
Memcpy (us/step)                     10.0          10.0                  =
Device busy (%)                     90.00         90.00                  =
────────────────────────────  ───────────  ────────────  ─────────────────
Peak memory (MiB)                  100.00         40.00  -60.00 (-60.00 %)
  unsharded_parameters (MiB)       100.00         40.00  -60.00 (-60.00 %)
────────────────────────────  ───────────  ────────────  ─────────────────
all_gather (count/step)              0.00         16.00             +16.00
all_gather (MiB/step)                0.00         32.00             +32.00
all_gather (us/step)                  0.0       2,000.0           +2,000.0
The peak is that of the rank with the largest. ~ the difference is within the spread of the steps (half the
interquartile range). The median step and its spread exclude the trace's first step, which is the warm-up.
)";

constexpr const char* kInfoTable =
R"(File            run.sqlite
Schema          1
State           did not end (killed, or still running)
Started (UTC)   2026-03-01T12:34:56.789Z
Duration (ms)   1,234.500
Ranks           4
Steps           20
Device          processor
Dropped events  0

Rows
kernels  12,345
memcpys       7

Configuration
model.type   mlp
model.width  256
)";
// clang-format on

TEST(Report, TablesForPeople) {
    EXPECT_EQ(render(sample_summary(), Format::table), kSummaryTable);
    EXPECT_EQ(render(sample_modules(), Format::table), kModulesTable);
    EXPECT_EQ(render(sample_memory(), Format::table), kMemoryTable);
    EXPECT_EQ(render(sample_explanation(), Format::table), kExplanationTable);
    EXPECT_EQ(render(sample_collectives(), Format::table), kCollectivesTable);
    EXPECT_EQ(render(sample_comparison(), Format::table), kCompareTable);
    EXPECT_EQ(render(sample_info(), Format::table), kInfoTable);
}

// A prediction of the whole run does not apply to the parts of another step's peak.
TEST(Report, HasNothingPerStepForTracesWithoutSteps) {
    analysis::Comparison comparison = sample_comparison();
    for (analysis::RunColumn& run : comparison.runs) run.stepped = false;
    const std::string whole = render(comparison, Format::table);
    EXPECT_THAT(whole, Not(HasSubstr("/step")));
    EXPECT_THAT(whole, Not(HasSubstr("Step time")));
    EXPECT_THAT(whole, HasSubstr("Whole trace (µs)"));
    EXPECT_THAT(whole, HasSubstr("figures are of the whole trace"));
    EXPECT_FALSE(json_of(comparison)["runs"][0]["stepped"]);

    analysis::ExecutionSummary summary = sample_summary();
    summary.stepped = false;
    const std::string text = render(summary, Format::table);
    EXPECT_THAT(text, HasSubstr("Rank 0: the whole trace, which has no steps"));
    EXPECT_THAT(text, Not(HasSubstr("Average Step Time")));
    EXPECT_THAT(text, Not(HasSubstr("mean of")));

    analysis::CollectivesReport collectives = sample_collectives();
    collectives.stepped = false;
    EXPECT_THAT(render(collectives, Format::table), Not(HasSubstr("/step")));

    analysis::CriticalPathReport path{.stepped = false};
    path.ranks = {{.rank = 0, .average_step_us = 5, .shares = {{}}, .modules = {{}}}};
    EXPECT_THAT(render(path, Format::table), AllOf(HasSubstr("The whole trace, which has no steps."),
                                                   HasSubstr("Whole (µs)"), Not(HasSubstr("/step"))));

    analysis::UnitsReport units{.any_unit = true, .stepped = false, .rank_steps = 1};
    units.ranks = {{.rank = 0, .steps = 1}};
    units.all_ranks = {{.name = "root"}};
    EXPECT_THAT(
        render(units, Format::table),
        AllOf(HasSubstr("The whole trace, which has no steps, of rank 0."), Not(HasSubstr("per step"))));
}

TEST(Report, APartThatNeitherOfTwoRunsHasIsNotGone) {
    analysis::PartsComparison comparison;
    comparison.whole = sample_comparison();
    comparison.whole.runs.push_back(comparison.whole.runs.back());
    analysis::PartFigures there;
    there.present = true;
    there.us = 5;
    comparison.parts = {{"gemm", {analysis::PartFigures{}, analysis::PartFigures{}, there}}};
    const std::string text = render(comparison, Format::table);
    EXPECT_THAT(text, HasSubstr("new"));
    EXPECT_THAT(text, Not(HasSubstr("gone")));
}

TEST(Report, TheFirstStepsPredictionIsNextToTheFirstStepsPeak) {
    analysis::MemoryReport memory = sample_memory();
    analysis::RankMemory& rank = memory.ranks[0];
    rank.prediction_applies = false;
    rank.predicted_of_steps = rank.peak_bytes;
    rank.predicted_step = 1;
    EXPECT_THAT(render(memory, Format::table),
                AllOf(HasSubstr("predicted for the steps shown 3,145,728 bytes (the same)"),
                      HasSubstr("3,145,216 bytes from step 1 on")));
    EXPECT_EQ(json_of(memory)["ranks"][0]["predicted_of_steps_bytes"], 3 << 20);
    EXPECT_EQ(json_of(memory)["ranks"][0]["predicted_step"], 1);
}

TEST(Report, APredictionThatDoesNotApplyIsPrintedButNotCompared) {
    analysis::MemoryExplanation explanation = sample_explanation();
    analysis::RankMemory& rank = explanation.ranks[0].memory;
    rank.prediction_applies = false;
    for (auto* holders : {&rank.units, &rank.modules, &rank.buffers}) {
        for (analysis::MemoryHolder& holder : *holders) holder.predicted.reset();
    }
    const std::string text = render(explanation, Format::table);
    EXPECT_THAT(text, HasSubstr("(3,145,216 bytes), in first step, backward; of the whole run, whose peak"));
    EXPECT_THAT(text, HasSubstr("\nBy category               Bytes   MiB  Share (%)\n"));
    EXPECT_THAT(text, HasSubstr("\nBy unit        Bytes   MiB  Share (%)\n"));
    EXPECT_THAT(render(analysis::MemoryReport{{rank}}, Format::table),
                HasSubstr("predicted 3,145,216 bytes (of the whole run)"));
    const Json json = json_of(explanation)["ranks"][0];
    EXPECT_EQ(json["prediction_applies"], false);
    EXPECT_EQ(json["predicted_peak_bytes"], (3 << 20) - 512);
    EXPECT_TRUE(json["categories"][0]["predicted_bytes"].is_null());
}

// 40 units of 1 to 40 bytes, 820 in all: the 16 largest (25 to 40) hold 520, the 24 others 300.
TEST(Report, PartsBeyondTheLargestAreOneRowSoThatTheTotalIsThatOfAll) {
    analysis::RankExplanation rank;
    rank.memory.peak_bytes = 820;
    for (int i = 40; i > 0; --i) rank.memory.units.push_back({"unit " + std::to_string(i), i});
    const std::string text = render(analysis::MemoryExplanation{{rank}}, Format::table);
    EXPECT_THAT(text, HasSubstr("\nunit 25       25  0.00       3.05\n… 24 more    300  0.00      36.59\n"));
    EXPECT_THAT(text, HasSubstr("\ntotal        820  0.00     100.00\n"));
}

TEST(Report, ExplanationJsonKeepsTheKeysOfMemoryAndAdds) {
    const Json rank = json_of(sample_explanation())["ranks"][0];
    const Json memory = json_of(sample_memory())["ranks"][0];
    for (const auto& [key, value] : memory.items()) {
        ASSERT_TRUE(rank.contains(key)) << key;
        if (value.is_array()) continue;
        EXPECT_EQ(rank[key], value) << key;
    }
    EXPECT_EQ(rank["units"][0], Json::parse(R"({"name":"net.0","bytes":2097152,"predicted_bytes":2096640,
                                                "difference_bytes":512,"difference_percent":0.02442002442002442})"));
    EXPECT_EQ(rank["buffers"][1]["difference_bytes"], -512);
    EXPECT_EQ(rank["steps"].size(), 3U);
    EXPECT_EQ(rank["steps"][0], Json::parse(R"({"step":0,"bytes":2097152,"predicted_bytes":2097152,
                                                "difference_bytes":0,"difference_percent":0.0,
                                                "active_bytes":2097152,"reserved_bytes":3145728,"growths":5})"));
    EXPECT_EQ(rank["pool"]["fragmentation_percent"], 25.0);
    EXPECT_EQ(rank["moment"]["phase"], "backward");
}

TEST(Report, ExplanationCsvHasARowForEachPartAndStep) {
    const std::string csv = render(sample_explanation(), Format::csv);
    EXPECT_THAT(csv, StartsWith("rank,by,name,bytes,predicted_bytes,difference_bytes,difference_percent,"
                                "active_bytes,reserved_bytes,growths,fragmentation_percent\n"
                                "2,peak,total,3145728,3145216,512,0.016278691193228063,3145728,4194304,7,25\n"
                                "2,category,parameters,1048576,1048576,0,0,,,,\n"));
    EXPECT_THAT(csv, HasSubstr("\n2,buffer,y,0,512,-512,-100,,,,\n"));
    EXPECT_THAT(csv, HasSubstr("\n2,step,0,2097152,2097152,0,0,2097152,3145728,5,\n"));
    EXPECT_THAT(csv, HasSubstr("\n2,pool,cached_at_peak,1048576,,,,,,,\n"));
}

TEST(Report, EmptyResultsSaySo) {
    EXPECT_EQ(render(analysis::ExecutionSummary(), Format::table),
              "The current selection has no rank of this trace.\n");
    EXPECT_EQ(render(analysis::ModuleView(), Format::table),
              "The current selection has no rank of this trace.\n");
    EXPECT_EQ(render(analysis::MemoryReport(), Format::table),
              "The current selection has no rank of this trace.\n");
    EXPECT_EQ(render(analysis::CollectivesReport{{analysis::RankCollectives()}}, Format::table),
              "No collectives.\n");
    EXPECT_EQ(render(analysis::Comparison(), Format::table), "No runs to compare.\n");
    EXPECT_THAT(render(analysis::MemoryReport{{analysis::RankMemory()}}, Format::table),
                HasSubstr("Rank 0: nothing allocated here, or allocations were not recorded\n"));
    EXPECT_EQ(render(analysis::ExecutionSummary(), Format::json), "{\"ranks\":[]}\n");
    EXPECT_EQ(render(analysis::Comparison(), Format::json), "{\"runs\":[]}\n");
}

TEST(Report, SummaryJsonHasTheEightCategories) {
    const Json rank = json_of(sample_summary())["ranks"][0];
    EXPECT_EQ(rank["rank"], 0);
    EXPECT_EQ(rank["steps"], 2);
    EXPECT_EQ(rank["average_step_us"], 2000.0);
    EXPECT_EQ(rank["categories"].size(), 8u);
    EXPECT_EQ(rank["categories"]["Kernel"]["us"], 1500.0);
    EXPECT_EQ(rank["categories"]["Kernel"]["percent"], 75.0);
    EXPECT_EQ(rank["categories"]["CPU Exec"]["us"], 0.0);
    EXPECT_EQ(rank["per_step"][1]["step"], 4);
    EXPECT_EQ(rank["per_step"][1]["categories_ns"]["Other"], 500'000);
}

TEST(Report, ModulesJsonIsTheTree) {
    const Json ranks = json_of(sample_modules())["ranks"];
    const Json net = ranks[0]["modules"][0];
    EXPECT_EQ(net["name"], "MLP_0");
    EXPECT_EQ(net["occurrences"], 20);
    EXPECT_EQ(net["operators"], 0);
    EXPECT_EQ(net["children"][0]["name"], "FullyShardedDataParallel_1");
    EXPECT_EQ(net["children"][0]["gathered_bytes"], 10 << 20);
    const Json linear = net["children"][0]["children"][0];
    EXPECT_EQ(linear["device_us"], 12'345.25);
    EXPECT_EQ(linear["device_self_us"], 12'345.25);
    EXPECT_EQ(linear["host_us"], 800.0);
    EXPECT_EQ(linear["host_self_us"], 800.0);
    EXPECT_TRUE(linear["children"].empty());
    EXPECT_TRUE(ranks[1]["modules"].empty());
}

TEST(Report, MemoryJsonHasEveryCategoryAndThePrediction) {
    const Json rank = json_of(sample_memory())["ranks"][0];
    EXPECT_EQ(rank["rank"], 2);
    EXPECT_EQ(rank["peak_bytes"], 3 << 20);
    EXPECT_EQ(rank["peak_time_ns"], 1'234'500'000);
    EXPECT_EQ(rank["at_peak"].size(), 8u);
    EXPECT_EQ(rank["at_peak"]["unsharded_parameters"], 0);
    EXPECT_EQ(rank["at_peak"]["activations"], 2 << 20);
    EXPECT_EQ(rank["predicted_peak_bytes"], (3 << 20) - 512);
    EXPECT_EQ(rank["units"][0]["name"], "net.0");
    analysis::MemoryReport unpredicted = sample_memory();
    unpredicted.ranks[0].predicted_peak_bytes = -1;
    EXPECT_TRUE(json_of(unpredicted)["ranks"][0]["predicted_peak_bytes"].is_null());
}

TEST(Report, CollectivesAndCompareJson) {
    const Json rank = json_of(sample_collectives())["ranks"][0];
    EXPECT_EQ(rank["operations"][0]["name"], "all_gather");
    EXPECT_EQ(rank["operations"][0]["count"], 32);
    EXPECT_EQ(rank["operations"][0]["bytes"], 64 << 20);
    EXPECT_EQ(rank["operations"][0]["busbw_gbps"], 16.777216);
    const Json runs = json_of(sample_comparison())["runs"];
    EXPECT_EQ(runs[0]["file"], "runs/root.sqlite");
    EXPECT_EQ(runs[1]["config"]["fsdp.wrap"], "module:Block");
    EXPECT_EQ(runs[1]["average_step_us"], 2010.0);
    EXPECT_EQ(runs[1]["peak_bytes"], 40 << 20);
    EXPECT_EQ(runs[1]["communication_us"], 400.0);
    EXPECT_EQ(runs[1]["exposed_communication_us"], 100.0);
    EXPECT_EQ(runs[1]["memcpy_us"], 10.0);
    EXPECT_EQ(runs[1]["step_inside_spread_of_first"], true);
}

TEST(Report, InfoJsonKeepsCountsAndConfiguration) {
    const Json info = json_of(sample_info());
    EXPECT_EQ(info["schema_version"], 1);
    EXPECT_EQ(info["ended"], false);
    EXPECT_EQ(info["counts"]["kernels"], 12345);
    EXPECT_EQ(info["config"]["model.type"], "mlp");
}

TEST(Report, JsonKeepsFullPrecisionAndSurvivesInvalidText) {
    analysis::CollectivesReport precise = sample_collectives();
    precise.ranks[0].operations[0].us = 0.1 + 0.2;
    EXPECT_EQ(json_of(precise)["ranks"][0]["operations"][0]["us"].get<double>(), 0.1 + 0.2);
    analysis::TraceInfo info = sample_info();
    info.file = "\xFF.sqlite";
    EXPECT_EQ(json_of(info)["file"], "\xEF\xBF\xBD.sqlite");
}

TEST(Report, CsvHasOneHeaderAndOneLineARow) {
    EXPECT_THAT(
        render(sample_summary(), Format::csv),
        StartsWith("rank,steps,category,us,percent\n0,2,Average Step Time,2000,100\n0,2,Kernel,1500,75\n"));
    EXPECT_THAT(
        render(sample_modules(), Format::csv),
        HasSubstr("\n0,MLP_0/FullyShardedDataParallel_1/Linear_0,Linear_0,20,20,800,800,12345.25,12345.25,"));
    EXPECT_THAT(render(sample_memory(), Format::csv),
                HasSubstr("\n2,category,activations,2097152,2096640\n"));
    EXPECT_THAT(render(sample_collectives(), Format::csv),
                HasSubstr("\n0,all_gather,32,67108864,4000,3000,1000,"));
    EXPECT_THAT(render(sample_comparison(), Format::csv), HasSubstr(",split_cpu_exec_us,"));
    EXPECT_THAT(render(sample_comparison(), Format::csv),
                HasSubstr("\nruns/block.sqlite,4,18,2010,1990,20,41943040,"));
    EXPECT_THAT(render(sample_info(), Format::csv), HasSubstr("\nmodel.width,256\n"));
}

TEST(Report, ComparedFilesOfOneNameAreShownWithTheirFolders) {
    analysis::Comparison comparison = sample_comparison();
    comparison.runs[0].file = "a/run.sqlite";
    comparison.runs[1].file = "b/run.sqlite";
    EXPECT_THAT(render(comparison, Format::table), HasSubstr("a/run.sqlite  b/run.sqlite"));
}

TEST(Report, LongListsOfHoldersAreCut) {
    analysis::MemoryReport report = sample_memory();
    report.ranks[0].units.clear();
    for (int i = 0; i < 20; ++i) report.ranks[0].units.push_back({"unit" + std::to_string(i), 1 << 20});
    const std::string text = render(report, Format::table);
    EXPECT_THAT(text, HasSubstr("unit11 "));
    EXPECT_THAT(text, ::testing::Not(HasSubstr("unit12 ")));
    EXPECT_THAT(text, HasSubstr("… 8 more  8.00"));
}

TEST(Rows, AQuerysResultInThreeFormats) {
    const std::vector<Column> columns = {{"name"}, {"n"}, {"share"}, {"none"}};
    const std::vector<std::vector<store::Cell>> rows = {{std::string("gemm"), std::int64_t{12}, 0.5, {}},
                                                        {std::string("say \"hi\",\nbye"), {}, 0.125, {}}};
    EXPECT_EQ(render_rows(columns, rows, Format::table),
              "name             n  share  none\n"
              "──────────────  ──  ─────  ────\n"
              "gemm            12    0.5\n"
              "say \"hi\",\\nbye      0.125\n");
    EXPECT_EQ(render_rows(columns, rows, Format::csv),
              "name,n,share,none\n"
              "gemm,12,0.5,\n"
              "\"say \"\"hi\"\",\nbye\",,0.125,\n");
    const Json json = Json::parse(render_rows(columns, rows, Format::json));
    EXPECT_EQ(json["columns"], Json({"name", "n", "share", "none"}));
    EXPECT_EQ(json["rows"][0][1], 12);
    EXPECT_TRUE(json["rows"][1][1].is_null());
    EXPECT_EQ(json["rows"][1][0], "say \"hi\",\nbye");
    EXPECT_EQ(render_rows({{"a"}}, {}, Format::json), "{\"columns\":[\"a\"],\"rows\":[]}\n");
}

TEST(Check, FaultsAreSentencesOrAWholeFile) {
    EXPECT_EQ(render_check("a.sqlite", {}, {}, Format::table), "a.sqlite: whole.\n");
    EXPECT_EQ(render_check("a.sqlite", {"One.", "Two."}, {}, Format::table),
              "a.sqlite: One.\na.sqlite: Two.\n");
    EXPECT_EQ(render_check("a.sqlite", {"One."}, {}, Format::json),
              "{\"file\":\"a.sqlite\",\"whole\":false,\"faults\":[\"One.\"],\"notes\":[]}\n");
    EXPECT_EQ(render_check("a.sqlite", {"One."}, {}, Format::csv), "file,fault\na.sqlite,One.\n");
}

TEST(Check, NotesAreNotFaults) {
    EXPECT_EQ(render_check("a.sqlite", {}, {"One."}, Format::table),
              "a.sqlite: whole.\na.sqlite: note: One.\n");
    EXPECT_EQ(render_check("a.sqlite", {}, {"One."}, Format::json),
              "{\"file\":\"a.sqlite\",\"whole\":true,\"faults\":[],\"notes\":[\"One.\"]}\n");
}

TEST(Reports, UseTheSingularForOne) {
    const analysis::OperatorsReport operators{.ranks = {{.rank = 0, .distinct = 1, .calls = 1}}};
    EXPECT_THAT(render(operators, Format::table), HasSubstr("Rank 0: 1 call of 1 operator;"));
    analysis::AllocationsReport allocations;
    allocations.ranks.resize(1);
    allocations.ranks[0].count = 1;
    EXPECT_THAT(render(allocations, Format::table), HasSubstr("Rank 0: 1 allocation, "));
    analysis::CriticalPathReport path;
    path.ranks.resize(1);
    path.clocks_disagree = 1;
    EXPECT_THAT(render(path, Format::table), HasSubstr("1 collective does not overlap"));
    path.clocks_disagree = 2;
    EXPECT_THAT(render(path, Format::table), HasSubstr("2 collectives do not overlap"));
}

// docs/results.md is generated from the fields. To update it: SHARDSCOPE_UPDATE_DOCS=1 and run this test.
TEST(ResultPage, AgreesWithTheFields) {
    if (std::getenv("SHARDSCOPE_UPDATE_DOCS") != nullptr)
        std::ofstream(SHARDSCOPE_RESULTS_PAGE) << results_markdown();
    EXPECT_TRUE(bytes_of(SHARDSCOPE_RESULTS_PAGE) == results_markdown())
        << "docs/results.md is out of date: run this test with SHARDSCOPE_UPDATE_DOCS=1 and commit the page";
}

TEST(ResultPage, NamesTheKeysThatAVerbPrints) {
    const std::string keys = result_keys("kernels");
    EXPECT_THAT(keys, HasSubstr("\n  mean_us (µs)                       The mean of their durations.\n"));
    EXPECT_THAT(keys, Not(HasSubstr("Kernel's name without")));
    EXPECT_EQ(result_keys("critical-path"), "");
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::report
