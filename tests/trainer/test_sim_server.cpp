// A parameter server in virtual time: who waits for whom, and for what its link carries.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "plan_jobs.h"
#include "sim_testing.h"

namespace shardscope::trainer {
namespace TEST_FILE {

using testing::served;

// The time that a worker takes for its first steps.
double seconds(const sim::SimResult& result, int rank, std::size_t steps) {
    double sum = 0;
    const std::vector<sim::SimStep>& all = result.of(rank).steps;
    for (std::size_t i = 0; i < std::min(steps, all.size()); ++i) sum += all[i].seconds;
    return sum;
}

constexpr std::int64_t kSimulated = 40;

sim::SimResult simulated(std::int64_t staleness, double slowdown) {
    job::Job job = served(testing::mlp_job(8, 256, 32, 1), 4, 1, staleness);
    job.run.device = job::DeviceKind::sim;
    job.run.steps = kSimulated;
    sim::Cluster cluster = testing::round_cluster();
    cluster.intra.bandwidth = 1e12;
    sim::SimOptions options;
    options.every_step = true;
    if (slowdown > 1) options.slow_ranks = {{1, slowdown}};
    return simulate(sharding::Program(job), cluster, options);
}

// In step all have the speed of the slowest; without a bound the others keep theirs; a bound of s steps lets
// them end s + 1 steps before it.
TEST(SimServer, WaitsForTheSlowestAsItsStalenessSays) {
    const auto steps = static_cast<std::size_t>(kSimulated);
    const double even = seconds(simulated(0, 1), 0, steps);
    const sim::SimResult in_step = simulated(0, 3), free = simulated(-1, 3);
    EXPECT_NEAR(seconds(in_step, 0, steps) / seconds(in_step, 1, steps), 1, 0.05);
    EXPECT_GT(seconds(in_step, 0, steps) / even, 2.5);
    EXPECT_NEAR(seconds(free, 0, steps) / even, 1, 0.1);
    EXPECT_NEAR(seconds(free, 1, steps) / seconds(in_step, 1, steps), 1, 0.05);
    for (const std::int64_t staleness : {1, 3}) {
        const sim::SimResult bounded = simulated(staleness, 3);
        const double slow_step = seconds(bounded, 1, steps) / static_cast<double>(kSimulated);
        const double ahead = (seconds(bounded, 1, steps) - seconds(bounded, 0, steps)) / slow_step;
        EXPECT_GT(ahead, static_cast<double>(staleness) - 1) << staleness;
        EXPECT_LT(ahead, static_cast<double>(staleness) + 1.1) << staleness;
    }
}

// A server's link carries what all n workers get, 4 P n / S bytes, and then what they send; the first
// gradients arrive while the last parameters leave.
TEST(SimServer, TakesTheTimeOfItsLink) {
    for (const int servers : {1, 2}) {
        job::Job job = served(testing::mlp_job(8, 1024, 1, 1), 4, servers, 0);
        job.run.device = job::DeviceKind::sim;
        job.run.steps = 6;
        sim::Cluster cluster = testing::round_cluster();
        for (sim::ClassRates& rates : cluster.device.classes) rates.flops = {1e15, 1e15, 1e15, 1e15};
        cluster.device.memory_bandwidth = 1e15;
        cluster.intra.bandwidth = 1e8;
        const double one_way = 4.0 * 4 * 8 * (1024 * 1024 + 1024) / servers / 1e8;
        const double step = simulate(sharding::Program(job), cluster, {}).of(0).steady.seconds;
        EXPECT_NEAR(step / one_way, servers == 1 ? 1.25 : 1.5, 0.02) << servers;
    }
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer
