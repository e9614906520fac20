// The trace of a simulated run that shows a few ranks says so, and which ranks they represent.
#include "traces/analysis/base/shown_ranks.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "traces/analysis/communication/distributed.h"
#include "traces/analysis/facts/info.h"
#include "traces/store/columns/column_sink.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using testing::ElementsAre;
using testing::IsEmpty;

std::unique_ptr<store::Trace> run(int shown, const char* ranks, bool simulated) {
    store::ColumnSink sink;
    sink.add(schema::RunInfoRow{"run.ranks", ranks});
    if (simulated)
        sink.add(
            schema::RunInfoRow{"sim.ranks_as_rank_0", "1024 of 1024 ranks: peak 12345 bytes, 5715.25 µs"});
    for (int rank = 0; rank < shown; ++rank)
        sink.add(schema::RankRow{.rank = rank,
                                 .global_pid = schema::global_pid(rank + 1),
                                 .global_tid = schema::global_tid(rank + 1, 1)});
    return sink.take();
}

TEST(ShownRanks, AFewRepresentAll) {
    const auto trace = run(8, "1024", true);
    EXPECT_EQ(ranks_of_run(*trace), 1024);
    EXPECT_EQ(shown_ranks_sentence(*trace),
              "8 of the 1,024 ranks that were simulated are shown in full: each of the others did what one "
              "of these "
              "did");
    EXPECT_THAT(ranks_like_it(*trace),
                ElementsAre("Rank 0 represents 1,024 of 1,024 ranks: peak 12,345 bytes, 5,715.25 µs."));
    EXPECT_THAT(check_notes(*trace),
                ElementsAre(shown_ranks_sentence(*trace) + ".",
                            "Rank 0 represents 1,024 of 1,024 ranks: peak 12,345 bytes, 5,715.25 µs."));
}

TEST(ShownRanks, IfAllAreShownThereIsNoNote) {
    EXPECT_EQ(shown_ranks_sentence(*run(4, "4", true)), "");
    EXPECT_THAT(check_notes(*run(4, "4", true)), IsEmpty());
    // In a real run, a rank's part is different: the other parts are in other files.
    EXPECT_EQ(shown_ranks_sentence(*run(1, "4", false)), "");
    EXPECT_EQ(ranks_of_run(*run(3, "no number", false)), 3);
}

// An all-gather of `size` ranks, of which two are shown; the second of them starts late.
std::int64_t unmatched(int size, bool simulated) {
    RunBuilder run(2);
    run.sink().add(schema::RunInfoRow{"run.ranks", "1024"});
    if (simulated) run.sink().add(schema::RunInfoRow{"sim.ranks_as_rank_0", "1023 of 1024 ranks"});
    for (const int rank : {0, 1}) {
        run.collective(rank, 100 + 50 * rank, 200,
                       {.operation = schema::Operation::all_gather,
                        .bytes = 64,
                        .sequence = 0,
                        .group_size = size,
                        .launched = 90});
    }
    return distributed_report(*run.take()).unmatched;
}

TEST(ShownRanks, AGroupOfAllRanksIsWholeWithThoseThatAreShown) {
    EXPECT_EQ(unmatched(1024, true), 0);
    EXPECT_EQ(unmatched(512, true), 2) << "the other members are unknown";
    EXPECT_EQ(unmatched(1024, false), 2) << "a real run's other parts are in other files";
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
