// Bus bandwidth over size. Times in nanoseconds; a byte per nanosecond is a GB/s.
#include "traces/analysis/communication/bus_bandwidth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/run_builder.h"
#include "traces/report/html_parts.h"
#include "traces/report/report.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using Where = HostTraffic::Where;

// A run of 2 ranks in which collectives follow each other; rank 1 comes 50 ns late to each.
class Series {
  public:
    explicit Series(int ranks_per_host = 0) : run(2, ranks_per_host) {}

    void add(schema::Operation operation, std::int64_t bytes, std::int64_t ns, std::int64_t group = 0,
             int group_size = 2) {
        const TestCollective c{.operation = operation,
                               .bytes = bytes,
                               .sequence = sequence_++,
                               .group = group,
                               .group_size = group_size};
        run.collective(0, now_, now_ + 50 + ns, c);
        run.collective(1, now_ + 50, now_ + 50 + ns, c);
        now_ += 1000 + ns;
    }
    // A message from rank 0 to rank 1.
    void message(std::int64_t bytes, std::int64_t ns) {
        TestCollective c{.operation = schema::Operation::send,
                         .bytes = bytes,
                         .sequence = sequence_++,
                         .group = 7,
                         .group_size = 2};
        run.collective(0, now_, now_ + ns, c);
        c.operation = schema::Operation::recv;
        run.collective(1, now_, now_ + ns + 20, c);
        now_ += 1000 + ns;
    }

    RunBuilder run;

  private:
    std::int64_t now_ = 0, sequence_ = 1;
};

TEST(BusBandwidth, HasAPointForEachSizeWithMedianAndQuartiles) {
    Series series;
    for (const std::int64_t ns : {100, 200, 400, 800, 1600})
        series.add(schema::Operation::all_gather, 8000, ns);
    series.add(schema::Operation::all_gather, 64000, 4000);
    const auto trace = series.run.take();
    const BusBandwidthReport report = bus_bandwidth(*trace);
    ASSERT_THAT(report.curves, SizeIs(1));
    const BandwidthCurve& curve = report.curves[0];
    EXPECT_EQ(curve.operation, schema::Operation::all_gather);
    EXPECT_EQ(curve.ranks, 2);
    EXPECT_EQ(curve.where, Where::within);
    EXPECT_EQ(curve.count, 6);
    EXPECT_EQ(curve.bytes, 5 * 8000 + 64000);
    ASSERT_THAT(curve.points, SizeIs(2));
    const BandwidthPoint& small = curve.points[0];
    EXPECT_EQ(small.bytes, 8000);
    EXPECT_EQ(small.count, 5);
    EXPECT_DOUBLE_EQ(small.median_us, 0.4) << "the shortest duration, which is the late rank's";
    EXPECT_DOUBLE_EQ(small.low_us, 0.2);
    EXPECT_DOUBLE_EQ(small.high_us, 0.8);
    EXPECT_DOUBLE_EQ(small.algbw_gbps, 8000.0 / 400);
    EXPECT_DOUBLE_EQ(small.busbw_gbps, 8000.0 / 400 / 2) << "(n - 1) / n";
    EXPECT_DOUBLE_EQ(small.low_gbps, 8000.0 / 800 / 2);
    EXPECT_DOUBLE_EQ(small.high_gbps, 8000.0 / 200 / 2);
    EXPECT_DOUBLE_EQ(curve.points[1].busbw_gbps, 64000.0 / 4000 / 2);
    EXPECT_EQ(curve.bound.gbps, 0) << "no rate of copies is recorded";
}

// A group of one rank sends nothing: it has no bus bandwidth, and no place in a plot.
TEST(BusBandwidth, OfOneRankIsLeftOut) {
    RunBuilder run(1);
    run.collective(
        0, 0, 100,
        {.operation = schema::Operation::all_gather, .bytes = 4096, .sequence = 1, .group_size = 1});
    const auto trace = run.take();
    const BusBandwidthReport report = bus_bandwidth(*trace);
    EXPECT_THAT(report.curves, IsEmpty());
    EXPECT_EQ(report.left_out, 1);
}

TEST(BusBandwidth, HasACurveForEachOperationAxisAndPlace) {
    Series series(1);  // each rank on a host of its own
    series.run.sink().add(
        schema::GroupRow{.group = 3, .axis = "tensor", .ranks = "0-1", .name = "", .description = ""});
    series.add(schema::Operation::all_reduce, 1000, 100);
    series.add(schema::Operation::all_reduce, 1000, 100, 3);
    series.add(schema::Operation::broadcast, 1000, 100);
    const auto trace = series.run.take();
    const BusBandwidthReport report = bus_bandwidth(*trace);
    ASSERT_THAT(report.curves, SizeIs(3));
    EXPECT_EQ(curve_name(report.curves[0]), "all_reduce, 2 ranks, between hosts");
    EXPECT_EQ(curve_name(report.curves[1]), "all_reduce, tensor, 2 ranks, between hosts");
    EXPECT_EQ(curve_name(report.curves[2]), "broadcast, 2 ranks, between hosts");
    EXPECT_DOUBLE_EQ(report.curves[0].points[0].busbw_gbps, 10) << "2 (n - 1) / n = 1";
}

TEST(BusBandwidth, OfMessagesIsThatOfThePairs) {
    Series series;
    series.message(8, 400);
    series.message(8, 600);
    series.message(1000, 100);
    const auto trace = series.run.take();
    const BusBandwidthReport report = bus_bandwidth(*trace);
    ASSERT_THAT(report.curves, SizeIs(1)) << "a send and its receive are one message";
    EXPECT_EQ(report.curves[0].operation, schema::Operation::send);
    EXPECT_EQ(report.curves[0].count, 3);
    ASSERT_THAT(report.pairs, SizeIs(1));
    const PairBandwidth& pair = report.pairs[0];
    EXPECT_EQ(pair.ends.source, 0);
    EXPECT_EQ(pair.ends.destination, 1);
    EXPECT_EQ(pair.smallest_bytes, 8);
    EXPECT_DOUBLE_EQ(pair.latency_us, 0.5);
    EXPECT_DOUBLE_EQ(pair.busbw_gbps, 10);
    EXPECT_EQ(pair.bytes, 1000);
    EXPECT_EQ(pair.where, Where::within);
}

// A bin has several sizes; the latency is that of the smallest one.
TEST(BusBandwidth, OfMessagesOfManySizesHasTheLatencyOfTheSmallest) {
    Series series;
    for (std::int64_t i = 0; i < 100; ++i) series.message(4096 + 8 * i, i == 0 ? 400 : 1000);
    const auto trace = series.run.take();
    const BusBandwidthReport report = bus_bandwidth(*trace);
    ASSERT_THAT(report.pairs, SizeIs(1));
    EXPECT_LT(report.curves[0].points.size(), kMostSizes);
    EXPECT_GT(report.curves[0].points[0].count, 1) << "a bin";
    EXPECT_EQ(report.pairs[0].smallest_bytes, 4096);
    EXPECT_DOUBLE_EQ(report.pairs[0].latency_us, 0.4);
}

TEST(BusBandwidth, PutsManySizesIntoBins) {
    Series series;
    for (std::int64_t i = 0; i < 500; ++i) series.add(schema::Operation::all_to_all, 4096 + 8 * i, 1000);
    const auto trace = series.run.take();
    const BusBandwidthReport report = bus_bandwidth(*trace);
    ASSERT_THAT(report.curves, SizeIs(1));
    // 4096 to 8088 is just below one octave: bins 48 to 52, of which the outer ones are halves.
    ASSERT_THAT(report.curves[0].points, SizeIs(5));
    std::int64_t count = 0, before = 0;
    for (const BandwidthPoint& point : report.curves[0].points) {
        count += point.count;
        EXPECT_GT(point.bytes, before);
        before = point.bytes;
    }
    EXPECT_EQ(count, 500);
}

TEST(BusBandwidth, HasTheMemorysBoundWhereTheRunMeasuredIt) {
    const auto bounds = [](int ranks_per_host) {
        Series series(ranks_per_host);
        series.run.sink().add(schema::RunInfoRow{std::string(kCopyRateFact), "8e9"});
        series.add(schema::Operation::all_gather, 1000, 100);
        series.add(schema::Operation::reduce_scatter, 1000, 100);
        series.add(schema::Operation::all_reduce, 1000, 100);
        std::vector<double> all;
        const auto trace = series.run.take();
        for (const BandwidthCurve& curve : bus_bandwidth(*trace).curves) all.push_back(curve.bound.gbps);
        return all;
    };
    // Two ranks at 8 GB/s of reads and writes: all_gather moves twice its size, reduce_scatter 1.5 times,
    // all_reduce 3.5 times; the factors of busbw are 1/2, 1/2 and 1.
    EXPECT_THAT(bounds(2), ElementsAre(8.0 / 2 / 2, 8.0 / 1.5 / 2, 8.0 / 3.5));
    EXPECT_THAT(bounds(1), ElementsAre(0, 0, 0)) << "between hosts memory is not the bound";
}

TEST(BusBandwidth, HasTheBoundOfLinksAndAdaptersThatAreAlike) {
    const auto bound = [](int ranks_per_host, double second_rate) {
        Series series(ranks_per_host);
        for (const double rate : {25e9, second_rate}) {
            const std::string number = rate == 25e9 ? "0" : "2";
            schema::TopologyRow link;
            link.host = link.to_host = "node0";
            link.from = "GPU" + number;
            link.to = "GPU1";
            link.link = "NV1";
            link.bytes_per_second = rate;
            series.run.sink().add(link);
        }
        for (const int host : {0, 1}) {
            schema::DeviceRow adapter;
            adapter.host = "node" + std::to_string(host);
            adapter.kind = "infiniband";
            adapter.bytes_per_second = host == 0 ? 25e9 : second_rate;
            series.run.sink().add(adapter);
        }
        series.add(schema::Operation::all_reduce, 1000, 100);
        const auto trace = series.run.take();
        return bus_bandwidth(*trace).curves.at(0).bound;
    };
    EXPECT_DOUBLE_EQ(bound(2, 25.1e9).gbps, 25) << "alike within 1 %";
    EXPECT_EQ(bound(2, 25.1e9).of, "the link between two GPUs (NV1)");
    EXPECT_DOUBLE_EQ(bound(1, 25e9).gbps, 25);
    EXPECT_EQ(bound(1, 25e9).of, "the InfiniBand adapters of a host");
    for (const double other : {50e9, -1.0}) {
        EXPECT_EQ(bound(2, other).gbps, 0) << "which link carries it is not known";
        EXPECT_EQ(bound(1, other).gbps, 0);
    }
}

TEST(BusBandwidth, LeavesOutWhatHasNoSizeRanksOrTime) {
    Series series;
    series.add(schema::Operation::all_gather, 0, 100);
    series.add(schema::Operation::all_reduce, 1000, 100, 0, 0);
    series.add(schema::Operation::broadcast, 1000, 0);
    series.add(schema::Operation::barrier, 0, 100);
    const auto trace = series.run.take();
    const BusBandwidthReport report = bus_bandwidth(*trace);
    EXPECT_THAT(report.curves, IsEmpty());
    EXPECT_EQ(report.left_out, 3) << "a barrier has no bandwidth";
    EXPECT_THAT(render(report, report::Format::table), HasSubstr("No collective whose size"));
    EXPECT_THAT(render(bus_bandwidth(store::Trace()), report::Format::table), "No collectives.\n");
}

TEST(BusBandwidth, IsLimitedToTheSelection) {
    Series series;
    series.add(schema::Operation::all_gather, 1000, 100);
    series.add(schema::Operation::all_gather, 2000, 100);
    const auto trace = series.run.take();
    Selection selection;
    selection.from_ns = 1000;
    const BusBandwidthReport report = bus_bandwidth(*trace, selection);
    ASSERT_THAT(report.curves, SizeIs(1));
    EXPECT_THAT(report.curves[0].points, ElementsAre(Field(&BandwidthPoint::bytes, 2000)));
}

TEST(BusBandwidth, IsPrintedAndDrawn) {
    Series series;
    series.run.sink().add(schema::RunInfoRow{std::string(kCopyRateFact), "8e9"});
    series.add(schema::Operation::all_gather, 8, 100);
    series.add(schema::Operation::all_gather, 1 << 20, 1 << 20);
    series.message(3 << 19, 1 << 20);
    const auto trace = series.run.take();
    const BusBandwidthReport report = bus_bandwidth(*trace);
    const std::string table = render(report, report::Format::table);
    EXPECT_THAT(table, AllOf(HasSubstr("8 B"), HasSubstr("1 MiB"), HasSubstr("1.5 MiB"), HasSubstr("Bound"),
                             HasSubstr("the host's memory"), HasSubstr("Messages from rank to rank")));
    EXPECT_THAT(table, Not(HasSubstr("Axis")));
    EXPECT_THAT(render(report, report::Format::csv), HasSubstr("all_gather,,2,within,1048576,1,"));
    EXPECT_THAT(render(report, report::Format::json),
                AllOf(HasSubstr("\"sizes\":["), HasSubstr("\"pairs\":[")));
    const std::string svg = report::bus_bandwidth_svg(report, 800, 300);
    EXPECT_THAT(svg, AllOf(HasSubstr("<svg"), HasSubstr("</svg>"), HasSubstr("stroke-dasharray"),
                           HasSubstr("all_gather, 2 ranks, within a host: 8 B"), Not(HasSubstr("nan")),
                           Not(HasSubstr("inf"))));
    EXPECT_EQ(report::bus_bandwidth_svg({}, 800, 300), "");
    EXPECT_EQ(size_text(1000), "1000 B");
    EXPECT_EQ(size_text(std::int64_t{5} << 40), "5 TiB");
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
