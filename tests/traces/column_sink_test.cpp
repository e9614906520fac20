// From rows in any order to sorted, linked columns. See sample_run.h for the run; times here are in us.
#include "traces/store/columns/column_sink.h"

#include <algorithm>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/sample_run.h"

namespace shardscope::traces::store {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::unique_ptr<Trace> sample() {
    ColumnSink sink;
    write_sample_run(sink);
    return sink.take();
}

TEST(ColumnSink, SortsDeviceEventsOfAllRanksByStart) {
    const auto trace = sample();
    ASSERT_EQ(trace->device.size(), 16u);  // 4 per step, 2 steps, 2 ranks
    EXPECT_TRUE(std::is_sorted(trace->device.start.begin(), trace->device.start.end()));
    EXPECT_EQ(trace->device.start[0], 100 * kSampleUs);  // rank 0's gather
    EXPECT_EQ(trace->device.start[1], 110 * kSampleUs);  // rank 1's, 10 us later
    EXPECT_EQ(trace->device.rank[1], 1);
    EXPECT_EQ(trace->first_ns, 0);
    EXPECT_EQ(trace->last_ns, 2 * kSampleMs + 10 * kSampleUs);  // the end of rank 1's last step
}

TEST(ColumnSink, NamesAndKindsOfDeviceEvents) {
    const auto trace = sample();
    const auto& d = trace->device;
    // Rank 0's first step: events 0, 2, 4, 6 (rank 1's lie between, 10 us later).
    EXPECT_EQ(trace->strings[d.name[0]], "ncclDevKernel_AllGather_local");
    EXPECT_EQ(d.kind[0], DeviceKind::communication);
    EXPECT_EQ(trace->strings[d.name[2]], "sgemm(float*, int)");
    EXPECT_EQ(d.kind[2], DeviceKind::kernel);
    EXPECT_EQ(trace->strings[d.name[4]], "Memcpy HtoD");
    EXPECT_EQ(d.kind[4], DeviceKind::memcpy);
    EXPECT_EQ(d.copy_kind[4], schema::kCopyHostToDevice);
    EXPECT_EQ(d.bytes[4], 1024);
    EXPECT_EQ(trace->strings[d.name[6]], "Memset");
    EXPECT_EQ(d.kind[6], DeviceKind::memset);
    EXPECT_EQ(d.bytes[6], 512);
}

TEST(ColumnSink, LinksCollectivesWithTheirDeviceEvents) {
    const auto trace = sample();
    const auto& c = trace->collectives;
    ASSERT_EQ(c.size(), 4u);
    for (std::size_t i = 0; i < c.size(); ++i) {
        ASSERT_GE(c.event[i], 0);
        const auto e = static_cast<std::size_t>(c.event[i]);
        EXPECT_EQ(trace->device.collective[e], static_cast<std::int32_t>(i));
        EXPECT_EQ(trace->device.rank[e], c.rank[i]);
        EXPECT_EQ(trace->device.correlation[e], c.correlation[i]);
        EXPECT_EQ(trace->device.bytes[e], 4096);
    }
}

TEST(ColumnSink, FindsTheLaunchAndTheRangeAroundIt) {
    const auto trace = sample();
    const auto gather = static_cast<std::size_t>(trace->device.launch[0]);
    EXPECT_EQ(trace->runtime.start[gather], 62 * kSampleUs);
    EXPECT_EQ(trace->strings[trace->runtime.name[gather]], "cudaLaunchKernelExC");  // without its suffix
    EXPECT_EQ(trace->strings[trace->ranges.name[static_cast<std::size_t>(trace->runtime.range[gather])]],
              "ncclAllGather");
    const auto gemm = static_cast<std::size_t>(trace->device.launch[2]);
    const auto range = static_cast<std::size_t>(trace->runtime.range[gemm]);
    EXPECT_EQ(trace->strings[trace->ranges.name[range]], "nn.Module: Linear_0");
    EXPECT_EQ(trace->ranges.module[range], 1);
    EXPECT_EQ(trace->ranges.kind[range], RangeKind::module);
    // Linear_0 in FullyShardedDataParallel_0 in ProfilerStep#0.
    const auto parent = static_cast<std::size_t>(trace->ranges.parent[range]);
    EXPECT_EQ(trace->ranges.module[parent], 0);
    EXPECT_EQ(trace->ranges.depth[range], 2);
    EXPECT_EQ(trace->ranges.kind[static_cast<std::size_t>(trace->ranges.parent[parent])], RangeKind::step);
}

TEST(ColumnSink, SortsMarksByTime) {
    const auto trace = sample();
    const Marks& m = trace->marks;
    // One mark per step, 500 us after its start; rank 1 is 10 us later.
    EXPECT_THAT(m.time, ElementsAre(500'000, 510'000, 1'500'000, 1'510'000));
    EXPECT_EQ(trace->strings[m.name[0]], "a mark");
    EXPECT_EQ(trace->threads[m.thread[1]].global_tid, sample_tid(1));
}

TEST(ColumnSink, LinksSynchronizationsWithTheirCalls) {
    ColumnSink sink;
    write_sample_run(sink);
    schema::SynchronizationRow of_stream{.start = 0, .end = 5, .device = 1, .stream = 2, .correlation = 4711};
    of_stream.global_pid = sample_pid();
    of_stream.sync_type = 3;
    sink.add(of_stream);
    sink.add(schema::SynchronizationRow{.start = 0, .end = 5, .device = 99});  // a device without any rank
    const auto trace = sink.take();
    const Synchronizations& s = trace->synchronizations;
    ASSERT_EQ(s.size(), 5u);  // one in each of 2 steps of 2 ranks, and that of the stream
    EXPECT_EQ(s.start, (std::vector<std::int64_t>{0, 800'000, 810'000, 1'800'000, 1'810'000}));
    EXPECT_THAT(s.rank, ElementsAre(1, 0, 1, 0, 1));
    EXPECT_THAT(s.type, ElementsAre(3, 1, 1, 1, 1));  // stream, then events
    ASSERT_GE(s.stream[0], 0);
    EXPECT_EQ(trace->streams[static_cast<std::size_t>(s.stream[0])].id, 2);
    EXPECT_EQ(s.stream[1], -1);
    EXPECT_EQ(s.call[0], -1);  // that call was not recorded
    ASSERT_GE(s.call[1], 0);
    const auto call = static_cast<std::size_t>(s.call[1]);
    EXPECT_EQ(trace->strings[trace->runtime.name[call]], "cudaEventSynchronize");
    EXPECT_EQ(trace->runtime.start[call], 800'000);
}

TEST(ColumnSink, KeepsWhatDescribesTheRun) {
    const auto trace = sample();
    EXPECT_EQ(trace->config_value("model.width"), "256");
    ASSERT_THAT(trace->ranks, SizeIs(2));
    EXPECT_EQ(trace->ranks[1].device_name, "A processor");
    ASSERT_THAT(trace->threads, SizeIs(2));
    EXPECT_EQ(trace->threads[1].name, "rank 1");
    EXPECT_EQ(trace->threads[1].rank, RankIndex(1));
    ASSERT_THAT(trace->streams, SizeIs(4));  // two per rank
    EXPECT_EQ(trace->streams[trace->device.stream[0]].name, "unshard");
    ASSERT_THAT(trace->steps, SizeIs(4));
    EXPECT_EQ(trace->steps[1].number, 1);
    EXPECT_EQ(trace->steps[1].loss, 1.5);
    EXPECT_EQ(trace->steps[3].loss, 1.5);  // the loss is global: every rank's step has it
    EXPECT_THAT(trace->modules, SizeIs(2));
    EXPECT_THAT(trace->units, SizeIs(1));
    EXPECT_THAT(trace->predictions, SizeIs(2));
    EXPECT_EQ(trace->memory.size(), 12u);  // 2 before the steps and 2 per step, for 2 ranks
    EXPECT_EQ(trace->counters.size(), 4u);
}

TEST(ColumnSink, CountsAndLeavesOutWhatEndsBeforeItStarts) {
    ColumnSink sink;
    sink.add(schema::KernelRow{.start = 20, .end = 10});
    sink.add(schema::RuntimeRow{.start = 20, .end = 19});
    sink.add(schema::RangeRow{.start = 5, .end = 4});
    sink.add(schema::StepRow{.start = 5, .end = 4});
    sink.add(schema::KernelRow{.start = 30, .end = 30});  // an empty range is valid
    const auto trace = sink.take();
    EXPECT_EQ(trace->invalid_events, 4);
    EXPECT_EQ(trace->device.size(), 1u);
    EXPECT_EQ(trace->runtime.size(), 0u);
    EXPECT_THAT(trace->steps, IsEmpty());
}

TEST(ColumnSink, LeavesOutTimesAndSizesThatNoCaptureHas) {
    ColumnSink sink;
    sink.add(schema::KernelRow{.start = std::numeric_limits<std::int64_t>::min(), .end = 0});
    sink.add(schema::CounterRow{.time = std::numeric_limits<std::int64_t>::max(), .rank = 0});
    sink.add(schema::MemoryRow{.time = 0, .rank = 0, .bytes = std::numeric_limits<std::int64_t>::min()});
    sink.add(schema::PredictionRow{.rank = 0, .peak_bytes = std::numeric_limits<std::int64_t>::max()});
    sink.add(schema::PredictionPartRow{.rank = 0, .bytes = -1});
    const auto trace = sink.take();
    EXPECT_EQ(trace->invalid_events, 5);
    EXPECT_THAT(trace->predictions, IsEmpty());
    EXPECT_THAT(trace->prediction_parts, IsEmpty());
    EXPECT_EQ(trace->memory.size(), 0u);
    EXPECT_EQ(trace->last_ns, 0);
}

// Sums of durations are 64 bits wide: 4 + 4 + 1 times 10^18 ns fit, another 4 do not.
TEST(ColumnSink, LeavesOutWhatWouldMakeSumsOverflow) {
    constexpr std::int64_t kHuge = 1'000'000'000'000'000'000;
    ColumnSink sink;
    for (const std::int64_t length : {4 * kHuge, 4 * kHuge, 4 * kHuge, kHuge, std::int64_t{5}}) {
        schema::KernelRow row;
        row.start = 0;
        row.end = length;
        sink.add(row);
    }
    const auto trace = sink.take();
    EXPECT_EQ(trace->device.size(), 3u) << "the third is too much; after the fourth nothing has room";
    EXPECT_EQ(trace->invalid_events, 2);
}

TEST(ColumnSink, TreatsNcclNamesAsCommunicationWithoutACollectiveRow) {
    ColumnSink sink;
    sink.add(schema::KernelRow{.start = 0, .end = 1, .short_name = sink.intern("ncclKernel_AllReduce_RING")});
    EXPECT_THAT(sink.take()->device.kind, ElementsAre(DeviceKind::communication));
}

TEST(ColumnSink, ACollectiveRowMakesAnyKernelCommunication) {
    ColumnSink sink;
    sink.add(
        schema::KernelRow{.start = 0, .end = 1, .correlation = 9, .short_name = sink.intern("copy_kernel")});
    sink.add(schema::CollectiveRow{.rank = 0, .correlation = 9, .bytes = 64});
    const auto trace = sink.take();
    EXPECT_THAT(trace->device.kind, ElementsAre(DeviceKind::communication));
    EXPECT_THAT(trace->device.bytes, ElementsAre(64));
}

// All work of a launched graph has the launch's correlation id.
TEST(ColumnSink, GivesACollectiveOfAGraphToTheKernelThatCommunicates) {
    ColumnSink sink;
    for (const auto& [start, name] :
         {std::pair(0, "gemm"), std::pair(100, "ncclDevKernel_AllReduce_Sum_f32"), std::pair(140, "relu"),
          std::pair(160, "ncclDevKernel_AllGather_RING_LL")})
        sink.add(schema::KernelRow{
            .start = start, .end = start + 20, .correlation = 9, .short_name = sink.intern(name)});
    sink.add(schema::CollectiveRow{
        .rank = 0, .correlation = 9, .operation = schema::Operation::all_reduce, .bytes = 64});
    sink.add(schema::CollectiveRow{
        .rank = 0, .correlation = 9, .operation = schema::Operation::all_gather, .bytes = 128});
    const auto trace = sink.take();
    EXPECT_THAT(trace->device.kind, ElementsAre(DeviceKind::kernel, DeviceKind::communication,
                                                DeviceKind::kernel, DeviceKind::communication));
    EXPECT_THAT(trace->device.bytes, ElementsAre(0, 64, 0, 128));
    EXPECT_THAT(trace->collectives.event, ElementsAre(1, 3));
}

TEST(ColumnSink, LeavesACollectiveWithoutAnEventWhereItCouldBeAnyOfAGraph) {
    ColumnSink sink;
    sink.add(schema::KernelRow{.start = 0, .end = 9, .correlation = 9, .short_name = sink.intern("gemm")});
    sink.add(schema::KernelRow{
        .start = 9, .end = 10, .correlation = 9, .short_name = sink.intern("my_reduction")});
    sink.add(schema::CollectiveRow{.rank = 0, .correlation = 9, .bytes = 64});
    const auto trace = sink.take();
    EXPECT_THAT(trace->device.kind, ElementsAre(DeviceKind::kernel, DeviceKind::kernel));
    EXPECT_THAT(trace->collectives.event, ElementsAre(-1));
}

TEST(ColumnSink, IgnoresImpossibleBytes) {
    constexpr std::int64_t kTooMany = 9'000'000'000'000'000'000;
    ColumnSink sink;
    for (const std::int64_t bytes : {kTooMany, std::int64_t{-1}, std::int64_t{64}}) {
        sink.add(schema::CollectiveRow{.rank = 0, .bytes = bytes});
        sink.add(schema::MemcpyRow{.start = 0, .end = 1, .bytes = bytes});
        sink.add(schema::MemsetRow{.start = 0, .end = 1, .bytes = bytes});
    }
    sink.add(schema::CollectiveRow{.rank = 0, .bytes = 64, .padding = kTooMany});
    const auto trace = sink.take();
    EXPECT_EQ(trace->invalid_events, 7);
    EXPECT_THAT(trace->collectives.bytes, ElementsAre(64));
    EXPECT_THAT(trace->device.bytes, ElementsAre(64, 64));
}

// 2^54 bytes, the largest size that Kineto's element counts can give, are 2^62 in 256 collectives.
TEST(ColumnSink, LeavesOutCollectivesThatWouldMakeSumsOfBytesOverflow) {
    ColumnSink sink;
    for (int i = 0; i < 512; ++i) sink.add(schema::CollectiveRow{.rank = 0, .bytes = std::int64_t{1} << 54});
    const auto trace = sink.take();
    EXPECT_EQ(trace->collectives.size(), 256U);
    EXPECT_EQ(trace->invalid_events, 256);
}

TEST(ColumnSink, CorrelationsCountWithinAProcess) {
    // Two processes use id 5; each kernel finds its own launch. Id 6 was launched only in the other process.
    ColumnSink sink;
    for (int p : {1, 2}) {
        sink.add(schema::RankRow{.rank = p, .device = p, .global_pid = schema::global_pid(p)});
        sink.add(schema::RuntimeRow{
            .start = p, .end = p + 1, .global_tid = schema::global_tid(p, p), .correlation = 5});
        sink.add(schema::KernelRow{
            .start = 10, .end = 20, .device = p, .correlation = 5, .global_pid = schema::global_pid(p)});
    }
    sink.add(
        schema::RuntimeRow{.start = 3, .end = 4, .global_tid = schema::global_tid(1, 1), .correlation = 6});
    sink.add(schema::KernelRow{
        .start = 30, .end = 40, .device = 2, .correlation = 6, .global_pid = schema::global_pid(2)});
    const auto trace = sink.take();
    for (const std::size_t e : {0u, 1u}) {
        const auto call = static_cast<std::size_t>(trace->device.launch[e]);
        EXPECT_EQ(trace->threads[trace->runtime.thread[call]].rank.column(), trace->device.rank[e]);
    }
    EXPECT_EQ(trace->device.launch[2], -1);
}

TEST(ColumnSink, AddsRanksThatAreNotDescribed) {
    ColumnSink sink;
    sink.add(schema::KernelRow{.start = 0, .end = 1, .device = 3});
    sink.add(schema::MemoryRow{.time = 0, .rank = 5, .bytes = 1});
    const auto trace = sink.take();
    ASSERT_THAT(trace->ranks, SizeIs(2));
    EXPECT_EQ(trace->ranks[0].number, 3);
    EXPECT_EQ(trace->ranks[1].number, 5);
    EXPECT_EQ(trace->device.rank[0], 0);
    EXPECT_EQ(trace->memory.rank[0], 1);
}

TEST(ColumnSink, ChoosesANumberIfTheDevicesIsTaken) {
    ColumnSink sink;
    sink.add(schema::RankRow{.rank = 0, .device = 1});  // rank 0 is on device 1; device 0 has no description
    sink.add(schema::KernelRow{.start = 0, .end = 1, .device = 0});
    const auto trace = sink.take();
    ASSERT_THAT(trace->ranks, SizeIs(2));
    EXPECT_EQ(trace->ranks[1].number, 1);
    EXPECT_EQ(trace->ranks[1].device, 0);
    EXPECT_EQ(trace->device.rank[0], 1);
}

TEST(ColumnSink, AssignsAThreadToTheRankOnWhoseDeviceItLaunches) {
    // One process, two ranks, one thread each; only their launches show which thread belongs to which rank.
    ColumnSink sink;
    for (int r : {0, 1}) {
        sink.add(schema::RankRow{.rank = r, .device = r, .global_pid = schema::global_pid(1)});
        sink.add(schema::RuntimeRow{
            .start = 1, .end = 2, .global_tid = schema::global_tid(1, 10 + r), .correlation = r + 1});
        sink.add(schema::KernelRow{
            .start = 5, .end = 6, .device = r, .correlation = r + 1, .global_pid = schema::global_pid(1)});
    }
    const auto trace = sink.take();
    ASSERT_THAT(trace->threads, SizeIs(2));
    EXPECT_EQ(trace->threads[0].global_tid, schema::global_tid(1, 10));
    EXPECT_EQ(trace->threads[0].rank, RankIndex(0));
    EXPECT_EQ(trace->threads[1].rank, RankIndex(1));
}

TEST(ColumnSink, UsesProfilerStepRangesAsStepsIfNoneWereRecorded) {
    ColumnSink sink;
    sink.add(schema::RankRow{.rank = 4, .global_pid = schema::global_pid(1)});
    sink.add(schema::RangeRow{.start = 10,
                              .end = 20,
                              .text = sink.intern("ProfilerStep#7"),
                              .global_tid = schema::global_tid(1, 1)});
    const auto trace = sink.take();
    ASSERT_THAT(trace->steps, SizeIs(1));
    EXPECT_EQ(trace->steps[0].number, 7);
    EXPECT_EQ(trace->steps[0].rank, RankIndex(0));
    EXPECT_EQ(trace->steps[0].end, 20);
}

TEST(ColumnSink, MakesAnEmptyTraceOfNoRows) {
    ColumnSink sink;
    const auto trace = sink.take();
    EXPECT_EQ(trace->first_ns, 0);
    EXPECT_EQ(trace->last_ns, 0);
    EXPECT_THAT(trace->ranks, IsEmpty());
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::store
