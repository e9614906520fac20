// The reading end of a log: the content of a snapshot is delivered in order, complete or in parts.
#include "profiler/log/chunk_reader.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "profiler/log/thread_arena.h"
#include "profiler/log/thread_log.h"

namespace shardscope::profiler {
namespace TEST_FILE {

using Event = RecordOf<RuntimeFields>;

class Reading : public ::testing::Test {
  protected:
    // Records events whose correlation ids continue the previous numbers.
    void record(int events) {
        for (int i = 0; i < events; ++i) log_.runtime(NameId::none, Ticks(1), Ticks(2), ++recorded_);
    }
    // The number of bytes that drain() delivers.
    std::size_t drain(double share = 1) {
        std::size_t bytes = 0;
        reader_.drain(
            [&](std::uint32_t log, std::uint32_t tid, std::span<const std::byte> records) {
                EXPECT_EQ(log, 1u);
                EXPECT_EQ(tid, 42u);
                bytes += records.size();
                const auto* first = reinterpret_cast<const Event*>(records.data());
                EXPECT_EQ(first->fields.correlation, next_) << "in order";
                next_ += static_cast<std::int64_t>(records.size() / sizeof(Event));
            },
            share);
        return bytes;
    }

    MemoryBudget budget_{std::size_t{64} << 20};
    ThreadArena arena_{std::size_t{64} << 20, budget_};
    ThreadLog log_{&arena_.arena(), 1, 42};
    ChunkReader reader_{arena_.base(), ThreadArena::kChunkBytes, arena_.max_chunks(), arena_.control()};
    std::int64_t recorded_ = 0, next_ = 1;
};

constexpr int kPerChunk = ThreadArena::kChunkBytes / sizeof(Event);

TEST_F(Reading, hands_over_all_that_a_snapshot_saw) {
    record(10);
    reader_.snapshot();
    record(5);  // after the snapshot
    EXPECT_EQ(drain(), 10 * sizeof(Event));
    EXPECT_EQ(drain(), 0u);
    reader_.snapshot();
    EXPECT_EQ(drain(), 5 * sizeof(Event));
}

TEST_F(Reading, hands_over_a_snapshot_in_parts) {
    record(10 * kPerChunk);
    reader_.snapshot();
    const std::size_t all = reader_.bytes_seen();
    EXPECT_EQ(all, 10 * kPerChunk * sizeof(Event));
    // Only complete chunks are delivered: a part may exceed the request by less than one chunk.
    std::size_t bytes = 0;
    for (const double share : {0.25, 0.5, 0.75}) {
        bytes += drain(share);
        EXPECT_GE(static_cast<double>(bytes), share * static_cast<double>(all));
        EXPECT_LT(static_cast<double>(bytes), share * static_cast<double>(all) + ThreadArena::kChunkBytes);
    }
    EXPECT_EQ(bytes + drain(1), all);
    EXPECT_EQ(next_, recorded_ + 1);
}

// The rest of a snapshot is delivered with the next one.
TEST_F(Reading, continues_where_a_part_ended) {
    record(4 * kPerChunk);
    reader_.snapshot();
    EXPECT_GT(drain(0.3), 0u);
    record(kPerChunk);
    reader_.snapshot();
    drain();
    EXPECT_EQ(next_, recorded_ + 1);
}

}  // namespace TEST_FILE
}  // namespace shardscope::profiler
