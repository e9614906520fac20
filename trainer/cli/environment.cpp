#include "trainer/cli/environment.h"

#include <fmt/core.h>

#include "trainer/executor/cuda_module.h"
#include "trainer/executor/devices.h"
#include "trainer/kernels/blas.h"

namespace shardscope::trainer::cli {

RunEnvironment environment_of(const job::Job& job, const executor::Processes* processes) {
    RunEnvironment found;
    if (job.run.device == job::DeviceKind::cuda) {
        const device::Gpus gpus = executor::find_gpus();
        found.facts = {{"device", "cuda"},
                       {"gpus", gpus.text},
                       {"cuda.driver", gpus.driver},
                       {"cuda.runtime", gpus.runtime}};
        found.line = fmt::format("{}, CUDA {}, driver for CUDA {}", gpus.text, gpus.runtime, gpus.driver);
        return found;
    }
    const kernels::Blas& blas = kernels::Blas::get();
    const int workers = worker_count(job, processes);
    found.facts = {{"device", "cpu"},
                   {"workers", std::to_string(workers)},
                   {"blas.core", blas.core()},
                   {"blas.config", blas.config()}};
    found.notes = blas.notes();
    found.line = fmt::format("{} worker{}{}, OpenBLAS {} kernels, {} thread{} per call", workers,
                             workers == 1 ? "" : "s", processes ? " per process" : "", blas.core(),
                             job.run.blas_threads, job.run.blas_threads == 1 ? "" : "s");
    return found;
}

}  // namespace shardscope::trainer::cli
