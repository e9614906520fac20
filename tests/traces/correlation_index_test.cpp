// Rows by correlation id, searched by several threads.
#include "traces/store/columns/correlation_index.h"

#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace shardscope::traces::store {
namespace TEST_FILE {

// The index over all processes is made by the first search that needs it (the thread sanitizer would see a
// race).
TEST(CorrelationIndex, MayBeSearchedByManyThreadsAtOnce) {
    constexpr int kRows = 20'000, kThreads = 4;
    std::vector<std::int64_t> ids;
    std::vector<std::uint32_t> owner;
    for (int i = 0; i < kRows; ++i) {
        ids.push_back(1 + i / 2);  // each id once in either process
        owner.push_back(static_cast<std::uint32_t>(i % 2));
    }
    const std::vector<std::int64_t> processes = {100, 200};
    const CorrelationIndex index(ids, owner, processes);
    std::vector<int> wrong(kThreads, 0);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            const auto anywhere = index.place(0), second = index.place(200);
            for (int i = 0; i < kRows; i += 2) {
                wrong[static_cast<std::size_t>(t)] += index.find(1 + i / 2, anywhere) != i;
                wrong[static_cast<std::size_t>(t)] += index.find(1 + i / 2, second) != i + 1;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, std::vector<int>(kThreads, 0));
}

}  // namespace TEST_FILE
}  // namespace shardscope::traces::store
