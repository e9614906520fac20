// Chrome traces that other programs wrote: plain ranges, counters and instants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kineto_text.h"

namespace shardscope::traces::exports {
namespace TEST_FILE {

TEST(ChromeTrace, beginsAndEndsNestOnTheirThread) {
    // outer 10..50 us with inner 20..30 us.
    const auto read = read_text(R"([
{"ph": "B", "name": "outer", "cat": "app", "pid": 1, "tid": 1, "ts": 10},
{"ph": "B", "name": "inner", "cat": "app", "pid": 1, "tid": 1, "ts": 20},
{"ph": "E", "pid": 1, "tid": 1, "ts": 30},
{"ph": "E", "pid": 1, "tid": 1, "ts": 50}])");
    const store::HostRanges& r = read.trace->ranges;
    ASSERT_EQ(r.size(), 2U);
    EXPECT_EQ(read.trace->strings[r.name[0]], "outer");
    EXPECT_EQ(r.end[0] - r.start[0], 40'000);
    EXPECT_EQ(r.end[1] - r.start[1], 10'000);
    EXPECT_EQ(r.parent[1], 0);
    EXPECT_EQ(r.kind[0], store::RangeKind::annotation);
    EXPECT_EQ(read.trace->config_value("import.format"), "chrome");
}

TEST(ChromeTrace, rangesOfEqualTimesNestInTheOrderOfTheFile) {
    // Three ranges that begin and end together, written as pairs, then two complete events: the first
    // surrounds the second.
    const auto read = read_text(R"([
{"ph": "B", "name": "outer", "pid": 1, "tid": 1, "ts": 10},
{"ph": "B", "name": "middle", "pid": 1, "tid": 1, "ts": 10},
{"ph": "B", "name": "inner", "pid": 1, "tid": 1, "ts": 10},
{"ph": "E", "pid": 1, "tid": 1, "ts": 30},
{"ph": "E", "pid": 1, "tid": 1, "ts": 30},
{"ph": "E", "pid": 1, "tid": 1, "ts": 30},
{"ph": "X", "name": "first", "pid": 1, "tid": 1, "ts": 40, "dur": 5},
{"ph": "X", "name": "second", "pid": 1, "tid": 1, "ts": 40, "dur": 5}])");
    const store::HostRanges& r = read.trace->ranges;
    std::vector<std::string> names;
    for (const schema::StringId name : r.name) names.emplace_back(read.trace->strings[name]);
    EXPECT_THAT(names, ::testing::ElementsAre("outer", "middle", "inner", "first", "second"));
    EXPECT_THAT(r.parent, ::testing::ElementsAre(-1, 0, 1, -1, 3));
}

TEST(ChromeTrace, asynchronousRangesAreTiedByTheirId) {
    const auto read = read_text(R"({"traceEvents": [
{"ph": "b", "name": "a", "cat": "net", "id": "0x1", "pid": 1, "tid": 1, "ts": 10},
{"ph": "b", "name": "b", "cat": "net", "id": "0x2", "pid": 1, "tid": 1, "ts": 12},
{"ph": "e", "name": "a", "cat": "net", "id": "0x1", "pid": 1, "tid": 2, "ts": 20},
{"ph": "e", "name": "b", "cat": "net", "id": "0x2", "pid": 1, "tid": 1, "ts": 40},
{"ph": "e", "name": "c", "cat": "net", "id": "0x3", "pid": 1, "tid": 1, "ts": 40}]})");
    const store::HostRanges& r = read.trace->ranges;
    ASSERT_EQ(r.size(), 2U);
    EXPECT_EQ(r.end[0] - r.start[0], 10'000);
    EXPECT_EQ(r.end[1] - r.start[1], 28'000);
    ASSERT_EQ(read.trace->diagnostics.size(), 1U);  // an end without a beginning
}

TEST(ChromeTrace, rangesWithoutAnEndEndWithTheTrace) {
    const auto read = read_text(R"([{"ph": "B", "name": "open", "pid": 1, "tid": 1, "ts": 10},
{"ph": "X", "name": "last", "pid": 1, "tid": 2, "ts": 20, "dur": 70}])");
    ASSERT_EQ(read.trace->ranges.size(), 2U);
    EXPECT_EQ(read.trace->ranges.end[0], 80'000);  // 90 - 10 us
}

TEST(ChromeTrace, countersAndMarksKeepTheirNames) {
    const auto read = read_text(R"([
{"ph": "C", "name": "queue", "pid": 1, "ts": 1, "args": {"value": 3.5}},
{"ph": "C", "args": {"used": 10, "free": 20, "unit": "MiB"}, "name": "memory", "pid": 1, "ts": 2},
{"ph": "i", "name": "here", "pid": 1, "tid": 1, "ts": 3, "s": "t"},
{"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "main"}}])");
    const store::Counters& c = read.trace->counters;
    ASSERT_EQ(c.size(), 3U);
    EXPECT_EQ(read.trace->strings[c.name[0]], "queue");
    EXPECT_EQ(c.value[0], 3.5);
    EXPECT_EQ(read.trace->strings[c.name[1]], "memory used");
    EXPECT_EQ(c.value[2], 20);
    ASSERT_EQ(read.trace->marks.size(), 1U);
    EXPECT_EQ(read.trace->threads.at(read.trace->marks.thread[0]).name, "main");
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::exports
