// The state of each unit's parameters: in FSDP2's step of kineto_run.h, in small runs of the trainer, and in
// the sample traces. Times in nanoseconds.
#include "traces/analysis/fsdp/shard_states.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/kineto_run.h"
#include "tests/traces/run_builder.h"
#include "traces/store/load/loader.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using enum ShardState;
using store::UnitIndex;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr store::RankIndex kFirst(0);

using Moment = std::pair<std::int64_t, ShardState>;

std::vector<Moment> moments(const UnitHistory& history) {
    std::vector<Moment> result;
    for (const ShardChange& change : history.changes) result.emplace_back(change.time, change.state);
    return result;
}

UnitIndex unit(const ShardStates& states, std::string_view name) {
    for (std::size_t u = 0; u < states.units.size(); ++u) {
        if (states.units[u] == name) return UnitIndex(u);
    }
    ADD_FAILURE() << "no unit " << name;
    return UnitIndex(0);
}

// A run of the trainer: units 10, 11, ...; a kernel belongs to a unit by the module of the range around its
// launch.
class Ours {
  public:
    explicit Ours(int units, int ranks = 1) : run_(ranks) {
        for (int u = 0; u < units; ++u) {
            run_.sink().add(schema::ModuleRow{
                .id = u, .parent = -1, .name = "m", .class_name = "M", .path = "m", .unit = 10 + u});
            run_.sink().add(
                schema::UnitRow{.id = 10 + u, .module = u, .name = "u" + std::to_string(u), .bytes = 64});
        }
    }
    void compute(int u, std::int64_t launched, std::int64_t start, std::int64_t end) {
        run_.range(0, launched, launched + 1, "op", u);
        run_.kernel(0, start, end, launched);
    }
    // Casts the shard for the gather that follows.
    void prepare(int u, std::int64_t launched, std::int64_t start, std::int64_t end) {
        run_.range(0, launched, launched + 1, "_unshard", u);
        run_.kernel(0, start, end, launched);
    }
    void collective(schema::Operation operation, int u, std::int64_t launched, std::int64_t start,
                    std::int64_t end) {
        run_.collective(0, start, end,
                        {.operation = operation,
                         .bytes = 64,
                         .sequence = sequence_++,
                         .group_size = 2,
                         .unit = 10 + u,
                         .launched = launched});
    }
    void gather(int u, std::int64_t launched, std::int64_t start, std::int64_t end) {
        collective(schema::Operation::all_gather, u, launched, start, end);
    }
    void reduce(int u, std::int64_t launched, std::int64_t start, std::int64_t end) {
        collective(schema::Operation::reduce_scatter, u, launched, start, end);
    }
    void held(int u, std::int64_t from, std::int64_t to) {
        const TestMemory what{.category = schema::MemoryCategory::unsharded_parameters, .unit = 10 + u};
        run_.allocate(0, from, static_cast<std::uint64_t>(from), 64, what);
        run_.free(0, to, static_cast<std::uint64_t>(from), 64, what);
    }
    ShardStates states() { return shard_states(*run_.take()); }

  private:
    RunBuilder run_;
    std::int64_t sequence_ = 0;
};

// The cast of the second gather's input runs long after the first gather's compute, and does not extend its
// use.
TEST(ShardStates, PreparingAGatherIsNotAUseOfThePreviousOne) {
    Ours run(1);
    run.prepare(0, 0, 0, 5);
    run.gather(0, 2, 10, 20);
    run.compute(0, 3, 20, 40);
    run.prepare(0, 50, 100, 105);
    run.gather(0, 52, 110, 120);
    run.compute(0, 53, 120, 140);
    const ShardStates states = run.states();
    EXPECT_THAT(moments(states.histories.at(0)),
                ElementsAre(Moment{10, gathering}, Moment{20, computing}, Moment{40, sharded},
                            Moment{110, gathering}, Moment{120, computing}, Moment{140, sharded}));
}

TEST(ShardStates, FollowGathersComputeAndReductionOfAnFsdp2Unit) {
    const ShardStates states = shard_states(*fsdp2_step());
    const UnitIndex layer = unit(states, "layers.0");
    EXPECT_THAT(moments(states.of(kFirst, layer)),
                ElementsAre(Moment{1400, gathering}, Moment{1700, full},       // the copy-out is not compute
                            Moment{1720, computing}, Moment{2000, gathering},  // freed and gathered again
                            Moment{2300, full}, Moment{2320, computing}, Moment{2900, reducing},
                            Moment{3300, sharded}));
    EXPECT_EQ(states.bytes[layer.at()], 1024) << "of its gathers, where no unit tells its size";
    EXPECT_FALSE(states.allocations);
}

TEST(ShardStates, LastFromFirstForwardToLastBackwardForTheRootUnit) {
    const ShardStates states = shard_states(*fsdp2_step());
    // Embedding 1410 to 1500, head 2000 to 2100 with its backward to 2250, embedding's backward 2900 to 3000;
    // layers.0 computes between them. Its reduction waits for that of layers.0 until 3300.
    EXPECT_THAT(
        moments(states.of(kFirst, UnitIndex(1 - unit(states, "layers.0").value))),
        ElementsAre(Moment{1000, gathering}, Moment{1400, full}, Moment{1410, computing}, Moment{1500, full},
                    Moment{2000, computing}, Moment{2250, full}, Moment{2900, computing}, Moment{3000, freed},
                    Moment{3300, reducing}, Moment{3500, sharded}));
}

TEST(ShardStates, TheWholeParametersLiveUntilTheHostFreesThem) {
    Ours run(1);
    run.held(0, 90, 700);  // allocated before the gather's launch, freed after the last use at 400
    run.gather(0, 100, 150, 200);
    run.compute(0, 110, 200, 400);
    const UnitHistory history = run.states().of(kFirst, UnitIndex(0));
    EXPECT_THAT(moments(history), ElementsAre(Moment{150, gathering}, Moment{200, computing},
                                              Moment{400, full}, Moment{700, sharded}));
    EXPECT_THAT(history.allocated, ElementsAre(Interval{90, 700}));
    EXPECT_TRUE(history.at(699).whole);
    EXPECT_FALSE(history.at(700).whole);
}

TEST(ShardStates, AHostThatRunsAheadFreesBeforeTheDeviceHasEvenGathered) {
    Ours run(1);
    run.held(0, 90, 120);
    run.gather(0, 100, 150, 200);
    run.compute(0, 110, 200, 400);
    EXPECT_THAT(moments(run.states().of(kFirst, UnitIndex(0))),
                ElementsAre(Moment{150, gathering}, Moment{200, computing}, Moment{400, sharded}));
}

TEST(ShardStates, PausesUpToThirtyMicrosecondsDoNotEndComputing) {
    Ours run(2);
    run.gather(0, 1, 10, 20);
    run.compute(0, 2, 20, 30);
    run.compute(0, 3, 30 + kComputePause, 40000);
    run.compute(0, 4, 40001 + kComputePause, 80000);  // one more: full between
    EXPECT_THAT(moments(run.states().of(kFirst, UnitIndex(0))),
                ElementsAre(Moment{10, gathering}, Moment{20, computing}, Moment{40000, full},
                            Moment{40001 + kComputePause, computing}, Moment{80000, sharded}));
}

TEST(ShardStates, ComputeOfAnotherUnitEndsComputing) {
    Ours run(2);
    run.gather(0, 1, 10, 20);
    run.gather(1, 2, 20, 30);
    run.compute(0, 3, 30, 40);
    run.compute(1, 4, 40, 50);
    run.compute(0, 5, 50, 60);
    const ShardStates states = run.states();
    EXPECT_THAT(moments(states.of(kFirst, UnitIndex(0))),
                ElementsAre(Moment{10, gathering}, Moment{20, full}, Moment{30, computing}, Moment{40, full},
                            Moment{50, computing}, Moment{60, sharded}));
    EXPECT_THAT(
        moments(states.of(kFirst, UnitIndex(1))),
        ElementsAre(Moment{20, gathering}, Moment{30, full}, Moment{40, computing}, Moment{50, sharded}));
}

TEST(ShardStates, AUnitOfSeveralGathersIsOneUntilItIsUsed) {
    Ours run(1);
    run.gather(0, 1, 10, 20);
    run.gather(0, 2, 30, 40);  // launched at 2, before the first gather ended
    run.compute(0, 3, 50, 60);
    EXPECT_THAT(moments(run.states().of(kFirst, UnitIndex(0))),
                ElementsAre(Moment{10, gathering}, Moment{20, full}, Moment{30, gathering}, Moment{40, full},
                            Moment{50, computing}, Moment{60, sharded}));
}

// The last unit of a forward: the host has launched its second gather, for the backward, before the device
// computes the forward.
TEST(ShardStates, ComputeBelongsToTheGatherBeforeItsLaunch) {
    Ours run(1);
    run.gather(0, 1, 10, 20);
    run.compute(0, 2, 50, 60);  // the forward's compute
    run.gather(0, 3, 30, 40);
    run.compute(0, 4, 60, 70);  // the backward's compute
    run.reduce(0, 5, 80, 90);
    EXPECT_THAT(
        moments(run.states().of(kFirst, UnitIndex(0))),
        ElementsAre(Moment{10, gathering}, Moment{20, full}, Moment{30, gathering}, Moment{40, full},
                    Moment{50, computing}, Moment{70, freed}, Moment{80, reducing}, Moment{90, sharded}));
}

TEST(ShardStates, AUnitThatIsReducedAndNeverGatheredIsAlwaysWhole) {
    Ours run(1);
    run.compute(0, 1, 100, 200);
    run.collective(schema::Operation::all_reduce, 0, 2, 200, 300);
    const UnitHistory history = run.states().of(kFirst, UnitIndex(0));
    EXPECT_EQ(history.at(0).state, full);
    EXPECT_THAT(moments(history),
                ElementsAre(Moment{100, computing}, Moment{200, reducing}, Moment{300, full}));
    EXPECT_TRUE(history.at(250).whole) << "the reduction frees nothing";
}

TEST(ShardStates, AnUnknownUnitStaysSharded) {
    Ours run(2);
    run.gather(0, 1, 10, 20);
    const ShardStates states = run.states();
    EXPECT_THAT(states.of(kFirst, UnitIndex(1)).changes, IsEmpty());
    EXPECT_EQ(states.of(kFirst, UnitIndex(1)).at(15).state, sharded);
    EXPECT_TRUE(states.any_collective);
}

TEST(ShardStates, ATraceWithoutUnitsHasNone) {
    const ShardStates states = shard_states(store::Trace());
    EXPECT_THAT(states.units, IsEmpty());
    EXPECT_FALSE(states.any_collective);
}

TEST(ShardStates, ASpanReachesFromChangeToChange) {
    Ours run(1);
    run.gather(0, 1, 10, 20);
    run.compute(0, 2, 20, 40);
    const UnitHistory history = run.states().of(kFirst, UnitIndex(0));
    constexpr std::int64_t kEarliest = std::numeric_limits<std::int64_t>::min();
    EXPECT_EQ(history.span(5), (Interval{kEarliest, 10}));
    EXPECT_EQ(history.span(10), (Interval{10, 20}));
    EXPECT_EQ(history.span(39), (Interval{20, 40}));
    EXPECT_EQ(history.span(40), (Interval{40, std::numeric_limits<std::int64_t>::max()}));
}

// The largest number of sets that contain the same instant.
int most_at_once(std::span<const IntervalSet> sets) {
    std::vector<std::pair<std::int64_t, int>> edges;  // sorted: at equal times an end comes before a start
    for (const IntervalSet& set : sets) {
        for (const Interval& interval : set) {
            edges.emplace_back(interval.start, 1);
            edges.emplace_back(interval.end, -1);
        }
    }
    std::sort(edges.begin(), edges.end());
    int now = 0, most = 0;
    for (const auto& [_, change] : edges) most = std::max(most, now += change);
    return most;
}

// The limiter lets the host keep two gathered units; the device, which is behind, may still use a third.
TEST(ShardStates, ObeyTheLimiterInTheSampleRuns) {
    const auto most = [](const char* file, bool of_the_host) {
        const auto trace = store::load_trace(std::string(SHARDSCOPE_SAMPLES) + "/traces/" + file);
        EXPECT_EQ(trace->config_value("fsdp.limit_all_gathers"), "true");
        const ShardStates states = shard_states(*trace);
        EXPECT_TRUE(states.allocations);
        int result = 0;
        for (std::size_t rank = 0; rank < states.ranks; ++rank) {
            std::vector<IntervalSet> sets;
            for (std::size_t u = 0; u < states.units.size(); ++u) {
                const UnitHistory& history = states.of(store::RankIndex(rank), UnitIndex(u));
                IntervalSet whole;
                for (std::size_t c = 0; c + 1 < history.changes.size(); ++c) {
                    if (history.changes[c].whole)
                        append_merged(whole, {history.changes[c].time, history.changes[c + 1].time});
                }
                EXPECT_FALSE(whole.empty()) << states.units[u];
                EXPECT_FALSE(history.changes.back().whole) << states.units[u];
                sets.push_back(of_the_host ? history.allocated : whole);
            }
            result = std::max(result, most_at_once(sets));
        }
        return result;
    };
    EXPECT_EQ(most("mlp-linear.sqlite", true), 2);
    EXPECT_LE(most("mlp-linear.sqlite", false), 3);
    EXPECT_EQ(most("mlp-root.sqlite", true), 1);
    EXPECT_EQ(most("mlp-root.sqlite", false), 1);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
