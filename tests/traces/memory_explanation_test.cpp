// Memory explained: the parts with their predictions, the time of the peak, the steps, and the pool.
#include "traces/analysis/memory/memory_explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "traces/analysis/compare/compare.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

constexpr auto kNone = std::nullopt;

// A run of one rank and three steps of 100 ns. Allocated on the device:
//   from 5 ns    the shard, 100 bytes of set-up
//   20 to 40     + 300 of unit a                        400 in step 0
//   120 to 180   + 300 of unit a
//   140 to 160   + 200 of unit b                        600 in step 1: the peak
//   220 to 240   + 300 of unit a                        400 in step 2
class Explained : public ::testing::Test {
  protected:
    Explained() {
        run_.sink().add(schema::UnitRow{.id = 0, .module = 4, .name = "a"});
        run_.sink().add(schema::UnitRow{.id = 1, .module = 5, .name = "b"});
        run_.sink().add(schema::ModuleRow{.id = 4, .name = "Linear_0"});
        run_.sink().add(schema::ModuleRow{.id = 5, .name = "Linear_1"});
        for (int step = 0; step < 3; ++step) run_.step(0, step, 100 * step, 100 * step + 100);
        run_.allocate(0, 5, 1, 100,
                      {.category = schema::MemoryCategory::parameters,
                       .unit = 0,
                       .phase = schema::Phase::setup,
                       .name = "shard"});
        for (const auto& [from, to] : {std::pair(20, 40), {120, 180}, {220, 240}}) {
            run_.allocate(0, from, 2, 300, a_);
            run_.free(0, to, 2, 300, a_);
        }
        run_.allocate(0, 140, 3, 200, b_);
        run_.free(0, 160, 3, 200, b_);
    }
    void predict(std::int64_t peak) {
        schema::PredictionRow row{.rank = 0, .peak_bytes = peak, .where = "backward"};
        row.at_peak[static_cast<int>(schema::MemoryCategory::unsharded_parameters)] = peak;
        run_.sink().add(row);
    }
    void part(schema::PredictionPart kind, std::int64_t id, std::int64_t bytes, const char* name = "") {
        run_.sink().add(
            schema::PredictionPartRow{.rank = 0, .kind = kind, .id = id, .bytes = bytes, .name = name});
    }
    void counter(const char* name, std::int64_t time, double value) {
        run_.sink().add(
            schema::CounterRow{.time = time, .rank = 0, .name = run_.sink().intern(name), .value = value});
    }
    RankExplanation explain(const Selection& selection = {}) {
        trace_ = run_.take();
        return explain_memory(*trace_, selection).ranks.at(0);
    }
    // "name measured predicted", with a dash for no prediction.
    static std::vector<std::string> texts(const std::vector<MemoryHolder>& holders) {
        std::vector<std::string> all;
        for (const MemoryHolder& h : holders) {
            all.push_back(h.name + " " + std::to_string(h.bytes) + " " +
                          (h.predicted ? std::to_string(*h.predicted) : "-"));
        }
        return all;
    }

    static constexpr TestMemory a_ = {
        .category = schema::MemoryCategory::unsharded_parameters, .unit = 0, .module = 4, .name = "a flat"};
    static constexpr TestMemory b_ = {.category = schema::MemoryCategory::activations,
                                      .unit = 1,
                                      .module = 5,
                                      .phase = schema::Phase::backward,
                                      .name = "b out"};
    RunBuilder run_;
    std::unique_ptr<store::Trace> trace_;
};

TEST_F(Explained, TheMomentIsTheAllocationThatReachedThePeak) {
    const RankExplanation rank = explain();
    EXPECT_EQ(rank.memory.peak_bytes, 100 + 300 + 200);
    EXPECT_THAT(rank.moment.step, Optional(1));
    EXPECT_EQ(rank.moment.phase, schema::Phase::backward);
    EXPECT_EQ(rank.moment.buffer, "b out");
    EXPECT_EQ(rank.moment.unit, "b");
    EXPECT_EQ(rank.moment.module, "Linear_1");
    EXPECT_EQ(rank.moment.bytes, 200);
}

TEST_F(Explained, APeakThatExistedAlreadyHasAStepButNoAllocation) {
    const RankExplanation rank = explain({.from_ns = 150});
    EXPECT_EQ(rank.memory.peak_bytes, 600);
    EXPECT_THAT(rank.moment.step, Optional(1));
    EXPECT_EQ(rank.moment.buffer, "");
    EXPECT_EQ(rank.moment.bytes, 0);
}

TEST_F(Explained, PartsHaveTheirPredictionAndBothSumToThePeaks) {
    predict(650);
    part(schema::PredictionPart::unit, 0, 400);
    part(schema::PredictionPart::unit, 1, 250);
    part(schema::PredictionPart::module, 4, 300);
    part(schema::PredictionPart::module, 5, 250);
    part(schema::PredictionPart::module, -1, 100);
    part(schema::PredictionPart::buffer, -1, 300, "a flat");
    part(schema::PredictionPart::buffer, -1, 100, "shard");
    part(schema::PredictionPart::buffer, -1, 250, "b gradient");  // predicted, but not allocated at the peak
    const RankMemory rank = explain().memory;
    EXPECT_TRUE(rank.prediction_applies);
    EXPECT_THAT(texts(rank.units), ElementsAre("a 400 400", "b 200 250"));
    EXPECT_THAT(texts(rank.modules),
                ElementsAre("Linear_0 300 300", "Linear_1 200 250", "(no module) 100 100"));
    EXPECT_THAT(texts(rank.buffers),
                ElementsAre("a flat 300 300", "b out 200 0", "shard 100 100", "b gradient 0 250"));
    for (const auto* holders : {&rank.units, &rank.modules, &rank.buffers}) {
        std::int64_t bytes = 0, predicted = 0;
        for (const MemoryHolder& h : *holders) {
            bytes += h.bytes;
            predicted += h.predicted.value();
        }
        EXPECT_EQ(bytes, rank.peak_bytes);
        EXPECT_EQ(predicted, rank.predicted_peak_bytes);
    }
}

TEST_F(Explained, AnUnpredictedRestIsARowSoThatPartsStillSum) {
    predict(600);
    part(schema::PredictionPart::unit, 0, 400);
    part(schema::PredictionPart::unit, 9, 150);  // its unit is unknown to the run
    EXPECT_THAT(texts(explain().memory.units),
                ElementsAre("a 400 400", "b 200 0", "(no unit) 0 150", "(not predicted) 0 50"));
}

TEST_F(Explained, WithoutStoredPartsOnlyTheCategoriesArePredicted) {
    predict(600);
    const RankExplanation rank = explain();
    EXPECT_TRUE(rank.memory.prediction_applies);
    EXPECT_EQ(rank.memory.predicted_peak_bytes, 600);
    EXPECT_THAT(texts(rank.memory.units), ElementsAre("a 400 -", "b 200 -"));
    EXPECT_THAT(texts(rank.memory.buffers), ElementsAre("a flat 300 -", "b out 200 -", "shard 100 -"));
    for (const StepMemory& step : rank.steps) EXPECT_EQ(step.predicted, kNone);
}

TEST_F(Explained, EachStepHasItsPeakAndTheLastStoredPredictionContinues) {
    predict(600);
    part(schema::PredictionPart::step, 0, 400);
    part(schema::PredictionPart::step, 1, 600);  // the prediction for step 2, too
    const std::vector<StepMemory> steps = explain().steps;
    ASSERT_EQ(steps.size(), 3U);
    EXPECT_EQ(steps[0].peak_bytes, 400);
    EXPECT_EQ(steps[1].peak_bytes, 600);
    EXPECT_EQ(steps[2].peak_bytes, 400);
    EXPECT_THAT(steps[0].predicted, Optional(400));
    EXPECT_THAT(steps[1].predicted, Optional(600));
    EXPECT_THAT(steps[2].predicted, Optional(600));
    EXPECT_EQ(steps[0].reserved_bytes, kNone);
    EXPECT_EQ(steps[0].active_bytes, kNone);
}

// A run of one step: the optimizer's state is made at its end, and the predicted peak is that of the second
// step, which did not run.
TEST(ExplainedMemory, OfTheFirstStepAloneIsComparedWithItsPrediction) {
    RunBuilder run;
    run.step(0, 0, 0, 100);
    run.allocate(0, 10, 1, 400);
    run.sink().add(
        schema::PredictionRow{.rank = 0, .peak_bytes = 600, .at_peak = {}, .where = "later steps"});
    run.sink().add(schema::PredictionPartRow{0, schema::PredictionPart::unit, -1, 600, {}});
    run.sink().add(schema::PredictionPartRow{0, schema::PredictionPart::step, 0, 400, {}});
    run.sink().add(schema::PredictionPartRow{0, schema::PredictionPart::step, 1, 600, {}});
    const auto trace = run.take();
    const RankMemory rank = memory_report(*trace).ranks.at(0);
    EXPECT_EQ(rank.peak_bytes, 400);
    EXPECT_EQ(rank.predicted_of_steps, 400);
    EXPECT_THAT(rank.predicted_step, Optional(1));
    EXPECT_FALSE(rank.prediction_applies) << "its parts are of another step";
    EXPECT_FALSE(rank.units.front().predicted.has_value());
    EXPECT_EQ(compare({trace.get()}).runs[0].predicted_peak_bytes, 400);
}

TEST_F(Explained, ThePredictionOfThePeakAppliesToTheStepsThatReachItOnly) {
    predict(600);
    part(schema::PredictionPart::unit, 0, 600);
    part(schema::PredictionPart::step, 0, 400);
    part(schema::PredictionPart::step, 1, 600);
    trace_ = run_.take();
    const auto applies = [&](const Selection& selection) {
        const RankMemory rank = explain_memory(*trace_, selection).ranks.at(0).memory;
        EXPECT_EQ(rank.units.front().predicted.has_value(), rank.prediction_applies);
        return rank.prediction_applies;
    };
    EXPECT_TRUE(applies({}));
    EXPECT_FALSE(applies({.first_step = 0, .last_step = 0}));
    EXPECT_TRUE(applies({.first_step = 0, .last_step = 1}));
    EXPECT_TRUE(applies({.first_step = 2}));
    EXPECT_FALSE(applies({.from_ns = 0}));
}

TEST_F(Explained, ASelectionLeavesItsSteps) {
    const RankExplanation rank = explain({.first_step = 1, .last_step = 2, .to_ns = 130});
    ASSERT_EQ(rank.steps.size(), 1U);  // step 2 begins at 200
    EXPECT_EQ(rank.steps[0].step, 1);
    EXPECT_EQ(rank.steps[0].peak_bytes, 400);  // until 130
}

TEST_F(Explained, ThePoolIsComparedWithWhatIsAllocatedAndActive) {
    counter("reserved_bytes", 4, 128);
    counter("reserved_bytes", 20, 512);
    counter("reserved_bytes", 139, 800);   // at the time of the peak
    counter("reserved_bytes", 225, 1000);  // while 400 are allocated
    counter("active_bytes", 3, 9000);      // before the set-up ended
    counter("active_bytes", 5, 100);
    counter("active_bytes", 20, 400);
    counter("active_bytes", 141, 700);  // a stream still uses 100 that the host has freed
    counter("active_bytes", 190, 100);
    for (const std::int64_t time : {4, 20, 139, 225}) run_.runtime(0, time, time + 1, "cudaMalloc_v3020");
    run_.runtime(0, 50, 51, "cudaFree_v3020");
    const RankExplanation rank = explain();
    EXPECT_THAT(rank.pool.active_peak_bytes, Optional(700));
    EXPECT_THAT(rank.pool.reserved_peak_bytes, Optional(1000));
    EXPECT_EQ(rank.pool.reserved_at_peak, 800);
    EXPECT_EQ(rank.pool.cached_at_peak, 800 - 600);
    EXPECT_EQ(rank.pool.allocated_at_reserved_peak, 400);
    EXPECT_THAT(rank.pool.active_at_reserved_peak, Optional(100));  // from 225 on
    EXPECT_DOUBLE_EQ(rank.pool.fragmentation_percent, 100.0 * (1000 - 400) / 1000);
    EXPECT_EQ(rank.pool.growths, 4);
    EXPECT_EQ(rank.pool.growths_in_steps, 4);  // step 0 begins at 0

    ASSERT_EQ(rank.steps.size(), 3U);
    EXPECT_THAT(rank.steps[0].reserved_bytes, Optional(512));
    EXPECT_THAT(rank.steps[1].reserved_bytes, Optional(800));
    EXPECT_THAT(rank.steps[2].reserved_bytes, Optional(1000));
    EXPECT_THAT(rank.steps[1].active_bytes, Optional(700));
    EXPECT_THAT(rank.steps[2].active_bytes, Optional(100));  // the value when the step began
    EXPECT_EQ(rank.steps[0].growths, 2);
    EXPECT_EQ(rank.steps[1].growths, 1);
}

TEST_F(Explained, AGrowthThatIsRecordedAfterItsAllocationBelongsToIt) {
    counter("reserved_bytes", 20, 512);
    counter("reserved_bytes", 141, 800);  // the peak is reached at 140 and lasts until 160
    const PoolMemory pool = explain().pool;
    EXPECT_EQ(pool.reserved_at_peak, 800);
    EXPECT_EQ(pool.cached_at_peak, 200);
    EXPECT_EQ(pool.allocated_at_reserved_peak, 600);
}

TEST_F(Explained, ThePoolThatTheSetUpFilledCountsButItsGrowthIsInNoStep) {
    counter("reserved_bytes", -50, 2000);  // before the first step
    run_.runtime(0, -50, -49, "cudaMalloc_v3020");
    const PoolMemory pool = explain().pool;
    EXPECT_THAT(pool.reserved_peak_bytes, Optional(2000));
    EXPECT_EQ(pool.allocated_at_reserved_peak, 600);
    EXPECT_DOUBLE_EQ(pool.fragmentation_percent, 70);
    EXPECT_EQ(pool.growths, 1);
    EXPECT_EQ(pool.growths_in_steps, 0);
}

TEST_F(Explained, ACounterThatNoMemoryHasDoesNoHarm) {
    counter("reserved_bytes", 10, std::numeric_limits<double>::quiet_NaN());
    counter("active_bytes", 10, -1e300);
    counter("active_bytes", 20, 1e300);
    const PoolMemory pool = explain().pool;
    EXPECT_THAT(pool.active_peak_bytes, Optional(std::int64_t{1} << 56));
    EXPECT_THAT(pool.reserved_peak_bytes, Optional(0));
    EXPECT_EQ(pool.fragmentation_percent, 0);
}

TEST(MemoryExplanation, ARunWithoutStepsHasNoStepsAndNoPool) {
    RunBuilder run;
    run.allocate(0, 10, 1, 64);
    const auto trace = run.take();
    const RankExplanation rank = explain_memory(*trace).ranks.at(0);
    EXPECT_EQ(rank.memory.peak_bytes, 64);
    EXPECT_THAT(rank.steps, IsEmpty());
    EXPECT_EQ(rank.moment.step, kNone);
    EXPECT_EQ(rank.pool.reserved_peak_bytes, kNone);
    EXPECT_EQ(rank.pool.growths, 0);
    EXPECT_THAT(explain_memory(*store::ColumnSink().take()).ranks, IsEmpty());
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
