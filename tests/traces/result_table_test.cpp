// A list of fields and the output that is made from it.
#include "traces/analysis/base/result_table.h"

#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "traces/report/print.h"
#include "traces/report/text_table.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

struct Part {
    std::string name;
    std::int64_t count = 0, ns = 0, bytes = 0;
    std::optional<double> share;
};

Fields<Part> part_fields() {
    static constexpr Field<Part> kFields[] = {
        {{"name", "Part", Unit::text, "Its name."}, value_of<&Part::name>},
        {{"count", "Count", Unit::count, "How many."}, value_of<&Part::count>},
        {{"us", "Time", Unit::us, "How long."}, micros_of<&Part::ns>},
        {{"start_ns", "Start", Unit::ns, "When.", in_table | in_json}, value_of<&Part::ns>},
        {{"bytes", "MiB", Unit::bytes, "How large."}, known_value_of<&Part::bytes>},
        {{"percent", "Share", Unit::percent, "Of the whole.", everywhere, 1, true}, value_of<&Part::share>},
    };
    return kFields;
}

TEST(ResultTable, IsOneTextTable) {
    const std::vector<Part> parts = {{"gemm", 1234, 1'234'550, std::int64_t{3} << 20, 12.25},
                                     {"", 1, 0, 0, {}}};
    EXPECT_EQ(report::text_of(result_table(part_fields(), parts), report::kAnyWidth),
              "Part  Count  Time (µs)  Start (ms)   MiB  Share (%)\n"
              "────  ─────  ─────────  ──────────  ────  ─────────\n"
              "gemm  1,234    1,234.6       1.235  3.00       12.3\n"
              "-         1        0.0       0.000     -          -\n");
}

TEST(ResultTable, OmitsColumnsThatAreUnknownInAllRows) {
    const ResultTable table = result_table(part_fields(), std::vector<Part>{{"gemm", 1, 0, 0, {}}});
    EXPECT_TRUE(shown_in_table(table, 4)) << "bytes";
    EXPECT_FALSE(shown_in_table(table, 5)) << "share";
    EXPECT_EQ(report::text_of(without(table, {"us", "start_ns", "bytes"}), report::kAnyWidth),
              "Part  Count\n────  ─────\ngemm      1\n");
}

TEST(ResultTable, KeepsFullPrecisionForPrograms) {
    const std::vector<Part> parts = {{"a,b", 2, 1'234'567, 0, 1.0 / 3}};
    const ResultTable table = result_table(part_fields(), parts);
    EXPECT_EQ(report::csv_of(table), "name,count,us,bytes,percent\n\"a,b\",2,1234.567,,0.3333333333333333\n");
    EXPECT_EQ(
        report::json_of(table).dump(),
        R"([{"name":"a,b","count":2,"us":1234.567,"start_ns":1234567,"bytes":null,"percent":0.3333333333333333}])");
}

TEST(ResultTable, HasARowsRankBeforeIt) {
    struct Rank {
        int rank;
        std::vector<Part> parts;
    };
    const std::vector<Rank> ranks = {{3, {{"a", 1, 0, 0, {}}}}, {5, {}}, {7, {{"b", 2, 0, 0, {}}}}};
    const ResultTable table = by_rank(part_fields(), ranks, &Rank::parts);
    ASSERT_EQ(table.rows.size(), 2u);
    EXPECT_EQ(std::get<std::int64_t>(table.rows[1][0]), 7);
    EXPECT_EQ(std::get<std::string>(table.rows[1][1]), "b");
    EXPECT_EQ(table.columns[0].key, "rank");
}

TEST(ResultTable, WritesAUnitIfTheTitleHasNone) {
    EXPECT_EQ(header_text({"us", "Time", Unit::us, ""}), "Time (µs)");
    EXPECT_EQ(header_text({"bytes", "MiB/step", Unit::bytes, ""}), "MiB/step");
    EXPECT_EQ(header_text({"rank", "Rank", Unit::index, ""}), "Rank");
    const ResultColumn count = {"count", "Count", Unit::count, ""};
    EXPECT_EQ(cell_text(count, 0.5), "0.50") << "a mean";
    EXPECT_EQ(cell_text(count, std::numeric_limits<double>::quiet_NaN()), "-");
    EXPECT_EQ(cell_text({"rank", "Rank", Unit::index, ""}, std::int64_t{1234}), "1234");
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
