// Collectives over a wire compared with their definitions: bit by bit for sums in rank order, for any number
// of members, type and size, in place or not, however messages are delayed.
#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "collective_testing.h"
#include "trainer/comm/ring_order.h"

namespace shardscope::trainer::comm {
namespace TEST_FILE {

using namespace testing;  // NOLINT(google-build-using-namespace)

// Several blocks for each of five members; fewer under a sanitizer, because it is slow.
#ifdef SHARDSCOPE_SANITIZED
constexpr std::int64_t kLarge = 150001;
#else
constexpr std::int64_t kLarge = 1000003;
#endif
constexpr std::int64_t kMiddle = kLarge < 300001 ? kLarge : 300001;

// One collective among all ranks; returns the number of wrong elements on all ranks.
template <class T>
std::int64_t run(GroupRig& rig, plan::Operation operation, const std::shared_ptr<const Terms<T>>& terms,
                 bool in_place, int divisor, double tolerance) {
    const int n = rig.ranks();
    std::vector<std::unique_ptr<Part<T>>> parts;
    std::vector<std::future<void>> futures;
    for (int r = 0; r < n; ++r) {
        parts.push_back(std::make_unique<Part<T>>(operation, terms, r, in_place, divisor));
        Part<T>& part = *parts.back();
        futures.push_back(rig.begin(r, rig.launch(r, part.call()), [&part] { part.overwrite_input(); }));
    }
    std::int64_t wrong = 0;
    for (auto& future : futures) {
        const std::string error = error_of(future);
        EXPECT_EQ(error, "");
        if (!error.empty()) return -1;
    }
    for (auto& part : parts) wrong += part->wrong(tolerance);
    return wrong;
}

class CollectiveGroupTest : public ::testing::TestWithParam<int> {
  protected:
    template <class T>
    void check(Sums sums, std::uint64_t seed, const std::vector<std::int64_t>& sizes, bool look = false) {
        GroupRig rig(GetParam(), {.sums = sums, .seed = seed, .look = look});
        // A ring rounds its sums of bf16, to 8 bits, at each hop.
        const double tolerance = sums == Sums::ordered ? 0 : std::is_same_v<T, Bf16> ? 0.02 : 1e-6;
        for (const std::int64_t size : sizes) {
            const auto terms = std::make_shared<const Terms<T>>(size, GetParam(), 5);
            for (const bool in_place : {false, true}) {
                SCOPED_TRACE(testing_name(size, in_place));
                ASSERT_EQ(run<T>(rig, plan::Operation::all_gather, terms, in_place, 1, 0), 0);
                ASSERT_EQ(run<T>(rig, plan::Operation::reduce_scatter, terms, in_place, 3, tolerance), 0);
                ASSERT_EQ(run<T>(rig, plan::Operation::all_reduce, terms, in_place, GetParam(), tolerance),
                          0);
                ASSERT_EQ(run<T>(rig, plan::Operation::broadcast, terms, in_place, 1, 0), 0);
            }
        }
        ASSERT_EQ(run<T>(rig, plan::Operation::barrier, std::make_shared<const Terms<T>>(0, GetParam(), 5),
                         false, 1, 0),
                  0);
    }
    static std::string testing_name(std::int64_t size, bool in_place) {
        return std::to_string(size) + " elements, " + (in_place ? "in place" : "not in place");
    }
};

TEST_P(CollectiveGroupTest, GivesTheBitsOfSumsInRankOrder) {
    check<float>(Sums::ordered, 0, {0, 1, 7, kLarge});
}

TEST_P(CollectiveGroupTest, GivesTheSameBitsWhenItPollsWithoutAPause) {
    check<float>(Sums::ordered, 17, {7, 30000, kMiddle}, true);
    check<float>(Sums::ring, 17, {7, kMiddle}, true);
}

TEST_P(CollectiveGroupTest, GivesTheSameBitsHoweverMessagesAreDelayed) {
    check<float>(Sums::ordered, 11, {7, 30000, kMiddle});
}

TEST_P(CollectiveGroupTest, RoundsBf16Once) {
    check<Bf16>(Sums::ordered, 12, {0, 1, 7, kMiddle});
}

TEST_P(CollectiveGroupTest, SumsFp64InFp64) {
    check<double>(Sums::ordered, 13, {1, 7, 100001});
}

TEST_P(CollectiveGroupTest, SumsAlongARing) {
    check<float>(Sums::ring, 14, {0, 1, 7, kLarge});
    check<Bf16>(Sums::ring, 15, {0, 1, 7, kMiddle});
    check<double>(Sums::ring, 0, {1, 7, 100001});
}

INSTANTIATE_TEST_SUITE_P(Members, CollectiveGroupTest, ::testing::Range(1, 6),
                         ::testing::PrintToStringParamName());

TEST_P(CollectiveGroupTest, ExchangesPieces) {
    for (const std::uint64_t seed : {0, 16}) {
        GroupRig rig(GetParam(), {.seed = seed});
        for (const std::int64_t piece : {0, 1, 7, 50'001}) {
            const auto terms = std::make_shared<const Terms<Bf16>>(piece * GetParam(), GetParam(), 5);
            ASSERT_EQ(run<Bf16>(rig, plan::Operation::all_to_all, terms, false, 1, 0), 0);
        }
    }
}

// From rank i to rank j go (3 i + 5 j) mod 7 times `each` elements, some of them none.
TEST_P(CollectiveGroupTest, ExchangesAsMuchAsTheCountsSay) {
    const int members = GetParam();
    GroupRig rig(members);
    for (const std::int64_t each : {1, 30'000}) {
        const auto count = [&](int from, int to) { return each * ((3 * from + 5 * to) % 7); };
        const auto room = static_cast<std::size_t>(7 * each * members);
        std::vector<std::vector<float>> input, output(static_cast<std::size_t>(members));
        std::vector<std::future<void>> ends;
        for (int r = 0; r < members; ++r) {
            std::vector<float>& own = input.emplace_back();
            for (std::size_t i = 0; i < room; ++i)
                own.push_back(static_cast<float>(value(5, r, std::ssize(own))));
            output[static_cast<std::size_t>(r)].assign(room + 1, -1);
        }
        for (int r = 0; r < members; ++r) {
            collective::CollectiveCall call{
                plan::Operation::all_to_all, plan::DType::fp32, output[static_cast<std::size_t>(r)].data(),
                input[static_cast<std::size_t>(r)].data(), static_cast<std::int64_t>(room)};
            for (int other = 0; other < members; ++other) {
                call.sends.push_back(count(r, other));
                call.receives.push_back(count(other, r));
            }
            ends.push_back(rig.begin(r, rig.launch(r, call)));
        }
        for (std::future<void>& end : ends) end.get();
        for (int r = 0; r < members; ++r) {
            const std::vector<float>& got = output[static_cast<std::size_t>(r)];
            std::size_t at = 0;
            for (int from = 0; from < members; ++from) {
                std::int64_t sent = 0;
                for (int before = 0; before < r; ++before) sent += count(from, before);
                const auto first = input[static_cast<std::size_t>(from)].begin() + sent;
                ASSERT_TRUE(
                    std::equal(first, first + count(from, r), got.begin() + static_cast<std::ptrdiff_t>(at)));
                at += static_cast<std::size_t>(count(from, r));
            }
            ASSERT_EQ(got[at], -1);
        }
    }
}

TEST(CollectiveGroup, RefusesToExchangeUnequalPieces) {
    GroupRig rig(3);
    std::array<float, 8> memory{};
    EXPECT_THROW(rig.begin(0, rig.launch(0, {plan::Operation::all_to_all, plan::DType::fp32,
                                             memory.data() + 4, memory.data(), 4, 1})),
                 std::logic_error);
}

TEST(CollectiveGroup, SendsNoMoreThanARing) {
    // Each rank sends (n - 1) / n of the data, and twice that for an all_reduce; plus a header of 40 bytes to
    // each peer.
    constexpr std::int64_t kElements = 1 << 18, kShare = kElements * 4 * 3 / 4, kHeaders = 3 * 40;
    const auto terms = std::make_shared<const Terms<float>>(kElements, 4, 5);
    for (const Sums sums : {Sums::ordered, Sums::ring}) {
        GroupRig rig(4, {.sums = sums});
        ASSERT_EQ(run<float>(rig, plan::Operation::reduce_scatter, terms, false, 1, 1e-6), 0);
        for (int r = 0; r < 4; ++r) EXPECT_EQ(rig.wires().bytes_sent(r), kShare + kHeaders);
        ASSERT_EQ(run<float>(rig, plan::Operation::all_reduce, terms, false, 1, 1e-6), 0);
        for (int r = 0; r < 4; ++r) EXPECT_EQ(rig.wires().bytes_sent(r), 3 * kShare + 2 * kHeaders);
        ASSERT_EQ(run<float>(rig, plan::Operation::all_gather, terms, false, 1, 0), 0);
        for (int r = 0; r < 4; ++r) EXPECT_EQ(rig.wires().bytes_sent(r), 4 * kShare + 3 * kHeaders);
        // The last rank of a broadcast's chain sends nothing.
        ASSERT_EQ(run<float>(rig, plan::Operation::broadcast, terms, false, 1, 0), 0);
        for (int r = 0; r < 4; ++r) {
            EXPECT_EQ(rig.wires().bytes_sent(r), 4 * (kShare + kHeaders) + (r < 3 ? kElements * 4 : 0));
        }
    }
}

TEST(CollectiveGroup, SumsAlongARingTheSameOnEveryRun) {
    std::vector<float> results[2];
    for (std::vector<float>& result : results) {
        GroupRig rig(3, {.sums = Sums::ring, .seed = 5});
        std::vector<std::vector<float>> memory(3, std::vector<float>(100000));
        std::vector<std::future<void>> futures;
        for (int r = 0; r < 3; ++r) {
            auto& own = memory[static_cast<std::size_t>(r)];
            for (std::size_t i = 0; i < own.size(); ++i)
                own[i] = static_cast<float>(value(9, r, static_cast<std::int64_t>(i)));
            const collective::CollectiveCall call{
                plan::Operation::all_reduce, plan::DType::fp32, own.data(), own.data(), 100000, 1};
            futures.push_back(rig.begin(r, rig.launch(r, call)));
        }
        for (auto& future : futures) ASSERT_EQ(error_of(future), "");
        EXPECT_EQ(memory[0], memory[1]);
        EXPECT_EQ(memory[0], memory[2]);
        result = memory[0];
    }
    EXPECT_EQ(results[0], results[1]);
}

TEST(CollectiveGroup, FindsTheLargest) {
    for (const Sums sums : {Sums::ordered, Sums::ring}) {
        GroupRig rig(3, {.sums = sums, .seed = 6});
        std::vector<std::vector<float>> memory(3, std::vector<float>(100001)), before;
        for (int r = 0; r < 3; ++r) {
            auto& own = memory[static_cast<std::size_t>(r)];
            for (std::size_t i = 0; i < own.size(); ++i)
                own[i] = static_cast<float>(value(9, r, static_cast<std::int64_t>(i)));
        }
        before = memory;
        std::vector<std::future<void>> futures;
        for (int r = 0; r < 3; ++r) {
            float* own = memory[static_cast<std::size_t>(r)].data();
            collective::CollectiveCall call{
                plan::Operation::all_reduce, plan::DType::fp32, own, own, 100001, 1};
            call.reduction = plan::Reduction::max;
            futures.push_back(rig.begin(r, rig.launch(r, call)));
        }
        for (auto& future : futures) ASSERT_EQ(error_of(future), "");
        for (std::size_t i = 0; i < before[0].size(); ++i) {
            const float most = std::max({before[0][i], before[1][i], before[2][i]});
            for (const auto& own : memory) ASSERT_EQ(own[i], most);
        }
    }
}

// The communicators of a mesh of 2 x 2, in another order on each rank, many at a time; buffers are changed as
// soon as this is allowed.
void many_in_flight(Sums sums, std::uint64_t seed) {
    GroupRig rig(4, {.shard = 2, .sums = sums, .seed = seed});
    struct Planned {
        plan::Group group;
        plan::Operation operation;
        std::shared_ptr<const Terms<float>> terms;
        bool in_place;
    };
    std::mt19937_64 random(seed);
    std::vector<Planned> plan;
    constexpr std::array<plan::Operation, 5> kOperations = {
        plan::Operation::all_gather, plan::Operation::reduce_scatter, plan::Operation::all_reduce,
        plan::Operation::broadcast, plan::Operation::barrier};
    for (int i = 0; i < 200; ++i) {
        const plan::Group group = static_cast<plan::Group>(random() % 3);
        const plan::Operation operation = kOperations[random() % 5];
        const auto elements =
            static_cast<std::int64_t>(random() % 20 == 0 ? random() % 300000 : random() % 3000);
        plan.push_back({group, operation,
                        std::make_shared<Terms<float>>(operation == plan::Operation::barrier ? 0 : elements,
                                                       rig.mesh().size(group), static_cast<std::uint64_t>(i)),
                        random() % 2 == 0});
    }
    std::vector<std::vector<std::unique_ptr<Part<float>>>> parts(4);
    std::vector<std::vector<std::future<void>>> futures(4);
    std::vector<std::thread> hosts;
    hosts.reserve(4);
    for (int r = 0; r < 4; ++r) {
        hosts.emplace_back([&, r] {
            const auto rank = static_cast<std::size_t>(r);
            // Each rank visits the groups in its own order; within one group the order is the plan's.
            std::mt19937_64 own_random(seed * 10 + rank);
            std::vector<std::vector<std::size_t>> queues(3);
            for (std::size_t i = 0; i < plan.size(); ++i)
                queues[static_cast<std::size_t>(plan[i].group)].push_back(i);
            std::vector<std::size_t> next(3, 0);
            for (std::size_t begun = 0; begun < plan.size();) {
                const std::size_t queue = own_random() % 3;
                if (next[queue] == queues[queue].size()) continue;
                const std::size_t number = queues[queue][next[queue]++];
                const Planned& planned = plan[number];
                parts[rank].push_back(std::make_unique<Part<float>>(planned.operation, planned.terms,
                                                                    rig.mesh().place(planned.group, r),
                                                                    planned.in_place, 2));
                Part<float>& part = *parts[rank].back();
                futures[rank].push_back(rig.begin(r, rig.launch(r, part.call(), planned.group),
                                                  [&part] { part.overwrite_input(); }));
                ++begun;
            }
        });
    }
    for (auto& host : hosts) host.join();
    for (std::size_t r = 0; r < 4; ++r) {
        for (std::size_t i = 0; i < futures[r].size(); ++i) {
            ASSERT_EQ(error_of(futures[r][i]), "") << "rank " << r << ", its collective " << i;
            ASSERT_EQ(parts[r][i]->wrong(sums == Sums::ordered ? 0 : 1e-6), 0);
        }
    }
}

TEST(CollectiveGroup, CarriesManyOfSeveralCommunicatorsAtATime) {
    many_in_flight(Sums::ordered, 21);
    many_in_flight(Sums::ordered, 22);
}

TEST(CollectiveGroup, CarriesManyAlongRingsAtATime) {
    many_in_flight(Sums::ring, 23);
}

TEST(CollectiveGroup, LetsARankRunFarAhead) {
    // More collectives than a communicator has in progress at a time: the others wait for their turn.
    GroupRig rig(2, {.seed = 3});
    std::vector<float> memory(200);
    std::vector<std::future<void>> futures;
    for (int r : {1, 0}) {
        for (std::size_t i = 0; i < 100; ++i) {
            float* own = &memory[static_cast<std::size_t>(r) * 100 + i];
            *own = static_cast<float>(i);
            const collective::CollectiveCall call{
                plan::Operation::all_reduce, plan::DType::fp32, own, own, 1, 1};
            futures.push_back(rig.begin(r, rig.launch(r, call)));
        }
    }
    for (auto& future : futures) ASSERT_EQ(error_of(future), "");
    for (std::size_t i = 0; i < 200; ++i) EXPECT_EQ(memory[i], 2 * static_cast<float>(i % 100));
}

TEST(CollectiveGroup, SaysWhatItWaitsFor) {
    GroupRig rig(2);
    EXPECT_EQ(rig.group(0).waiting(), "");
    device::CollectiveLaunch launch = rig.launch(0, {plan::Operation::barrier});
    launch.phase = plan::Phase::backward;
    auto first = rig.begin(0, launch);
    auto second = rig.begin(0, rig.launch(0, {plan::Operation::barrier}));
    EXPECT_EQ(rig.group(0).waiting(),
              "barrier number 0 of communicator 0 (step 3, unit 2 \"net.4\", backward)");
    launch = rig.launch(1, {plan::Operation::barrier});
    launch.phase = plan::Phase::backward;
    auto other = rig.begin(1, launch);
    EXPECT_EQ(error_of(first), "");
    EXPECT_EQ(error_of(other), "");
    EXPECT_EQ(rig.group(0).waiting(), "barrier number 1 of communicator 0 (step 3, unit 2 \"net.4\")");
    EXPECT_STREQ(rig.group(0).name(), "memory");
}

TEST(CollectiveGroup, RefusesWhatNoMemberCanBegin) {
    GroupRig rig(4, {.shard = 2});
    device::CollectiveLaunch launch = rig.launch(0, {plan::Operation::barrier});
    launch.communicator = plan::CommunicatorId{2};  // the other shard group's number
    EXPECT_THROW(rig.group(0).begin(launch, {}), std::logic_error);
    launch = rig.launch(0, {plan::Operation::barrier});
    launch.place = 1;
    EXPECT_THROW(rig.group(0).begin(launch, {}), std::logic_error);
    collective::CollectiveCall call{plan::Operation::all_reduce, plan::DType::int32, nullptr, nullptr, 0, 1};
    EXPECT_THROW(rig.group(0).begin(rig.launch(0, call), {}), std::logic_error);
    call.operation = plan::Operation::gather;
    EXPECT_THROW(rig.group(0).begin(rig.launch(0, call), {}), std::logic_error);
}

TEST(RingOrder, SendsOnEachSegmentInTheRoundAfterItCame) {
    for (const std::int64_t segments : {1, 3, 4, 5, 9}) {
        for (const std::int64_t rounds : {1, 2, 5}) {
            const RingOrder order{segments, rounds, 4};
            std::vector<int> seen(static_cast<std::size_t>(order.count()), 0);
            for (std::int64_t i = 0; i < order.count(); ++i) {
                const auto [round, segment] = order.at(i);
                ASSERT_LT(round, rounds);
                ASSERT_LT(segment, segments);
                ++seen[static_cast<std::size_t>(round * segments + segment)];
                if (round > 0) {
                    const std::int64_t came = order.received_as(i);
                    EXPECT_EQ(order.at(came).round, round - 1);
                    EXPECT_EQ(order.at(came).segment, segment);
                    EXPECT_EQ(order.sent_on_as(came), i);
                }
                EXPECT_EQ(order.at(order.last_of(i)).round, rounds - 1);
                EXPECT_EQ(order.at(order.last_of(i)).segment, segment);
                EXPECT_EQ(order.at(order.group_end(i) - 1).segment / 4, segment / 4);
                EXPECT_EQ(order.at(order.group_end(i) - 1).round, rounds - 1);
            }
            EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
        }
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::comm
