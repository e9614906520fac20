// The choice of the device that carries out a job.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>

#include "trainer/collective/delays.h"
#include "trainer/device/device.h"
#include "trainer/executor/test_settings.h"

namespace shardscope::trainer::sharding {
class Program;
}

namespace shardscope::trainer::job {
struct Job;
}

namespace shardscope::profiler {
class Recorder;
}

namespace shardscope::trainer::executor {

class DeviceTrace;
class LiveBoard;
struct Processes;

// The requested device is not available; the message is one sentence: what is missing, what to do.
class DeviceError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

struct DeviceRequest {
    const sharding::Program& program;
    profiler::Recorder* recorder;  // null: nothing is recorded
    const TestSettings& test;
    collective::Delays& delays;
    DeviceTrace& trace;
    Processes* processes = nullptr;  // of one rank each; null: all ranks are in this process
    LiveBoard* live = nullptr;       // null: nobody can watch the run
};
using MakeDevice = std::function<std::unique_ptr<device::Device>(const DeviceRequest&)>;

// Makes the device that run.device names. Throws DeviceError.
std::unique_ptr<device::Device> make_device(const DeviceRequest& request);

// The device with the files of memory.nvme, if the job has them. Throws DeviceError.
std::unique_ptr<device::Device> with_files(std::unique_ptr<device::Device> device,
                                           const DeviceRequest& request);

// The number of this process's CPU workers: the job's setting, else the cores that the process may run on,
// divided among the processes of its host where they may run on all cores. `processes` may be null. Throws
// DeviceError.
int worker_count(const job::Job& job, const Processes* processes);

// Of the `usable` ones of a host's cores, those that each of its processes works on, where `sharing` of them
// work on the same ones (run.ranks_per_device). Throws DeviceError.
int cores_of_process(int usable, int cores, int processes, int sharing);

}  // namespace shardscope::trainer::executor
