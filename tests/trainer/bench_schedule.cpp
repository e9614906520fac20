// The cost of the allocator and the schedule: an MLP of 200 Linear units under FSDP. At width 8 kernels take
// almost no time, so the processor time of a step is the schedule's; the same Plan at a real width shows its
// share of a step. Not a test; run bin/bench_schedule [RANKS [WIDTH [BATCH]]].
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>

#include <fmt/core.h>

#include "trainer/data/synthetic.h"
#include "trainer/executor/ranks.h"

namespace shardscope::trainer::executor {
namespace {

double seconds(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Cost {                                // seconds per step
    double wall = 0, process = 0, host = 0;  // host: processor time of a rank's host thread
};

job::Job job_of(int ranks, int width, int batch) {
    job::Job job;
    job.run.ranks = ranks;
    job.run.steps = 1000;
    job.model.layers = 200;
    job.model.width = width;
    job.data.batch = batch;
    job.fsdp.wrap = job::parse_wrap("module:Linear");
    return job;
}

Cost measure(const sharding::Program& program, int steps) {
    const job::Job& job = program.job();
    const data::SyntheticDataset dataset(job.run.seed, job.model.width);
    HostCalls calls;
    calls.next_batch = [&](void* input, void* target) { dataset.fill(0, job.data.batch, input, target); };
    calls.read_loss = [](std::int64_t, std::span<const double>, std::int32_t, std::optional<double>) {};
    Ranks ranks(program, {}, [&](int) { return calls; });
    std::mutex mutex;
    Cost cost;
    ranks.run([&](int rank, RankRunner& runner) {
        constexpr int kWarmUp = 3;
        runner.run(program.setup(), 0);
        for (int step = 0; step < kWarmUp; ++step)
            runner.run(program.step(static_cast<std::size_t>(step)), step);
        runner.drain();
        ranks.meet();
        const Cost begin{seconds(CLOCK_MONOTONIC), seconds(CLOCK_PROCESS_CPUTIME_ID), 0};
        const double host = seconds(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < steps; ++i) runner.run(program.step(kWarmUp), kWarmUp + i);
        const double host_end = seconds(CLOCK_THREAD_CPUTIME_ID);
        runner.drain();
        ranks.meet();
        const std::lock_guard lock(mutex);
        if (rank == 0) {
            cost.wall = (seconds(CLOCK_MONOTONIC) - begin.wall) / steps;
            cost.process = (seconds(CLOCK_PROCESS_CPUTIME_ID) - begin.process) / steps;
        }
        cost.host += (host_end - host) / steps / job.run.ranks;
    });
    return cost;
}

int run(int ranks, int width, int batch) {
    const sharding::Program small(job_of(ranks, 8, 1)), large(job_of(ranks, width, batch));
    std::map<plan::OpKind, int> kinds;
    for (const plan::Op& op : small.step(3).ops) ++kinds[op.kind];
    const auto operations = static_cast<double>(small.step(3).ops.size());
    const Cost idle = measure(small, 50), real = measure(large, 3);
    const double all = operations * ranks;
    fmt::print(
        "{} ranks, 200 units, {} operations a rank and step ({} allocations, {} frees, {} events and waits, "
        "{} pieces of work, {} collectives)\n",
        ranks, small.step(3).ops.size(), kinds[plan::OpKind::allocate], kinds[plan::OpKind::free],
        kinds[plan::OpKind::record_event] + kinds[plan::OpKind::wait_event] + kinds[plan::OpKind::host_wait],
        kinds[plan::OpKind::kernel] + kinds[plan::OpKind::memcpy] + kinds[plan::OpKind::memset],
        kinds[plan::OpKind::collective]);
    fmt::print(
        "width 8, batch 1:      step {:8.2f} ms, processor time {:8.2f} ms ({:.2f} µs an operation; of the "
        "host thread {:.2f} µs)\n",
        idle.wall * 1e3, idle.process * 1e3, idle.process / all * 1e6, idle.host / operations * 1e6);
    fmt::print(
        "width {}, batch {}: step {:8.2f} ms, processor time {:8.2f} ms (of the host threads {:.2f} ms): the "
        "schedule is {:.2f} % of it\n",
        width, batch, real.wall * 1e3, real.process * 1e3, real.host * ranks * 1e3,
        100 * idle.process / real.process);
    return 0;
}

}  // namespace
}  // namespace shardscope::trainer::executor

int main(int argc, char** argv) {
    const auto number = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
    return shardscope::trainer::executor::run(number(1, 2), number(2, 1024), number(3, 128));
}
