#include "trainer/executor/cuda_module.h"

#include <string>

#include <dlfcn.h>
#include <fmt/core.h>
#include <shardscope/version.h>

#include "profiler/base/beside_tool.h"
#include "trainer/executor/processes.h"
#include "trainer/executor/world_bootstrap.h"
#include "trainer/job/job.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::executor {

namespace {

constexpr const char* kModule = "libshardscope_cuda.so";

// Stays open: device memory, streams and the driver's own threads outlive any one run.
void* open_module() {
    const std::string path = profiler::find_beside_tool(kModule);
    if (path.empty()) {
        throw DeviceError(fmt::format(
            "run.device = \"cuda\": {} is missing next to shardscope-train; build it where the CUDA "
            "Toolkit is installed, or use run.device = \"cpu\"",
            kModule));
    }
    void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module) return module;
    const char* reason = ::dlerror();
    throw DeviceError(
        fmt::format("run.device = \"cuda\": {} cannot be opened ({}); install it again, or use "
                    "run.device = \"cpu\"",
                    path, reason ? reason : "no reason given"));
}

template <class Function>
Function find(const char* symbol) {
    static void* const module = open_module();
    void* const found = ::dlsym(module, symbol);
    if (!found) {
        throw DeviceError(fmt::format(
            "run.device = \"cuda\": {} lacks {}; reinstall it and shardscope-train from the same build",
            kModule, symbol));
    }
    return reinterpret_cast<Function>(found);
}

device::GroupKind kind_of(job::CommKind comm) {
    switch (comm) {
        case job::CommKind::automatic:
            return device::GroupKind::automatic;
        case job::CommKind::local:
            return device::GroupKind::local;
        case job::CommKind::nccl:
            return device::GroupKind::nccl;
        case job::CommKind::mpi:  // load_job refuses them
        case job::CommKind::gloo:
        case job::CommKind::tcp:
            break;
    }
    return device::GroupKind::automatic;
}

}  // namespace

device::Gpus find_gpus() {
    device::Gpus gpus;
    std::string why;
    if (!find<device::FindGpus>(device::kFindGpusSymbol)(kVersion, gpus, why)) throw DeviceError(why);
    return gpus;
}

std::unique_ptr<device::Device> open_cuda_device(const DeviceRequest& request, device::WorkMarks* marks) {
    const job::Job& job = request.program.job();
    device::DeviceSettings settings;
    settings.version = kVersion;
    settings.mesh = request.program.mesh();
    settings.group = kind_of(job.run.comm);
    settings.tf32 = job.precision.tf32;
    settings.timeout_s = job.run.timeout;
    settings.ranks_per_device = job.run.ranks_per_device;
    settings.marks = marks;
    if (request.processes) {
        world::World& world = *request.processes->world;
        settings.ranks = {world.rank()};
        settings.local_rank = world.place().local_rank;
        settings.bootstrap = std::make_shared<WorldBootstrap>(world);
    }
    std::string why;
    std::unique_ptr<device::Device> device(
        find<device::OpenDevice>(device::kOpenDeviceSymbol)(settings, why));
    if (!device) throw DeviceError(why);
    return device;
}

}  // namespace shardscope::trainer::executor
