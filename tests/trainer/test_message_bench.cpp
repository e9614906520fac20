// The bench of messages over a wire alone, between two threads over a wire in memory. Times are not compared
// with anything: only their presence, the sizes and what is refused.
#include <cmath>
#include <future>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory_wire.h"
#include "trainer/comm/message_bench.h"

namespace shardscope::trainer::comm {
namespace TEST_FILE {

using ::testing::HasSubstr;

struct Figures {
    double latency = 0, one_way = 0, both_ways = 0;
};

MessageBenchOptions quick(double timeout_s) {
    MessageBenchOptions options;
    options.seconds = 0.001;
    options.rounds = 2;
    options.polls = false;
    options.timeout_s = timeout_s;
    return options;
}

// What ranks 0 and 1 measure; rank 0 is the first.
std::vector<Figures> measured(testing::MemoryWires& wires, std::int64_t bytes) {
    const auto side = [&](int rank) {
        const std::unique_ptr<Wire> wire = wires.wire(rank);
        const std::vector<std::byte> out(static_cast<std::size_t>(bytes), std::byte(rank + 1));
        std::vector<std::byte> in(out.size());
        MessageBench bench(*wire, out, in, quick(60));
        const Figures figures{bench.latency_us(1 - rank, rank == 0, bytes),
                              bench.one_way_us(1 - rank, rank == 0, bytes),
                              bench.both_ways_us(1 - rank, rank == 0, bytes)};
        EXPECT_EQ(in.back(), std::byte(2 - rank)) << "the other's message has come";
        return figures;
    };
    auto other = std::async(std::launch::async, side, 1);
    const Figures first = side(0);
    return {first, other.get()};
}

TEST(MessageBench, GivesTheFirstItsFigures) {
    for (const std::int64_t bytes : {std::int64_t{8}, std::int64_t{1} << 20}) {
        testing::MemoryWires wires(2);
        const std::vector<Figures> both = measured(wires, bytes);
        for (const double us : {both[0].latency, both[0].one_way, both[0].both_ways}) {
            EXPECT_GT(us, 0);
            EXPECT_TRUE(std::isfinite(us));
        }
        for (const double us : {both[1].latency, both[1].one_way, both[1].both_ways}) EXPECT_EQ(us, 0);
    }
}

TEST(MessageBench, SendsWindowsOf64AsLongAsTheyAreNotTooLarge) {
    EXPECT_EQ(window_of(8), 64);
    EXPECT_EQ(window_of(4 << 20), 64);
    EXPECT_EQ(window_of(16 << 20), 16);
    EXPECT_EQ(window_of(std::int64_t{1} << 40), 1);
    testing::MemoryWires wires(2);
    constexpr std::int64_t kBytes = 64;
    measured(wires, kBytes);
    // Of round trips, windows one way and both ways, with at least two rounds of one exchange each.
    EXPECT_GE(wires.bytes_sent(0), kBytes * 2 * (1 + 64 + 64));
}

TEST(MessageBench, NamesARankThatDoesNotAnswer) {
    testing::MemoryWires wires(2);
    const std::unique_ptr<Wire> wire = wires.wire(0);
    const std::vector<std::byte> out(8);
    std::vector<std::byte> in(8);
    MessageBench bench(*wire, out, in, quick(0.01));
    try {
        bench.latency_us(1, true, 8);
        FAIL() << "nobody answers";
    } catch (const WireError& error) {
        EXPECT_EQ(error.peer(), 1);
        EXPECT_THAT(error.what(), HasSubstr("rank 1 has not answered"));
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::comm
