// The content of the Plan panel, computed without drawing: order, words, cells, and the place of each row.
#include "viewer/panels/plan/plan_rows.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viewer/plan_sample.h"
#include "viewer/panels/plan/plan_picture.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using testing::AllOf;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

PlanList sample_list() {
    return plan_list(plan_sample());
}

PlanList list_of(const std::vector<traces::schema::PlanRow>& rows) {
    traces::store::ColumnSink sink;
    for (const traces::schema::PlanRow& row : rows) sink.add(row);
    return plan_list(sink.take());
}

std::vector<int> numbers(const PlanList& list, const std::vector<std::size_t>& items) {
    std::vector<int> all;
    for (const std::size_t i : items) all.push_back(list.items[i].row->number);
    return all;
}
std::vector<int> numbers(const PlanList& list, const std::vector<PlanPoint>& points) {
    std::vector<int> all;
    for (const PlanPoint& point : points) all.push_back(list.items[point.item].row->number);
    return all;
}

std::vector<std::string> column_ids(const tables::TableModel& model) {
    std::vector<std::string> ids;
    for (const tables::TableColumn& column : model.columns()) ids.push_back(column.id);
    return ids;
}
std::string cell(const PlanTable& table, std::size_t row, const std::string& id) {
    const std::vector<std::string> ids = column_ids(*table.model);
    const auto at = std::find(ids.begin(), ids.end(), id);
    EXPECT_NE(at, ids.end()) << id;
    return at == ids.end() ? "" : table.model->text(row, static_cast<std::size_t>(at - ids.begin()));
}

// --- the list ---------------------------------------------------------------------------------------------

TEST(PlanList, TheParetoFrontComesFirstThenRowsThatFitThenTheOthers) {
    const PlanList list = sample_list();
    std::vector<std::size_t> all(list.items.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    EXPECT_THAT(numbers(list, all), ElementsAre(3, 1, 5, 2, 4, 6, 7, 8));
    EXPECT_THAT(list.counts, ElementsAre(3, 2, 1, 1, 1));
    EXPECT_TRUE(list.same_batch);
    EXPECT_TRUE(list.tokens);
    EXPECT_TRUE(list.priced);
    EXPECT_EQ(item_of(list, 5), 2U);
    EXPECT_EQ(item_of(list, 99), list.items.size());
}

TEST(PlanList, StepsOfOtherBatchesAreNotTheSame) {
    traces::schema::PlanRow twice = plan_row(2, 20, 500);
    twice.samples_per_second *= 2;
    EXPECT_FALSE(list_of({plan_row(1, 20, 400), twice}).same_batch);
}

TEST(PlanList, CountsAreASentence) {
    EXPECT_EQ(plan_counts(sample_list()),
              "8 configurations of tiny.toml on h100_ib (NVIDIA H100): 5 fit, 3 of them on the Pareto front; "
              "1 do not; 1 are impossible; 1 were not tried");
    EXPECT_EQ(nothing_fits(sample_list()), "");
}

TEST(PlanList, NamesTheSmallestPeakIfNothingFits) {
    traces::schema::PlanRow large = plan_row(1, 20, 3000), larger = plan_row(2, 10, 4000);
    large.outcome = larger.outcome = "too_large";
    const std::string said = nothing_fits(list_of({larger, large}));
    EXPECT_THAT(said,
                AllOf(HasSubstr("3,000.00 MiB"), HasSubstr("of row 1"), HasSubstr("1,000.0 MiB of memory"),
                      HasSubstr("backward of blocks.0"), HasSubstr("run.memory_limit")));
}

// A lifted trace has no counts of samples and operations.
TEST(PlanList, WithoutSamplesRowsAreInTheOrderOfTheirSteps) {
    std::vector<traces::schema::PlanRow> rows = {plan_row(1, 30, 400), plan_row(2, 10, 500),
                                                 plan_row(3, 20, 450)};
    for (traces::schema::PlanRow& row : rows) row.samples_per_second = row.tokens_per_second = row.mfu = 0;
    const PlanList list = list_of(rows);
    EXPECT_EQ(list.items[0].row->number, 2);
    EXPECT_EQ(list.items[2].row->number, 1);
    EXPECT_TRUE(list.same_batch) << "the picture is of steps";
    const PlanTable table = plan_table(list, PlanShow::all, true);
    EXPECT_EQ(cell(table, 0, "samples_per_second"), "-");
    EXPECT_EQ(cell(table, 0, "mfu_percent"), "-");
}

// --- the table --------------------------------------------------------------------------------------------

TEST(PlanTable, HasTheColumnsThatTheCommandLinePrints) {
    const PlanTable table = plan_table(sample_list(), PlanShow::all, true);
    EXPECT_THAT(column_ids(*table.model),
                ElementsAre("row", "wrap", "fits", "peak_mb", "reserved_mb", "step_ms", "exposed_ms",
                            "tokens_per_second", "mfu_percent", "usd_per_million", "why"))
        << "what all rows share is said once";
    EXPECT_EQ(table.alike,
              "strategy FULL_SHARD, offload no, checkpointing none, prefetch BACKWARD_PRE, limiter yes, "
              "param bf16, "
              "batch 2");
    EXPECT_EQ(cell(table, 0, "row"), "3");
    EXPECT_EQ(cell(table, 0, "peak_mb"), "800.0");
    EXPECT_EQ(cell(table, 0, "step_ms"), "10.00");
    EXPECT_EQ(cell(table, 0, "tokens_per_second"), "40,000");
    EXPECT_EQ(cell(table, 0, "mfu_percent"), "25.0");
    EXPECT_EQ(cell(table, 5, "fits"), "no");
    EXPECT_EQ(cell(table, 5, "step_ms"), "-") << "it was not simulated";
    EXPECT_EQ(cell(table, 6, "fits"), "impossible");
    EXPECT_EQ(cell(table, 6, "why"), "fsdp.shard_group: 3 does not divide 2 ranks");
    EXPECT_EQ(cell(table, 7, "fits"), "not tried");
}

TEST(PlanTable, ShowsLessOnRequest) {
    const PlanList list = sample_list();
    EXPECT_THAT(numbers(list, plan_table(list, PlanShow::all, false).items),
                ElementsAre(3, 1, 5, 2, 6, 7, 8));
    EXPECT_THAT(numbers(list, plan_table(list, PlanShow::fits, true).items), ElementsAre(3, 1, 5, 2, 4));
    EXPECT_THAT(numbers(list, plan_table(list, PlanShow::front, true).items), ElementsAre(3, 1, 5));
}

TEST(PlanTable, StrategiesAreCalledAsThePlannerCallsThem) {
    const auto strategy = [](const std::string& settings) {
        traces::schema::PlanRow row = plan_row(1, 10, 100), other = plan_row(2, 10, 100);
        row.settings = settings;
        other.settings = R"({"parallel.mode":"none"})";
        const PlanTable table = plan_table(list_of({row, other}), PlanShow::all, true);
        return cell(table, 0, "strategy");
    };
    EXPECT_EQ(strategy(R"({"parallel.mode":"fsdp","fsdp.sharding_strategy":"SHARD_GRAD_OP"})"),
              "SHARD_GRAD_OP");
    EXPECT_EQ(strategy(R"({"fsdp.sharding_strategy":"HYBRID_SHARD","fsdp.shard_group":"8"})"),
              "HYBRID_SHARD of 8");
    EXPECT_EQ(strategy(R"({"parallel.mode":"ddp","ddp.shard_optimizer":"true"})"), "ZERO_1");
    EXPECT_EQ(strategy(R"({"parallel.mode":"ddp","ddp.shard_optimizer":"false"})"), "ddp");
    EXPECT_EQ(strategy(R"({"parallel.mode":"ddp","ddp.comm_hook":"none"})"), "ddp");
    EXPECT_EQ(strategy(R"({"parallel.mode":"ddp","ddp.comm_hook":"powersgd:4"})"), "ddp powersgd:4");
}

TEST(PlanTable, KeysOfTheCommandLineAreColumnsOfTheirOwn) {
    traces::schema::PlanRow a = plan_row(1, 10, 100), b = plan_row(2, 20, 90);
    a.settings = R"({"run.ranks":"8","data.batch":"2"})";
    b.settings = R"({"run.ranks":"64","data.batch":"2"})";
    const PlanTable table = plan_table(list_of({a, b}), PlanShow::all, true);
    EXPECT_EQ(cell(table, 0, "run.ranks"), "8");
    EXPECT_EQ(cell(table, 1, "run.ranks"), "64");
}

TEST(PlanTable, FlagsCanBePastedIntoAShell) {
    EXPECT_EQ(plan_flags({{"fsdp.wrap", "module:Block"}, {"data.batch", "2"}}),
              "--fsdp.wrap=module:Block --data.batch=2");
    EXPECT_EQ(plan_flags({{"run.name", "it's; rm"}}), "--run.name='it'\\''s; rm'");
}

// --- the picture ------------------------------------------------------------------------------------------

constexpr double kMB = 1 << 20;

PlanPicture picture_of(const PlanList& list, PlanTime time = PlanTime::step,
                       PlanMemory memory = PlanMemory::peak) {
    return plan_picture(list, plan_table(list, PlanShow::all, true).items, time, memory);
}

TEST(PlanPicture, PutsEveryRowAtItsMemoryAndTime) {
    const PlanList list = sample_list();
    const PlanPicture picture = picture_of(list);
    EXPECT_THAT(numbers(list, picture.points), ElementsAre(4, 2, 5, 1, 3)) << "the front is painted last";
    EXPECT_THAT(numbers(list, picture.front), ElementsAre(5, 1, 3)) << "from the smallest";
    EXPECT_THAT(numbers(list, picture.untimed), ElementsAre(6));
    EXPECT_EQ(picture.front[0].ns, 40e6);
    EXPECT_EQ(picture.front[0].bytes, 200 * kMB);
    EXPECT_THAT(picture.limits, ElementsAre(1000 * kMB));
    EXPECT_FALSE(picture.x_log);
    EXPECT_FALSE(picture.y_log) << "200 to 4,000 MiB are 20 times apart";
    EXPECT_EQ(picture.x_low, 0);
    EXPECT_GT(picture.x_high, 40e6);
    EXPECT_GT(picture.y_high, 4000 * kMB);
}

// Row 2 is on the Pareto front because of what it reserves; by its peak, row 1 is smaller and faster.
TEST(PlanPicture, JoinsThePointsOfTheFrontThatNothingShownBeats) {
    const PlanList list =
        list_of({plan_row(1, 20, 400, true), plan_row(2, 30, 500, true), plan_row(3, 10, 800, true)});
    const PlanPicture picture = picture_of(list);
    EXPECT_THAT(numbers(list, picture.front), ElementsAre(1, 2, 3));
    EXPECT_THAT(numbers(list, picture.stair), ElementsAre(1, 3));
}

TEST(PlanPicture, ASampleTakesItsShareOfAStep) {
    const PlanList list = sample_list();
    const PlanPicture picture = picture_of(list, PlanTime::sample);
    EXPECT_THAT(picture.front[0].ns, DoubleNear(10e6, 1)) << "40 ms of four samples";
}

TEST(PlanPicture, ReservedMemoryIsKnownOnlyOfSimulatedRows) {
    const PlanList list = sample_list();
    const PlanPicture picture = picture_of(list, PlanTime::step, PlanMemory::reserved);
    EXPECT_THAT(picture.untimed, IsEmpty());
    EXPECT_EQ(picture.front[0].bytes, 210 * kMB);
}

TEST(PlanPicture, ValuesThatLieFarApartHaveALogarithmicAxis) {
    const PlanPicture picture = picture_of(list_of({plan_row(1, 1, 10, true), plan_row(2, 500, 900)}));
    EXPECT_TRUE(picture.x_log);
    EXPECT_TRUE(picture.y_log);
    EXPECT_GT(picture.x_low, 0);
    EXPECT_LT(picture.x_low, 1e6);
    EXPECT_GT(picture.y_high, 1000 * kMB) << "the limit is within";
}

TEST(PlanPicture, ValuesThatLieCloseTogetherFillThePicture) {
    const PlanPicture picture = picture_of(list_of({plan_row(1, 100, 900, true), plan_row(2, 110, 300)}));
    EXPECT_DOUBLE_EQ(picture.x_low, 98.8e6);
    EXPECT_DOUBLE_EQ(picture.x_high, 111.2e6);
    EXPECT_EQ(picture.y_low, 0) << "down to 300 MiB below a limit of 1,000";
}

TEST(PlanPicture, AFarLimitLeavesTheRowsTheirRoom) {
    traces::schema::PlanRow row = plan_row(1, 10, 100, true);
    row.limit_bytes = 100'000 * kPlanMB;
    EXPECT_LT(picture_of(list_of({row})).y_high, 200 * kMB);
}

// --- files as nobody would wish them ----------------------------------------------------------------------

TEST(PlanOdd, NothingAtAll) {
    const PlanList list = list_of({});
    EXPECT_THAT(plan_counts(list), StartsWith("0 configurations"));
    EXPECT_EQ(nothing_fits(list), "");
    EXPECT_EQ(plan_table(list, PlanShow::all, true).model->rows(), 0U);
    EXPECT_THAT(picture_of(list).points, IsEmpty());
}

TEST(PlanOdd, FiguresThatAreNoNumbersAreLeftOutOfThePicture) {
    traces::schema::PlanRow nan = plan_row(1, 10, 100), infinite = plan_row(2, 10, 100),
                            negative = plan_row(3, 10, 100), huge = plan_row(4, 10, 100, true);
    nan.step_us = nan.exposed_us = nan.mfu = nan.samples_per_second = std::nan("");
    infinite.step_us = infinite.samples_per_second = std::numeric_limits<double>::infinity();
    negative.step_us = negative.samples_per_second = -1;
    huge.step_us = 1e300;
    huge.peak_bytes = std::numeric_limits<std::int64_t>::max();
    const PlanList list = list_of({nan, infinite, negative, huge});
    for (const PlanTime time : {PlanTime::step, PlanTime::sample}) {
        const PlanPicture picture = picture_of(list, time);
        for (const PlanPoint& point : picture.points) EXPECT_TRUE(std::isfinite(point.ns) && point.ns > 0);
        EXPECT_TRUE(std::isfinite(picture.x_high) && picture.x_high > picture.x_low);
        EXPECT_TRUE(std::isfinite(picture.y_high) && picture.y_high > picture.y_low);
    }
    const PlanTable table = plan_table(list, PlanShow::all, true);
    for (std::size_t row = 0; row < table.model->rows(); ++row)
        for (std::size_t c = 0; c < table.model->columns().size(); ++c)
            EXPECT_THAT(table.model->text(row, c), Not(AllOf(HasSubstr("nan"), HasSubstr("inf"))));
}

TEST(PlanOdd, SettingsThatAreNoJsonAndOutcomesThatNobodyKnows) {
    traces::schema::PlanRow broken = plan_row(1, 10, 100), list_row = plan_row(2, 10, 100),
                            strange = plan_row(3, 10, 100);
    broken.settings = "{\"fsdp.wrap\": ";
    list_row.settings = "[1, 2]";
    strange.settings = R"({"data.batch": 2, "x": {"y": null}, "": "empty"})";
    strange.outcome = "perhaps";
    const PlanList list = list_of({broken, list_row, strange});
    EXPECT_THAT(list.items.front().settings, IsEmpty());
    EXPECT_EQ(list.items.back().fate, PlanFate::not_run);
    const PlanTable table = plan_table(list, PlanShow::all, true);
    EXPECT_EQ(table.model->rows(), 3U);
    EXPECT_THAT(plan_choices(list, list.items.back()), Not(IsEmpty()));
}

TEST(PlanOdd, ARowThatFitsWithoutAPeakIsNotKnown) {
    traces::schema::PlanRow row = plan_row(1, 10, 100, true);
    row.peak_bytes = -1;
    EXPECT_EQ(fate_of(row), PlanFate::not_run);
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
