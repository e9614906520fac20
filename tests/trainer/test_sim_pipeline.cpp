// Pipelines of equal stages in simulated time: idle time is that of the schedule's replay in whole units, and
// of its closed form where there is one.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/trainer/pipeline_testing.h"
#include "tests/trainer/plan_jobs.h"
#include "trainer/pipeline/replay.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer::sim {
namespace TEST_FILE {

using pipeline::ScheduleKind;
using pipeline::Shape;

constexpr double kUnit = 1.0;  // seconds of a unit of costs: more than 1e5 times all that should take no time

// The kernels that stand for F, I and W: each block has them once, and nothing else has them.
enum Part { forward, input, weight, other };
Part part_of(const plan::Op& op) {
    if (op.kind != plan::OpKind::kernel) return other;
    switch (op.kernel().kernel) {
        case plan::Kernel::attention_forward:
            return forward;
        case plan::Kernel::attention_backward:
            return input;
        case plan::Kernel::linear_backward_bias:  // of each Linear of the block
            return weight;
        default:
            return other;
    }
}

// One block a stage.
job::Job job_of(const testing::SampleText& text, const ScheduleKind& kind, const Shape& shape) {
    job::Job job = testing::gpt_job(text, 1, shape.ranks);
    job.run.device = job::DeviceKind::sim;
    job.parallel.mode = job::ParallelMode::none;
    job.parallel.pipeline = shape.ranks;
    job.parallel.schedule = kind.name;
    job.parallel.virtual_stages = shape.chunks;
    job.model.layers = shape.stages();
    job.model.attention = job::AttentionKind::plain;
    job.train.accumulation = shape.micro_batches;
    job.train.accumulation_sync = false;
    return job;
}

// A cluster on which the parts of a block take these costs, and all else takes no time.
Cluster cluster_of(const sharding::Program& program, const pipeline::Costs& costs) {
    std::map<plan::Kernel, std::int64_t> bytes;  // of the parts of one chunk
    std::map<Part, std::int64_t> units = {
        {forward, costs.forward}, {input, costs.input}, {weight, costs.weight}};
    const plan::Plan& step = program.step(program.warm_up_steps());
    const int chunks = program.job().parallel.virtual_stages * program.job().train.accumulation;
    for (const plan::Op& op : step.ops)
        if (part_of(op) != other) bytes[op.kernel().kernel] += op.bytes;
    Cluster cluster;
    cluster.name = "equal stages";
    cluster.devices = program.job().run.ranks;
    cluster.device.name = "a device";
    cluster.device.memory = 1e12;
    cluster.device.memory_bandwidth = 1;
    const auto at_share = [](double share) {
        ClassRates rates;
        rates.flops = {1e30, 1e30, 1e30, 1e30};
        rates.bandwidth_share.points = {{1, share}};
        return rates;
    };
    for (ClassRates& rates : cluster.device.classes) rates = at_share(1e18);
    for (const plan::Op& op : step.ops) {
        const Part part = part_of(op);
        if (part == other) continue;
        const double each = static_cast<double>(bytes[op.kernel().kernel]) / chunks;
        cluster.device.kernels[op.kernel().kernel] =
            at_share(each / (kUnit * static_cast<double>(units[part])));
    }
    cluster.host.flops = cluster.host.memory_bandwidth = 1e18;
    cluster.copy = {0, 1e18, 1e18, 1};
    cluster.copy.on_device = 1e18;
    cluster.collectives = {0, Algorithm::ring, Algorithm::ring};
    cluster.intra = cluster.inter = {0, 1e18, false};
    return cluster;
}

// When each class of ranks does the parts of its chunks.
struct Spans final : RunObserver {
    struct Rank {
        Time first = 0, last = 0, busy = 0;
    };
    std::map<int, Rank> ranks;
    void work_ended(int rank_class, const StreamItem& item, Time start, Time end) override {
        if (part_of(*item.op) == other) return;
        const auto [found, is_new] = ranks.try_emplace(rank_class, Rank{start, end, 0});
        found->second.last = end;
        found->second.busy += end - start;
    }
};

std::int64_t units(Time time) {
    const double exact = static_cast<double>(time) * 1e-9 / kUnit;
    EXPECT_NEAR(exact, std::round(exact), 1e-3);
    return std::llround(exact);
}

class SimulatedPipeline : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Of, SimulatedPipeline,
                         ::testing::Range<std::size_t>(0, pipeline::schedule_kinds().size()),
                         [](const auto& at) {
                             return std::string("of_") +
                                    std::string(pipeline::schedule_kinds()[at.param].name);
                         });

TEST_P(SimulatedPipeline, IdlesAsItsReplayAndItsClosedFormSay) {
    const testing::SampleText text;
    const ScheduleKind& kind = pipeline::schedule_kinds()[GetParam()];
    int by_form = 0, replayed = 0;
    for (const auto& [p, m] : {std::pair{2, 4}, {2, 6}, {4, 4}, {4, 8}}) {
        const Shape shape{p, m, kind.fewest_chunks};
        if (!refusal(kind, shape).empty()) continue;
        const sharding::Program program(job_of(text, kind, shape));
        const pipeline::Schedule schedule = make_schedule(kind, shape);
        for (const pipeline::Costs& costs : {pipeline::Costs{1, 1, 1}, {2, 2, 1}, {1, 2, 2}, {3, 1, 2}}) {
            const std::string what = to_string(kind, shape) + fmt::format(", costs {},{},{}", costs.forward,
                                                                          costs.input, costs.weight);
            const Cluster cluster = cluster_of(program, costs);
            Spans spans;
            Script script = script_of(program);
            script.count = 1;
            const SimResult result = simulate(script, cluster, {}, &spans);
            Time begin = spans.ranks.begin()->second.first, end = 0;
            for (const auto& [rank_class, rank] : spans.ranks) {
                begin = std::min(begin, rank.first);
                end = std::max(end, rank.last);
            }
            const std::int64_t makespan = units(end - begin);
            const pipeline::ScheduleReplay expected = replay(schedule, costs);
            EXPECT_EQ(makespan, expected.makespan) << what;
            for (int rank = 0; rank < p; ++rank) {
                const Spans::Rank& own = spans.ranks.at(result.class_of[static_cast<std::size_t>(rank)]);
                const std::int64_t idle = makespan - units(own.busy);
                EXPECT_EQ(idle, expected.ranks[static_cast<std::size_t>(rank)].idle())
                    << what << ", rank " << rank;
                if (kind.form.holds(shape, costs)) {
                    EXPECT_EQ(pipeline::Fraction::of(idle, makespan),
                              pipeline::Fraction::of(kind.form.idle_ticks(shape, costs), makespan))
                        << what;
                    ++by_form;
                }
                ++replayed;
            }
        }
    }
    EXPECT_GE(replayed, 4);
    EXPECT_GE(by_form, 2);
}

}  // namespace TEST_FILE
}  // namespace shardscope::trainer::sim
