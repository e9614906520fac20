// The rank that is late: `stragglers`, `advice` and the critical path use the same measure, how long each
// rank is in a collective (docs/definitions.md, "Distributed, stragglers"). Times in nanoseconds.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "traces/analysis/advice/advice.h"
#include "traces/analysis/communication/stragglers.h"
#include "traces/report/report.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

// The number of the rank that the advice names, if there is one.
std::optional<int> straggler_of(const AdviceReport& report) {
    for (const Finding& finding : report.findings) {
        if (finding.id == "straggler") return static_cast<int>(finding.figures.at(0).value);
    }
    return {};
}

struct LateRun {
    int ranks = 2, late = 0;
    double times = 1;         // the late rank's compute relative to the others'
    int first_late = 0;       // another rank, which is late in the first step only
    bool warms_up = false;    // the first step takes three times as long
    std::int64_t clocks = 0;  // the ranks' clocks differ by at most this
};

// Steps of a kernel of about 1 ms, then two collectives of 50 us in which ranks wait for each other.
std::unique_ptr<store::Trace> trace_of(const LateRun& late, std::mt19937& random) {
    const auto up_to = [&](std::int64_t most) {
        return std::uniform_int_distribution<std::int64_t>(0, most)(random);
    };
    RunBuilder run(late.ranks);
    std::vector<std::int64_t> clock(static_cast<std::size_t>(late.ranks));
    for (std::int64_t& offset : clock) offset = up_to(late.clocks);
    std::int64_t at = 0;
    for (int step = 0; step < 5; ++step) {
        std::vector<std::int64_t> ready;
        for (int rank = 0; rank < late.ranks; ++rank) {
            double compute = 1e6 + static_cast<double>(up_to(20'000));
            if (rank == late.late) compute *= late.times;
            if (late.warms_up && step == 0) compute *= rank == late.first_late ? 9 : 3;
            ready.push_back(at + 2'000 + static_cast<std::int64_t>(compute));
        }
        const std::int64_t all = *std::max_element(ready.begin(), ready.end());
        for (int rank = 0; rank < late.ranks; ++rank) {
            const std::int64_t shift = clock[static_cast<std::size_t>(rank)], host = at + shift;
            const std::int64_t start = ready[static_cast<std::size_t>(rank)] + shift;
            run.step(rank, step + 1, host, host + 400'000);
            run.kernel(rank, host + 1'500, start - 100, host + 10);
            run.runtime(rank, host + 20, host + 21, "cudaStreamWaitEvent");
            run.collective(rank, start, all + 50'000 + shift,
                           {.sequence = 2 * step, .group_size = late.ranks, .launched = host + 30});
            run.collective(rank, all + 51'000 + shift, all + 101'000 + shift,
                           {.sequence = 2 * step + 1, .group_size = late.ranks, .launched = host + 40});
        }
        at = all + 102'000;
    }
    return run.take();
}

TEST(LateRank, IsTheSameForStragglersAndAdvice) {
    int cards = 0;
    for (unsigned seed = 0; seed < 120; ++seed) {
        std::mt19937 random(seed);
        const auto below = [&](int most) { return std::uniform_int_distribution<int>(0, most - 1)(random); };
        LateRun late;
        late.ranks = 2 + below(6);
        late.late = below(late.ranks);
        late.times = 1 + 0.1 * below(10);
        late.first_late = below(late.ranks);
        late.warms_up = below(2) == 1;
        late.clocks = std::vector<std::int64_t>{0, 40'000, 10'000'000}[static_cast<std::size_t>(below(3))];
        const auto trace = trace_of(late, random);
        const AdviceReport found = advice(*trace);
        const std::optional<int> advised = straggler_of(found);
        const std::optional<int> latest = latest_rank(straggler_report(*trace));
        if (advised) {
            ++cards;
            EXPECT_EQ(advised, latest) << "seed " << seed;
        }
        if (late.times >= 1.2) {  // well above the noise of 2 %
            EXPECT_EQ(latest, late.late) << "seed " << seed;
            EXPECT_EQ(advised, late.late) << "seed " << seed;
        }
    }
    EXPECT_GT(cards, 80);
}

// The first step, three times as long, is not typical of the run; `stragglers` reports that it excludes it.
TEST(LateRank, IsNotThatOfAStepThatWarmsUp) {
    std::mt19937 random(1);
    const auto trace =
        trace_of({.ranks = 3, .late = 2, .times = 1.3, .first_late = 0, .warms_up = true}, random);
    const StragglersReport report = straggler_report(*trace);
    ASSERT_TRUE(report.warm_up);
    EXPECT_EQ(report.warm_up->step, 1);
    EXPECT_EQ(report.collectives, 2 * 4);
    EXPECT_EQ(latest_rank(report), 2);
    EXPECT_THAT(render(report, report::Format::table), HasSubstr("Step 1 is excluded as warm-up"));
    EXPECT_THAT(render(report, report::Format::json), HasSubstr("\"warm_up_step\":1}"));
    const StragglersReport first = straggler_report(*trace, {.first_step = 1, .last_step = 1});
    EXPECT_FALSE(first.warm_up);
    EXPECT_EQ(latest_rank(first), 0);
}

// Rank 0 is up to 350 us late, in a collective that compute hides; rank 1 is 200 us late in one for which
// others wait.
TEST(LateRank, IsNotNamedWhereLatenessAndWaitingDiffer) {
    RunBuilder run(3);
    for (int rank = 0; rank < 3; ++rank) {
        run.step(rank, 1, 0, 100'000);
        const std::int64_t ready = rank == 1 ? 700'000 : 500'000;
        run.kernel(rank, 1'000, ready - 100, 10);
        run.collective(rank, rank == 0 ? 400'000 : 50'000, 420'000,
                       {.sequence = 1, .group_size = 3, .launched = 12});
        run.runtime(rank, 20, 21, "cudaStreamWaitEvent");
        run.collective(rank, ready, 800'000, {.sequence = 2, .group_size = 3, .launched = 30});
    }
    const auto trace = run.take();
    EXPECT_EQ(latest_rank(straggler_report(*trace)), 0);
    const AdviceReport found = advice(*trace);
    EXPECT_EQ(straggler_of(found), std::nullopt);
    EXPECT_THAT(found.notes,
                Contains(AllOf(HasSubstr("Which rank is late is unknown"), HasSubstr("wait most for rank 1"),
                               HasSubstr("rank 0 arrives last"))));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
