// The interface between shardscope-train and the CUDA module, a shared library that it opens at run time.
// Both are built from one tree; `version` rejects a module of another build.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "profiler/log/thread_log.h"
#include "trainer/device/bootstrap.h"
#include "trainer/device/device.h"
#include "trainer/plan/mesh.h"

namespace shardscope::trainer::device {

// Called before and after the calls that enqueue a piece of work, on the host thread that enqueues it: what
// is enqueued on the device in between belongs to it.
class WorkMarks {
  public:
    virtual ~WorkMarks() = default;
    virtual void begin(const profiler::DeviceWork& work) = 0;
    virtual void end() = 0;
};

enum class GroupKind : std::uint8_t { automatic, local, nccl };

struct DeviceSettings {
    std::string version;  // of the caller: SHARDSCOPE_VERSION
    plan::Mesh mesh;
    GroupKind group = GroupKind::automatic;
    bool tf32 = false;
    double timeout_s = 0;        // a collective that takes longer ends the run; 0: no limit
    WorkMarks* marks = nullptr;  // null: nothing is recorded
    // Where the job has several processes: the mesh's ranks that this one hosts, ascending (empty: all), its
    // number among the processes of its host, which selects its GPU, and the other processes (null: none).
    std::vector<int> ranks;
    int local_rank = 0;
    int ranks_per_device = 1;  // consecutive ranks of this process that share a GPU
    std::shared_ptr<Bootstrap> bootstrap;
};

// The entry points. If they fail, `why` is one sentence that says what is missing and what to do.
using OpenDevice = Device* (*)(const DeviceSettings& settings, std::string& why);  // null: see `why`
inline constexpr const char* kOpenDeviceSymbol = "shardscope_open_cuda_device";

struct Gpus {
    std::string text;             // "1 x NVIDIA H200"
    std::string driver, runtime;  // CUDA versions, such as "12.8"
};
using FindGpus = bool (*)(const std::string& version, Gpus& gpus, std::string& why);
inline constexpr const char* kFindGpusSymbol = "shardscope_find_gpus";

}  // namespace shardscope::trainer::device
