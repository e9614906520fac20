// The content of a file, and the faults that check finds.
#include "traces/analysis/facts/info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(Info, CountsTheContentOfTheFile) {
    RunBuilder run(2);
    run.sink().set_path("run.sqlite");
    run.sink().set_schema_version(1);
    run.sink().set_start_utc_ns(1'772'368'496'789'000'000);
    run.step(0, 0, 0, 1'500'000);
    run.step(1, 0, 0, 1'500'000);
    run.step(1, 1, 1'500'000, 2'500'000);
    run.kernel(0, 10, 20, 5);
    run.collective(1, 10, 20, {.launched = 5});
    run.sink().add(schema::RunInfoRow{"model.width", "256"});
    const auto trace = run.take();
    const TraceInfo info = trace_info(*trace);
    EXPECT_EQ(info.file, "run.sqlite");
    EXPECT_EQ(info.schema_version, 1);
    EXPECT_EQ(info.started_utc, "2026-03-01T12:34:56.789Z");
    EXPECT_DOUBLE_EQ(info.duration_ms, 2.5);
    EXPECT_EQ(info.ranks, 2);
    EXPECT_EQ(info.steps, 2);  // those of the rank with the most steps
    EXPECT_EQ(info.device, "processor");
    EXPECT_THAT(info.counts, Contains(Pair("kernels", 1)));
    EXPECT_THAT(info.counts, Contains(Pair("communication", 1)));
    EXPECT_THAT(info.counts, Contains(Pair("runtime_calls", 2)));
    EXPECT_THAT(info.config, ElementsAre(Pair("model.width", "256")));
}

TEST(Check, AWholeRunHasNoFaults) {
    RunBuilder run(2);
    for (int rank = 0; rank < 2; ++rank) {
        run.step(rank, 0, 0, 100);
        run.kernel(rank, 10, 20, 5);
        run.kernel(rank, 20, 30, 6);
        run.collective(rank, 10, 30, {.bytes = 8, .group_size = 2, .launched = 7});
        run.allocate(rank, 1, 1, 10);
        run.free(rank, 2, 1, 10);
        run.allocate(rank, 3, 1, 20);
    }
    const auto trace = run.take();
    EXPECT_THAT(check_trace(*trace), IsEmpty());
    EXPECT_THAT(check_trace(store::Trace()), IsEmpty());
}

TEST(Check, NamesWhatTheRecordingLost) {
    RunBuilder run;
    run.sink().set_ended(false);
    run.sink().set_dropped(12);
    run.kernel(0, 30, 20, 5);  // ends before it starts
    run.sink().add(
        schema::DiagnosticRow{.time = 1'000'000, .severity = schema::Severity::error, .text = "disk full"});
    run.sink().add(
        schema::DiagnosticRow{.time = 0, .severity = schema::Severity::warning, .text = "not a fault"});
    const auto trace = run.take();
    EXPECT_THAT(check_trace(*trace),
                ElementsAre(HasSubstr("did not end"), HasSubstr("12 events were lost"),
                            HasSubstr("1 event is ignored: an end before the start"),
                            HasSubstr("1.000 ms the recorder reported an error: disk full")));
}

TEST(Check, NotesThatAreNotFaults) {
    RunBuilder run;
    run.sink().add(
        schema::DiagnosticRow{.time = 2'000'000, .severity = schema::Severity::warning, .text = "no GPU"});
    run.sink().add(schema::DiagnosticRow{
        .time = 0, .severity = schema::Severity::information, .text = "not worth a note"});
    const auto trace = run.take();
    EXPECT_THAT(check_trace(*trace), IsEmpty());
    EXPECT_THAT(check_notes(*trace), ElementsAre(HasSubstr("2.000 ms the recorder reported: no GPU")));
}

// The last commit of a killed run may lack the launch of a kernel, which another thread recorded, or the
// other ranks' parts of a gather.
TEST(Check, EventsThatACutSeparatedAreNotAFaultOfAFinishedFile) {
    RunBuilder run(2);
    run.kernel(0, 10, 20, {}, 7, "lonely");
    run.collective(1, 20, 30, {.bytes = 8, .sequence = 1, .group_size = 2, .launched = 1});
    run.sink().add(schema::RunInfoRow{"finalized", "after the run was killed"});
    const auto trace = run.take();
    EXPECT_THAT(check_trace(*trace), IsEmpty());
    EXPECT_THAT(check_notes(*trace), ElementsAre(HasSubstr("1 device event has no launching call"),
                                                 HasSubstr("1 collective has no counterpart")));
}

TEST(Check, NamesDeviceEventsWithoutALaunchAndThoseThatOverlapOnAStream) {
    RunBuilder run;
    run.kernel(0, 1'000'000, 2'000'000, {}, 7, "lonely");
    run.kernel(0, 1'500'000, 1'600'000, 10, 7, "second");
    run.kernel(0, 1'500'000, 1'600'000, 10, 8, "elsewhere");
    const auto trace = run.take();
    EXPECT_THAT(check_trace(*trace),
                ElementsAre(AllOf(HasSubstr("1 device event has no launching call"),
                                  HasSubstr("\"lonely\" of rank 0")),
                            AllOf(HasSubstr("1 device event starts on stream 7 of rank 0"),
                                  HasSubstr("\"second\" at 1.500 ms inside \"lonely\""))));
}

// A kernel's name may be longer than everything else that is said.
TEST(Check, SaysTheStartOfALongName) {
    RunBuilder run;
    run.kernel(0, 1'000'000, 2'000'000, {}, 7, "void at::native::" + std::string(3'000, 'x'));
    const auto trace = run.take();
    EXPECT_THAT(check_trace(*trace),
                ElementsAre(AllOf(HasSubstr("the first is \"void at::native::xx"),
                                  HasSubstr("xx\u2026\" of rank 0 at 1.000 ms: it is counted in the step"))));
}

TEST(Check, NamesCollectivesThatDoNotMatch) {
    RunBuilder run(2);
    run.collective(0, 0, 10, {.bytes = 8, .sequence = 0, .group_size = 2, .launched = 0});
    run.collective(1, 0, 10, {.bytes = 16, .sequence = 0, .group_size = 2, .launched = 0});
    run.collective(1, 20, 30, {.bytes = 8, .sequence = 1, .group_size = 2, .launched = 1});
    run.sink().add(schema::CollectiveRow{.rank = 0, .correlation = 4711, .group_size = 1, .sequence = 9});
    const auto trace = run.take();
    EXPECT_THAT(
        check_trace(*trace),
        ElementsAre(HasSubstr("1 collective has no device event, the first is other 9 of group 0 on rank 0"),
                    HasSubstr("1 collective has no counterpart on another rank, the first is all_gather 1"),
                    HasSubstr("2 collectives have other bytes than a counterpart")));
}

TEST(Check, SaysWhenRanksAreMissing) {
    RunBuilder run;
    run.collective(0, 0, 10, {.group_size = 4, .launched = 0});
    const auto trace = run.take();
    EXPECT_THAT(check_trace(*trace),
                ElementsAre(HasSubstr("contains 1 of at least 4 ranks; merge the parts")));
}

TEST(Check, KnowsThatASimulationShowsSomeOfItsRanks) {
    RunBuilder run;
    run.collective(0, 0, 10, {.group_size = 4, .launched = 0});
    run.sink().add(schema::RunInfoRow{"sim.ranks_shown", "1"});
    const auto trace = run.take();
    EXPECT_THAT(check_trace(*trace), ElementsAre());
}

TEST(Check, NamesMemoryThatIsFreedWrongly) {
    RunBuilder run;
    run.allocate(0, 1, 1, 100, {.name = "a"});
    run.free(0, 2, 1, 100);
    run.free(0, 3, 1, 100, {.name = "again"});  // freed twice: the total goes below zero
    run.allocate(0, 4, 2, 300);
    run.allocate(0, 5, 2, 60, {.name = "on top"});
    run.allocate(0, 6, 3, 80);
    run.free(0, 7, 3, 70, {.name = "short"});
    run.allocate(0, 8, 4, 80);
    run.free(0, 9, 4, 80, {.category = schema::MemoryCategory::activations, .name = "moved"});
    const auto trace = run.take();
    EXPECT_THAT(
        check_trace(*trace),
        ElementsAre(AllOf(HasSubstr("1 free is of memory that is not live"), HasSubstr("again (100 bytes")),
                    AllOf(HasSubstr("at an address that is still live"), HasSubstr("on top (60 bytes")),
                    AllOf(HasSubstr("another size"), HasSubstr("short (70 bytes")),
                    AllOf(HasSubstr("another category"), HasSubstr("moved (80 bytes")),
                    HasSubstr("Live device memory of other on rank 0 goes below zero (-100 bytes)"),
                    HasSubstr("Live device memory of activations on rank 0 goes below zero")));
}

TEST(Check, NamesStepsThatOverlapAndPredictionsThatDoNotSum) {
    RunBuilder run;
    run.step(0, 4, 0, 100);
    run.step(0, 5, 90, 200);
    run.sink().add(schema::PredictionRow{.rank = 0, .peak_bytes = 10, .where = "forward"});
    const auto trace = run.take();
    EXPECT_THAT(check_trace(*trace), ElementsAre(HasSubstr("Step 5 of rank 0 starts"),
                                                 HasSubstr("predicted peak of rank 0 is 10 bytes")));
}

TEST(Check, NamesPartsOfAPredictionThatDoNotSumToIt) {
    RunBuilder run;
    const auto part = [&](schema::PredictionPart kind, std::int64_t id, std::int64_t bytes) {
        run.sink().add(
            schema::PredictionPartRow{.rank = 0, .kind = kind, .id = id, .bytes = bytes, .name = {}});
    };
    schema::PredictionRow prediction{.rank = 0, .peak_bytes = 10, .where = "forward"};
    prediction.at_peak[0] = 10;
    run.sink().add(prediction);
    part(schema::PredictionPart::unit, 0, 4);
    part(schema::PredictionPart::unit, 1, 6);
    part(schema::PredictionPart::module, 0, 9);
    part(schema::PredictionPart::step, 0, 7);  // below the peak of 10, which a validation may reach
    part(schema::PredictionPart::step, 1, 11);
    const auto trace = run.take();
    EXPECT_THAT(check_trace(*trace), ElementsAre(HasSubstr("10 bytes, but its modules sum to 9."),
                                                 HasSubstr("10 bytes, but its steps reach 11.")));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
