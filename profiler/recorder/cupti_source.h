// CUPTI's account of what this process has run on its GPUs, in the trace of its own recorder: each kernel,
// copy and memset becomes a row of the device and stream of the piece of work that launched it (several ranks
// may share a GPU) and joins that work's other rows by correlation.
//
//   std::string why;
//   auto source = CuptiSource::open(recorder, why);   // before the work; null: see `why`
//   source->begin(work); launch<<<...>>>(...); source->end();   // any thread
//   cudaDeviceSynchronize(); source->finish(); recorder.finish();
//
// CUPTI is opened at run time and serves one tool in a process; there is one CuptiSource at a time. Source of
// the interface: NVIDIA's CUPTI documentation, "Activity API" and "External Correlation".
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "profiler/recorder/recorder.h"

namespace shardscope::profiler {

class CuptiSource {
  public:
    // The recorder must outlive the source. Null: `why` is one sentence on what is missing and what to do.
    static std::unique_ptr<CuptiSource> open(Recorder& recorder, std::string& why);
    ~CuptiSource();  // calls finish()
    CuptiSource(const CuptiSource&) = delete;
    CuptiSource& operator=(const CuptiSource&) = delete;

    // What the calling thread launches from begin() to end() belongs to `work`, of which only device, stream
    // and correlation are used; the limits are WorkPlace's (cupti_join.h). Pairs do not nest. Throws
    // std::logic_error.
    void begin(const DeviceWork& work);
    void end();

    // Takes what CUPTI still holds, releases CUPTI for others and reports any losses to the recorder. Call
    // it when everything begun has ended and the devices are idle, before Recorder::finish(). Idempotent.
    void finish();

    // The number of rows made; valid after finish().
    std::int64_t rows() const;

  private:
    struct Impl;
    explicit CuptiSource(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::profiler
