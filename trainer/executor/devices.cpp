#include "trainer/executor/devices.h"

#include <algorithm>
#include <thread>

#include "trainer/executor/cpu_device.h"
#include "trainer/executor/cuda_module.h"
#include "trainer/executor/device_trace.h"
#include "trainer/job/job.h"
#include "trainer/kernels/blas.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer {

namespace {

// OpenBLAS takes a work buffer (128 MiB of address space and a little) for each of its concurrent callers at
// the first large product, and spins for ever where the system does not give it.
constexpr std::int64_t kBlasBuffer = std::int64_t{136} << 20;

std::unique_ptr<Device> make_cpu_device(const DeviceRequest& request) {
    const Job& job = request.program.job();
    kernels::Blas::get().set_threads(job.run.blas_threads);
    CpuDeviceOptions options;
    options.workers = worker_count(job);
    options.recorder = request.recorder;
    options.transfer_delay = std::chrono::microseconds(request.test.transfer_delay_us);
    options.delays = &request.delays;
    options.headroom = kBlasBuffer * options.workers;
    return std::make_unique<CpuDevice>(request.program.mesh(), options);
}

}  // namespace

int worker_count(const Job& job) {
    if (job.run.workers > 0) return job.run.workers;
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::unique_ptr<Device> make_device(const DeviceRequest& request) {
    switch (request.program.job().run.device) {
        case DeviceKind::cuda:
            return open_cuda_device(request, request.trace.open());
        case DeviceKind::cpu:
            break;
    }
    return make_cpu_device(request);
}

}  // namespace shardscope::trainer
