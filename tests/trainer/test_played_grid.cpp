// The simulated CUDA itself: a grid's threads meet at barriers as on a device, and what is undefined on a
// device is a failure with a sentence. The tests of kernels depend on it.
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/cuda/blocks.h"

namespace shardscope::trainer::cuda {
namespace TEST_FILE {

using ::testing::HasSubstr;

// The error with which the simulation of this kernel ends; empty if it succeeds.
template <class Kernel>
std::string sentence(dim3 grid, dim3 block, std::size_t shared_bytes, Kernel kernel) {
    try {
        played_cuda::run_grid(grid, block, shared_bytes, kernel);
    } catch (const played_cuda::PlayError& error) {
        return error.what();
    }
    return "";
}

TEST(PlayedGrid, RunsEachThreadOfEachBlockOnce) {
    std::vector<int> visits(std::size_t{2 * 3 * 4} * 5 * 2 * 3, 0);
    played_cuda::run_grid({2, 3, 4}, {5, 2, 3}, 0, [&] {
        const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        ++visits[block * 30 + thread];
    });
    EXPECT_EQ(visits, std::vector<int>(visits.size(), 1));
}

// Thread t writes t, then reads its neighbour's: without a barrier thread 0 would read uninitialized memory.
TEST(PlayedGrid, HoldsThreadsAtABarrierUntilAllHaveArrived) {
    std::vector<int> seen(100, -1);
    played_cuda::run_grid(1, 100, 100 * sizeof(int), [&] {
        int* slots = dynamic_shared<int>();
        slots[threadIdx.x] = static_cast<int>(threadIdx.x);
        __syncthreads();
        seen[threadIdx.x] = slots[(threadIdx.x + 1) % 100];
    });
    for (int t = 0; t < 100; ++t) EXPECT_EQ(seen[static_cast<std::size_t>(t)], (t + 1) % 100);
}

TEST(PlayedGrid, FillsDynamicSharedMemoryWithNaNForEachBlock) {
    played_cuda::run_grid(3, 32, 64 * sizeof(float), [] {
        float* values = dynamic_shared<float>();
        EXPECT_TRUE(std::isnan(values[threadIdx.x]));
        values[threadIdx.x] = 1.0f;
    });
}

TEST(PlayedWarp, ShufflesAsTheProgrammingGuideHasIt) {
    played_cuda::run_grid(1, 32, 0, [] {
        const int lane = static_cast<int>(threadIdx.x);
        EXPECT_EQ(__shfl_sync(kAllLanes, lane, 5), 5);
        EXPECT_EQ(__shfl_sync(kAllLanes, lane, 5, 8), lane / 8 * 8 + 5);
        EXPECT_EQ(__shfl_xor_sync(kAllLanes, lane, 16), lane ^ 16);
        EXPECT_EQ(__shfl_down_sync(kAllLanes, lane, 3), lane < 29 ? lane + 3 : lane);
        EXPECT_EQ(__shfl_up_sync(kAllLanes, lane, 3), lane >= 3 ? lane - 3 : lane);
        EXPECT_EQ(__ballot_sync(kAllLanes, lane % 2), 0xaaaaaaaau);
        EXPECT_TRUE(__any_sync(kAllLanes, lane == 7));
        EXPECT_FALSE(__all_sync(kAllLanes, lane != 7));
    });
}

TEST(PlayedWarp, LetsHalvesShuffleAmongThemselves) {
    played_cuda::run_grid(1, 32, 0, [] {
        const unsigned lane = threadIdx.x;
        if (lane < 16) {
            EXPECT_EQ(__shfl_xor_sync(0xffffu, lane, 8), lane ^ 8u);
        } else {
            EXPECT_EQ(__shfl_xor_sync(0xffff0000u, lane, 4), lane ^ 4u);
        }
        __syncthreads();
    });
}

// 1 + 2 + … + 256 twice: the second sum must not use slots of the first.
TEST(PlayedGrid, SumsAWholeBlock) {
    played_cuda::run_grid(2, 256, 0, [] {
        EXPECT_EQ(block_sum(static_cast<double>(threadIdx.x + 1)), 256 * 257 / 2);
        EXPECT_EQ(block_sum(static_cast<double>(2 * threadIdx.x)), 255 * 256);
        EXPECT_EQ(block_max(-static_cast<float>(threadIdx.x) - 1.0f), -1.0f);
    });
}

TEST(PlayedGrid, CountsByAtomicsAndVotes) {
    int count = 0;
    std::int32_t flag = -1;
    played_cuda::run_grid(4, 64, 0, [&] {
        atomicAdd(&count, 1);
        atomicCAS(&flag, -1, static_cast<std::int32_t>(blockIdx.x));
        EXPECT_EQ(__syncthreads_count(threadIdx.x < 10), 10);
    });
    EXPECT_EQ(count, 256);
    EXPECT_EQ(flag, 0);
}

// --- what a device leaves undefined ------------------------------------------------------------------------

TEST(PlayedGrid, RefusesABarrierThatNotAllThreadsMeet) {
    EXPECT_THAT(
        sentence(1, 64, 0,
                 [] {
                     if (threadIdx.x != 40) __syncthreads();
                 }),
        HasSubstr("thread (40, 0, 0) of block (0, 0, 0) does not meet __syncthreads, at which thread"));
}

TEST(PlayedWarp, RefusesAMaskOfLanesThatDoNotArrive) {
    EXPECT_THAT(sentence(1, 32, 0,
                         [] {
                             if (threadIdx.x < 31) __syncwarp();
                         }),
                HasSubstr("waits at __syncwarp for lanes of its mask that do not come"));
    EXPECT_THAT(sentence(1, 32, 0, [] { __shfl_sync(1u, 0, 0); }),
                HasSubstr("a mask that lacks its own lane"));
}

TEST(PlayedGrid, RefusesAnAccessBeyondDynamicSharedMemory) {
    EXPECT_THAT(sentence({3}, 32, 16 * sizeof(int),
                         [] {
                             if (blockIdx.x == 2) dynamic_shared<volatile int>()[threadIdx.x] = 0;
                         }),
                HasSubstr("thread (16, 0, 0) of block (2, 0, 0) reads or writes beyond the 64 bytes"));
    // and continues with the next grid
    EXPECT_EQ(sentence(1, 16, 64, [] { dynamic_shared<int>()[threadIdx.x] = 0; }), "");
}

TEST(PlayedGrid, RefusesBlocksAndSharedMemoryThatNoDeviceHas) {
    EXPECT_THAT(sentence(1, 1025, 0, [] {}), HasSubstr("blocks of 1025 threads"));
    EXPECT_THAT(sentence(1, 32, 300000, [] {}), HasSubstr("300000 bytes of dynamic shared memory"));
}

TEST(PlayedGrid, PassesOnWhatAKernelThrows) {
    EXPECT_THROW(played_cuda::run_grid(1, 64, 0,
                                       [] {
                                           if (threadIdx.x == 3) throw std::runtime_error("three");
                                           __syncthreads();
                                       }),
                 std::runtime_error);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::cuda
