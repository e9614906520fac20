// One process and its devices: the rank to which the kernels, the memory and the steps of a file belong.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kineto_text.h"
#include "traces/analysis/facts/info.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/memory/memory_curves.h"
#include "traces/analysis/time/summary.h"

namespace shardscope::traces::analysis {
namespace TEST_FILE {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kStep =
    R"({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 100, "tid": 100, "ts": 0, "dur": 1000})";

// An operator that launches a kernel of 100 us on the device.
std::string launch(int id, int ts, int device) {
    return fmt::format(
        R"(,{{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 100, "tid": 100, "ts": {1}, "dur": 50, "args": {{"External id": {0}}}}},
{{"ph": "X", "cat": "cuda_runtime", "name": "hipLaunchKernel", "pid": 100, "tid": 100, "ts": {2}, "dur": 10, "args": {{"correlation": {0}, "External id": {0}}}}},
{{"ph": "X", "cat": "kernel", "name": "gemm", "pid": {4}, "tid": 0, "ts": {3}, "dur": 100, "args": {{"device": {4}, "stream": 0, "correlation": {0}, "External id": {0}}}}})",
        id, ts, ts + 10, ts + 40, device);
}

std::string memory(int ts, int device, int bytes, int total) {
    return fmt::format(
        R"(,{{"ph": "i", "s": "t", "name": "[memory]", "pid": 100, "tid": 100, "ts": {}, "args": {{"Device Type": 6, "Device Id": {}, "Bytes": {}, "Addr": {}, "Total Allocated": {}, "Total Reserved": 8192}}}})",
        ts, device, bytes, 4096 * ts, total);
}

double kernel_us(const store::Trace& trace) {
    const ExecutionSummary summary = summarize(trace);
    return summary.ranks.size() == 1 ? summary.ranks[0].average_us[0] : -1;
}

TEST(KinetoDevices, AssignsMemoryToTheRankWhenDeviceNumbersDiffer) {
    // As ROCm writes it: kernels have the machine's number of the device, 2, memory has the process's number,
    // 0.
    std::string events = kStep;
    for (int i = 0; i < 4; ++i) {
        events += memory(200 * i + 5, 0, 1024, 1024 * (i + 1));
        events += launch(i + 1, 200 * i + 10, 2);
    }
    const auto read = read_text(kineto(events));
    ASSERT_EQ(read.trace->ranks.size(), 1U);
    EXPECT_EQ(read.trace->ranks[0].device, 2);
    EXPECT_DOUBLE_EQ(kernel_us(*read.trace), 400);
    EXPECT_THAT(check_trace(*read.trace), IsEmpty());
    EXPECT_EQ(memory_report(*read.trace).ranks.at(0).peak_bytes, 4096);
}

TEST(KinetoDevices, KernelsOnTwoDevicesOfAProcessCountInItsSteps) {
    std::string events = kStep;
    for (int i = 0; i < 4; ++i) events += launch(i + 1, 200 * i + 10, i % 2);
    const auto read = read_text(kineto(events));
    EXPECT_DOUBLE_EQ(kernel_us(*read.trace), 400);
    EXPECT_THAT(check_trace(*read.trace), IsEmpty());  // each kernel has its launch
    EXPECT_EQ(read.trace->streams.size(), 2U);
}

TEST(KinetoDevices, SeveralProcessesInOneFileAreReported) {
    std::string events = kStep + launch(1, 10, 0) + launch(2, 210, 1);
    const std::string other = R"("pid": 100, "tid": 100, "ts": 220)";
    events.replace(events.find(other), other.size(), R"("pid": 101, "tid": 101, "ts": 220)");
    const auto read = read_text(kineto(events));
    ASSERT_FALSE(read.trace->diagnostics.empty());
    EXPECT_THAT(read.trace->diagnostics.back().text, HasSubstr("open each process's own file"));
}

TEST(KinetoDevices, InfoCountsTheMemoryEventsThatWereRecordedAlone) {
    // 5000 bytes were allocated before the trace: an inserted event represents them.
    const auto read =
        read_text(kineto(std::string(kStep) + memory(5, 0, 1000, 6000) + memory(9, 0, 500, 6500)));
    EXPECT_EQ(memory_report(*read.trace).ranks.at(0).peak_bytes, 6500);
    const auto count_of = [](const auto& counts) {
        return std::find_if(counts.begin(), counts.end(),
                            [](const auto& c) { return c.first == "memory_events"; })
            ->second;
    };
    EXPECT_EQ(count_of(trace_info(*read.trace).counts), 2);
    EXPECT_EQ(count_of(row_counts(*read.trace, {.rank = 0})), 2);
}

// A peak belongs to one device: the one with the most memory. docs/definitions.md, "Memory".
TEST(KinetoDevices, ReportsTheHigherPeakOfTwoDevices) {
    const auto read =
        read_text(kineto(std::string(kStep) + memory(5, 0, 1000, 1000) + memory(10, 1, 300, 300) +
                         memory(15, 0, 500, 1500) + memory(20, 1, -300, 0)));
    const RankMemory rank = memory_report(*read.trace).ranks.at(0);
    EXPECT_EQ(rank.peak_bytes, 1500);  // the other device's 300 are not added
    EXPECT_EQ(rank.devices, 2);
    EXPECT_EQ(rank.reserved_bytes, 8192);  // of the same device
    std::int64_t live = 0;
    for (const std::int64_t bytes : read.trace->memory.bytes) live += bytes;
    EXPECT_EQ(live, 1500);
    const std::vector<MemoryPoint> curve = memory_curve(*read.trace, store::RankIndex(0));
    ASSERT_EQ(curve.size(), 2U);
    EXPECT_EQ(curve.back().total, 1500);
    EXPECT_EQ(PeakIndex(*read.trace, store::RankIndex(0), schema::MemorySpace::device).most(0, 1'000'000),
              1500);
    EXPECT_EQ(allocated_curve(*read.trace, store::RankIndex(0)).bytes,
              (std::vector<std::int64_t>{1000, 1500}));
}

TEST(KinetoDevices, EachDevicesAllocatorHasItsOwnTotal) {
    // 5,000 bytes were allocated on the second device before the trace: no event of the first device
    // represents them.
    const auto read = read_text(kineto(std::string(kStep) + memory(5, 0, 1000, 1000) +
                                       memory(10, 1, 300, 5300) + memory(15, 0, 500, 1500)));
    const RankMemory rank = memory_report(*read.trace).ranks.at(0);
    EXPECT_EQ(rank.peak_bytes, 5300);
    // In the first 8 us only the first device is known to have memory allocated.
    EXPECT_EQ(memory_report(*read.trace, {.from_ns = 0, .to_ns = 8'000}).ranks.at(0).peak_bytes, 1000);
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::analysis
