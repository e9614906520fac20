// How collectives between processes end if they cannot continue: with one sentence that names the rank and
// the collective, once, on every rank, and without touching memory afterwards.
#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "collective_testing.h"
#include "trainer/comm/message_tag.h"

namespace shardscope::trainer::comm {
namespace TEST_FILE {

using namespace testing;  // NOLINT(google-build-using-namespace)

class CollectiveFailure : public ::testing::Test {
  protected:
    collective::CollectiveCall call(plan::Operation operation, std::int64_t elements,
                                    plan::DType dtype = plan::DType::fp32) {
        memory_.emplace_back(static_cast<std::size_t>(2 * elements), 0.0);
        auto& own = memory_.back();
        return {operation, dtype, own.data(), own.data() + elements, elements, 1};
    }
    // Two ranks call different collectives with number 0; returns the error of each; the reported trouble is
    // the same on both sides.
    std::string diverge(const device::CollectiveLaunch& of_0, const device::CollectiveLaunch& of_1,
                        GroupRig& rig) {
        auto first = rig.begin(0, of_0);
        auto second = rig.begin(1, of_1);
        std::string sentence = error_of(first);
        EXPECT_EQ(error_of(second), sentence);
        for (const int rank : {0, 1}) {
            const auto troubles = rig.troubles(rank);
            EXPECT_EQ(troubles.size(), 1U);
            if (troubles.empty()) continue;
            EXPECT_EQ(troubles[0].rank, 1);
            EXPECT_EQ("rank 1 " + troubles[0].reason, sentence);
        }
        return sentence;
    }
    std::deque<std::vector<double>> memory_;  // large enough for any type
};

TEST_F(CollectiveFailure, NamesBothCallsIfTheyDiffer) {
    GroupRig rig(2);
    EXPECT_EQ(
        diverge(rig.launch(0, call(plan::Operation::all_gather, 2048)),
                rig.launch(1, call(plan::Operation::reduce_scatter, 1024)), rig),
        "rank 1 calls reduce_scatter of 1024 fp32 (step 3, unit 2 \"net.4\") where rank 0 calls "
        "all_gather of 2048 fp32 (step 3, unit 2 \"net.4\"): number 0 of communicator 0; all ranks must "
        "run the same job with the same calls in the same order");
}

TEST_F(CollectiveFailure, FindsOtherSizesTypesDivisorsStepsAndUnits) {
    const collective::CollectiveCall same = call(plan::Operation::all_reduce, 300000);
    const auto sentence = [&](const std::function<void(device::CollectiveLaunch&)>& change,
                              const collective::CollectiveCall& other) {
        GroupRig rig(2, {.seed = 4});
        device::CollectiveLaunch launch = rig.launch(1, other);
        change(launch);
        return diverge(rig.launch(0, same), launch, rig);
    };
    const auto nothing = [](device::CollectiveLaunch&) {};
    EXPECT_NE(
        sentence(nothing, call(plan::Operation::all_reduce, 300001)).find("calls all_reduce of 300001 fp32"),
        std::string::npos);
    EXPECT_NE(
        sentence(nothing, call(plan::Operation::all_reduce, 300000, plan::DType::bf16)).find("300000 bf16"),
        std::string::npos);
    collective::CollectiveCall divided = same;
    divided.divisor = 2;
    EXPECT_NE(sentence(nothing, divided).find("of 300000 fp32 divided by 2 (step"), std::string::npos);
    EXPECT_NE(
        sentence([](device::CollectiveLaunch& launch) { launch.step = 4; }, same).find("(step 4, unit 2"),
        std::string::npos);
    EXPECT_NE(sentence([](device::CollectiveLaunch& launch) { launch.unit = -1; }, same)
                  .find("fp32 (step 3) where"),
              std::string::npos);
}

TEST_F(CollectiveFailure, NamesTheRankThatDoesNotArrive) {
    GroupRig rig(3, {.timeout_s = 0.3});
    const auto begin = std::chrono::steady_clock::now();
    auto first = rig.begin(0, rig.launch(0, call(plan::Operation::all_gather, 100)));
    auto second = rig.begin(1, rig.launch(1, call(plan::Operation::all_gather, 100)));
    const std::string expected =
        "rank 2 has not begun all_gather number 0 of communicator 0 (step 3, unit 2 \"net.4\") within the "
        "0.3 "
        "s of run.timeout";
    EXPECT_EQ(error_of(first), expected);
    EXPECT_EQ(error_of(second), expected);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    EXPECT_GE(took.count(), 0.3);
    EXPECT_LT(took.count(), 5.0);
    const auto troubles = rig.troubles(0);
    ASSERT_EQ(troubles.size(), 1U);
    EXPECT_EQ(troubles[0].rank, 2);
    EXPECT_EQ("rank 2 " + troubles[0].reason, expected);
}

TEST_F(CollectiveFailure, NamesTheCollectiveThatDidNotEndIfAllHaveBegunIt) {
    GroupRig rig(2, {.timeout_s = 0.3});
    rig.wires().hold_back(1, message_tag(plan::CommunicatorId::world, 0, MessageStream::inputs));
    auto first = rig.begin(0, rig.launch(0, call(plan::Operation::all_reduce, 1000)));
    auto second = rig.begin(1, rig.launch(1, call(plan::Operation::all_reduce, 1000)));
    const std::string expected =
        "all_reduce number 0 of communicator 0 (step 3, unit 2 \"net.4\") did not end within the 0.3 s of "
        "run.timeout";
    EXPECT_EQ(error_of(first), expected);
    EXPECT_EQ(error_of(second), expected);
    const auto troubles = rig.troubles(0);
    ASSERT_EQ(troubles.size(), 1U);
    EXPECT_EQ(troubles[0].rank, -1);  // it is unknown which one is at fault
    EXPECT_EQ(troubles[0].reason, expected);
}

// --- ranks that wait, in shard groups {0, 1} and {2, 3}, replicate groups {0, 2} and {1, 3}
// ---------------

class WaitingChain : public CollectiveFailure {
  protected:
    // The trouble that another rank reports first.
    static CollectiveTrouble trouble(GroupRig& rig, int rank) {
        const auto told = rig.troubles(rank);
        return told.empty() ? CollectiveTrouble() : told[0];
    }
    std::future<void> wait_in(GroupRig& rig, int rank, plan::Group group) {
        auto future = rig.begin(rank, rig.launch(rank, call(plan::Operation::all_reduce, 1000), group));
        std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the others begin to wait later
        return future;
    }
    GroupRig rig_{4, {.shard = 2, .timeout_s = 0.3, .ask = true}};
};

// Four pipeline stages: 3 waits for a message of 2, 2 for one of 1, and 1 has not sent it.
TEST_F(CollectiveFailure, NamesTheStageThatDoesNotSend) {
    GroupRig rig(4, {.pipeline = 4, .timeout_s = 0.3, .ask = true});
    const auto wait_for = [&](int rank, int peer) {
        auto future = rig.begin(rank, rig.message(rank, peer, call(plan::Operation::recv, 1000)));
        std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the next begins to wait later
        return future;
    };
    auto last = wait_for(3, 2);
    auto middle = wait_for(2, 1);
    EXPECT_EQ(
        error_of(last),
        "rank 1 has not begun message number 0 from rank 1 to rank 2 (step 3, unit 2 \"net.4\"), in which "
        "rank 2 waits; rank 3 has waited for more than the 0.3 s of run.timeout");
    EXPECT_EQ(
        error_of(middle),
        "rank 1 has not begun message number 0 from rank 1 to rank 2 (step 3, unit 2 \"net.4\") within the "
        "0.3 s of run.timeout");
}

// Two stages that both send, and so wait for each other's receive. A little is sent immediately, but not
// this much.
TEST_F(CollectiveFailure, NamesStagesThatWaitForEachOthersMessages) {
    GroupRig rig(2, {.pipeline = 2, .timeout_s = 0.3, .ask = true});
    auto first = rig.begin(0, rig.message(0, 1, call(plan::Operation::send, 100'000)));
    auto second = rig.begin(1, rig.message(1, 0, call(plan::Operation::send, 100'000)));
    const std::string error = error_of(first);
    EXPECT_EQ(
        error.find(
            "ranks 0 and 1 have waited for each other for more than the 0.3 s of run.timeout: rank 0 "
            "in message number 0 from rank 0 to rank 1 (step 3, unit 2 \"net.4\") and rank 1 in message "
            "number 0 from rank 1 to rank 0"),
        0U)
        << error;
    error_of(second);
}

TEST_F(WaitingChain, DoesNotBlameARankThatOnlyWaits) {
    auto longest = wait_in(rig_, 0, plan::Group::replicate);
    auto next = wait_in(rig_, 2, plan::Group::shard);
    const std::string expected =
        "rank 3 has not begun all_reduce number 0 of communicator 2 (step 3, unit 2 \"net.4\"), in which "
        "rank 2 "
        "waits; rank 0 has waited for more than the 0.3 s of run.timeout";
    EXPECT_EQ(error_of(longest), expected);
    EXPECT_EQ(trouble(rig_, 0).rank, 3);
    EXPECT_EQ(
        error_of(next),
        "rank 3 has not begun all_reduce number 0 of communicator 2 (step 3, unit 2 \"net.4\") within the "
        "0.3 s of run.timeout");
}

TEST_F(WaitingChain, FollowsItOverSeveralRanks) {
    auto first = wait_in(rig_, 1, plan::Group::shard);       // waits for 0
    auto second = wait_in(rig_, 0, plan::Group::replicate);  // waits for 2
    auto third = wait_in(rig_, 2, plan::Group::shard);       // waits for 3
    error_of(first);
    EXPECT_EQ(trouble(rig_, 1).rank, 3);
    EXPECT_NE(trouble(rig_, 1).reason.find("in which rank 2 waits; rank 1 has waited"), std::string::npos);
    error_of(second);
    error_of(third);
}

TEST_F(WaitingChain, ARankThatDoesNotAnswerIsItsEnd) {
    rig_.inquiries().silence(2);
    auto longest = wait_in(rig_, 0, plan::Group::replicate);
    auto next = wait_in(rig_, 2, plan::Group::shard);
    EXPECT_EQ(
        error_of(longest),
        "rank 2 has not begun all_reduce number 0 of communicator 3 (step 3, unit 2 \"net.4\") within the "
        "0.3 s of run.timeout, and does not answer");
    error_of(next);
}

// The collective has begun, but its data do not arrive.
TEST_F(WaitingChain, ARankThatHangsInsideACollectiveIsItsEnd) {
    rig_.wires().hold_back(3, message_tag(plan::CommunicatorId{2}, 0, MessageStream::inputs));
    rig_.inquiries().silence(3);
    auto longest = wait_in(rig_, 0, plan::Group::replicate);
    auto next = wait_in(rig_, 2, plan::Group::shard);
    auto hanging = wait_in(rig_, 3, plan::Group::shard);
    EXPECT_EQ(
        error_of(longest),
        "rank 3 has not finished all_reduce number 0 of communicator 2 (step 3, unit 2 \"net.4\"), in "
        "which rank 2 waits, and does not answer; rank 0 has waited for more than the 0.3 s of run.timeout");
    EXPECT_EQ(trouble(rig_, 0).rank, 3);
    error_of(next);
    error_of(hanging);
}

TEST_F(WaitingChain, BlamesNoRankForACycle) {
    auto first = wait_in(rig_, 0, plan::Group::world);   // waits for 1
    auto second = wait_in(rig_, 1, plan::Group::shard);  // waits for 0
    EXPECT_EQ(error_of(first),
              "ranks 0 and 1 have waited for each other for more than the 0.3 s of run.timeout: rank 0 in "
              "all_reduce "
              "number 0 of communicator 0 (step 3, unit 2 \"net.4\") and rank 1 in all_reduce number 0 of "
              "communicator 1 (step 3, unit 2 \"net.4\"); all ranks must begin the collectives of their "
              "communicators in the same order");
    EXPECT_EQ(trouble(rig_, 0).rank, -1);
    error_of(second);
}

TEST_F(CollectiveFailure, WaitsForeverWithoutALimit) {
    GroupRig rig(2);
    auto first = rig.begin(0, rig.launch(0, {plan::Operation::barrier}));
    EXPECT_EQ(first.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
    auto second = rig.begin(1, rig.launch(1, {plan::Operation::barrier}));
    EXPECT_EQ(error_of(first), "");
    EXPECT_EQ(error_of(second), "");
}

TEST_F(CollectiveFailure, NamesTheCollectiveInWhichARankWasLost) {
    GroupRig rig(3, {.shard = 1});
    auto first = rig.begin(0, rig.launch(0, call(plan::Operation::all_reduce, 1000)));
    auto second = rig.begin(1, rig.launch(1, call(plan::Operation::all_reduce, 1000)));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    rig.wires().kill(2);
    const std::string expected =
        "rank 2 is lost in all_reduce number 0 of communicator 0 (step 3, unit 2 \"net.4\"): its process has "
        "ended";
    EXPECT_EQ(error_of(first), expected);
    EXPECT_EQ(error_of(second), expected);
    EXPECT_EQ(rig.troubles(1).at(0).rank, 2);
    auto later = rig.begin(0, rig.launch(0, {plan::Operation::barrier}));
    EXPECT_EQ(error_of(later), expected);
}

TEST_F(CollectiveFailure, EndsEverythingWithTheGivenError) {
    GroupRig rig(2, {.seed = 6});
    std::vector<std::future<void>> futures;
    for (int i = 0; i < 100; ++i) {  // more than can be in progress at a time
        for (int r = 0; r < (i < 10 ? 2 : 1); ++r)
            futures.push_back(
                rig.begin(r, rig.launch(r, call(plan::Operation::all_reduce, 200000 / (i + 1)))));
    }
    const auto gone = std::make_exception_ptr(std::runtime_error("rank 7 is out of memory"));
    rig.group(0).fail(gone);
    rig.group(1).fail(gone);
    std::size_t failed = 0;
    for (auto& future : futures) {
        const std::string error = error_of(future);
        if (error.empty()) continue;
        EXPECT_EQ(error, "rank 7 is out of memory");
        ++failed;
    }
    EXPECT_GE(failed, 90U);
    EXPECT_TRUE(rig.troubles(0).empty());  // rank 0 did not detect this itself
    auto later = rig.begin(0, rig.launch(0, {plan::Operation::barrier}));
    EXPECT_EQ(error_of(later), "rank 7 is out of memory");
    // No memory is accessed any more (the address sanitizer would detect it).
    memory_.clear();
    rig.group(0).fail(std::make_exception_ptr(std::runtime_error("too late")));
    rig.group(0).stop();
    auto after_stop = rig.begin(0, rig.launch(0, {plan::Operation::barrier}));
    EXPECT_EQ(error_of(after_stop), "rank 7 is out of memory");
}

TEST_F(CollectiveFailure, StopEndsWhatBegan) {
    GroupRig rig(2, {.seed = 8});
    std::vector<std::future<void>> futures;
    for (int r = 0; r < 2; ++r) {
        for (int i = 0; i < 40; ++i)
            futures.push_back(rig.begin(r, rig.launch(r, call(plan::Operation::all_gather, 50000))));
    }
    std::thread other([&] { rig.group(1).stop(); });
    rig.group(0).stop();
    other.join();
    for (auto& future : futures) {
        ASSERT_EQ(future.wait_for(std::chrono::seconds(0)), std::future_status::ready);
        EXPECT_EQ(error_of(future), "");
    }
    rig.group(0).stop();
    auto later = rig.begin(0, rig.launch(0, {plan::Operation::barrier}));
    EXPECT_EQ(error_of(later), "a collective began after the process group was stopped");
}

TEST_F(CollectiveFailure, StopWaitsForAFailureWhereARankDoesNotCome) {
    GroupRig rig(2);
    auto alone = rig.begin(0, rig.launch(0, {plan::Operation::barrier}));
    std::thread failing([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        rig.group(0).fail(std::make_exception_ptr(std::runtime_error("interrupted")));
    });
    rig.group(0).stop();
    failing.join();
    EXPECT_EQ(error_of(alone), "interrupted");
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::comm
