#include "trainer/executor/devices.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/core.h>
#include <sched.h>
#include <unistd.h>

#include "trainer/comm/collective_group.h"
#include "trainer/comm/inquiry.h"
#include "trainer/executor/cpu_device.h"
#include "trainer/executor/cuda_module.h"
#include "trainer/executor/device_trace.h"
#include "trainer/executor/file_device.h"
#include "trainer/executor/processes.h"
#include "trainer/job/job.h"
#include "trainer/kernels/blas.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::executor {

namespace {

// OpenBLAS takes a work buffer (128 MiB of address space and a little) for each of its concurrent callers at
// the first large matmul, and spins for ever where the allocation fails.
constexpr std::int64_t kBlasBuffer = std::int64_t{136} << 20;

// Carries out every collective of this process's rank, over the job's wire.
std::unique_ptr<comm::ProcessGroup> make_group(const DeviceRequest& request) {
    const sharding::Program& program = request.program;
    world::World& world = *request.processes->world;
    comm::CollectiveGroupOptions options;
    options.mesh = program.mesh();
    options.sums = program.job().run.sums == job::SumOrder::ring ? comm::Sums::ring : comm::Sums::ordered;
    options.timeout_s = program.job().run.timeout;
    options.unit_name = [&program](int unit) {
        const auto& units = program.units();
        const auto u = static_cast<std::size_t>(unit);
        return unit >= 0 && u < units.size() ? units[u].name : "";
    };
    options.on_trouble = [&world](const comm::CollectiveTrouble& trouble) {
        std::string reason = trouble.reason;
        if (trouble.rank >= 0) {
            const world::Member& member = world.members()[static_cast<std::size_t>(trouble.rank)];
            reason = fmt::format("(process {} on host {}) {}", member.pid, member.host, reason);
        }
        world.fail({trouble.rank, reason, trouble.lost});
    };
    options.inquiry = comm::make_world_inquiry(world);
    options.delays = &request.delays;
    return make_collective_group(request.processes->open_wire(), options);
}

// Those that this process is bound to; std::thread counts all of the host.
int usable_cores() {
    cpu_set_t cores;
    const bool known = ::sched_getaffinity(0, sizeof cores, &cores) == 0;
    return std::max(1, known ? CPU_COUNT(&cores) : static_cast<int>(std::thread::hardware_concurrency()));
}

std::unique_ptr<device::Device> make_cpu_device(const DeviceRequest& request) {
    const job::Job& job = request.program.job();
    kernels::Blas::get().set_threads(job.run.blas_threads);
    CpuDeviceOptions options;
    options.workers = worker_count(job, request.processes);
    options.recorder = request.recorder;
    options.transfer_delay = std::chrono::microseconds(request.test.transfer_delay_us);
    options.delays = &request.delays;
    options.live = request.live;
    options.headroom = kBlasBuffer * options.workers;
    if (request.processes)
        options.own_core = job.run.ranks_per_device == 1 &&
                           request.processes->world->place().local_ranks <= ::sysconf(_SC_NPROCESSORS_ONLN);
    return std::make_unique<CpuDevice>(request.program.mesh(), options,
                                       request.processes ? make_group(request) : nullptr);
}

}  // namespace

int worker_count(const job::Job& job, const Processes* processes) {
    if (job.run.workers > 0) return job.run.workers;
    const int mine = usable_cores();
    if (!processes) return mine;
    return cores_of_process(mine, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)),
                            processes->world->place().local_ranks, job.run.ranks_per_device);
}

int cores_of_process(int usable, int cores, int processes, int sharing) {
    const bool bound = usable < cores;
    if (bound && sharing > 1) {
        throw DeviceError(
            fmt::format("run.ranks_per_device: this process is bound to {} of the {} cores of its host, so "
                        "the binding says who shares cores; omit the key, or do not bind processes",
                        usable, cores));
    }
    if (processes % sharing != 0) {
        throw DeviceError(
            fmt::format("run.ranks_per_device: the {} processes of this host cannot be divided "
                        "into groups of {}; choose a divisor of their number",
                        processes, sharing));
    }
    return bound ? usable : std::max(1, usable / (processes / sharing));
}

std::unique_ptr<device::Device> make_device(const DeviceRequest& request) {
    const job::Job& job = request.program.job();
    if (job.run.device == job::DeviceKind::sim)
        throw DeviceError(
            "a simulated device computes nothing; set run.device to \"cpu\" or \"cuda\" for this");
    return with_files(job.run.device == job::DeviceKind::cuda
                          ? open_cuda_device(request, request.trace.open())
                          : make_cpu_device(request),
                      request);
}

std::unique_ptr<device::Device> with_files(std::unique_ptr<device::Device> device,
                                           const DeviceRequest& request) {
    const std::string& folder = request.program.job().memory.nvme;
    if (folder.empty()) return device;
    return std::make_unique<FileDevice>(std::move(device),
                                        FileDeviceOptions{folder, request.recorder, &request.delays});
}

}  // namespace shardscope::trainer::executor
