// Which device carries out a job.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>

#include "trainer/collective/delays.h"
#include "trainer/device/device.h"
#include "trainer/executor/test_settings.h"

namespace shardscope::profiler {
class Recorder;
}

namespace shardscope::trainer {

class DeviceTrace;
struct Processes;
class Program;
struct Job;

// The device that the job asks for cannot be had; the message is one sentence: what is missing, what to do.
class DeviceError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

struct DeviceRequest {
    const Program& program;
    profiler::Recorder* recorder;  // null: nothing is recorded
    const TestSettings& test;
    Delays& delays;
    DeviceTrace& trace;
    Processes* processes = nullptr;  // of one rank each; null: all ranks are of this process
};
using MakeDevice = std::function<std::unique_ptr<Device>(const DeviceRequest&)>;

// By run.device. Throws DeviceError.
std::unique_ptr<Device> make_device(const DeviceRequest& request);

// How many workers this process gets on the CPU: what the job asks for, else the cores that it may run on,
// shared among the processes of its host where they may run on all. `processes` may be null.
int worker_count(const Job& job, const Processes* processes);

}  // namespace shardscope::trainer
