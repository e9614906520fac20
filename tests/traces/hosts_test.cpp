// Hosts: communication within and between them, the host that arrives last, and the clock agreement that a
// merge reports. Times in nanoseconds.
#include "traces/analysis/communication/hosts.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/traces/run_builder.h"
#include "traces/analysis/communication/distributed.h"
#include "traces/analysis/facts/info.h"
#include "traces/report/report.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Json = nlohmann::json;
using Where = HostTraffic::Where;

constexpr std::int64_t kLeft = 1, kRight = 2, kAll = 5;

// Ranks of one collective that ends at `end` on all; each entered it `ns` earlier.
struct Entered {
    int rank;
    std::int64_t ns;
};
void collective(RunBuilder& run, std::int64_t end, const std::vector<Entered>& parts, TestCollective c) {
    for (const Entered& part : parts) run.collective(part.rank, end - part.ns, end, c);
}

// Four ranks on two hosts: a gather within each host, then two reductions over all.
//   1000 bytes on node0: 100 ns, rank 1 waited 50. 3000 bytes on node1: 200 ns.
//   4000 bytes over all: ranks are in it for 1000, 700, 900 and 400 ns; then for 500, 450, 450 and 600.
std::unique_ptr<store::Trace> two_hosts() {
    RunBuilder run(4, 2);
    collective(run, 1000, {{0, 100}, {1, 150}}, {.bytes = 1000, .group = kLeft, .group_size = 2});
    collective(run, 1000, {{2, 200}, {3, 200}}, {.bytes = 3000, .group = kRight, .group_size = 2});
    const auto reduce = [](std::int64_t sequence) {
        return TestCollective{.operation = schema::Operation::all_reduce,
                              .bytes = 4000,
                              .sequence = sequence,
                              .group = kAll,
                              .group_size = 4};
    };
    collective(run, 3000, {{0, 1000}, {1, 700}, {2, 900}, {3, 400}}, reduce(0));
    collective(run, 5000, {{0, 500}, {1, 450}, {2, 450}, {3, 600}}, reduce(1));
    return run.take();
}

TEST(Hosts, HaveTheirRanks) {
    const HostsReport report = distributed_report(*two_hosts()).hosts;
    ASSERT_THAT(report.hosts, SizeIs(2));
    EXPECT_EQ(report.hosts[0].name, "node0");
    ASSERT_THAT(report.hosts[1].ranks, SizeIs(2));
    EXPECT_EQ(report.hosts[1].ranks[0].rank, 2);
    EXPECT_EQ(report.hosts[1].ranks[0].local_rank, 0);
    EXPECT_EQ(report.hosts[1].ranks[1].local_rank, 1);
}

TEST(Hosts, CountTrafficWithinAndBetweenThem) {
    const HostsReport report = distributed_report(*two_hosts()).hosts;
    ASSERT_THAT(report.traffic, SizeIs(2));
    const HostTraffic& within = report.traffic[0];
    EXPECT_EQ(within.where, Where::within);
    EXPECT_EQ(within.operation, schema::Operation::all_gather);
    EXPECT_EQ(within.count, 2);
    EXPECT_EQ(within.bytes, 4000);
    EXPECT_EQ(within.transfer_ns, 100 + 200);
    EXPECT_EQ(within.waiting_ns, 50);
    EXPECT_DOUBLE_EQ(within.algbw_gbps, 4000.0 / 300);
    EXPECT_DOUBLE_EQ(within.busbw_gbps, 4000.0 / 300 / 2);
    const HostTraffic& between = report.traffic[1];
    EXPECT_EQ(between.where, Where::between);
    EXPECT_EQ(between.count, 2);
    EXPECT_EQ(between.transfer_ns, 400 + 450);
    EXPECT_EQ(between.waiting_ns, (600 + 300 + 500) + (50 + 150));
    EXPECT_DOUBLE_EQ(between.busbw_gbps, 8000.0 / 850 * 2 * 3 / 4);
}

TEST(Hosts, AreCompleteWithTheirLastRank) {
    // First collective: node0 is complete 300 ns after rank 0 (with rank 1), node1 after 600 (with rank 3).
    // Second: 150 (rank 1) and 150 (rank 2), both at the same time.
    const HostsReport report = distributed_report(*two_hosts()).hosts;
    EXPECT_EQ(report.skewed, 2);
    EXPECT_EQ(report.median_skew_ns, 150);
    EXPECT_EQ(report.worst_skew_ns, 300);
    EXPECT_EQ(report.hosts[0].last, 0);
    EXPECT_EQ(report.hosts[1].last, 1);
    EXPECT_EQ(report.hosts[1].collectives, 2);
    EXPECT_EQ(report.hosts[0].median_late_ns, 0);
    EXPECT_EQ(report.hosts[1].median_late_ns, 150);
}

TEST(Hosts, AreNotComparedByWhatOneRankLeavesEarly) {
    RunBuilder run(2, 1);
    collective(run, 1000, {{0, 100}, {1, 900}},
               {.operation = schema::Operation::broadcast, .group = 1, .group_size = 2});
    EXPECT_EQ(distributed_report(*run.take()).hosts.skewed, 0);
}

TEST(Hosts, AGroupsHostsAreThoseOfTheRanksThatUsedIt) {
    RunBuilder run(4, 2);
    collective(run, 1000, {{0, 100}, {1, 150}}, {.bytes = 1000, .group = kLeft, .group_size = 2});
    collective(run, 2000, {{1, 100}, {2, 150}},
               {.bytes = 10, .group = 9, .group_size = 3});  // one of its ranks is not in the trace
    const HostsReport report = distributed_report(*run.take()).hosts;
    ASSERT_THAT(report.groups, SizeIs(2));
    EXPECT_THAT(report.groups[0].ranks, ElementsAre(0, 1));
    EXPECT_EQ(report.groups[0].hosts, 1);
    EXPECT_EQ(report.groups[0].bytes, 1000);
    EXPECT_THAT(report.groups[1].ranks, ElementsAre(1, 2));
    EXPECT_EQ(report.groups[1].size, 3);
    EXPECT_EQ(report.groups[1].hosts, 0);
    ASSERT_THAT(report.traffic, SizeIs(2));
    EXPECT_EQ(report.traffic[1].where, Where::unknown);
}

TEST(Hosts, FollowTheSelection) {
    const auto trace = two_hosts();
    const HostsReport report = distributed_report(*trace, {.from_ns = 2000}).hosts;
    ASSERT_THAT(report.traffic, SizeIs(1));
    EXPECT_EQ(report.traffic[0].where, Where::between);
    ASSERT_THAT(report.groups, SizeIs(1));
    EXPECT_EQ(report.groups[0].group, kAll);
}

TEST(Hosts, ReportHowClocksAgreeIfTheTraceWasMerged) {
    EXPECT_FALSE(distributed_report(*two_hosts()).hosts.clocks);
    RunBuilder run(2, 1);
    run.sink().add(schema::RunInfoRow{"merge.collectives", "20"});
    run.sink().add(schema::RunInfoRow{"merge.residual_us", "12.500"});
    run.sink().add(schema::RunInfoRow{"merge.residual_worst_us", "80.000"});
    run.sink().add(schema::RunInfoRow{"merge.clock_uncertainty_us", "40.250"});
    const auto clocks = distributed_report(*run.take()).hosts.clocks;
    ASSERT_TRUE(clocks);
    EXPECT_EQ(clocks->collectives, 20);
    EXPECT_EQ(clocks->residual_ns, 12'500);
    EXPECT_EQ(clocks->worst_ns, 80'000);
    EXPECT_EQ(clocks->uncertainty_ns, 40'250);
}

TEST(Hosts, ArePrintedAsTableAndJson) {
    const auto trace = two_hosts();
    const DistributedReport report = distributed_report(*trace);
    const std::string table = render(report, report::Format::table);
    EXPECT_THAT(
        table,
        AllOf(
            HasSubstr("node1    2,3"), HasSubstr("within   all_gather      2"),
            HasSubstr("between  all_reduce      2"),
            HasSubstr("Skew between hosts: all ranks of the last one arrived 0.2 µs after those of the first "
                      "(median of 2 collectives; 0.3 µs at worst).")));
    const Json json = Json::parse(render(report, report::Format::json));
    EXPECT_EQ(json["hosts"]["hosts"][1]["host"], "node1");
    EXPECT_EQ(json["hosts"]["hosts"][1]["ranks"][0]["local_rank"], 0);
    EXPECT_EQ(json["hosts"]["traffic"][1]["hosts"], "between");
    EXPECT_EQ(json["hosts"]["skew"]["worst_us"], 0.3);
    EXPECT_EQ(json["hosts"]["groups"][2]["ranks"], Json({0, 1, 2, 3}));
    EXPECT_TRUE(json["hosts"]["clocks"].is_null());
    EXPECT_TRUE(json["stopped"].is_null());
    EXPECT_THAT(render(trace_info(*trace), report::Format::table), HasSubstr("0,1 on node0; 2,3 on node1"));
    EXPECT_EQ(Json::parse(render(trace_info(*trace), report::Format::json))["hosts"][1]["ranks"][1]["rank"],
              3);
    // For a single host the table of ranks is sufficient.
    RunBuilder one(2);
    collective(one, 1000, {{0, 100}, {1, 150}}, {.bytes = 1000, .group = kLeft, .group_size = 2});
    EXPECT_THAT(render(distributed_report(*one.take()), report::Format::table), Not(HasSubstr("Hosts")));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
