// A run's GPU activity in its trace, from the records of CUPTI. The device tells CUPTI about each piece of
// work that it enqueues.
#pragma once

#include <memory>
#include <string>

#include "trainer/device/cuda_interface.h"

namespace shardscope::profiler {
class CuptiSource;
class Recorder;
}  // namespace shardscope::profiler

namespace shardscope::trainer::executor {

class DeviceTrace final : public device::WorkMarks {
  public:
    explicit DeviceTrace(profiler::Recorder* recorder);  // null: nothing is recorded
    ~DeviceTrace() override;                             // calls finish()

    // Called before a device that CUPTI supports is used; returns the object that the device must notify.
    // Null: nothing is recorded, or recording is impossible; then problem() says why.
    device::WorkMarks* open();
    const std::string& problem() const { return problem_; }  // one sentence; empty: none

    void begin(const profiler::DeviceWork& work) override;
    void end() override;

    // Called when the device is idle for good, before Recorder::finish().
    void finish();

  private:
    profiler::Recorder* recorder_;
    std::unique_ptr<profiler::CuptiSource> source_;
    std::string problem_;
};

}  // namespace shardscope::trainer::executor
