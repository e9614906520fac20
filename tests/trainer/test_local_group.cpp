// Collectives of the local process group compared with their definitions: for even, odd and single groups,
// each element type, any number of elements, in place or not.
#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "trainer/collective/pieces.h"
#include "trainer/executor/local_group.h"
#include "trainer/kernels/elements.h"

namespace shardscope::trainer::executor {
namespace TEST_FILE {

using kernels::Bf16;
using kernels::to_float;
using Floats = std::vector<float>;

float to_float(float x) {
    return x;
}
float to_float(double x) {
    return static_cast<float>(x);
}

template <class T>
T from_float(float x) {
    if constexpr (std::is_same_v<T, Bf16>) {
        return kernels::to_bf16(x);
    } else {
        return static_cast<T>(x);
    }
}

template <class T>
constexpr plan::DType dtype_of() {
    return std::is_same_v<T, float>    ? plan::DType::fp32
           : std::is_same_v<T, double> ? plan::DType::fp64
                                       : plan::DType::bf16;
}

// Multiples of 1/4 up to 60: exact in bf16 too, and so are their sums in fp32.
float value(int rank, std::int64_t i) {
    return static_cast<float>((rank * 31 + i * 7) % 240) * 0.25F;
}

// ceil(elements / ranks): the size of a rank's piece; the last ones may have less.
std::int64_t piece_of(std::int64_t elements, int ranks) {
    return (elements + ranks - 1) / ranks;
}

class LocalGroupTest : public ::testing::TestWithParam<int> {
  protected:
    int ranks() const { return GetParam(); }

    // Runs one collective. Each rank's memory has `size` elements, of which element i starts as value(rank,
    // i); input and output begin at the given elements of it. Returns all memories.
    template <class T>
    std::vector<Floats> run(
        collective::CollectiveCall call, std::int64_t size,
        const std::function<std::int64_t(int rank)>& input,
        const std::function<std::int64_t(int rank)>& output,
        const std::function<void(int rank, collective::CollectiveCall& call)>& finish =
            [](int, collective::CollectiveCall&) {}) const {
        Scheduler scheduler(2, nullptr);
        LocalGroup group(ranks(), {}, nullptr, cache_bytes_);
        std::vector<std::vector<T>> memories;
        std::vector<device::StreamIndex> streams;
        for (int r = 0; r < ranks(); ++r) {
            std::vector<T>& memory = memories.emplace_back();
            for (std::int64_t i = 0; i < size; ++i) memory.push_back(from_float<T>(value(r, i)));
            streams.push_back(scheduler.add_stream());
        }
        call.dtype = dtype_of<T>();
        for (int r = 0; r < ranks(); ++r) {
            const auto rank = static_cast<std::size_t>(r);
            call.input = memories[rank].data() + input(r);
            call.output = memories[rank].data() + output(r);
            finish(r, call);
            scheduler.enqueue_arrival(streams[rank], {}, group.join(r, 0, call), rank);
        }
        scheduler.wait_all();
        std::vector<Floats> results;
        for (const auto& memory : memories) {
            Floats& result = results.emplace_back();
            for (const T x : memory) result.push_back(to_float(x));
        }
        return results;
    }
    static collective::CollectiveCall call_of(plan::Operation operation, std::int64_t full, int divisor = 1) {
        collective::CollectiveCall call;
        call.operation = operation;
        call.full_elements = full;
        call.divisor = divisor;
        return call;
    }
    // In rank order, divided once, rounded once to T.
    template <class T>
    float sum(std::int64_t i, int divisor) const {
        float total = value(0, i);
        for (int r = 1; r < ranks(); ++r) total += value(r, i);
        return to_float(from_float<T>(total * (1.0F / static_cast<float>(divisor))));
    }
    static std::int64_t zero(int) { return 0; }
    std::size_t cache_bytes_ = kernels::cached_bytes();

    template <class T>
    void all_gather(std::int64_t full, bool in_place) {
        const std::int64_t piece = piece_of(full, ranks());
        const auto results = run<T>(
            call_of(plan::Operation::all_gather, full), full + piece,
            [&](int r) { return in_place ? std::min(full, r * piece) : full; }, zero);
        for (const Floats& out : results) {
            for (std::int64_t i = 0; i < full; ++i) {
                const int owner = static_cast<int>(i / piece);
                const std::int64_t place = in_place ? i : full + i % piece;
                ASSERT_EQ(out[static_cast<std::size_t>(i)], to_float(from_float<T>(value(owner, place))));
            }
        }
    }
    template <class T>
    void reduce_scatter(std::int64_t full, bool in_place, int divisor) {
        const std::int64_t piece = piece_of(full, ranks());
        const auto first_of = [&](int r) { return std::min(full, r * piece); };
        const auto results = run<T>(call_of(plan::Operation::reduce_scatter, full, divisor), full + piece,
                                    zero, [&](int r) { return in_place ? first_of(r) : full; });
        for (int r = 0; r < ranks(); ++r) {
            const std::int64_t first = first_of(r), out = in_place ? first : full;
            for (std::int64_t i = 0; i < std::min(piece, full - first); ++i) {
                ASSERT_EQ(results[static_cast<std::size_t>(r)][static_cast<std::size_t>(out + i)],
                          sum<T>(first + i, divisor));
            }
        }
    }
    template <class T>
    void all_reduce(std::int64_t full, bool in_place, int divisor) {
        for (const Floats& out : run<T>(call_of(plan::Operation::all_reduce, full, divisor), 2 * full, zero,
                                        [&](int) { return in_place ? 0 : full; })) {
            for (std::int64_t i = 0; i < full; ++i) {
                ASSERT_EQ(out[static_cast<std::size_t>(in_place ? i : full + i)], sum<T>(i, divisor));
            }
        }
    }
};

constexpr std::int64_t kSizes[] = {1, 37, 5000, 10007};  // fewer than ranks, odd, more than a block

TEST_P(LocalGroupTest, AllGatherJoinsThePiecesInRankOrder) {
    for (const std::int64_t size : kSizes) {
        for (const bool in_place : {false, true}) {
            all_gather<float>(size, in_place);
            all_gather<Bf16>(size, in_place);
            all_gather<double>(size, in_place);
        }
    }
}

TEST_P(LocalGroupTest, AllToAllExchangesPieces) {
    for (const std::int64_t piece : kSizes) {
        const std::int64_t full = piece * ranks();
        const auto results =
            run<float>(call_of(plan::Operation::all_to_all, full), 2 * full, zero, [&](int) { return full; });
        for (int r = 0; r < ranks(); ++r) {
            for (std::int64_t i = 0; i < full; ++i) {
                ASSERT_EQ(results[static_cast<std::size_t>(r)][static_cast<std::size_t>(full + i)],
                          value(static_cast<int>(i / piece), r * piece + i % piece));
            }
        }
    }
}

// From rank i to rank j go (3 i + 5 j) mod 7 elements, some of them none.
TEST_P(LocalGroupTest, AllToAllExchangesAsMuchAsTheCountsSay) {
    const auto count = [](int from, int to) { return std::int64_t{(3 * from + 5 * to) % 7}; };
    const std::int64_t room = 7 * ranks();
    const auto results = run<float>(
        call_of(plan::Operation::all_to_all, room), 2 * room, zero, [&](int) { return room; },
        [&](int rank, collective::CollectiveCall& call) {
            call.sends.clear();
            call.receives.clear();
            for (int other = 0; other < ranks(); ++other) {
                call.sends.push_back(count(rank, other));
                call.receives.push_back(count(other, rank));
            }
        });
    for (int r = 0; r < ranks(); ++r) {
        std::int64_t at = room;
        for (int from = 0; from < ranks(); ++from) {
            std::int64_t sent = 0;
            for (int before = 0; before < r; ++before) sent += count(from, before);
            for (std::int64_t i = 0; i < count(from, r); ++i, ++at)
                ASSERT_EQ(results[static_cast<std::size_t>(r)][static_cast<std::size_t>(at)],
                          value(from, sent + i));
        }
        ASSERT_EQ(results[static_cast<std::size_t>(r)][static_cast<std::size_t>(at)], value(r, at));
    }
}

TEST(SentRangeTest, RefusesMembersThatExpectOtherNumbersThanAreSent) {
    collective::CollectiveCall call;
    call.sends = {1, 2};
    call.receives = {1, 2};
    std::vector<collective::CollectiveCall> calls(2, call);
    EXPECT_THROW(collective::sent_between(calls, 0, 1), std::logic_error);  // 2 are sent, 1 is expected
    calls[1].receives = {2, 2};
    const auto [sent, received] = collective::sent_between(calls, 0, 1);
    EXPECT_EQ(sent.begin, 1);
    EXPECT_EQ(sent.end, 3);
    EXPECT_EQ(received.begin, 0);
    EXPECT_EQ(received.end, 2);
}

TEST_P(LocalGroupTest, ReduceScatterSumsInRankOrderAndDividesOnce) {
    for (const std::int64_t size : kSizes) {
        for (const bool in_place : {false, true}) {
            for (const int divisor : {1, ranks(), 6}) {
                reduce_scatter<float>(size, in_place, divisor);
                reduce_scatter<Bf16>(size, in_place, divisor);
            }
            reduce_scatter<double>(size, in_place, 4);
        }
    }
}

TEST_P(LocalGroupTest, AllReduceGivesEveryRankTheSameSums) {
    for (const std::int64_t size : kSizes) {
        for (const bool in_place : {false, true}) {
            for (const int divisor : {1, ranks(), 6}) {
                all_reduce<float>(size, in_place, divisor);
                all_reduce<Bf16>(size, in_place, divisor);
            }
            all_reduce<double>(size, in_place, 4);
        }
    }
}

TEST_P(LocalGroupTest, SumsThatBypassTheCachesAreTheSame) {
    cache_bytes_ = 4000;
    for (const std::int64_t size : kSizes) {
        for (const bool in_place : {false, true}) {
            reduce_scatter<float>(size, in_place, 6);
            reduce_scatter<Bf16>(size, in_place, 6);
            reduce_scatter<double>(size, in_place, 4);
            all_reduce<float>(size, in_place, 6);
            all_reduce<Bf16>(size, in_place, 6);
            all_reduce<double>(size, in_place, 4);
        }
    }
}

TEST_P(LocalGroupTest, BroadcastGivesTheFirstMembersValues) {
    for (const Floats& out : run<Bf16>(call_of(plan::Operation::broadcast, 100), 100, zero, zero)) {
        for (std::int64_t i = 0; i < 100; ++i) ASSERT_EQ(out[static_cast<std::size_t>(i)], value(0, i));
    }
}

TEST_P(LocalGroupTest, BarrierMovesNothing) {
    const Floats memory = run<float>(call_of(plan::Operation::barrier, 0), 3, zero, zero)[0];
    EXPECT_EQ(memory, (Floats{value(0, 0), value(0, 1), value(0, 2)}));
}

INSTANTIATE_TEST_SUITE_P(Sizes, LocalGroupTest, ::testing::Values(1, 2, 3, 4, 8),
                         ::testing::PrintToStringParamName());

// 1 + 2^-8 + 2^-8: rounding after each addition would lose both (ties go to the even 1); rounding once keeps
// their sum, 2^-7.
TEST(LocalGroup, SumsOfBf16AreRoundedOnce) {
    Scheduler scheduler(1, nullptr);
    LocalGroup group(3);
    std::vector<Bf16> values = {kernels::to_bf16(1), kernels::to_bf16(0x1p-8F), kernels::to_bf16(0x1p-8F)};
    std::vector<device::StreamIndex> streams(3);
    for (device::StreamIndex& stream : streams) stream = scheduler.add_stream();
    for (int rank = 0; rank < 3; ++rank) {
        Bf16* mine = &values[static_cast<std::size_t>(rank)];
        scheduler.enqueue_arrival(
            streams[static_cast<std::size_t>(rank)], {},
            group.join(rank, 0, {plan::Operation::all_reduce, plan::DType::bf16, mine, mine, 1, 1}),
            static_cast<std::size_t>(rank));
    }
    scheduler.wait_all();
    for (const Bf16 x : values) EXPECT_EQ(to_float(x), 1 + 0x1p-7F);
}

TEST(LocalGroup, RefusesRanksThatDisagree) {
    LocalGroup group(2);
    float x = 0;
    const auto join = [&](int place, int sequence, plan::Operation operation, plan::DType dtype, int elements,
                          int divisor) {
        group.join(place, sequence, {operation, dtype, &x, &x, elements, divisor});
    };
    for (int sequence = 0; sequence < 4; ++sequence) {
        join(0, sequence, plan::Operation::all_reduce, plan::DType::fp32, 1, 2);
    }
    EXPECT_THROW(join(1, 0, plan::Operation::broadcast, plan::DType::fp32, 1, 2), std::logic_error);
    EXPECT_THROW(join(1, 1, plan::Operation::all_reduce, plan::DType::bf16, 1, 2), std::logic_error);
    EXPECT_THROW(join(1, 2, plan::Operation::all_reduce, plan::DType::fp32, 2, 2), std::logic_error);
    EXPECT_THROW(join(1, 3, plan::Operation::all_reduce, plan::DType::fp32, 1, 1), std::logic_error);
}

// 6 ranks, shard groups of 2: {0,1} {2,3} {4,5}; the replicate groups {0,2,4} {1,3,5}.
TEST(LocalGroups, ThereIsOneForEachCommunicatorOfTheMesh) {
    const plan::Mesh mesh{6, 2};
    LocalGroups groups(mesh);
    EXPECT_EQ(groups.of(mesh.id(plan::Group::world, 5)).members(), 6);
    for (int rank = 0; rank < 6; ++rank) {
        EXPECT_EQ(groups.of(mesh.id(plan::Group::shard, rank)).members(), 2);
        EXPECT_EQ(groups.of(mesh.id(plan::Group::replicate, rank)).members(), 3);
        for (int other = 0; other < 6; ++other) {
            const auto same = [&](plan::Group group) {
                return &groups.of(mesh.id(group, rank)) == &groups.of(mesh.id(group, other));
            };
            EXPECT_EQ(same(plan::Group::shard), rank / 2 == other / 2);
            EXPECT_EQ(same(plan::Group::replicate), rank % 2 == other % 2);
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::executor
