// The receiving end of the tool alone: records arrive as bytes, rows go to a sink.
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "profiler/cupti/records.h"
#include "profiler/record/findings.h"
#include "profiler/record/handlers.h"
#include "tests/profiler/memory_sink.h"

namespace shardscope::profiler {
namespace TEST_FILE {

constexpr std::int64_t kEpoch = 1'700'000'000'000'000'000;  // CLOCK_REALTIME at trace time 0

class CudaHandlerTest : public ::testing::Test {
  protected:
    CudaHandlerTest() {
        converter_.add_handler(
            RecordKind::cuda_first, RecordKind::cuda_last,
            make_cuda_handler({.pid = 42, .rank = 3, .number = 2, .findings = &findings_}));
    }

    template <typename Record>
    void take(CudaKind kind, Record record) {
        record.header = {sizeof(Record), record_kind(kind), 0, record.header.name};
        converter_.convert(1, 43, std::as_bytes(std::span(&record, 1)));
    }
    void clock(std::int64_t trace) {
        take(CudaKind::clock,
             CudaClockRecord{
                 {}, Ticks(static_cast<std::uint64_t>(kOrigin + trace)), RealTime(kEpoch + trace + ahead_)});
    }

    static constexpr std::int64_t kOrigin = 1000;
    std::int64_t ahead_ = 0;
    testing::Received got_;
    testing::MemorySink sink_{got_};
    const Calibration monotonic_{ClockSource::monotonic};
    Findings findings_;
    RecordConverter converter_{sink_, monotonic_, MonotonicTime(kOrigin), 42};
};

TEST_F(CudaHandlerTest, converts_every_kind_of_device_work) {
    clock(0);
    CudaKernelRecord kernel{};
    kernel.start = RealTime(kEpoch + 500);
    kernel.end = RealTime(kEpoch + 900);
    kernel.correlation = 7;
    take(CudaKind::kernel, kernel);
    ASSERT_EQ(got_.kernels.size(), 1u);
    EXPECT_EQ(got_.kernels[0].start, 500);
    EXPECT_EQ(got_.kernels[0].end, 900);
    EXPECT_EQ(got_.kernels[0].device, 3);  // the rank's number
    EXPECT_EQ(got_.kernels[0].correlation,
              (std::int64_t{2} << 32) | 7);  // the process's number above CUPTI's
}

TEST_F(CudaHandlerTest, counts_work_without_a_clock_as_lost) {
    CudaKernelRecord kernel{};
    kernel.start = RealTime(kEpoch + 500);
    kernel.end = RealTime(kEpoch + 900);
    take(CudaKind::kernel, kernel);
    EXPECT_TRUE(got_.kernels.empty());
    EXPECT_EQ(findings_.lost, 1);
}

TEST_F(CudaHandlerTest, reports_that_the_systems_clock_was_set) {
    clock(0);
    ahead_ = 3'000'000'000;
    clock(1'000'000'000);
    ASSERT_EQ(got_.diagnostics.size(), 1u);
    EXPECT_NE(got_.diagnostics[0].text.find("set 3.000 s ahead"), std::string::npos)
        << got_.diagnostics[0].text;
    CudaApiRecord api{};
    api.start = RealTime(kEpoch + 4'000'000'500);  // after the step
    api.end = RealTime(api.start.ns + 10);
    take(CudaKind::api, api);
    EXPECT_EQ(got_.runtimes.at(0).start, 1'000'000'500);
}

TEST_F(CudaHandlerTest, counts_each_loss_once) {
    take(CudaKind::loss, CudaLossRecord{{}, 5, 1, 0});
    take(CudaKind::loss, CudaLossRecord{{}, 7, 2, 0});  // counts since the beginning
    EXPECT_EQ(findings_.lost, 9);
}

TEST_F(CudaHandlerTest, names_the_gpu_of_a_rank) {
    findings_.ranks[3] =
        traces::schema::RankRow{.rank = 3, .device = 3, .global_pid = 1, .device_name = "a processor"};
    converter_.define_name(1, "A GPU");
    CudaDeviceRecord device{};
    device.header.name = 1;
    device.memory = 1 << 30;
    take(CudaKind::device, device);
    EXPECT_TRUE(got_.ranks.empty());  // the device exists, but nothing uses it yet
    take(CudaKind::context, CudaContextRecord{{}, 1, 0, 7, 0});
    ASSERT_EQ(got_.ranks.size(), 1u);
    EXPECT_EQ(got_.ranks[0].device_name, "A GPU");
    EXPECT_EQ(got_.ranks[0].device_memory, 1 << 30);
    EXPECT_EQ(got_.ranks[0].global_pid, traces::schema::global_pid(42));
}

// A program can overwrite its own records: whatever they contain then, nothing breaks.
TEST_F(CudaHandlerTest, survives_any_bytes) {
    std::mt19937_64 random(7);
    clock(0);
    for (int i = 0; i < 50'000; ++i) {
        std::vector<std::byte> bytes(8 + 8 * (random() % 40));
        for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
            // Values are both small and huge.
            const std::uint64_t value = random() >> (random() % 64);
            std::memcpy(bytes.data() + at, &value, 8);
        }
        const RecordHeader header{static_cast<std::uint16_t>(bytes.size()),
                                  static_cast<RecordKind>(64 + random() % 32), 0,
                                  static_cast<std::uint32_t>(random() % 4)};
        std::memcpy(bytes.data(), &header, sizeof header);
        converter_.convert(1, 43, bytes);
    }
    converter_.close_open_ranges(1'000'000);
    EXPECT_GT(converter_.damaged(), 0);
    for (const auto& kernel : got_.kernels) EXPECT_LE(kernel.start, kernel.end);
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
