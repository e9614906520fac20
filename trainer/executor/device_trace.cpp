#include "trainer/executor/device_trace.h"

#include "profiler/recorder/cupti_source.h"

namespace shardscope::trainer::executor {

DeviceTrace::DeviceTrace(profiler::Recorder* recorder) : recorder_(recorder) {}
DeviceTrace::~DeviceTrace() = default;

device::WorkMarks* DeviceTrace::open() {
    if (!recorder_) return nullptr;
    source_ = profiler::CuptiSource::open(*recorder_, problem_);
    return source_ ? this : nullptr;
}

void DeviceTrace::begin(const profiler::DeviceWork& work) {
    source_->begin(work);
}

void DeviceTrace::end() {
    source_->end();
}

void DeviceTrace::finish() {
    if (source_) source_->finish();
}

}  // namespace shardscope::trainer::executor
