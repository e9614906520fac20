#include "trainer/sim/bench.h"

#include "trainer/executor/bench_plans.h"
#include "trainer/sim/rank_classes.h"

namespace shardscope::trainer::sim {

executor::CollectiveBench simulate_bench(const sharding::Program& program, const Cluster& cluster,
                                         const executor::CollectiveBenchOptions& options) {
    const plan::Mesh& mesh = program.mesh();
    executor::CollectiveBenchOptions collectives = options;
    collectives.pairs = false;
    const executor::BenchPlans plans(mesh, collectives);
    SimOptions sim = options_of(program.job(), cluster);
    sim.every_step = true;
    executor::CollectiveBench bench;
    if (!plans.collectives().empty()) {
        RoleScript role{.setup = &plans.begin(), .steps = {}, .finish = &plans.end()};
        for (const executor::BenchPlans::OfCollective& own : plans.collectives())
            role.steps.insert(role.steps.end(), {&own.once, &own.many});
        Script script;
        script.mesh = mesh;
        script.count = std::ssize(role.steps);
        script.workers = program.job().run.workers;
        script.roles.assign(static_cast<std::size_t>(program.roles()), role);
        const std::vector<SimStep> steps = simulate(script, cluster, sim).of(0).steps;
        for (std::size_t i = 0; i < plans.collectives().size(); ++i) {
            executor::CollectiveRate& rate = bench.rates.emplace_back(plans.collectives()[i].rate);
            rate.latency_us = steps[2 * i].seconds * 1e6;
            rate.us = steps[2 * i + 1].seconds * 1e6 / rate.repeats;
        }
    }
    for (executor::MessageRate& rate : bench.messages = executor::message_rates(mesh.talkers, options)) {
        const Spread ends = spread_of(mesh, {rate.from, rate.to}, cluster, sim.slow_links);
        const double us = collective_seconds(cluster, ends, plan::Operation::send, rate.bytes) * 1e6;
        rate.in_plan = {us, us, us};  // a message the other way takes no part of the link
    }
    return bench;
}

}  // namespace shardscope::trainer::sim
