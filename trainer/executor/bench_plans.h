// The Plans of a bench of collectives: each contains nothing but one collective or kind of message, once or
// repeated, so that it runs and is recorded as in a step.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "trainer/executor/collective_bench.h"
#include "trainer/plan/mesh.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer::executor {

class BenchPlans {
  public:
    BenchPlans(const plan::Mesh& mesh, const CollectiveBenchOptions& options);

    struct OfCollective {
        CollectiveRate rate;
        plan::Plan once, many;
    };
    // The Plans of both ends, by place: the rank that sends first, and the other one.
    struct OfMessage {
        MessageRate rate;
        using Ends = std::array<plan::Plan, 2>;
        Ends round_trips, one_way, both_ways;
    };
    const plan::Plan& begin() const { return begin_; }
    const plan::Plan& end() const { return end_; }
    const std::vector<OfCollective>& collectives() const { return collectives_; }
    const std::vector<OfMessage>& messages() const { return messages_; }
    std::vector<const plan::Plan*> all() const;

  private:
    plan::Plan collective(const CollectiveRate& rate, int repeats) const;
    plan::Plan round_trips(const MessageRate& rate, int place) const;
    plan::Plan one_way(const MessageRate& rate, int place) const;
    plan::Plan both_ways(const MessageRate& rate, int place) const;
    void message(plan::PlanBuilder& builder, plan::Operation operation, const MessageRate& rate, int place,
                 plan::Stream stream) const;

    int ranks_;
    std::vector<plan::Buffer> buffers_;  // the full one, and one rank's piece of it
    plan::Plan begin_, end_;
    std::vector<OfCollective> collectives_;
    std::vector<OfMessage> messages_;
};

// What is measured, without times: each collective and each message, at each size.
std::vector<CollectiveRate> collective_rates(int ranks, const CollectiveBenchOptions& options);
std::vector<MessageRate> message_rates(int talkers, const CollectiveBenchOptions& options);

// The sizes from `smallest` to `largest`: both, and the powers of four between them.
std::vector<std::int64_t> bench_sizes(std::int64_t smallest, std::int64_t largest);

}  // namespace shardscope::trainer::executor
