// Messages of the Plans of a pipeline's places: what cannot run is found, and named, before anything runs.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "trainer/plan/builder.h"
#include "trainer/plan/messages.h"

namespace shardscope::trainer::plan {
namespace TEST_FILE {

// The Plan of one place; each message has a buffer of its own.
class StagePlan {
  public:
    StagePlan& send(int peer, std::int64_t elements = 4, DType dtype = DType::fp32) {
        builder_.send(tensor(elements, dtype), peer);
        return *this;
    }
    StagePlan& receive(int peer, std::int64_t elements = 4, DType dtype = DType::fp32) {
        builder_.receive(tensor(elements, dtype), peer);
        return *this;
    }
    StagePlan& order(Stream earlier, Stream later) {
        builder_.order(earlier, later);
        return *this;
    }
    StagePlan& host_waits_for(Stream stream) {
        const EventId event = builder_.new_event();
        builder_.record(event, stream);
        builder_.host_wait(event);
        return *this;
    }
    StagePlan& sum(Group group, Stream stream) {
        builder_.collective({.operation = Operation::all_reduce, .group = group}, {}, {}, 4, stream);
        return *this;
    }
    Plan take() { return builder_.take(); }

  private:
    Tensor tensor(std::int64_t elements, DType dtype) {
        const std::int64_t bytes = elements * size_of(dtype);
        const BufferId buffer =
            builder_.new_buffer({"message", MemoryCategory::activations, MemorySpace::device, bytes, -1, -1});
        return {nullptr, builder_.whole(buffer), -1, dtype};
    }
    PlanBuilder builder_{PlanKind::steady, {}};
};

std::string problem(const Mesh& mesh, std::vector<StagePlan*> places) {
    std::vector<Plan> plans;
    for (StagePlan* place : places) plans.push_back(place->take());
    std::vector<const Plan*> all;
    for (const Plan& plan : plans) all.push_back(&plan);
    return find_message_problem(mesh, all);
}

TEST(PlanMessages, CanCross) {
    StagePlan first, second;
    for (int i = 0; i < 3; ++i) {
        first.send(1).receive(1, 7);
        second.send(0, 7).receive(0);
    }
    // What follows waits for what was received; the host, too.
    first.order(Stream::receive, Stream::compute).host_waits_for(Stream::compute).send(1);
    second.host_waits_for(Stream::send).receive(0);
    EXPECT_EQ(problem({4, 2, 1, 2}, {&first, &second}), "");
}

TEST(PlanMessages, CanGoAroundARing) {
    std::vector<StagePlan> places(3);
    for (int p = 0; p < 3; ++p) {
        StagePlan& own = places[static_cast<std::size_t>(p)];
        own.send((p + 1) % 3).send((p + 2) % 3, 9).receive((p + 2) % 3).receive((p + 1) % 3, 9);
        own.order(Stream::receive, Stream::unshard).sum(Group::world, Stream::unshard);
    }
    EXPECT_EQ(problem({3, 1, 1, 3}, {&places[0], &places[1], &places[2]}), "");
}

TEST(PlanMessages, NeedAReceiver) {
    StagePlan first, second;
    first.send(1).send(1);
    second.receive(0);
    EXPECT_EQ(problem({4, 2, 1, 2}, {&first, &second}),
              "rank 2 never receives what rank 0 sends in operation 1 (message 1 from rank 0 to rank 2)");
}

TEST(PlanMessages, NeedASender) {
    StagePlan first, second;
    second.receive(0);
    EXPECT_EQ(problem({2, 1, 1, 2}, {&first, &second}),
              "rank 0 never sends what rank 1 receives in operation 0 (message 0 from rank 0 to rank 1)");
}

TEST(PlanMessages, HaveOneSizeAndType) {
    StagePlan first, second;
    first.send(1, 1000).send(1, 500);
    second.receive(0, 1000).receive(0, 1000, DType::bf16);
    EXPECT_EQ(problem({2, 1, 1, 2}, {&first, &second}),
              "message 1 from rank 0 to rank 1 is sent as 2,000 bytes of fp32 (operation 1) and received as "
              "2,000 bytes of bf16 (operation 1); both ends must agree, in the same order");
}

TEST(PlanMessages, GoToNeighbours) {
    StagePlan first, second, third, fourth;
    first.send(2);
    EXPECT_EQ(problem({4, 1, 1, 4}, {&first, &second, &third, &fourth}),
              "rank 0: operation 0 is a message to or from place 2 of the pipeline, which is not a neighbour "
              "of place 0 (of 4)");
}

// Each place sends only what it has computed from what it receives.
TEST(PlanMessages, WaitForEachOtherIfBothReceiveFirst) {
    StagePlan first, second;
    first.receive(1).order(Stream::receive, Stream::send).send(1);
    second.receive(0).host_waits_for(Stream::receive).send(0);
    EXPECT_EQ(
        problem({2, 1, 1, 2}, {&first, &second}),
        "deadlock: rank 0 at its receive from rank 1 (operation 0, 16 bytes) for operation 3 of rank 1, "
        "rank 1 at its receive from rank 0 (operation 0, 16 bytes) for operation 3 of rank 0 wait; "
        "change the order on one of these ranks");
}

// The second message of place 0 is behind its first, which place 1 receives only after place 2's, which needs
// the second.
TEST(PlanMessages, WaitBehindOthersOfTheirStream) {
    StagePlan first, second, third;
    first.send(1).send(2);
    second.receive(2).receive(0);
    third.receive(0).order(Stream::receive, Stream::send).send(1);
    EXPECT_EQ(
        problem({3, 1, 1, 3}, {&first, &second, &third}),
        "deadlock: rank 0 at its send to rank 1 (operation 0, 16 bytes) for operation 1 of rank 1, rank "
        "1 at its receive from rank 2 (operation 0, 16 bytes) for operation 3 of rank 2, rank 2 at its "
        "receive from rank 0 (operation 0, 16 bytes) for operation 1 of rank 0 wait; change the order "
        "on one of these ranks");
}

TEST(PlanMessages, WaitForACollectiveOfAllPlaces) {
    StagePlan first, second;
    first.sum(Group::world, Stream::unshard).order(Stream::unshard, Stream::send).send(1);
    second.receive(0).order(Stream::receive, Stream::unshard).sum(Group::world, Stream::unshard);
    EXPECT_EQ(
        problem({2, 1, 1, 2}, {&first, &second}),
        "deadlock: rank 0 at all_reduce (operation 0) for operation 3 of rank 1, rank 1 at its receive "
        "from rank 0 (operation 0, 16 bytes) for operation 3 of rank 0 wait; change the order on one of "
        "these ranks");
}

TEST(PlanMessages, WaitForACollectiveThatAPlaceDoesNotBegin) {
    StagePlan first, second;
    first.sum(Group::world, Stream::unshard);
    EXPECT_EQ(problem({2, 1, 1, 2}, {&first, &second}),
              "rank 0 at all_reduce (operation 0) waits for rank 1, which never begins it");
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::plan
