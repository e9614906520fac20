// The work that ended last within bounds: the same as by a look at every stream, on made runs of few and of
// thousands of streams.
#include "traces/analysis/waits/ended_work.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/waits/waits.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using Random = std::mt19937_64;

std::int64_t up_to(Random& random, std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1));
}

// Two ranks whose streams launch and run their work in order, some of it without length or launch, some of it
// collectives of two communicators.
std::unique_ptr<store::Trace> made_run(Random& random, int streams, int events) {
    RunBuilder run(2);
    std::vector<std::int64_t> launched(static_cast<std::size_t>(streams)), free(launched);
    for (int i = 0; i < events; ++i) {
        const auto s = static_cast<std::size_t>(up_to(random, streams - 1));
        launched[s] += up_to(random, 8);
        const std::int64_t start = std::max(free[s], launched[s] + up_to(random, 30));
        free[s] = start + up_to(random, 40);
        const int rank = static_cast<int>(s % 2), stream = static_cast<int>(s);
        if (up_to(random, 3) == 0) {
            const std::int64_t group = up_to(random, 1);
            run.collective(rank, start, free[s],
                           {.bytes = 8,
                            .sequence = i,
                            .group = group,
                            .group_size = 2,
                            .launched = launched[s],
                            .stream = stream});
        } else {
            if (up_to(random, 5) == 0) launched[s] = start;
            run.kernel(rank, start, free[s], launched[s], stream);
        }
    }
    return run.take();
}

bool counts(const store::Trace& trace, std::size_t e, const WorkBounds& bounds) {
    const store::DeviceEvents& device = trace.device;
    const std::int32_t row = device.collective[e];
    const bool group = bounds.group >= 0 && row >= 0 &&
                       trace.collectives.group[static_cast<std::size_t>(row)] == bounds.group;
    return !group && device.stream[e] != bounds.besides &&
           (bounds.only < 0 || device.stream[e] == bounds.only) && device.start[e] < bounds.ended_by &&
           device.end[e] <= bounds.ended_by && launched_at(trace, e) <= bounds.launched_by;
}

// Of each stream in turn the last that counts; of these the one that ended last.
std::int32_t by_streams(const store::Trace& trace, store::RankIndex rank, const WorkBounds& bounds) {
    std::vector<std::int32_t> last(trace.streams.size(), -1);
    for (std::size_t e = 0; e < trace.device.size(); ++e) {
        if (trace.device.rank[e] == rank.column() && counts(trace, e, bounds))
            last[trace.device.stream[e]] = static_cast<std::int32_t>(e);
    }
    const auto end_of = [&](std::int32_t e) { return trace.device.end[static_cast<std::size_t>(e)]; };
    std::int32_t found = -1;
    for (const std::int32_t e : last) {
        if (e >= 0 && (found < 0 || end_of(e) > end_of(found))) found = e;
    }
    return found >= 0 && end_of(found) > bounds.ended_after ? found : -1;
}

WorkBounds some_bounds(Random& random, const store::Trace& trace) {
    const std::size_t last = trace.device.size() - 1;
    WorkBounds bounds;
    bounds.ended_by = trace.device.end[static_cast<std::size_t>(up_to(random, static_cast<int>(last)))];
    bounds.launched_by = up_to(random, 2) == 0 ? bounds.ended_by : up_to(random, bounds.ended_by);
    if (up_to(random, 1) == 0) bounds.ended_after = bounds.ended_by - up_to(random, 60);
    const int stream = static_cast<int>(up_to(random, static_cast<int>(trace.streams.size()) - 1));
    switch (up_to(random, 3)) {
        case 0:
            bounds.only = stream;
            break;
        case 1:
            break;
        default:
            bounds.besides = stream;
            break;
    }
    if (up_to(random, 2) == 0) bounds.group = up_to(random, 1);
    return bounds;
}

void expect_as_by_streams(Random& random, const store::Trace& trace, int questions) {
    const std::vector<EndedWork> work = ended_work(trace);
    ASSERT_EQ(work.size(), 2U);
    int found = 0;
    for (int i = 0; i < questions; ++i) {
        const store::RankIndex rank(static_cast<int>(up_to(random, 1)));
        const WorkBounds bounds = some_bounds(random, trace);
        const std::int32_t expected = by_streams(trace, rank, bounds);
        ASSERT_EQ(work[rank.at()].last(bounds), expected)
            << "ended by " << bounds.ended_by << ", launched by " << bounds.launched_by << ", besides "
            << bounds.besides << ", only " << bounds.only << ", group " << bounds.group;
        found += expected >= 0 ? 1 : 0;
    }
    EXPECT_GT(found, questions / 8);
    EXPECT_LT(found, questions);
}

TEST(EndedWork, IsThatOfALookAtEveryStream) {
    for (unsigned seed = 0; seed < 40; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Random random(seed);
        const auto trace = made_run(random, 2 + static_cast<int>(seed % 7), 700);
        expect_as_by_streams(random, *trace, 300);
    }
}

TEST(EndedWork, IsTheSameOnThousandsOfStreams) {
    Random random(7);
    const auto trace = made_run(random, 3'000, 12'000);
    expect_as_by_streams(random, *trace, 300);
}

TEST(EndedWork, OfARankWithoutWorkIsNone) {
    RunBuilder run(2);
    run.kernel(1, 10, 20);
    const auto trace = run.take();
    const std::vector<EndedWork> work = ended_work(*trace);
    EXPECT_EQ(work.at(0).last({.launched_by = 100, .ended_by = 100}), -1);
    EXPECT_EQ(work.at(1).last({.launched_by = 100, .ended_by = 100}), 0);
}

// Every gap of a chain over 60,000 streams, none of which records a wait: a look at each stream for each gap
// would take minutes.
TEST(EndedWork, NamesTheGapsOfTensOfThousandsOfStreams) {
    constexpr int kStreams = 60'000;
    constexpr std::int64_t kLength = 50'000;  // longer than a gap that needs no reason
    RunBuilder run;
    for (int round = 0; round < 2; ++round) {
        for (int s = 0; s < kStreams; ++s) {
            const std::int64_t start = (static_cast<std::int64_t>(round) * kStreams + s) * kLength;
            run.kernel(0, start, start + kLength, 0, s);
        }
    }
    const auto trace = run.take();
    const WaitFinder waits(*trace);
    std::size_t named = 0;
    for (std::size_t i = kStreams; i < trace->device.size(); ++i) {
        const std::vector<Wait> gap = waits.gap_before(i);
        if (gap.size() == 1 && gap[0].what == WaitFor::kernel &&
            gap[0].on == static_cast<std::int32_t>(i) - 1)
            ++named;
    }
    EXPECT_EQ(named, static_cast<std::size_t>(kStreams));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
