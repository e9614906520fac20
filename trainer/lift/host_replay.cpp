#include "trainer/lift/host_replay.h"

#include <algorithm>

#include "trainer/lift/recorded_costs.h"
#include "trainer/sim/collective_cost.h"

namespace shardscope::trainer::lift {

namespace {

// Ranks that share a machine share its memory and caches. How much longer everything takes than on one rank,
// measured with PyTorch 2.15 on two ranks of one thread, two cores and three models: 1.07 to 1.17.
constexpr double kShared = 1.1;

// FSDP's copies between small and large buffers take longer a byte than DDP's of gradients that have just
// been written: 4 to 5 times, in the same measurements.
constexpr double kColdCopies = 4;

// The part of a transfer's time in which its threads occupy a core, in the same measurements: 0.4 to 0.6.
constexpr double kCoreOfTransfer = 0.5;

// What ranks wait for each other at each of FSDP's collectives beside what the differences of their work
// explain, in the same measurements: 0.1 to 0.6 ms. A run of DDP, where they meet once, does not show it.
constexpr double kUnseenOfCollective = 0.3e-3;

// The time of work in a replay as a multiple of the recorded one's.
double crowding(const Lifted& lifted, const job::Job& job) {
    return (job.run.ranks > 1 ? kShared : 1) / (lifted.ranks > 1 ? kShared : 1);
}

bool blocks(const Lifted& lifted, const job::Job& job) {
    return lifted.blocking && job.parallel.mode == job::ParallelMode::fsdp;
}

// What a rank waits for the others in a step in which they meet at these shares of its work.
double waiting_ns(const Lifted& lifted, const job::Job& job, const std::vector<double>& shares,
                  double work_ns) {
    const bool shown = lifted.fsdp || job.parallel.mode != job::ParallelMode::fsdp;
    const double unseen =
        (shown ? lifted.unseen_waiting_s : kUnseenOfCollective) / kNs * static_cast<double>(shares.size());
    return std::max(0.0, lifted.skew.waiting(shares) * work_ns + unseen);
}

}  // namespace

sim::Cluster cluster_for(const Lifted& lifted, sim::Cluster cluster, const job::Job& job) {
    // DDP's reductions run beside the backward even where FSDP's collectives stop the host.
    cluster.collectives.blocking = blocks(lifted, job);
    if (!lifted.hosts) return cluster;
    const double crowd = crowding(lifted, job);
    cluster.host.launch *= crowd;
    cluster.device.memory_bandwidth /= crowd;
    const bool fsdp = job.parallel.mode == job::ParallelMode::fsdp;
    if (fsdp != lifted.fsdp) {
        sim::ClassRates& copies = cluster.device.classes[static_cast<std::size_t>(plan::KernelClass::copy)];
        copies.bandwidth_share.points = {{1, fsdp ? 1 / kColdCopies : kColdCopies}};
    }
    if (job.run.ranks == 1) {
        // PyTorch requests nothing then, and copies nothing in or out.
        cluster.collectives.inside = sim::Algorithm::shared_memory;
        for (auto& own : cluster.collectives.measured) own = {.latency = 0, .bandwidth = 1};
        sim::ClassRates free = cluster.device.rates(plan::KernelClass::copy);
        free.bandwidth_share.points = {{1, 1e12}};
        for (const plan::Kernel kernel : {plan::Kernel::chunk_split, plan::Kernel::chunk_cat})
            cluster.device.kernels[kernel] = free;
    }
    return cluster;
}

double host_overlap_seconds(const Lifted& lifted, const sharding::Program& program) {
    const job::Job& job = program.job();
    if (job.parallel.mode != job::ParallelMode::ddp || job.run.ranks < 2) return 0;
    double all = 0, last = 0;
    std::int32_t micro = -1;
    for (const plan::Op& op : program.step(program.warm_up_steps()).ops) {
        if (op.kind != plan::OpKind::collective) continue;
        if (op.micro != micro) last = 0;
        const auto& line =
            lifted.cluster.collectives.measured[static_cast<std::size_t>(op.collective().operation)];
        if (line.bandwidth <= 0) continue;
        all += last;
        last = static_cast<double>(op.bytes) * sim::bus_share(op.collective().operation, job.run.ranks) /
               line.bandwidth;
        micro = op.micro;
    }
    return kCoreOfTransfer * all;
}

LiftedCosts host_costs(const Lifted& lifted, LiftedCosts costs, const sharding::Program& program) {
    const job::Job& job = program.job();
    const plan::Plan& plan = program.step(program.warm_up_steps());
    const double crowd = crowding(lifted, job);
    costs.host_factor = crowd;
    costs.kernel_factor = crowd;
    costs.step_ns = static_cast<std::int64_t>(static_cast<double>(lifted.engine.step_ns(program)) * crowd);
    double work = static_cast<double>(costs.step_ns), kernels = 0;
    for (const plan::Op& op : plan.ops) {
        work += static_cast<double>(op.recorded_ns);
        if (op.kind == plan::OpKind::kernel) kernels += static_cast<double>(op.recorded_ns);
    }
    if (kernels <= 0) return costs;
    double more = (host_overlap_seconds(lifted, program) - lifted.host_overlap_s) / kNs;
    if (job.run.ranks > 1) more += waiting_ns(lifted, job, meeting_shares(plan, blocks(lifted, job)), work);
    // Threads that share a core with a transfer have half of it at least.
    costs.kernel_factor = std::max(costs.kernel_factor + more / kernels, crowd / 2);
    return costs;
}

}  // namespace shardscope::trainer::lift
