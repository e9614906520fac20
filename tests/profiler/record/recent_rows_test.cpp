#include "profiler/record/recent_rows.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces/store/columns/column_sink.h"

namespace shardscope::profiler {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kSecond = 1'000'000'000;

traces::schema::RangeRow range(RecentRows& rows, const std::string& text, std::int64_t start,
                               std::int64_t end) {
    traces::schema::RangeRow row;
    row.text = rows.intern(text);
    row.start = start;
    row.end = end;
    row.global_tid = traces::schema::global_tid(1, 1);
    return row;
}

// The names of the ranges that would be written now.
std::vector<std::string> written(RecentRows& rows) {
    traces::store::ColumnSink sink;
    rows.write_to(sink);
    const auto trace = sink.take();
    std::vector<std::string> names;
    for (const auto name : trace->ranges.name) names.emplace_back(trace->strings[name]);
    return names;
}

TEST(RecentRows, keep_what_ended_within_the_window_before_the_newest_event) {
    RecentRows rows(2 * kSecond);
    rows.add(range(rows, "old", 0, kSecond));
    rows.add(range(rows, "long", 0, 3 * kSecond));
    rows.add(range(rows, "new", 4 * kSecond, 5 * kSecond));
    EXPECT_THAT(written(rows), ElementsAre("long", "new"));  // 3 s is 2 s before 5 s
    EXPECT_EQ(rows.newest_ns(), 5 * kSecond);
    EXPECT_EQ(rows.oldest_ns(), 3 * kSecond);
    EXPECT_EQ(rows.rows(), 2u);
    EXPECT_EQ(rows.dropped(), 0);
}

TEST(RecentRows, are_as_they_were_however_long_nothing_happens) {
    RecentRows rows(2 * kSecond);
    rows.add(range(rows, "last", 0, kSecond));
    // The recorder's own samples go on for an hour.
    for (int s = 1; s < 3600; ++s) {
        rows.add(traces::schema::CounterRow{s * kSecond, 0, rows.intern("process_cpu_cores"), 1.0});
        rows.commit();
    }
    EXPECT_THAT(written(rows), ElementsAre("last"));
}

TEST(RecentRows, believe_no_time_from_the_future) {
    RecentRows rows(2 * kSecond);
    rows.advance(10 * kSecond);
    rows.add(range(rows, "wrong", 9 * kSecond, 1'000'000 * kSecond));
    rows.add(range(rows, "right", 9 * kSecond, 10 * kSecond));
    EXPECT_EQ(rows.newest_ns(), 10 * kSecond);
    EXPECT_THAT(written(rows), ElementsAre("wrong", "right"));
}

TEST(RecentRows, keep_facts_for_good) {
    RecentRows rows(kSecond);
    traces::schema::RankRow rank;
    rank.rank = 3;
    rows.add(rank);
    for (int s = 0; s < 100; ++s) rows.add(range(rows, "x", s * kSecond, s * kSecond + 1));
    traces::store::ColumnSink sink;
    rows.write_to(sink);
    const auto trace = sink.take();
    ASSERT_EQ(trace->ranks.size(), 1u);
    EXPECT_EQ(trace->ranks[0].number, 3);
    EXPECT_EQ(trace->ranges.name.size(), 2u);  // the ranges that ended at 98 s and at 99 s, 1 ns each
}

TEST(RecentRows, keep_the_first_and_the_last_of_many_diagnostics) {
    RecentRows rows(kSecond);
    for (int i = 0; i < 10'000; ++i) {
        rows.add(traces::schema::DiagnosticRow{i, traces::schema::Severity::warning, std::to_string(i)});
    }
    traces::store::ColumnSink sink;
    rows.write_to(sink);
    const auto trace = sink.take();
    const auto& kept = trace->diagnostics;
    ASSERT_EQ(kept.size(), RecentRows::kMaxDiagnostics);
    EXPECT_EQ(kept.front().text, "0");
    EXPECT_EQ(kept[RecentRows::kFirstDiagnostics].text,
              std::to_string(10'000 - RecentRows::kMaxDiagnostics + RecentRows::kFirstDiagnostics));
    EXPECT_EQ(kept.back().text, "9999");
}

TEST(RecentRows, let_the_oldest_go_when_they_are_too_many) {
    constexpr std::size_t kBytes = 1 << 20;
    RecentRows rows(1000 * kSecond, kBytes);
    constexpr int kRows = 100'000;
    for (int i = 0; i < kRows; ++i) rows.add(range(rows, "x", i * kSecond / 1000, i * kSecond / 1000 + 1));
    EXPECT_LE(rows.bytes(), kBytes + kBytes / 8);
    EXPECT_GT(rows.rows(), 1000u);
    EXPECT_EQ(rows.dropped() + static_cast<std::int64_t>(rows.rows()), kRows);
    // The newest rows are kept.
    EXPECT_EQ(rows.newest_ns(), (kRows - 1) * (kSecond / 1000) + 1);
}

TEST(RecentRows, count_the_bytes_of_payloads) {
    RecentRows rows(1000 * kSecond, 1 << 20);
    for (int i = 0; i < 100; ++i) {
        traces::schema::RangeRow row = range(rows, "x", i * kSecond, i * kSecond + 1);
        row.binary.assign(100'000, 'b');
        rows.add(row);
    }
    EXPECT_LE(rows.bytes(), 1u << 20);
    EXPECT_GT(rows.dropped(), 80);
}

// A job that runs for a long time and gives every range its own name.
TEST(RecentRows, forget_unused_strings) {
    RecentRows rows(kSecond, 4 << 20);
    const traces::schema::StringId held = rows.intern("held by an open range");
    rows.set_other_users([held](const RecentRows::Visit& visit) { visit(held); });
    for (int i = 0; i < 300'000; ++i) {
        const std::int64_t time = i * (kSecond / 1000);
        rows.add(range(rows, "aten::mm, seq = " + std::to_string(i), time, time + 1));
        if (i % 1000 == 0) rows.commit();
    }
    EXPECT_LT(rows.strings(), 20'000u);
    const auto names = written(rows);
    EXPECT_EQ(names.size(), 1001u);
    EXPECT_EQ(names.back(), "aten::mm, seq = 299999");
    traces::schema::RangeRow open;
    open.text = held;
    open.start = 0;
    open.end = 300 * kSecond;
    traces::store::ColumnSink sink;
    rows.translator(sink)->add(open);
    const auto trace = sink.take();
    EXPECT_EQ(trace->strings[trace->ranges.name.at(0)], "held by an open range");
}

TEST(RecentRows, may_be_written_twice) {
    RecentRows rows(10 * kSecond);
    EXPECT_THAT(written(rows), IsEmpty());
    rows.add(range(rows, "a", 0, 1));
    EXPECT_THAT(written(rows), ElementsAre("a"));
    rows.add(range(rows, "b", 2, 3));
    EXPECT_THAT(written(rows), ElementsAre("a", "b"));
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
