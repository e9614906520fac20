// Messages between pipeline stages on the cpu device: Plans of a few operations, between threads and between
// process groups over wires in memory.
#include <cstring>
#include <future>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "collective_testing.h"
#include "trainer/executor/cpu_device.h"
#include "trainer/executor/rank_runner.h"
#include "trainer/job/job.h"
#include "trainer/plan/builder.h"

namespace shardscope::trainer::executor {
namespace TEST_FILE {

// One message of a rank's Plan.
struct Message {
    bool sends = true;
    int peer = 0;  // place in the pipeline
    std::int64_t elements = 0;
};
using Messages = std::vector<Message>;

// The ranks of a mesh, each with a buffer for each of its messages.
class Stages {
  public:
    struct Options {
        bool wires = false;  // a process group for each rank, not one device for all
        std::uint64_t seed = 0;
        plan::DType dtype = plan::DType::fp32;
    };
    Stages(const plan::Mesh& mesh, const Options& options)
        : mesh_(mesh),
          dtype_(options.dtype),
          delays_(options.seed),
          wires_(mesh.ranks, options.seed),
          plans_(static_cast<std::size_t>(mesh.ranks)) {
        for (int rank = 0; rank < mesh.ranks; ++rank) {
            if (devices_.empty() || options.wires) {
                comm::CollectiveGroupOptions group;
                group.mesh = mesh;
                CpuDeviceOptions device;
                device.workers = options.wires ? 1 : 2;
                device.delays = &delays_;
                devices_.push_back(std::make_unique<CpuDevice>(
                    mesh, device, options.wires ? make_collective_group(wires_.wire(rank), group) : nullptr));
                shared_.push_back(std::make_unique<Shared>(Shared{*devices_.back(), delays_, mesh, job_}));
            }
            runners_.push_back(std::make_unique<RankRunner>(rank, *shared_.back(), -1, HostCalls{}));
        }
    }
    ~Stages() {
        for (auto& device : devices_) device->stop();
    }

    // Each rank's messages, in order; what is sent are values of the rank and the message. Returns the
    // first error.
    std::string run(const std::vector<Messages>& of_ranks) {
        std::vector<std::future<void>> hosts;
        for (int rank = 0; rank < mesh_.ranks; ++rank) {
            const Messages& messages = of_ranks[static_cast<std::size_t>(rank)];
            hosts.push_back(
                std::async(std::launch::async, [this, rank, &messages] { host(rank, messages); }));
        }
        std::string first;
        for (auto& host : hosts) {
            const std::string error = testing::error_of(host);
            if (first.empty()) first = error;
        }
        return first;
    }
    // Bytes of the rank's buffer of a message.
    std::vector<std::byte> contents(int rank, std::size_t message, const Messages& messages) {
        const plan::Arg all{static_cast<plan::BufferId>(message), 0, bytes(messages[message])};
        const plan::HostView view = runners_[static_cast<std::size_t>(rank)]->contents(all);
        return {view.bytes().begin(), view.bytes().end()};
    }
    std::vector<std::byte> values(int rank, std::size_t message, const Messages& messages) const {
        std::vector<std::byte> values(static_cast<std::size_t>(bytes(messages[message])));
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<std::byte>(i * 7 + message * 13 + static_cast<std::size_t>(rank) * 101);
        return values;
    }

  private:
    std::int64_t bytes(const Message& message) const { return message.elements * size_of(dtype_); }

    void host(int rank, const Messages& messages) {
        try {
            std::vector<plan::Buffer> buffers;
            for (const Message& message : messages)
                buffers.push_back({"message", plan::MemoryCategory::activations, plan::MemorySpace::device,
                                   bytes(message)});
            plan::PlanBuilder setup(plan::PlanKind::setup, buffers), step(plan::PlanKind::steady, buffers);
            for (std::size_t m = 0; m < messages.size(); ++m)
                setup.allocate(static_cast<plan::BufferId>(m), plan::Stream::compute);
            step.order(plan::Stream::compute, plan::Stream::send);
            step.order(plan::Stream::compute, plan::Stream::receive);
            for (std::size_t m = 0; m < messages.size(); ++m) {
                const plan::Tensor tensor{nullptr, step.whole(static_cast<plan::BufferId>(m)), -1, dtype_};
                messages[m].sends ? step.send(tensor, messages[m].peer)
                                  : step.receive(tensor, messages[m].peer);
            }
            RankRunner& runner = *runners_[static_cast<std::size_t>(rank)];
            auto& [first, second] = plans_[static_cast<std::size_t>(rank)];
            first = setup.take();
            second = step.take();
            runner.run(first, 0);
            for (std::size_t m = 0; m < messages.size(); ++m) {
                if (!messages[m].sends) continue;
                const plan::HostView view = runner.contents(step_arg(m, messages[m]));
                const std::vector<std::byte> own = values(rank, m, messages);
                std::memcpy(view.bytes().data(), own.data(), own.size());
            }
            runner.run(second, 0);
            runner.drain();
        } catch (...) {
            for (auto& device : devices_) device->fail(std::current_exception());
            throw;
        }
    }
    plan::Arg step_arg(std::size_t m, const Message& message) const {
        return {static_cast<plan::BufferId>(m), 0, bytes(message)};
    }

    const plan::Mesh mesh_;
    const plan::DType dtype_;
    const job::Job job_;
    collective::Delays delays_;
    testing::MemoryWires wires_;
    // By rank. A worker of a device that failed may still read them.
    std::vector<std::pair<plan::Plan, plan::Plan>> plans_;
    std::vector<std::unique_ptr<CpuDevice>> devices_;
    std::vector<std::unique_ptr<Shared>> shared_;
    std::vector<std::unique_ptr<RankRunner>> runners_;
};

class MessagesOf : public ::testing::TestWithParam<bool> {
  protected:
    Stages::Options options(std::uint64_t seed = 0) const { return {.wires = GetParam(), .seed = seed}; }
};

// Every rank sends to both neighbours before it receives from them: three sizes each way, all in flight at
// the same time.
TEST_P(MessagesOf, ArriveWhenNeighboursSendToEachOtherAtTheSameTime) {
    for (const plan::Mesh mesh : {plan::Mesh{2, 1, 1, 2}, plan::Mesh{3, 1, 1, 3}, plan::Mesh{4, 1, 1, 4},
                                  plan::Mesh{8, 2, 1, 2}, plan::Mesh{8, 1, 2, 4}}) {
        const int stages = mesh.pipeline;
        std::vector<Messages> all;
        for (int rank = 0; rank < mesh.ranks; ++rank) {
            const int place = mesh.pipeline_index(rank), next = (place + 1) % stages,
                      previous = (place + stages - 1) % stages;
            Messages own;
            for (const bool sends : {true, false}) {
                for (const std::int64_t elements : {1, 1000, 100'003}) {
                    own.push_back({sends, sends ? next : previous, elements});
                    own.push_back({sends, sends ? previous : next, elements + 5});
                }
            }
            all.push_back(std::move(own));
        }
        for (const std::uint64_t seed : {0, 3}) {
            Stages ranks(mesh, options(seed));
            ASSERT_EQ(ranks.run(all), "") << mesh.ranks << " ranks, " << stages << " stages";
            for (int rank = 0; rank < mesh.ranks; ++rank) {
                const Messages& own = all[static_cast<std::size_t>(rank)];
                for (std::size_t m = 6; m < own.size(); ++m) {
                    const int from = mesh.member(plan::Group::pipeline, rank, own[m].peer);
                    const std::size_t sent = m - 6;  // the same place among the sender's messages
                    ASSERT_EQ(ranks.contents(rank, m, own),
                              ranks.values(from, sent, all[static_cast<std::size_t>(from)]))
                        << "rank " << rank << ", message " << m;
                }
            }
        }
    }
}

// More than a communicator between processes may have under way.
TEST_P(MessagesOf, KeepTheirOrder) {
    const plan::Mesh mesh{2, 1, 1, 2};
    constexpr std::size_t kMany = 100;
    const std::vector<Messages> all = {Messages(kMany, {true, 1, 50}), Messages(kMany, {false, 0, 50})};
    Stages ranks(mesh, options(5));
    ASSERT_EQ(ranks.run(all), "");
    for (std::size_t m = 0; m < kMany; ++m)
        ASSERT_EQ(ranks.contents(1, m, all[1]), ranks.values(0, m, all[0])) << m;
}

TEST_P(MessagesOf, MoveBf16AndNothing) {
    const plan::Mesh mesh{2, 1, 1, 2};
    Stages::Options bf16 = options();
    bf16.dtype = plan::DType::bf16;
    const std::vector<Messages> all = {{{true, 1, 0}, {true, 1, 77}}, {{false, 0, 0}, {false, 0, 77}}};
    Stages ranks(mesh, bf16);
    ASSERT_EQ(ranks.run(all), "");
    EXPECT_EQ(ranks.contents(1, 1, all[1]), ranks.values(0, 1, all[0]));
}

TEST_P(MessagesOf, AreRefusedIfTheirSizesDiffer) {
    const plan::Mesh mesh{4, 2, 1, 2};
    const Message sent{true, 1, 20}, wanted{false, 0, 30}, right{false, 0, 20};
    Stages ranks(mesh, options());
    const std::string error = ranks.run({{sent}, {sent}, {wanted}, {right}});
    const std::string local =
                          "collective 0: rank 2 calls recv of 30 fp32 elements, another calls send of 20 "
                          "fp32 elements",
                      local_first =
                          "collective 0: rank 0 calls send of 20 fp32 elements, another calls recv "
                          "of 30 fp32 elements";
    if (GetParam()) {
        EXPECT_EQ(error.find("rank 2 calls recv of 30 fp32 (step 0) where rank 0 calls send of 20 fp32 (step "
                             "0): message number 0 from rank 0 to rank 2; "),
                  0U)
            << error;
    } else {
        EXPECT_TRUE(error == local || error == local_first) << error;
    }
}

INSTANTIATE_TEST_SUITE_P(Engines, MessagesOf, ::testing::Bool(), [](const auto& wires) {
    return wires.param ? std::string("Processes") : std::string("Threads");
});

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::executor
