// The order of a table's rows, computed immediately or on a thread, and its use for CSV and JSON.
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "viewer/tables/column_scale.h"
#include "viewer/tables/table_model.h"
#include "viewer/tables/table_order.h"

namespace shardscope::viewer::tables {
namespace TEST_FILE {

using testing::ElementsAre;

std::shared_ptr<CellTable> table(const std::vector<std::pair<std::string, double>>& rows) {
    auto made = std::make_shared<CellTable>(
        std::vector<TableColumn>{{.id = "name", .title = "Name", .kind = TableColumn::Kind::text, .width = 0},
                                 {.id = "us", .title = "Time", .unit = "us"}});
    for (const auto& [name, us] : rows) made->add({text_cell(name), us_cell(us)});
    return made;
}

// Rows that are computed on demand: row i has the number (i * 7919) % rows.
class LargeTable final : public TableModel {
  public:
    explicit LargeTable(std::size_t rows) : rows_(rows) {
        columns_ = {{.id = "name", .title = "Name", .kind = TableColumn::Kind::text},
                    {.id = "value", .title = "Value"}};
    }
    std::size_t rows() const override { return rows_; }
    std::string text(std::size_t row, std::size_t column) const override {
        return column == 0 ? "kernel " + std::to_string(row % 10) : std::to_string(row * 7919 % rows_);
    }
    double number(std::size_t row, std::size_t) const override {
        return static_cast<double>(row * 7919 % rows_);
    }

  private:
    std::size_t rows_;
};

// One row of times in microseconds, a column for each.
std::shared_ptr<CellTable> times(const std::vector<double>& row, const std::string& unit = kMicro) {
    std::vector<TableColumn> columns;
    std::vector<CellTable::Cell> cells;
    for (const double us : row) {
        columns.push_back({.id = "us", .title = "Time", .unit = unit});
        cells.push_back(us_cell(us));
    }
    auto made = std::make_shared<CellTable>(std::move(columns));
    made->add(std::move(cells));
    return made;
}

// The row's texts, each with its column's unit.
std::vector<std::string> written(const TableModel& model) {
    const std::vector<ColumnScale> scales = column_scales(model);
    std::vector<std::string> texts;
    for (std::size_t c = 0; c < scales.size(); ++c)
        texts.push_back(scaled_text(model, 0, c, scales[c]) + " " + scales[c].unit);
    return texts;
}

TEST(ColumnScale, TheLongestTimeOfATableGivesItsUnit) {
    EXPECT_THAT(written(*times({9'999.9, 3.2})), ElementsAre("9,999.9 \u00b5s", "3.2 \u00b5s"));
    EXPECT_THAT(written(*times({10'000, 951.3})), ElementsAre("10.000 ms", "0.951 ms"));
    EXPECT_THAT(written(*times({360'849.8, -1'234})), ElementsAre("360.85 ms", "-1.234 ms"));
    EXPECT_THAT(written(*times({5'715'520.9, kNoNumber})), ElementsAre("5,715.5 ms", "- \u00b5s"));
    EXPECT_THAT(written(*times({12'345'678})), ElementsAre("12.346 s"));
    EXPECT_THAT(written(*times({360'849.8}, "\u00b5s a step")), ElementsAre("360.85 ms a step"));
    EXPECT_THAT(written(*times({360'849.8}, "us of a query")), ElementsAre("360,849.8 us of a query"));
}

TEST(ColumnScale, AColumnOfShortTimesKeepsTheirUnit) {
    EXPECT_THAT(written(*times({5'000'000, 3.2})), ElementsAre("5,000.0 ms", "3.2 \u00b5s"));
    EXPECT_THAT(written(*times({50'000'000, 99'000})), ElementsAre("50.000 s", "99.000 ms"));
}

TEST(ColumnScale, SizesOfManyMebibytesAreWrittenInLargerUnits) {
    EXPECT_THAT(written(*times({43'218.2}, "MiB")), ElementsAre("43,218.2 MiB"));
    EXPECT_THAT(written(*times({666'014.3}, "MiB")), ElementsAre("650.40 GiB"));
    const auto model = times({150 * 1048576.0}, "MiB per step");
    EXPECT_THAT(written(*model), ElementsAre("150.00 TiB per step"));
    EXPECT_EQ(exact_text(*model, 0, 0, column_scales(*model).front()), "164,926,744,166,400 bytes per step");
}

TEST(ColumnScale, ASmallTimeInALongColumnIsNotZero) {
    auto made = table({{"long", 2'000'000}, {"short", 3}, {"none", 0}});
    auto scale = ColumnScale{.of = 1e3, .decimals = 1, .unit = "ms"};
    EXPECT_EQ(scaled_text(*made, 1, 1, scale), "< 0.1");
    EXPECT_EQ(scaled_text(*made, 2, 1, scale), "0.0");
    EXPECT_EQ(scaled_text(*made, 0, 0, scale), "long");
    CellTable sizes({{.id = "mb", .title = "Data", .unit = "MiB"}});
    sizes.add({mb_cell(100)});
    EXPECT_EQ(sizes.text(0, 0), "< 0.01");
    EXPECT_EQ(scaled_text(sizes, 0, 0, {.of = 1024, .decimals = 2, .unit = "GiB"}), "< 0.01");
    EXPECT_EQ(scaled_text(sizes, 0, 0, {.of = 1024, .decimals = 3, .unit = "GiB"}), "< 0.001");
}

TEST(ColumnScale, WhatStandsBeforeANumberStaysAndWhatIsNoNumberToo) {
    CellTable made({{.id = "us", .title = "Difference", .unit = kMicro}});
    made.add({{"~ +12,345.6", 12'345.6}});
    made.add({{"=", 0}});
    made.add({{"20,000.0 of 3", 20'000}});
    const ColumnScale scale = column_scales(made).front();
    EXPECT_EQ(scaled_text(made, 0, 0, scale), "~ +12.346");
    EXPECT_EQ(scaled_text(made, 1, 0, scale), "=");
    EXPECT_EQ(scaled_text(made, 2, 0, scale), "20,000.0 of 3");
    EXPECT_EQ(exact_text(made, 0, 0, scale), "~ +12,345.6 \u00b5s");
}

template <class Ready>
bool within_seconds(int seconds, Ready ready) {
    for (int i = 0; i < seconds * 1000; ++i) {
        if (ready()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
}

TEST(TableOrder, SortsNumbersAndPutsThoseWithoutLast) {
    const auto model = table({{"a", 2}, {"b", kNoNumber}, {"c", 3}, {"d", 2}});
    EXPECT_THAT(table_order(*model, {}, ""), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(table_order(*model, {1, false}, ""), ElementsAre(0, 3, 2, 1));
    EXPECT_THAT(table_order(*model, {1, true}, ""), ElementsAre(2, 0, 3, 1));  // equal ones keep their order
}

TEST(TableOrder, SortsTextsAsPeopleCount) {
    const auto model =
        table({{"layers.10", 0}, {"layers.2", 0}, {"Embedding", 0}, {"embedding", 0}, {"layers.2", 0}});
    EXPECT_THAT(table_order(*model, {0, false}, ""), ElementsAre(2, 3, 1, 4, 0));
    EXPECT_THAT(table_order(*model, {0, true}, ""), ElementsAre(0, 1, 4, 3, 2));
    EXPECT_TRUE(natural_less("a2b", "a10"));
    EXPECT_TRUE(natural_less("x", "x1"));
    EXPECT_TRUE(natural_less("007", "8"));
    EXPECT_FALSE(natural_less("a", "a"));
}

TEST(TableOrder, FiltersByAnyCellWithoutCase) {
    const auto model = table({{"Linear_0", 12.5}, {"Linear_1", 7}, {"GELU_0", 12}});
    EXPECT_THAT(table_order(*model, {}, "linear"), ElementsAre(0, 1));
    EXPECT_THAT(table_order(*model, {1, true}, "12"), ElementsAre(0, 2));
    EXPECT_THAT(table_order(*model, {}, "none of them"), ElementsAre());
    EXPECT_THAT(table_order(*model, {99, false}, ""), ElementsAre(0, 1, 2));  // there is no such column
}

TEST(TableOrder, ALargeTableIsSortedOnAThread) {
    const auto model = std::make_shared<const LargeTable>(200'000);
    TableOrder order;
    EXPECT_TRUE(order.of(model, {1, false}, "").empty());
    EXPECT_TRUE(order.busy());
    ASSERT_TRUE(within_seconds(60, [&] { return order.of(model, {1, false}, "").size() == 200'000; }));
    EXPECT_FALSE(order.busy());
    const auto& rows = order.of(model, {1, false}, "");
    for (std::size_t i = 1; i < rows.size(); ++i)
        ASSERT_LE(model->number(rows[i - 1], 1), model->number(rows[i], 1));
    EXPECT_EQ(order.shared()->size(), 200'000U);
    // Another order of the same table: the previous one stays until the new one is ready.
    EXPECT_EQ(order.of(model, {1, true}, "").size(), 200'000U);
    ASSERT_TRUE(within_seconds(60, [&] {
        return model->number(order.of(model, {1, true}, "")[0], 1) == 199'999;
    }));
}

TEST(TableOrder, IsCancelledWhenAnotherIsWantedOrNone) {
    const auto model = std::make_shared<const LargeTable>(5'000'000);
    OrderProgress progress;
    progress.cancel = true;
    EXPECT_FALSE(table_order(*model, {0, false}, "7", progress));
    const auto small = table({{"a", 1}});
    {
        TableOrder order;
        order.of(model, {0, false}, "kernel");
        EXPECT_TRUE(TableOrder::any_busy());
        EXPECT_THAT(order.of(small, {}, ""), ElementsAre(0));  // never rows of the other table
        EXPECT_FALSE(order.busy());
        order.of(model, {1, false}, "kernel");
    }  // does not wait until millions of texts are made
    EXPECT_FALSE(TableOrder::any_busy());
}

TEST(TableExport, GivesWhatIsShownExactly) {
    const auto model = table({{"a,\"b\"", 1.25}, {"c", kNoNumber}});
    const std::vector<std::uint32_t> order = {1, 0};
    EXPECT_EQ(table_csv(*model, &order), "name,us\nc,\n\"a,\"\"b\"\"\",1.25\n");
    EXPECT_EQ(table_tsv(*model, &order), "name\tus\nc\t\na,\"b\"\t1.25\n");
    EXPECT_THAT(table_json(*model), testing::HasSubstr("\"us\": 1.25"));
    EXPECT_THAT(table_json(*model), testing::HasSubstr("\"us\": null"));
}

TEST(TableExport, KeepsCountsWhole) {
    const std::string json = table_json(*table({{"a", 5}, {"b", 9007199254740991.0}, {"c", 5.5}}));
    EXPECT_THAT(json, testing::HasSubstr("\"us\": 5\n"));
    EXPECT_THAT(json, testing::HasSubstr("\"us\": 9007199254740991\n"));
    EXPECT_THAT(json, testing::HasSubstr("\"us\": 5.5\n"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::tables
