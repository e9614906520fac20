// The recorder's own CUPTI source over the fake CUPTI: device work appears in the trace with the piece of
// work that launched it.
#include "profiler/recorder/cupti_source.h"

#include <map>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/recorder/cupti_join.h"
#include "tests/profiler/cuda/fake_library.h"
#include "tests/profiler/memory_sink.h"
#include "tests/tools/run_command.h"
#include "traces/store/grouped.h"

namespace shardscope::profiler {
namespace TEST_FILE {

using ::testing::ElementsAre;
using testing::Environment;
using testing::FakeLibrary;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const FakeLibrary& fake() {
    static const FakeLibrary library(FAKE_CUPTI);
    return library;
}

// The trainer's numbering: the rank in the high bits, a count in the low bits.
DeviceWork work_of(int rank, int stream, std::int64_t count) {
    DeviceWork work;
    work.device = rank;
    work.stream = stream;
    work.correlation = std::int64_t{rank} << 32 | count;
    return work;
}

class CuptiSourceTest : public ::testing::Test {
  protected:
    CuptiSourceTest() { fake(); }

    void open() {
        std::string why;
        source_ = CuptiSource::open(recorder_, why);
        ASSERT_NE(source_, nullptr) << why;
    }
    std::string why_not() {
        std::string why;
        EXPECT_EQ(CuptiSource::open(recorder_, why), nullptr);
        return why;
    }
    // One call by which a thread launches device work for a piece of work.
    void launch(int lane, const DeviceWork& work, std::uint32_t call,
                const char* name = "cudaLaunchKernel_v7000") const {
        source_->begin(work);
        fake().call(lane, name, call);
        source_->end();
    }
    void finish() {
        for (int lane = 0; lane < 16; ++lane) fake().complete(lane);
        source_->finish();
        recorder_.finish();
    }
    std::vector<std::string> diagnostics() const {
        std::vector<std::string> texts;
        for (const auto& row : got_.diagnostics) texts.push_back(row.text);
        return texts;
    }

    testing::Received got_;
    Recorder recorder_{std::make_unique<testing::MemorySink>(got_), nullptr};
    std::unique_ptr<CuptiSource> source_;
    const std::int64_t now_ = FakeLibrary::now();
};

// --- rows ------------------------------------------------------------------------------------------------

TEST_F(CuptiSourceTest, attributes_a_kernel_to_the_work_that_launched_it) {
    open();
    launch(0, work_of(2, 3, 7), 11);
    auto kernel = FakeLibrary::kernel_record(11, now_ + 1000, now_ + 6000);
    kernel.name = "_ZN2at6native4fillILi4EfEEvif";
    kernel.grid[0] = 101;
    kernel.block[1] = 32;
    kernel.registers = 40;
    kernel.static_shared = 1024;
    kernel.dynamic_shared = 2048;
    fake().emit(0, kernel);
    finish();
    ASSERT_EQ(got_.kernels.size(), 1u);
    const traces::schema::KernelRow& row = got_.kernels[0];
    EXPECT_EQ(row.device, 2);
    EXPECT_EQ(row.stream, 3);
    EXPECT_EQ(row.correlation, (std::int64_t{2} << 32) + 7);
    EXPECT_EQ(row.global_pid, traces::schema::global_pid(::getpid()));
    EXPECT_EQ(row.end - row.start, 5000);
    EXPECT_EQ(got_.text(row.short_name), "fill");
    EXPECT_EQ(got_.text(row.demangled_name), "void at::native::fill<4, float>(int, float)");
    EXPECT_EQ(got_.text(row.mangled_name), "_ZN2at6native4fillILi4EfEEvif");
    EXPECT_EQ(row.grid[0], 101);
    EXPECT_EQ(row.block[1], 32);
    EXPECT_EQ(row.registers, 40);
    EXPECT_EQ(row.static_shared_memory, 1024);
    EXPECT_EQ(row.dynamic_shared_memory, 2048);
    EXPECT_EQ(source_->rows(), 1);
    EXPECT_THAT(diagnostics(), IsEmpty());
    EXPECT_THAT(got_.runtimes, IsEmpty());  // the recorder itself records the calls
}

TEST_F(CuptiSourceTest, converts_times_to_the_recorders_clock) {
    open();
    launch(0, work_of(0, 0, 1), 11);
    launch(0, work_of(0, 0, 2), 12);
    const std::int64_t before = recorder_.now_ns(), realtime = FakeLibrary::now(), after = recorder_.now_ns();
    fake().kernel(0, 11, realtime, realtime + 10);
    fake().kernel(0, 12, realtime + 500, realtime + 700);
    finish();
    ASSERT_EQ(got_.kernels.size(), 2u);
    constexpr std::int64_t kStep = CudaClock::kStep;  // how far apart the two clocks may be
    EXPECT_GE(got_.kernels[0].start, before - kStep);
    EXPECT_LE(got_.kernels[0].start, after + kStep);
    EXPECT_EQ(got_.kernels[1].start - got_.kernels[0].start, 500);
}

TEST_F(CuptiSourceTest, keeps_bytes_and_kinds_of_copies_and_memsets) {
    open();
    launch(0, work_of(1, 4, 1), 21, "cudaMemcpyAsync_v3020");
    cupti::Memcpy copy{};
    copy.kind = cupti::kKindMemcpy;
    copy.copy_kind = traces::schema::kCopyHostToDevice;
    copy.src_kind = 2;  // CUPTI's: pinned
    copy.dst_kind = 3;  // device
    copy.bytes = 4096;
    copy.start = static_cast<std::uint64_t>(now_);
    copy.end = copy.start + 1000;
    copy.correlation = 21;
    fake().emit(0, copy);
    launch(0, work_of(1, 4, 2), 22, "cudaMemcpyAsync_v3020");
    cupti::MemcpyPeer peer{};
    peer.kind = cupti::kKindMemcpy2;
    peer.copy_kind = 10;
    peer.bytes = 8192;
    peer.start = peer.end = static_cast<std::uint64_t>(now_);
    peer.dst_device = 1;
    peer.correlation = 22;
    fake().emit(0, peer);
    launch(0, work_of(1, 5, 3), 23, "cudaMemsetAsync_v3020");
    cupti::Memset set{};
    set.kind = cupti::kKindMemset;
    set.bytes = 512;
    set.value = 255;
    set.mem_kind = 3;
    set.start = set.end = static_cast<std::uint64_t>(now_);
    set.correlation = 23;
    fake().emit(0, set);
    finish();
    ASSERT_EQ(got_.memcpys.size(), 2u);
    EXPECT_EQ(got_.memcpys[0].bytes, 4096);
    EXPECT_EQ(got_.memcpys[0].src_kind, traces::schema::kMemKindPinned);
    EXPECT_EQ(got_.memcpys[0].dst_kind, traces::schema::kMemKindDevice);
    EXPECT_EQ(got_.memcpys[0].stream, 4);
    EXPECT_EQ(got_.memcpys[1].bytes, 8192);
    EXPECT_EQ(got_.memcpys[1].device, 1);
    ASSERT_EQ(got_.memsets.size(), 1u);
    EXPECT_EQ(got_.memsets[0].bytes, 512);
    EXPECT_EQ(got_.memsets[0].value, 255);
    EXPECT_EQ(got_.memsets[0].stream, 5);
    EXPECT_EQ(got_.memsets[0].mem_kind, traces::schema::kMemKindDevice);
}

TEST_F(CuptiSourceTest, has_a_row_for_every_kernel_of_a_piece_of_work) {
    open();
    source_->begin(work_of(0, 1, 5));
    fake().call(0, "cudaLaunchKernel_v7000", 31);
    fake().call(0, "cuLaunchKernel", 32);  // a library that calls the driver directly
    source_->end();
    fake().call(0, "cudaLaunchKernel_v7000", 33);  // after the end of the piece of work
    for (const std::uint32_t call : {31, 32, 33}) fake().kernel(0, call, now_ + call, now_ + call + 1);
    finish();
    ASSERT_EQ(got_.kernels.size(), 2u);
    EXPECT_EQ(got_.kernels[0].correlation, 5);
    EXPECT_EQ(got_.kernels[1].correlation, 5);
    EXPECT_THAT(diagnostics(), ElementsAre(HasSubstr("1 kernel, copy or memset on the GPU belongs to no "
                                                     "operation")));
}

// Several ranks share a GPU: the launching thread tells them apart.
TEST_F(CuptiSourceTest, distinguishes_ranks_on_one_device) {
    constexpr int kRanks = 4, kLaunches = 20'000;
    open();
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < kRanks; ++rank) {
        ranks.emplace_back([&, rank] {
            for (int i = 0; i < kLaunches; ++i) {
                const auto call = static_cast<std::uint32_t>(1 + i * kRanks + rank);
                launch(rank, work_of(rank, i % 6, 1 + i), call);
                // The duration identifies the rank.
                fake().kernel(rank, call, now_ + i, now_ + i + 1 + rank);
            }
        });
    }
    for (std::thread& rank : ranks) rank.join();
    finish();
    ASSERT_EQ(got_.kernels.size(), std::size_t{kRanks} * kLaunches);
    std::set<std::int64_t> correlations;
    for (const traces::schema::KernelRow& row : got_.kernels) {
        correlations.insert(row.correlation);
        ASSERT_EQ(row.end - row.start, 1 + row.device);
        ASSERT_EQ(row.correlation >> 32, row.device);
        ASSERT_EQ(row.stream, ((row.correlation & 0xFFFFFFFF) - 1) % 6);
    }
    EXPECT_EQ(correlations.size(), got_.kernels.size());
    EXPECT_THAT(diagnostics(), IsEmpty());
}

// --- in any order ----------------------------------------------------------------------------------------

TEST_F(CuptiSourceTest, waits_for_the_id_in_a_later_buffer) {
    open();
    const std::uint64_t id = WorkPlace::pack(work_of(3, 2, 9));
    fake().kernel(0, 41, now_, now_ + 5);
    fake().complete(0);
    while (fake().counts().buffers_read == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    fake().external_id(1, 41, id);
    fake().complete(1);
    fake().external_id(1, 42, id + 1);  // the opposite order
    fake().complete(1);
    fake().kernel(0, 42, now_ + 10, now_ + 15);
    finish();
    ASSERT_EQ(got_.kernels.size(), 2u);
    EXPECT_EQ(got_.kernels[0].device, 3);
    EXPECT_EQ(got_.kernels[0].correlation, (std::int64_t{3} << 32) + 9);
    EXPECT_EQ(got_.kernels[1].correlation, (std::int64_t{3} << 32) + 10);
}

TEST_F(CuptiSourceTest, reports_how_much_work_is_unattributed) {
    open();
    for (std::uint32_t call = 1; call <= 3; ++call) fake().kernel(0, call, now_, now_ + 5);
    finish();
    EXPECT_THAT(got_.kernels, IsEmpty());
    ASSERT_THAT(diagnostics(), ElementsAre(HasSubstr("3 kernels, copies and memsets")));
    EXPECT_EQ(got_.diagnostics[0].severity, traces::schema::Severity::information);
}

// The number of waiting records is bounded: the oldest are dropped.
TEST_F(CuptiSourceTest, bounds_the_number_of_waiting_records) {
    open();
    const auto last = static_cast<std::uint32_t>(CuptiJoin::kMostWaiting) + 10;
    for (std::uint32_t call = 1; call <= last; ++call) fake().kernel(0, call, now_ + call, now_ + call + 1);
    const std::uint64_t id = WorkPlace::pack(work_of(0, 0, 1));
    fake().external_id(0, 1, id);         // dropped
    fake().external_id(0, last, id + 1);  // still kept
    finish();
    ASSERT_EQ(got_.kernels.size(), 1u);
    EXPECT_EQ(got_.kernels[0].correlation, 2);
    EXPECT_THAT(diagnostics(),
                ElementsAre(HasSubstr(traces::store::grouped(std::int64_t{last - 1}) + " kernels")));
}

TEST_F(CuptiSourceTest, reports_what_cupti_lost_and_could_not_time) {
    open();
    launch(0, work_of(0, 0, 1), 11);
    fake().kernel(0, 11, 0, 0);
    fake().drop(5);
    finish();
    EXPECT_THAT(got_.kernels, IsEmpty());
    EXPECT_THAT(diagnostics(),
                ElementsAre(HasSubstr("CUPTI lost 5 CUDA events"), HasSubstr("1 CUDA event had no valid")));
}

// --- versions --------------------------------------------------------------------------------------------

// Records have the length of the library's version, with arbitrary bytes after them.
class CuptiSourceOfVersion : public CuptiSourceTest, public ::testing::WithParamInterface<std::uint32_t> {};

TEST_P(CuptiSourceOfVersion, reads_its_records) {
    const std::uint32_t version = GetParam();
    const Environment as("FAKE_CUPTI_VERSION", std::to_string(version));
    open();
    for (std::uint32_t i = 1; i <= 3; ++i) {
        launch(0, work_of(1, 2, i), i);
        auto kernel = FakeLibrary::kernel_record(i, now_ + i, now_ + 2 * i);
        kernel.name = "axpy";
        kernel.local_total = 64;
        kernel.local_total_64 = std::uint64_t{5} << 32;
        kernel.cluster[0] = 2;
        kernel.max_active_clusters = 16;
        fake().emit(0, kernel);
    }
    finish();
    ASSERT_EQ(got_.kernels.size(), 3u);
    for (std::int64_t i = 1; i <= 3; ++i) {
        const traces::schema::KernelRow& row = got_.kernels[static_cast<std::size_t>(i - 1)];
        EXPECT_EQ(row.correlation, (std::int64_t{1} << 32) + i);
        EXPECT_EQ(row.end - row.start, i);
        EXPECT_EQ(row.cluster[0], version >= cupti::kVersion11_8 ? 2 : -1);
        EXPECT_EQ(row.local_memory_total, version >= cupti::kVersion11_8 ? std::int64_t{5} << 32 : 64);
        EXPECT_EQ(row.max_active_clusters, version >= cupti::kVersion12_0 ? 16 : -1);
    }
}

INSTANTIATE_TEST_SUITE_P(versions, CuptiSourceOfVersion,
                         ::testing::Values(cupti::kVersion11_2, cupti::kVersion11_6, cupti::kVersion11_8,
                                           cupti::kVersion12_0, cupti::kVersion12_8, cupti::kVersion12_9,
                                           cupti::kVersion13_0, cupti::kVersion13_0 + 1),
                         ::testing::PrintToStringParamName());

// --- refused ---------------------------------------------------------------------------------------------

TEST_F(CuptiSourceTest, says_which_tool_has_cupti) {
    const Environment held("FAKE_CUPTI_HOLDER", "Nsight Systems");
    EXPECT_EQ(why_not(),
              "kernels and copies are not in the trace: \"Nsight Systems\" uses CUPTI in this process, which "
              "serves one tool at a time; turn it off");
}

TEST_F(CuptiSourceTest, says_that_it_may_not_profile) {
    const Environment refused("FAKE_CUPTI_ENABLE", "35");
    EXPECT_EQ(why_not(),
              "kernels and copies are not in the trace: cuptiActivityEnable() failed with "
              "CUPTI_ERROR_OF_THE_FAKE (35); is the driver new enough, and may this user profile the GPU?");
}

TEST_F(CuptiSourceTest, says_that_there_is_no_driver) {
    const Environment refused("FAKE_CUPTI_SUBSCRIBE", "15");
    EXPECT_THAT(why_not(), HasSubstr("cuptiSubscribe() failed with CUPTI_ERROR_OF_THE_FAKE (15); is there a "
                                     "driver"));
}

TEST_F(CuptiSourceTest, says_that_cupti_is_too_old) {
    const Environment as("FAKE_CUPTI_VERSION", "12");
    EXPECT_THAT(why_not(), HasSubstr("libcupti.so is of version 12, which is older than CUDA 11.2"));
}

TEST_F(CuptiSourceTest, says_that_another_trace_of_the_process_has_cupti) {
    open();
    EXPECT_THAT(why_not(), HasSubstr("another trace of this process has CUPTI"));
    finish();
}

TEST_F(CuptiSourceTest, reports_that_the_file_is_not_a_library) {
    const auto outcome =
        tools::run_command({"env", "LD_LIBRARY_PATH=" NO_CUPTI_FOLDER, CUPTI_SOURCE_PROGRAM});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.out, HasSubstr("libcupti.so has no cuptiGetVersion: it is too old or damaged"));
}

// An old library lacks what later versions added.
TEST_F(CuptiSourceTest, works_with_an_old_library) {
    const auto outcome =
        tools::run_command({"env", "LD_LIBRARY_PATH=" OLD_FAKE_CUPTI_FOLDER, "FAKE_CUPTI_VERSION=17",
                            CUPTI_SOURCE_PROGRAM, "libcupti.so.11.6"});
    EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    EXPECT_EQ(outcome.out, "1 kernel of device 1\n");
}

// --- one after the other ---------------------------------------------------------------------------------

TEST_F(CuptiSourceTest, leaves_cupti_to_the_next) {
    open();
    const int enabled = fake().counts().enabled_kinds;
    fake().hold(5, true);
    fake().kernel(5, 51, now_, now_ + 1);
    finish();
    fake().hold(5, false);
    EXPECT_LT(fake().counts().enabled_kinds, enabled);

    testing::Received got;
    Recorder recorder(std::make_unique<testing::MemorySink>(got), nullptr);
    std::string why;
    source_ = CuptiSource::open(recorder, why);
    ASSERT_NE(source_, nullptr) << why;
    launch(0, work_of(0, 0, 1), 61);
    fake().kernel(0, 61, now_, now_ + 1);
    source_->finish();
    source_->finish();
    recorder.finish();
    EXPECT_EQ(got.kernels.size(), 1u);
    EXPECT_EQ(fake().counts().not_zeroed, 0);
    EXPECT_EQ(fake().counts().wrong_size, 0);
    source_.reset();
}

// --- places ----------------------------------------------------------------------------------------------

TEST(WorkPlaceTest, carries_device_stream_and_correlation) {
    for (const DeviceWork& work : {work_of(0, 0, 1), work_of(7, 5, 0xFFFFFFFF),
                                   work_of(WorkPlace::kMostDevices - 1, WorkPlace::kMostStreams - 1, 42)}) {
        const WorkPlace place = WorkPlace::unpack(WorkPlace::pack(work));
        EXPECT_EQ(place.device, work.device);
        EXPECT_EQ(place.stream, work.stream);
        EXPECT_EQ(place.correlation, work.correlation);
    }
}

TEST(WorkPlaceTest, refuses_what_does_not_fit) {
    DeviceWork other = work_of(1, 0, 5);
    other.device = 2;  // another device than the correlation id's
    EXPECT_THROW(WorkPlace::pack(other), std::logic_error);
    EXPECT_THROW(WorkPlace::pack(work_of(0, WorkPlace::kMostStreams, 1)), std::logic_error);
    EXPECT_THROW(WorkPlace::pack(work_of(WorkPlace::kMostDevices, 0, 1)), std::logic_error);
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
