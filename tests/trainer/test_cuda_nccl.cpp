// The `nccl` process group over the simulated NCCL: its calls, and what its watchdog reports and ends.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/played_cuda/nccl.h"
#include "tests/trainer/played_cuda/runtime_api.h"
#include "trainer/cuda/nccl_group.h"
#include "trainer/plan/mesh.h"

namespace shardscope::trainer::cuda {
namespace TEST_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class NcclGroups : public ::testing::Test {
  protected:
    NcclGroups() { played_cuda::set_machine({.gpus = 4}); }
    ~NcclGroups() override {
        played_nccl::set_async_error(0);
        played_cuda::set_machine({});
    }

    // Each member calls on a thread of its own; returns what it threw.
    template <class Call>
    std::vector<std::string> all(std::size_t members, const Call& call) {
        std::vector<std::string> thrown(members);
        std::vector<std::thread> threads;
        for (std::size_t place = 0; place < members; ++place) {
            threads.emplace_back([&, place] {
                try {
                    CountedStream stream(true);
                    call(static_cast<int>(place), stream);
                    check(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
                } catch (const std::exception& error) {
                    thrown[place] = error.what();
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        return thrown;
    }
    static device::CollectiveLaunch launch(int place, std::int64_t sequence, plan::Operation operation,
                                           void* output, const void* input, std::int64_t elements,
                                           int divisor = 1) {
        device::CollectiveLaunch collective;
        collective.place = place;
        collective.members = 2;
        collective.sequence = sequence;
        collective.call = {operation, plan::DType::fp32, output, input, elements, divisor};
        return collective;
    }
    // Waits until the watchdog has ended the group.
    static std::string ended(Group& group, int place, CountedStream& stream, float* buffer) {
        for (int i = 1; i < 400; ++i) {
            try {
                group.enqueue(launch(place, i, plan::Operation::barrier, nullptr, nullptr, 0), stream);
            } catch (const std::exception& error) {
                return error.what();
            }
            (void)buffer;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return "it never ended";
    }
};

TEST_F(NcclGroups, MoveAndSumWhatTheyAreGiven) {
    const auto groups = make_nccl_groups(played_nccl::library(), {{0, 1}}, {0, 1}, 0);
    ASSERT_THAT(groups, SizeIs(1));
    std::array<std::array<float, 4>, 2> input{{{1, 2, 3, 4}, {10, 20, 30, 40}}};
    std::array<std::array<float, 4>, 2> gathered{}, scattered{}, averaged{}, divided{}, sent{};
    const auto thrown = all(2, [&](int place, CountedStream& stream) {
        Group& group = *groups[0];
        const auto p = static_cast<std::size_t>(place);
        const float* in = input[p].data();
        group.enqueue(launch(place, 0, plan::Operation::all_gather, gathered[p].data(), in, 4), stream);
        group.enqueue(launch(place, 1, plan::Operation::reduce_scatter, scattered[p].data(), in, 4), stream);
        group.enqueue(launch(place, 2, plan::Operation::all_reduce, averaged[p].data(), in, 4, 2), stream);
        group.enqueue(launch(place, 3, plan::Operation::all_reduce, divided[p].data(), in, 4, 4), stream);
        group.enqueue(launch(place, 4, plan::Operation::broadcast, sent[p].data(), in, 4), stream);
    });
    EXPECT_THAT(thrown, ::testing::Each(""));
    EXPECT_THAT(gathered[0], ElementsAre(1, 2, 10, 20)) << "the first two of each";
    EXPECT_EQ(gathered[1], gathered[0]);
    EXPECT_THAT(scattered[0], ElementsAre(11, 22, 0, 0));
    EXPECT_THAT(scattered[1], ElementsAre(33, 44, 0, 0));
    EXPECT_THAT(averaged[1], ElementsAre(5.5F, 11, 16.5F, 22)) << "over 2, by NCCL's average";
    EXPECT_THAT(divided[0], ElementsAre(2.75F, 5.5F, 8.25F, 11)) << "over 4, after NCCL's sum";
    EXPECT_EQ(sent[1], input[0]);
}

TEST_F(NcclGroups, SmallerGroupsGetCommunicatorsOfTheirOwn) {
    const int made = played_nccl::made(), gone = played_nccl::gone();
    {
        // HYBRID_SHARD of 4 ranks, 2 x 2: the world, two shard groups, two replicate groups.
        const auto groups = make_nccl_groups(played_nccl::library(),
                                             {{0, 1, 2, 3}, {0, 1}, {2, 3}, {0, 2}, {1, 3}}, {0, 1, 2, 3}, 0);
        EXPECT_THAT(groups, SizeIs(5));
        EXPECT_EQ(played_nccl::made() - made, 4 + 2 + 2 + 2 + 2);
    }
    EXPECT_EQ(played_nccl::gone() - gone, 12);
    const int again = played_nccl::made();
    make_nccl_groups(played_nccl::library(), plan::Mesh{2, 2}.communicators(), {0, 1}, 0);
    EXPECT_EQ(played_nccl::made() - again, 2 + 1 + 1) << "the shard group is the world again";
}

// Three members with pieces of two elements.
TEST_F(NcclGroups, ExchangePieces) {
    const auto groups = make_nccl_groups(played_nccl::library(), {{0, 1, 2}}, {0, 1, 2}, 0);
    std::array<std::array<float, 6>, 3> input{}, output{};
    const auto thrown = all(3, [&](int place, CountedStream& stream) {
        const auto p = static_cast<std::size_t>(place);
        for (std::size_t i = 0; i < 6; ++i) input[p][i] = static_cast<float>(10 * p + i);
        groups[0]->enqueue(
            launch(place, 0, plan::Operation::all_to_all, output[p].data(), input[p].data(), 6), stream);
    });
    EXPECT_THAT(thrown, ::testing::Each(""));
    EXPECT_THAT(output[0], ElementsAre(0, 1, 10, 11, 20, 21));
    EXPECT_THAT(output[1], ElementsAre(2, 3, 12, 13, 22, 23));
    EXPECT_THAT(output[2], ElementsAre(4, 5, 14, 15, 24, 25));
}

// Three elements go from the first to the second, one the other way, two from the second to itself.
TEST_F(NcclGroups, ExchangeAsMuchAsTheCountsSay) {
    const auto groups = make_nccl_groups(played_nccl::library(), {{0, 1}}, {0, 1}, 0);
    const std::vector<std::int64_t> counts[2] = {{0, 3}, {1, 2}};
    std::array<std::array<float, 6>, 2> input{}, output{};
    const auto thrown = all(2, [&](int place, CountedStream& stream) {
        const auto p = static_cast<std::size_t>(place);
        for (std::size_t i = 0; i < 6; ++i) input[p][i] = static_cast<float>(10 * p + i + 1);
        auto collective = launch(place, 0, plan::Operation::all_to_all, output[p].data(), input[p].data(), 6);
        collective.call.sends = counts[p];
        collective.call.receives = {counts[0][p], counts[1][p]};
        groups[0]->enqueue(collective, stream);
    });
    EXPECT_THAT(thrown, ::testing::Each(""));
    EXPECT_THAT(output[0], ElementsAre(11, 0, 0, 0, 0, 0));
    EXPECT_THAT(output[1], ElementsAre(1, 2, 3, 12, 13, 0));
}

// Ranks 0 and 1 are pipeline stages that send to each other at the same time, three messages each way, and
// receive only then: each direction is a communicator of its own, with a stream of its own.
TEST_F(NcclGroups, SendMessagesBothWaysAtTheSameTime) {
    const plan::Mesh mesh{2, 1, 1, 2};
    const auto groups = make_nccl_groups(played_nccl::library(), mesh.communicators(), {0, 1}, 0, nullptr,
                                         mesh.channel_count());
    constexpr int kMessages = 3;
    std::array<std::array<std::array<float, 4>, kMessages>, 2> sent{}, received{};
    const auto thrown = all(2, [&](int rank, CountedStream& stream) {
        const auto r = static_cast<std::size_t>(rank);
        CountedStream receives(true);
        for (int m = 0; m < kMessages; ++m) {
            auto& own = sent[r][static_cast<std::size_t>(m)];
            for (std::size_t i = 0; i < own.size(); ++i)
                own[i] = static_cast<float>(100 * rank + 10 * m) + static_cast<float>(i);
            groups[static_cast<std::size_t>(mesh.channel(rank, 1 - rank))]->enqueue(
                launch(0, m, plan::Operation::send, own.data(), own.data(), 4), stream);
        }
        for (int m = 0; m < kMessages; ++m) {
            auto& own = received[r][static_cast<std::size_t>(m)];
            groups[static_cast<std::size_t>(mesh.channel(1 - rank, rank))]->enqueue(
                launch(1, m, plan::Operation::recv, own.data(), own.data(), 4), receives);
        }
        check(cudaStreamSynchronize(receives.get()), "cudaStreamSynchronize");
    });
    EXPECT_THAT(thrown, ::testing::Each(""));
    EXPECT_EQ(received[0], sent[1]);
    EXPECT_EQ(received[1], sent[0]);
}

TEST_F(NcclGroups, TheWatchdogNamesTheSenderOfAMessageThatDoesNotCome) {
    const plan::Mesh mesh{2, 1, 1, 2};
    const auto groups = make_nccl_groups(played_nccl::library(), mesh.communicators(), {0, 1}, 0.1, nullptr,
                                         mesh.channel_count());
    Group& channel = *groups[static_cast<std::size_t>(mesh.channel(1, 0))];
    channel.watch([](const std::exception_ptr&) {});
    std::array<float, 4> buffer{};
    CountedStream stream(true);
    channel.enqueue(launch(1, 0, plan::Operation::recv, buffer.data(), buffer.data(), 4), stream);
    const std::string why = ended(channel, 1, stream, buffer.data());
    EXPECT_THAT(why, HasSubstr("rank 0: recv of 4 fp32 elements (number 0"));
    EXPECT_THAT(why, HasSubstr("rank 1 has not begun it"));
    channel.end_watch();
}

TEST_F(NcclGroups, RefuseSizesThatDoNotDivide) {
    const auto groups = make_nccl_groups(played_nccl::library(), {{0, 1}}, {0, 1}, 0);
    std::array<float, 4> buffer{};
    CountedStream stream(true);
    EXPECT_THROW(groups[0]->enqueue(
                     launch(0, 0, plan::Operation::all_gather, buffer.data(), buffer.data(), 3), stream),
                 std::logic_error);
}

TEST_F(NcclGroups, TheWatchdogNamesTheRankThatDoesNotArriveAndReleasesTheOthers) {
    const auto groups = make_nccl_groups(played_nccl::library(), {{4, 7}}, {0, 0, 0, 0, 0, 0, 0, 1}, 0.1);
    std::atomic<int> told = 0;
    groups[0]->watch([&](const std::exception_ptr&) { ++told; });
    std::array<float, 4> in{}, out{};
    CountedStream stream(true);
    groups[0]->enqueue(launch(0, 0, plan::Operation::all_reduce, out.data(), in.data(), 4), stream);
    EXPECT_THAT(groups[0]->waiting(),
                HasSubstr("all_reduce of 4 fp32 elements over 1 (number 0 of communicator 0"));
    const std::string why = ended(*groups[0], 0, stream, out.data());
    EXPECT_THAT(why, HasSubstr("rank 4: all_reduce of 4 fp32 elements"));
    EXPECT_THAT(why, HasSubstr("did not end within the 0.1 s of run.timeout"));
    EXPECT_THAT(why, HasSubstr("rank 7 has not begun it"));
    EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess) << "the stream was let go";
    groups[0]->end_watch();
    EXPECT_EQ(told, 1) << "also where no call meets the failure";
}

TEST_F(NcclGroups, TheWatchdogReportsNcclsError) {
    const auto groups = make_nccl_groups(played_nccl::library(), {{0, 1}}, {0, 1}, 0);
    groups[0]->watch({});
    CountedStream stream(true);
    played_nccl::set_async_error(6);
    const std::string why = ended(*groups[0], 0, stream, nullptr);
    EXPECT_THAT(why, HasSubstr("NCCL failed: remote process exited"));
}

TEST_F(NcclGroups, AFailureElsewhereAbortsThem) {
    const auto groups = make_nccl_groups(played_nccl::library(), {{0, 1}}, {0, 1}, 0);
    std::array<float, 2> in{}, out{};
    CountedStream stream(true);
    groups[0]->enqueue(launch(0, 0, plan::Operation::all_reduce, out.data(), in.data(), 2), stream);
    groups[0]->fail(std::make_exception_ptr(CudaError("rank 1: out of memory")));
    EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
    EXPECT_EQ(ended(*groups[0], 0, stream, out.data()), "rank 1: out of memory");
}

// An abort frees memory that the call reads.
TEST_F(NcclGroups, AFailureAbortsNoCommunicatorThatACallUses) {
    const int before = played_nccl::aborted_in_calls(), gone = played_nccl::gone();
    const auto groups = make_nccl_groups(played_nccl::library(), {{0, 1}}, {0, 1}, 0);
    std::array<float, 2> in{}, out{};
    played_nccl::hold_calls(true);
    std::thread caller([&] {
        CountedStream stream(true);
        groups[0]->enqueue(launch(0, 0, plan::Operation::all_reduce, out.data(), in.data(), 2), stream);
        EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess) << "the stream was let go";
    });
    while (played_nccl::calls_held() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::thread failing(
        [&] { groups[0]->fail(std::make_exception_ptr(CudaError("rank 1: out of memory"))); });
    for (int i = 0; i < 20 && played_nccl::gone() == gone; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(played_nccl::gone(), gone) << "the call has not returned";
    played_nccl::hold_calls(false);
    failing.join();
    caller.join();
    EXPECT_EQ(played_nccl::gone(), gone + 2);
    EXPECT_EQ(played_nccl::aborted_in_calls(), before);
}

TEST(NcclLibraries, AMissingOneIsReported) {
    ::setenv("SHARDSCOPE_NCCL", "/nonexistent/libnccl.so.2", 1);
    std::string why;
    EXPECT_EQ(NcclLibrary::open(why), nullptr);
    EXPECT_THAT(why, HasSubstr("/nonexistent/libnccl.so.2 cannot be opened"));
    EXPECT_THAT(why, HasSubstr("run.comm = \"local\""));
    ::unsetenv("SHARDSCOPE_NCCL");
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::cuda
