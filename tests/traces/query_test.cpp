// SQL on a trace: what is allowed, the functions that it may call, its parameters, and how it is stopped.
#include "traces/store/sqlite/query.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/sample_run.h"
#include "tests/traces/temporary_folder.h"
#include "traces/store/sqlite/sql_functions.h"
#include "traces/store/write/writer.h"

namespace shardscope::traces::query {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Row = std::vector<store::QueryValue>;

class Query : public ::testing::Test {
  protected:
    Query() : path_(folder_ / "run.sqlite") {
        store::DatabaseWriter writer({.path = path_});
        write_sample_run(writer);
        writer.finish(3 * kSampleMs, 0);
    }
    // The only value of a SELECT's result.
    store::QueryValue value(const std::string& sql, const store::QueryOptions& options = {}) const {
        const auto results = run_query(path_, sql, options);
        return results.at(0).rows.at(0).at(0);
    }
    std::string text(const std::string& sql) const { return std::get<std::string>(value(sql)); }
    std::string refusal(const std::string& sql, const store::QueryOptions& options = {}) const {
        try {
            run_query(path_, sql, options);
        } catch (const store::QueryError& error) {
            return error.what();
        }
        return "nothing";
    }
    static store::QueryValue whole(std::int64_t v) { return v; }
    static store::QueryValue real(double v) { return v; }

    TemporaryFolder folder_;
    std::string path_;
};

TEST_F(Query, DemanglesSymbolsAndLeavesOtherTextAlone) {
    EXPECT_EQ(text("SELECT demangle('_ZN4cuda4copyIfEEvPT_i')"), "void cuda::copy<float>(float*, int)");
    EXPECT_EQ(text("SELECT demangle('ncclDevKernel_AllGather')"), "ncclDevKernel_AllGather");
    EXPECT_EQ(text("SELECT demangle('i')"), "i");  // as the encoding of a type it would be int
    EXPECT_EQ(text("SELECT demangle('_Zbroken')"), "_Zbroken");
    EXPECT_EQ(value("SELECT demangle(NULL)"), store::QueryValue());
}

TEST_F(Query, PrintsTimesAndSizesForPeople) {
    EXPECT_EQ(text("SELECT pretty_time(1234567)"), "1.235 ms");
    EXPECT_EQ(text("SELECT pretty_time(999)"), "999 ns");
    EXPECT_EQ(text("SELECT pretty_time(-2500)"), "-2.500 µs");
    EXPECT_EQ(text("SELECT pretty_time(90000000000)"), "90.000 s");
    EXPECT_EQ(text("SELECT pretty_bytes(1572864)"), "1.50 MiB");  // 1.5 * 2^20
    EXPECT_EQ(text("SELECT pretty_bytes(1023)"), "1023 B");
    EXPECT_EQ(value("SELECT pretty_bytes(NULL)"), store::QueryValue());
    EXPECT_THAT(refusal("SELECT pretty_time('soon')"), HasSubstr("take a number"));
}

TEST_F(Query, OverlapsHalfOpenIntervals) {
    EXPECT_EQ(value("SELECT overlap(0, 10, 4, 20)"), whole(6));
    EXPECT_EQ(value("SELECT overlap(0, 10, 10, 20)"), whole(0));  // touching is not an overlap
    EXPECT_EQ(value("SELECT overlap(0, 10, 30, 40)"), whole(0));
    EXPECT_EQ(value("SELECT overlap(0, 10, 2, 5)"), whole(3));
    EXPECT_EQ(value("SELECT overlap(0, 1.5, 1, 2)"), real(0.5));
    EXPECT_EQ(value("SELECT overlap(0, 10, NULL, 5)"), store::QueryValue());
    EXPECT_THAT(refusal("SELECT overlap(-9223372036854775807, 9223372036854775807, -9223372036854775807, "
                        "9223372036854775807)"),
                HasSubstr("longer than 2^63"));
}

TEST_F(Query, PercentilesAreLinearBetweenNeighbours) {
    const std::string values =
        " FROM (SELECT 10 AS v UNION ALL SELECT 40 UNION ALL SELECT 20 UNION ALL "
        "SELECT 30 UNION ALL SELECT NULL)";
    EXPECT_EQ(value("SELECT percentile(v, 0)" + values), real(10));
    EXPECT_EQ(value("SELECT percentile(v, 50)" + values), real(25));  // position 1.5 of 10 20 30 40
    EXPECT_EQ(value("SELECT percentile(v, 90)" + values), real(37));  // position 2.7: 30 + 0.7 * 10
    EXPECT_EQ(value("SELECT percentile(v, 100)" + values), real(40));
    EXPECT_EQ(value("SELECT percentile(v, 50) FROM (SELECT 1 AS v) WHERE v > 1"), store::QueryValue());
    EXPECT_THAT(refusal("SELECT percentile(v, 101)" + values), HasSubstr("0 to 100"));
    EXPECT_THAT(refusal("SELECT percentile(v, v)" + values), HasSubstr("the same for all rows"));
    EXPECT_THAT(refusal("SELECT percentile('x', 5)"), HasSubstr("must be a number"));
}

TEST_F(Query, BindsParametersByName) {
    EXPECT_EQ(value("SELECT :n + 1", {.parameters = {{"n", "41"}}}), whole(42));
    EXPECT_EQ(value("SELECT @n / 2", {.parameters = {{"n", "5.0"}}}), real(2.5));
    EXPECT_EQ(value("SELECT typeof($n)", {.parameters = {{"n", "5 apples"}}}), store::QueryValue("text"));
    EXPECT_THAT(refusal("SELECT 1;\nSELECT :n"), AllOf(HasSubstr("line 2"), HasSubstr("--param n=VALUE")));
    EXPECT_THAT(refusal("SELECT ?", {.parameters = {{"n", "1"}}}), HasSubstr("write :name in place of ?"));
    EXPECT_THAT(refusal("SELECT 1", {.parameters = {{"n", "1"}}}), HasSubstr("no parameter :n"));
}

TEST_F(Query, TakesValuesFromTheHeadOfTheSql) {
    const std::string sql = "-- Which one?\n-- :n = 7\nSELECT :n";
    EXPECT_EQ(value(sql), whole(7));
    EXPECT_EQ(value(sql, {.parameters = {{"n", "8"}}}), whole(8));
    EXPECT_THAT(refusal("SELECT :n\n-- :n = 7"), HasSubstr("has no value"));  // not at the head
}

TEST_F(Query, OnlyReadsUnlessWritingIsAllowed) {
    EXPECT_THAT(refusal("SELECT 1; DELETE FROM SHARD_STEPS"),
                AllOf(HasSubstr("only reads"), HasSubstr("--write")));
    EXPECT_EQ(value("SELECT count(*) FROM SHARD_STEPS"), whole(4));
    store::run_query(path_, "DELETE FROM SHARD_STEPS WHERE step = 1", {.write = true});
    EXPECT_EQ(value("SELECT count(*) FROM SHARD_STEPS"), whole(2));
}

TEST_F(Query, WritesAllOrNothing) {
    EXPECT_THAT(refusal("DELETE FROM SHARD_STEPS; SELECT nonsense", {.write = true}),
                HasSubstr("no such column"));
    EXPECT_THAT(refusal("DELETE FROM SHARD_STEPS; COMMIT", {.write = true}), HasSubstr("one transaction"));
    EXPECT_THAT(
        refusal("DELETE FROM SHARD_STEPS; INSERT INTO SHARD_LOSSES VALUES (0, 1), (0, 1)", {.write = true}),
        HasSubstr("nothing was changed"));
    EXPECT_THAT(refusal("ATTACH 'other.sqlite' AS o", {.write = true}), HasSubstr("not allowed"));
    EXPECT_EQ(value("SELECT count(*) FROM SHARD_STEPS"), whole(4));
    EXPECT_FALSE(std::filesystem::exists("other.sqlite"));
}

// The table of tables belongs to SQLite: with garbage in it the file could never be read again.
TEST_F(Query, WritesNoTableOfTables) {
    EXPECT_NE(refusal("PRAGMA writable_schema=ON; UPDATE sqlite_master SET sql='x'", {.write = true}), "");
    EXPECT_EQ(value("SELECT count(*) FROM SHARD_STEPS"), whole(4));
}

TEST_F(Query, RevealsNoAddressOfCode) {
    for (const bool write : {false, true})
        EXPECT_THAT(refusal("SELECT fts3_tokenizer('simple')", {.write = write}),
                    HasSubstr("fts3_tokenizer"));
}

TEST_F(Query, StopsOnDemandAndAtItsTimeLimit) {
    const std::string endless =
        "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT count(*) FROM c";
    std::atomic<bool> cancel = true;
    EXPECT_THROW(store::run_query(path_, endless, {.cancel = &cancel}), store::QueryStopped);
    EXPECT_THROW(store::run_query(path_, endless, {.time_limit = std::chrono::milliseconds(1)}),
                 store::QueryStopped);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::query
