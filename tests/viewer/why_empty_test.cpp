// Traces of counters, of marks or of metrics alone: the timeline shows them, and every panel that has nothing
// to show says what to record, in the sentence of the one table from which docs/why-empty.md is made.
#include "viewer/model/why_empty.h"

#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viewer/panel_fixture.h"
#include "traces/store/columns/column_sink.h"
#include "viewer/panels/panel_table.h"

namespace shardscope::viewer::panels {
namespace TEST_FILE {

using testing::AnyOf;
using testing::HasSubstr;
using namespace traces;

constexpr std::int64_t kMs = 1'000'000;

class WhyEmptyTest : public PanelsTest {
  protected:
    WhyEmptyTest() { draw::items::keep(true); }

    void open(store::ColumnSink& sink) { session_.add_trace(sink.take(), "part.sqlite"); }
    std::string draw_panel(std::string_view name) { return draw(*make_panel(name)); }

    // Whether the panel says the sentence; lines may break at any blank.
    static std::string joined(std::string text) {
        for (char& c : text) {
            if (c == '\n') c = ' ';
        }
        return text;
    }
    void expect_said(std::string_view panel, std::string_view key) {
        EXPECT_THAT(joined(draw_panel(panel)), HasSubstr(std::string(model::why_empty(key)))) << panel;
    }
    // What has neither events nor allocations shows nothing in these, with these reasons.
    void expect_reasons() {
        for (const auto& [panel, key] : {std::pair{"modules", "modules"},
                                         {"units", "units"},
                                         {"memory", "memory"},
                                         {"operators", "operators"},
                                         {"kernels", "kernels"},
                                         {"copies", "copies"},
                                         {"collectives", "collectives"},
                                         {"distributed", "distributed"},
                                         {"schedule", "schedule"},
                                         {"shardmap", "shardmap"},
                                         {"idle", "idle"},
                                         {"runs", "runs"},
                                         {"start", "start"}}) {
            expect_said(panel, key);
        }
        for (const auto& panel : make_panels()) EXPECT_NE(draw(*panel), "") << panel->name();
    }
};

TEST_F(WhyEmptyTest, CountersAloneAreRowsByRankAndByHost) {
    store::ColumnSink sink;
    sink.add(schema::RankRow{.rank = 0, .global_pid = schema::global_pid(1), .host = "node0"});
    for (int i = 0; i < 10; ++i) {
        const auto add = [&](int rank, const char* name, double value, const char* host, int device) {
            sink.add(schema::CounterRow{.time = i * 100 * kMs,
                                        .rank = rank,
                                        .name = sink.intern(name),
                                        .value = value,
                                        .host = sink.intern(host),
                                        .device = device});
        };
        add(0, "gpu_power_watts", 100 + i, "node0", 0);
        add(0, "gpu_memory_used_bytes", 3.0 * (1 << 30), "node0", 0);
        add(-1, "infiniband_sent_bytes_per_second", 12.5e9, "node1", 1);
        add(-1, "infiniband_sent_bytes_per_second", 2.5e9, "node1", 0);
        add(-1, "host_cpu_cores", 3.5, "node1", -1);
    }
    open(sink);
    EXPECT_EQ(session_.trace()->first_ns, 0);
    EXPECT_EQ(session_.trace()->last_ns, 900 * kMs);
    draw_panel("timeline");
    EXPECT_EQ(item("timeline.row.rank 0/counter gpu_power_watts"), "GPU 0 power: max 109 W");
    EXPECT_EQ(item("timeline.row.rank 0/counter gpu_memory_used_bytes"), "GPU 0 memory used: max 3.0 GiB");
    EXPECT_EQ(item("timeline.row.host node1"), "Host node1");
    EXPECT_EQ(item("timeline.row.host node1/counter infiniband_sent_bytes_per_second 0"),
              "InfiniBand 0 sent: max 2.50 GB/s");
    EXPECT_EQ(item("timeline.row.host node1/counter infiniband_sent_bytes_per_second 1"),
              "InfiniBand 1 sent: max 12.50 GB/s");
    EXPECT_EQ(item("timeline.row.host node1/counter host_cpu_cores"), "Host CPU: max 3.50 cores");
    expect_reasons();
}

TEST_F(WhyEmptyTest, CountersOfNoRankNorHostAreThoseOfOtherProcesses) {
    store::ColumnSink sink;
    sink.add(
        schema::CounterRow{.time = kMs, .rank = -1, .name = sink.intern("process_cpu_cores"), .value = 2});
    sink.add(schema::CounterRow{
        .time = 3 * kMs, .rank = -1, .name = sink.intern("process_cpu_cores"), .value = 1});
    open(sink);
    draw_panel("timeline");
    EXPECT_EQ(item("timeline.row.processes"), "Other processes");
    EXPECT_EQ(item("timeline.row.processes/counter process_cpu_cores"), "Process CPU: max 2 cores");
    expect_said("summary", "summary.ranks");
    expect_reasons();
}

TEST_F(WhyEmptyTest, MarksAloneAreARow) {
    store::ColumnSink sink;
    for (int i = 0; i < 3; ++i) {
        schema::RangeRow mark;
        mark.start = i * kMs;
        mark.event_type = schema::kNvtxMark;
        mark.text = sink.intern("epoch");
        mark.global_tid = schema::global_tid(1, 1);
        sink.add(mark);
    }
    open(sink);
    EXPECT_EQ(session_.trace()->last_ns, 2 * kMs);
    draw_panel("timeline");
    const std::vector<std::string> names = draw::items::names();
    EXPECT_THAT(names, testing::Contains(HasSubstr("/marks 1")));
    expect_said("advice", "advice");
    expect_reasons();
}

TEST_F(WhyEmptyTest, MetricsAloneAreRowsAndCurves) {
    store::ColumnSink sink;
    for (int step = 0; step < 5; ++step)
        sink.add(schema::MetricRow{
            .step = step, .time = (10 + step) * kMs, .name = sink.intern("loss"), .value = 4.0 - step});
    open(sink);
    EXPECT_EQ(session_.trace()->first_ns, 10 * kMs);
    EXPECT_EQ(session_.trace()->last_ns, 14 * kMs);
    draw_panel("timeline");
    EXPECT_EQ(item("timeline.row.metrics/counter loss"), "loss: max 4");
    draw_panel("training");
    EXPECT_EQ(item("training.chart.loss"), "1 curves");
    expect_reasons();
}

TEST_F(WhyEmptyTest, SamplesAloneAreAFlameGraph) {
    store::ColumnSink sink;
    schema::SampleRow sample{.time = kMs, .global_tid = schema::global_tid(1, 1), .weight = kMs};
    sample.event = sink.intern("cpu-clock");
    sample.stack = sink.intern("f (p)");
    sink.add(sample);
    open(sink);
    EXPECT_EQ(model::only_panel(*session_.trace()), "samples") << "it opens there";
    expect_said("timeline", "timeline.samples");
    draw_panel("samples");
    EXPECT_EQ(item("samples.flame"), "3 rows");
    expect_reasons();
}

TEST_F(WhyEmptyTest, ATraceOfNothingSaysWhatWouldBeSeen) {
    store::ColumnSink sink;
    open(sink);
    expect_said("timeline", "timeline");
    expect_said("training", "training");
    expect_said("advice", "advice");
    expect_said("job", "job");
    expect_said("topology", "topology");
    expect_said("samples", "samples");
    expect_reasons();
}

TEST(WhyEmptyTable, IsOfPanelsAndSaysHow) {
    std::set<std::string_view> keys;
    for (const model::WhyEmpty& row : model::why_empty_table()) {
        EXPECT_TRUE(keys.insert(row.key).second) << row.key << " twice";
        EXPECT_NE(find_panel(row.panel), nullptr) << row.panel;
        EXPECT_TRUE(row.key.starts_with(row.panel) || row.key == "path") << row.key;
        EXPECT_TRUE(row.said.ends_with(".")) << row.key;
        EXPECT_NE(row.needs, "") << row.key;
        EXPECT_NE(row.trainer, "") << row.key;
    }
}

// docs/why-empty.md is generated from the table. To update it: SHARDSCOPE_UPDATE_DOCS=1 and run this test.
TEST(WhyEmptyPage, IsUpToDate) {
    const std::string page = model::why_empty_page(panel_title);
    if (std::getenv("SHARDSCOPE_UPDATE_DOCS") != nullptr) std::ofstream(SHARDSCOPE_WHY_EMPTY_PAGE) << page;
    std::ostringstream text;
    text << std::ifstream(SHARDSCOPE_WHY_EMPTY_PAGE).rdbuf();
    EXPECT_EQ(text.str(), page) << "docs/why-empty.md is out of date: run this test with "
                                   "SHARDSCOPE_UPDATE_DOCS=1 and commit the page";
}

}  // namespace TEST_FILE
}  // namespace shardscope::viewer::panels
