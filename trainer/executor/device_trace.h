// What a run's GPUs do, in its trace: CUPTI's account, which is told of each piece of work by the device that
// enqueues it.
#pragma once

#include <memory>
#include <string>

#include "trainer/device/cuda_interface.h"

namespace shardscope::profiler {
class CuptiSource;
class Recorder;
}  // namespace shardscope::profiler

namespace shardscope::trainer {

class DeviceTrace final : public cuda::WorkMarks {
  public:
    explicit DeviceTrace(profiler::Recorder* recorder);  // null: nothing is recorded
    ~DeviceTrace() override;                             // calls finish()

    // For a device that CUPTI knows of, before it is used: whom it has to tell. Null: nothing is recorded, or
    // it cannot be; then problem() says why.
    cuda::WorkMarks* open();
    const std::string& problem() const { return problem_; }  // one sentence; empty: none

    void begin(const profiler::DeviceWork& work) override;
    void end() override;

    // The device is idle for good. Before Recorder::finish().
    void finish();

  private:
    profiler::Recorder* recorder_;
    std::unique_ptr<profiler::CuptiSource> source_;
    std::string problem_;
};

}  // namespace shardscope::trainer
