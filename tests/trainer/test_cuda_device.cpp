// Parts of the CUDA device without a Program, over the simulated CUDA: streams that are counted, and the
// local process group whose members are host threads.
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/played_cuda/runtime_api.h"
#include "trainer/cuda/cuda_device.h"
#include "trainer/cuda/local_group.h"
#include "trainer/cuda/local_kernels.h"
#include "trainer/cuda/stream.h"
#include "trainer/executor/file_device.h"
#include "trainer/executor/rank_runner.h"
#include "trainer/job/job.h"
#include "trainer/kernels/elements.h"
#include "trainer/plan/builder.h"

namespace shardscope::trainer::cuda {
namespace TEST_FILE {

using ::testing::HasSubstr;

// Blocks a stream until it is opened.
class Gate {
  public:
    void hold(cudaStream_t stream) {
        played_cuda::enqueue(stream, [this] {
            while (!open_) std::this_thread::sleep_for(std::chrono::microseconds(50));
        });
    }
    void open() { open_ = true; }
    ~Gate() { open(); }

  private:
    std::atomic<bool> open_ = false;
};

void drain(const CountedStream& stream) {
    check(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
}

TEST(CountedStreams, MakeTheirEventsOnTheirOwnGpuWhicheverIsCurrent) {
    played_cuda::set_machine({.gpus = 2});
    {
        check(cudaSetDevice(1), "cudaSetDevice");
        CountedStream stream(false);
        check(cudaSetDevice(0), "cudaSetDevice");
        EXPECT_NO_THROW(stream.hold(stream.appended()));
        int current = -1;
        check(cudaGetDevice(&current), "cudaGetDevice");
        EXPECT_EQ(current, 0);
        drain(stream);
    }
    played_cuda::set_machine({});
}

TEST(CountedStreams, AnEventCompletesWithItsItems) {
    CountedStream stream(false);
    Gate first, second;
    first.hold(stream.get());
    const std::uint64_t one = stream.appended();
    stream.hold(one);
    second.hold(stream.get());
    const std::uint64_t two = stream.appended();
    EXPECT_TRUE(stream.happened(0)) << "what was never enqueued";
    EXPECT_FALSE(stream.happened(one));
    const cudaEvent_t event = stream.event_of(one);
    ASSERT_NE(event, nullptr);
    first.open();
    EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess) << "does not wait for the second item";
    EXPECT_TRUE(stream.happened(one));
    EXPECT_EQ(stream.event_of(one), nullptr);
    EXPECT_FALSE(stream.happened(two));
    second.open();
    drain(stream);
    EXPECT_TRUE(stream.happened(two));
}

TEST(CountedStreams, ManyEventsAreReused) {
    CountedStream stream(true);
    for (int i = 0; i < 1000; ++i) stream.hold(stream.appended());
    drain(stream);
    EXPECT_TRUE(stream.happened(1000));
}

TEST(CountedStreams, AQueryLeavesNoErrorForTheNextLaunch) {
    CountedStream stream(false);
    Gate gate;
    gate.hold(stream.get());
    EXPECT_FALSE(stream.happened(stream.appended()));
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    gate.open();
    drain(stream);
}

class LocalGroupTest : public ::testing::Test {
  protected:
    // Each member calls on a thread of its own; returns what it threw.
    template <class Call>
    std::vector<std::string> all(int members, const Call& call) {
        std::vector<std::string> thrown(static_cast<std::size_t>(members));
        std::vector<std::thread> threads;
        for (int place = 0; place < members; ++place) {
            threads.emplace_back([&, place] {
                try {
                    CountedStream stream(true);
                    call(place, stream);
                    drain(stream);
                } catch (const std::exception& error) {
                    thrown[static_cast<std::size_t>(place)] = error.what();
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        return thrown;
    }
    static device::CollectiveLaunch launch(int place, int members, std::int64_t sequence,
                                           plan::Operation operation, void* output, const void* input,
                                           std::int64_t elements, int divisor = 1) {
        device::CollectiveLaunch collective;
        collective.place = place;
        collective.members = members;
        collective.sequence = sequence;
        collective.call = {operation, plan::DType::fp32, output, input, elements, divisor};
        return collective;
    }
};

// Three ranks, seven elements: pieces of 3, 3 and 1.
TEST_F(LocalGroupTest, GathersReducesAndBroadcasts) {
    LocalGroup group({0, 1, 2}, 0);
    std::array<std::array<float, 7>, 3> gathered{}, reduced{}, everybody{}, sent{};
    std::array<std::array<float, 7>, 3> input{};
    for (std::size_t r = 0; r < 3; ++r) {
        for (std::size_t i = 0; i < 7; ++i) {
            input[r][i] = static_cast<float>(10 * r + i);
            sent[r][i] = input[r][i];
        }
    }
    const played_cuda::Machine slow{.gpus = 1, .memory = std::size_t{1} << 30, .delay_seed = 3};
    played_cuda::set_machine(slow);
    const auto thrown = all(3, [&](int place, CountedStream& stream) {
        const auto p = static_cast<std::size_t>(place);
        group.enqueue(
            launch(place, 3, 0, plan::Operation::all_gather, gathered[p].data(), input[p].data(), 7), stream);
        group.enqueue(
            launch(place, 3, 1, plan::Operation::reduce_scatter, reduced[p].data(), input[p].data(), 7, 3),
            stream);
        group.enqueue(
            launch(place, 3, 2, plan::Operation::all_reduce, everybody[p].data(), input[p].data(), 7),
            stream);
        group.enqueue(launch(place, 3, 3, plan::Operation::broadcast, sent[p].data(), sent[p].data(), 7),
                      stream);
        group.enqueue(launch(place, 3, 4, plan::Operation::barrier, nullptr, nullptr, 0), stream);
    });
    played_cuda::set_machine({});
    EXPECT_THAT(thrown, ::testing::Each(""));
    for (std::size_t r = 0; r < 3; ++r) {
        // Pieces begin at 0, 3 and 6; each rank's input begins with its own piece.
        EXPECT_THAT(gathered[r], ::testing::ElementsAre(0, 1, 2, 10, 11, 12, 20)) << r;
        EXPECT_EQ(sent[r], input[0]) << r;
        for (std::size_t i = 0; i < 7; ++i) {
            const float sum = static_cast<float>(30 + 3 * i);  // (i) + (10 + i) + (20 + i)
            EXPECT_EQ(everybody[r][i], sum) << r;
            if (i / 3 == r) {
                EXPECT_EQ(reduced[r][i - 3 * r], sum * static_cast<float>(1.0 / 3)) << r;
            }
        }
    }
}

TEST_F(LocalGroupTest, ExchangesPieces) {
    LocalGroup group({0, 1}, 0);
    std::array<std::array<float, 4>, 2> input{{{0, 1, 2, 3}, {10, 11, 12, 13}}}, output{};
    const auto thrown = all(2, [&](int place, CountedStream& stream) {
        const auto p = static_cast<std::size_t>(place);
        group.enqueue(launch(place, 2, 0, plan::Operation::all_to_all, output[p].data(), input[p].data(), 4),
                      stream);
    });
    EXPECT_THAT(thrown, ::testing::Each(""));
    EXPECT_THAT(output[0], ::testing::ElementsAre(0, 1, 10, 11));
    EXPECT_THAT(output[1], ::testing::ElementsAre(2, 3, 12, 13));
}

TEST_F(LocalGroupTest, ExchangesAsMuchAsTheCountsSay) {
    LocalGroup group({0, 1}, 0);
    const std::vector<std::int64_t> counts[2] = {{0, 3}, {1, 2}};
    std::array<std::array<float, 6>, 2> input{{{1, 2, 3, 4}, {11, 12, 13, 14}}}, output{};
    const auto thrown = all(2, [&](int place, CountedStream& stream) {
        const auto p = static_cast<std::size_t>(place);
        auto collective =
            launch(place, 2, 0, plan::Operation::all_to_all, output[p].data(), input[p].data(), 6);
        collective.call.sends = counts[p];
        collective.call.receives = {counts[0][p], counts[1][p]};
        group.enqueue(collective, stream);
    });
    EXPECT_THAT(thrown, ::testing::Each(""));
    EXPECT_THAT(output[0], ::testing::ElementsAre(11, 0, 0, 0, 0, 0));
    EXPECT_THAT(output[1], ::testing::ElementsAre(1, 2, 3, 12, 13, 0));
}

TEST_F(LocalGroupTest, AMemberThatDoesNotArriveIsNamed) {
    LocalGroup group({4, 6}, 0.05);
    std::array<float, 2> buffer{};
    const auto thrown = all(2, [&](int place, CountedStream& stream) {
        if (place == 1) return;
        group.enqueue(launch(place, 2, 0, plan::Operation::all_reduce, buffer.data(), buffer.data(), 2),
                      stream);
    });
    EXPECT_THAT(thrown[0], HasSubstr("rank 6 did not arrive at all_reduce 0"));
    EXPECT_THAT(thrown[0], HasSubstr("run.timeout"));
}

TEST_F(LocalGroupTest, MembersWithDifferentCallsAreReported) {
    LocalGroup group({0, 1}, 0.05);
    std::array<float, 4> buffer{};
    const auto thrown = all(2, [&](int place, CountedStream& stream) {
        group.enqueue(
            launch(place, 2, 0, plan::Operation::all_reduce, buffer.data(), buffer.data(), 2 + place),
            stream);
    });
    EXPECT_THAT(thrown[0] + thrown[1], HasSubstr("all_reduce of 2 fp32 elements"));
    EXPECT_THAT(thrown[0] + thrown[1], HasSubstr("all_reduce of 3 fp32 elements"));
}

TEST_F(LocalGroupTest, AFailureElsewhereEndsTheWait) {
    LocalGroup group({0, 1}, 0);
    std::array<float, 2> buffer{};
    const auto thrown = all(2, [&](int place, CountedStream& stream) {
        if (place == 1) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            return group.fail(std::make_exception_ptr(CudaError("the other has failed")));
        }
        group.enqueue(launch(place, 2, 0, plan::Operation::all_reduce, buffer.data(), buffer.data(), 2),
                      stream);
    });
    EXPECT_EQ(thrown[0], "the other has failed");
}

// bf16 is summed in fp32 and rounded once: 1 + 2^-8 + 2^-8 is 1.0078125, which bf16 can represent; rounded
// after each sum it would be 1.
TEST(LocalKernels, RoundBFloat16Once) {
    const std::array<kernels::Bf16, 1> one{kernels::to_bf16(1.0F)}, small{kernels::to_bf16(0.00390625F)};
    std::array<kernels::Bf16, 1> out{};
    MemberBuffers buffers;
    buffers.members = 3;
    buffers.in[0] = one.data();
    buffers.in[1] = buffers.in[2] = small.data();
    reduce_members(buffers, reinterpret_cast<Bf16*>(out.data()), 0, 1, 1.0, nullptr);
    EXPECT_EQ(kernels::to_float(out[0]), 1.0078125F);
}

// Bytes of 5 from the GPU by pinned memory into a file, and back over bytes of 6.
TEST(CudaFiles, PassByPinnedMemory) {
    constexpr std::int64_t kBytes = (1 << 16) + 5;
    constexpr plan::BufferId kGpu = 0, kPinned = 1, kFile = 2;
    using traces::schema::MemoryCategory;
    plan::PlanBuilder builder(plan::PlanKind::setup,
                              {{"on the GPU", MemoryCategory::other, plan::MemorySpace::device, kBytes},
                               {"pinned", MemoryCategory::other, plan::MemorySpace::pinned, kBytes},
                               {"in a file", MemoryCategory::other, plan::MemorySpace::disk, kBytes}});
    const plan::Arg gpu = builder.whole(kGpu), pinned = builder.whole(kPinned), file = builder.whole(kFile);
    for (const plan::BufferId buffer : {kGpu, kPinned, kFile})
        builder.allocate(buffer, plan::Stream::compute);
    const auto wait_for = [&](plan::Stream stream) {
        const plan::EventId event = builder.new_event();
        builder.record(event, stream);
        builder.host_wait(event);
    };
    builder.memset(gpu, plan::Stream::compute, 5);
    builder.memcpy(pinned, gpu, traces::schema::kCopyDeviceToHost);
    wait_for(plan::Stream::compute);
    builder.memcpy(file, pinned, traces::schema::kCopyHostToDisk, plan::Stream::disk_write);
    wait_for(plan::Stream::disk_write);
    builder.memset(gpu, plan::Stream::compute, 6);
    builder.memset(pinned, plan::Stream::host, 6);
    builder.memcpy(pinned, file, traces::schema::kCopyDiskToHost, plan::Stream::disk_read);
    wait_for(plan::Stream::disk_read);
    builder.memcpy(gpu, pinned, traces::schema::kCopyHostToDevice);

    device::DeviceSettings settings;
    executor::FileDevice device(std::make_unique<CudaDevice>(settings), {::testing::TempDir()});
    collective::Delays delays(0);
    const job::Job job;
    executor::Shared shared{device, delays, {}, job, false, {}, nullptr, nullptr, nullptr};
    executor::RankRunner runner(0, shared, -1, executor::HostCalls());
    runner.run(builder.take(), 0);
    runner.drain();
    for (const plan::Arg& each : {gpu, file})
        EXPECT_THAT(runner.contents(each).bytes(), ::testing::Each(std::byte{5}));
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::cuda
