// Small jobs, executed by the CUDA device over the simulated CUDA (tests/trainer/played_cuda).
#pragma once

#include <memory>

#include "jobs.h"
#include "tests/trainer/played_cuda/runtime_api.h"
#include "trainer/cuda/cuda_device.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::testing {

struct PlayedOptions {
    device::GroupKind group = device::GroupKind::automatic;
    double timeout_s = 0;
    device::WorkMarks* marks = nullptr;
    const cuda::NcclLibrary* nccl = nullptr;  // null: that of the system
};

inline executor::MakeDevice played_device(const PlayedOptions& options = {}) {
    return [options](const executor::DeviceRequest& request) -> std::unique_ptr<device::Device> {
        device::DeviceSettings settings;
        settings.mesh = request.program.mesh();
        settings.group = options.group;
        settings.timeout_s = options.timeout_s;
        settings.ranks_per_device = request.program.job().run.ranks_per_device;
        settings.marks = options.marks;
        return executor::with_files(std::make_unique<cuda::CudaDevice>(settings, options.nccl), request);
    };
}

inline executor::RunResult run_played(const job::Job& job, executor::RunOptions options = {},
                                      const PlayedOptions& played = {}) {
    options.make_device = played_device(played);
    return run(job, options);
}

// Restores the default machine when it goes out of scope.
struct PlayedMachine {
    explicit PlayedMachine(const played_cuda::Machine& machine) { played_cuda::set_machine(machine); }
    ~PlayedMachine() { played_cuda::set_machine({}); }
    PlayedMachine(const PlayedMachine&) = delete;
    PlayedMachine& operator=(const PlayedMachine&) = delete;
};

}  // namespace shardscope::trainer::testing
