// The answers to the five questions: each names what a small run was built to show, and states what a trace
// cannot show. Times in nanoseconds.
#include "traces/analysis/answers/answers.h"

#include <cmath>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/traces/run_builder.h"
#include "traces/analysis/compare/compare.h"
#include "traces/report/report.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Answer answer_to(const store::Trace& trace, Question question) {
    for (const Answer& answer : answers(trace).answers) {
        if (answer.question == question) return answer;
    }
    ADD_FAILURE() << "no answer";
    return {};
}

double figure(const Answer& answer, std::string_view name) {
    for (const AdviceFigure& f : answer.figures) {
        if (f.name == name) return f.value;
    }
    ADD_FAILURE() << "no figure " << name;
    return std::nan("");
}

// Ranks compute for 500 us, the late one longer; then all meet in a collective that itself takes 20 us.
struct Ranks {
    int ranks = 4, late = 2;
    std::int64_t longer = 400'000;
};
std::unique_ptr<store::Trace> run_of(const Ranks& r) {
    RunBuilder run(r.ranks);
    for (int rank = 0; rank < r.ranks; ++rank) {
        run.step(rank, 1, 0, 600'000);
        const std::int64_t start = rank == r.late ? 500'000 + r.longer : 500'000;
        run.kernel(rank, 1'000, start - 100, 10);
        run.runtime(rank, 20, 21, "cudaStreamWaitEvent");
        run.collective(rank, start, 520'000 + r.longer,
                       {.sequence = 1, .group_size = r.ranks, .launched = 30});
    }
    return run.take();
}

TEST(Answers, NameTheLateRankHowLongTheOthersWaitAndWhy) {
    const Answer late = answer_to(*run_of({}), Question::late);
    EXPECT_EQ(late.rank, 2);
    EXPECT_EQ(late.says,
              "Rank 2 is late: the other 3 ranks wait in communication for 420.0 µs per step "
              "(45.7 %), rank 2 for 20.0 µs, because its compute takes 1.8 times as long.");
    EXPECT_DOUBLE_EQ(figure(late, "exposed_on_others"), 420);
    EXPECT_DOUBLE_EQ(figure(late, "share_of_waiting"), 100);
    EXPECT_EQ(late.command, "stragglers");
    const Answer change = answer_to(*run_of({}), Question::change);
    EXPECT_EQ(change.rule, "straggler");
    EXPECT_THAT(change.says, HasSubstr("If rank 2 were as fast as the others, a step would take "));
    EXPECT_NEAR(figure(change, "gain"), 320, 1);  // the host takes 600 us
}

TEST(Answers, OfTwoRanksTheOtherWaits) {
    EXPECT_THAT(answer_to(*run_of({.ranks = 2, .late = 0}), Question::late).says,
                StartsWith("Rank 0 is late: the other rank waits in communication for 420.0 µs per step "));
}

TEST(Answers, NoRankIsLateIfNoneWaits) {
    const Answer late = answer_to(*run_of({.longer = 0}), Question::late);
    EXPECT_TRUE(late.known);
    EXPECT_EQ(late.rank, -1);
    EXPECT_EQ(late.says, "No rank is late: none waits for another.");
}

TEST(Answers, TellWaitingFromTransfersInExposedCommunication) {
    const Answer exposed = answer_to(*run_of({}), Question::exposed);
    // Three ranks wait 400 us, all transfer for 20 us; each rank's step ends 920 us after its start.
    EXPECT_DOUBLE_EQ(figure(exposed, "exposed"), 320);
    EXPECT_DOUBLE_EQ(figure(exposed, "exposed_transfers"), 20);
    EXPECT_THAT(exposed.says,
                AllOf(StartsWith("No compute hides 320.0 µs of communication per step ("),
                      HasSubstr("only 20.0 µs of it are transfers, the rest is waiting for other ranks"),
                      HasSubstr("), most in all_gather; "),
                      HasSubstr("Which module waits is unknown, because the trace has no FSDP units")));
}

// A unit's gather of 200 us, of which compute hides the first 50; then its forward.
std::unique_ptr<store::Trace> run_with_unit() {
    RunBuilder run;
    run.sink().add(schema::ModuleRow{
        .id = 1, .parent = -1, .name = "FullyShardedDataParallel_1", .path = "net", .unit = 5});
    run.sink().add(schema::ModuleRow{.id = 2, .parent = 1, .name = "Linear_0", .path = "net.0", .unit = 5});
    run.sink().add(schema::UnitRow{.id = 5, .module = 1, .name = "net.0"});
    run.step(0, 0, 0, 490'000);
    run.kernel(0, 1'000, 150'000, 10);
    run.range(0, 1'000, 400'000, "nn.Module: FullyShardedDataParallel_1", 1);
    const std::int64_t id = run.kernel(0, 100'000, 300'000, 4'000, 20, "ncclDevKernel_AllGather");
    run.sink().add(schema::CollectiveRow{.rank = 0,
                                         .correlation = id,
                                         .operation = schema::Operation::all_gather,
                                         .bytes = 200,
                                         .group_size = 2,
                                         .sequence = 1,
                                         .unit = 5,
                                         .phase = schema::Phase::forward});
    run.range(0, 6'000, 399'000, "nn.Module: Linear_0", 2);
    run.runtime(0, 7'000, 7'001, "cudaStreamWaitEvent");
    run.kernel(0, 300'000, 480'000, 8'000);
    return run.take();
}

TEST(Answers, NameTheUnitThatIsExposedAndWaits) {
    const auto trace = run_with_unit();
    const Answer exposed = answer_to(*trace, Question::exposed);
    EXPECT_EQ(exposed.unit, "net.0");
    EXPECT_EQ(exposed.command, "units");
    EXPECT_THAT(
        exposed.says,
        AllOf(StartsWith("No compute hides 150.0 µs of communication per step"),
              HasSubstr("Of 1 unit, most exposed is the gather of \"net.0\" in the forward (150.0 µs), "
                        "for which that module waits 150.0 µs.")));
    const auto place = answer_place(*trace, {}, exposed);
    ASSERT_TRUE(place);
    EXPECT_EQ(place->from, 100'000);
    EXPECT_EQ(place->to, 300'000);
    EXPECT_EQ(answer_to(*trace, Question::late).says,
              "Which rank is late is unknown, because the trace has one of 2 ranks.");
}

TEST(Answers, SayWhereTheTimeGoes) {
    RunBuilder run;
    for (std::int64_t step = 0; step < 3; ++step) {
        const std::int64_t at = step * 1'000'000;
        run.step(0, step + 1, at, at + 1'000'000);
        run.kernel(0, at + 10'000, at + 610'000, at + 5);
        run.memcpy(0, at + 610'000, at + 1'000'000, at + 7);
    }
    const auto trace = run.take();
    const Answer time = answer_to(*trace, Question::time);
    EXPECT_THAT(time.says, AllOf(StartsWith("A step takes "), HasSubstr("median of 2 steps"),
                                 HasSubstr("compute 60."), HasSubstr(", copies 39.")));
    const RunColumn column = compare({trace.get()}).runs.front();
    EXPECT_DOUBLE_EQ(figure(time, "median_step"), column.median_step_us);
    EXPECT_DOUBLE_EQ(figure(time, "Kernel"), column.categories_us[0]);
}

std::unique_ptr<store::Trace> run_with_peak(std::int64_t gathered,
                                            schema::MemorySpace space = schema::MemorySpace::device) {
    RunBuilder run;
    run.step(0, 1, 0, 1'000);
    run.kernel(0, 100, 900, 10);
    run.allocate(0, 20, 1, 1 << 20, {.category = schema::MemoryCategory::parameters, .space = space});
    run.allocate(0, 30, 2, gathered,
                 {.category = schema::MemoryCategory::unsharded_parameters,
                  .phase = schema::Phase::forward,
                  .space = space});
    run.sink().add(schema::RunInfoRow{"fsdp.wrap", gathered > (2 << 20) ? "root" : "module:Block"});
    return run.take();
}

TEST(Answers, SayWhatMakesUpThePeakAndWhen) {
    const Answer peak = answer_to(*run_with_peak(3 << 20), Question::peak);
    EXPECT_EQ(
        peak.says,
        "Rank 0 peaks at 4.0 MiB in the forward of step 1: unsharded parameters 75.0 %, parameters 25.0 %.");
    EXPECT_EQ(peak.command, "memory --explain --rank 0");
    EXPECT_DOUBLE_EQ(figure(peak, "peak"), 4 << 20);
    EXPECT_DOUBLE_EQ(figure(peak, "unsharded_parameters"), 3 << 20);
}

// Of a simulation's ranks the trace holds one of each kind.
TEST(Answers, CountTheRanksThatTheShownOnesRepresent) {
    RunBuilder run(2);
    run.sink().add(schema::RunInfoRow{"run.ranks", "1024"});
    for (int rank = 0; rank < 2; ++rank) {
        run.step(rank, 0, 0, 1'000);
        run.allocate(rank, 10, 1, 1 << 20, {.category = schema::MemoryCategory::parameters});
    }
    EXPECT_THAT(answer_to(*run.take(), Question::peak).says, StartsWith("Each of 2 ranks peaks at "));
    RunBuilder simulated(2);
    simulated.sink().add(schema::RunInfoRow{"run.ranks", "1024"});
    simulated.sink().add(schema::RunInfoRow{"sim.ranks_as_rank_0", "1024 of 1024 ranks: peak 1048576 bytes"});
    for (int rank = 0; rank < 2; ++rank) {
        simulated.step(rank, 0, 0, 1'000);
        simulated.allocate(rank, 10, 1, 1 << 20, {.category = schema::MemoryCategory::parameters});
    }
    EXPECT_THAT(answer_to(*simulated.take(), Question::peak).says,
                StartsWith("Each of 1,024 ranks peaks at "));
}

TEST(Answers, SayWhichRunPeaksLowerAndWhy) {
    const auto high = run_with_peak(3 << 20), low = run_with_peak(1 << 20);
    const auto compared = compared_answers({high.get(), low.get()}, {"root", "block"}, {{}, {}});
    ASSERT_EQ(compared.size(), 2u);
    EXPECT_EQ(
        compared[0].says,
        "block peaks lower, at 2.0 MiB: 50.0 % less than root (fsdp.wrap = module:Block instead of root), "
        "mostly because it holds 2.0 MiB less in unsharded parameters at the peak.");
    EXPECT_EQ(compared[0].figures.at(0).name, "block");
    EXPECT_THAT(compared[1].says, HasSubstr("within the spread"));
    EXPECT_EQ(compared_answers({high.get(), high.get()}, {"a", "b"}, {{}, {}})[0].says,
              "Both runs peak alike, at 4.0 MiB.");
    const auto host = run_with_peak(1 << 20, schema::MemorySpace::host);
    const Answer unlike = compared_answers({high.get(), host.get()}, {"a", "b"}, {{}, {}})[0];
    EXPECT_FALSE(unlike.known);
    EXPECT_EQ(unlike.says,
              "Which configuration peaks lower is unknown, because a allocated device memory, and b host "
              "memory.");
    EXPECT_TRUE(compared_answers({high.get()}, {"a"}, {{}}).empty());
}

TEST(Answers, SayWhichRunIsFasterAndWhy) {
    const auto slow = run_of({}), fast = run_of({.longer = 100'000});
    const Answer time = compared_answers({slow.get(), fast.get()}, {"slow", "fast"}, {{}, {}})[1];
    EXPECT_THAT(time.says,
                AllOf(StartsWith("fast is faster: a step takes 620.0 µs instead of 920.0 µs (slow, "
                                 "-32.6 %), mostly because of "),
                      HasSubstr("less exposed communication")));
}

TEST(Answers, StateWhatATraceCannotShow) {
    const store::Trace empty;
    for (const Answer& answer : answers(empty).answers) {
        if (answer.question == Question::change) {
            EXPECT_THAT(answer.says, StartsWith("Nothing: none of "));
            continue;
        }
        EXPECT_FALSE(answer.known) << answer.says;
        EXPECT_THAT(answer.says, HasSubstr("unknown, because ")) << answer.says;
        EXPECT_FALSE(answer_place(empty, {}, answer));
    }
    const Answer time = compared_answers({&empty, &empty}, {"a", "b"}, {{}, {}})[1];
    EXPECT_EQ(time.says, "Which configuration is faster is unknown, because a has no steps.");
    EXPECT_TRUE(time.figures.empty());
}

TEST(Answers, ArePrintedWithTheCommandOfTheirEvidence) {
    const auto one = run_of({}), other = run_of({.longer = 0});
    const AnswersReport single = answers_report({one.get()}, {"my runs/a.sqlite"});
    const std::string text = render(single, report::Format::table);
    EXPECT_THAT(text, AllOf(HasSubstr("Which rank is late?\n  Rank 2 is late: "),
                            HasSubstr("  $ shardscope-trace stragglers 'my runs/a.sqlite'\n"),
                            Not(HasSubstr("--- "))));
    const AnswersReport both = answers_report({one.get(), other.get()}, {"x/a.sqlite", "x/b.sqlite"});
    const std::string of_both = render(both, report::Format::table);
    EXPECT_THAT(of_both, AllOf(HasSubstr("  $ shardscope-trace compare x/a.sqlite x/b.sqlite\n"),
                               HasSubstr("--- a.sqlite\n"), HasSubstr("--- b.sqlite\n")));
    const auto json = nlohmann::json::parse(render(both, report::Format::json));
    EXPECT_EQ(json.at("compared").size(), 2u);
    ASSERT_EQ(json.at("runs").size(), 2u);
    const auto& late = json["runs"][0]["answers"][3];
    EXPECT_EQ(late.at("question"), "late");
    EXPECT_EQ(late.at("rank"), 2);
    EXPECT_EQ(late.at("figures")[0].at("name"), "rank");
    EXPECT_EQ(json["runs"][1]["answers"][3].at("rank"), nullptr);
    const std::string csv = render(both, report::Format::csv);
    EXPECT_THAT(csv,
                StartsWith("file,question,asks,known,answer,figures,evidence,rank,unit,rule,job_setting\n"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
