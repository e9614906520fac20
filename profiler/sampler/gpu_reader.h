// Reads one GPU's counters, and notices when it stops answering. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "profiler/nvml/library.h"
#include "profiler/sampler/gpu_counters.h"
#include "profiler/sampler/growing_counter.h"

namespace shardscope::profiler {

class GpuReader {
  public:
    GpuReader(const nvml::Library& nvml, nvml::Gpu gpu) : nvml_(nvml), gpu_(gpu) {}

    // `with_pcie`: also reads the PCIe values, which takes some 40 ms. A value that could be read before and
    // no longer can, and a GPU that no longer answers at all, are noted once.
    GpuSample sample(bool with_pcie, std::vector<SamplerNote>& notes);

    // Whether nothing of it could be read the last time, unlike before.
    bool lost() const { return lost_; }

  private:
    enum Source {
        utilization,
        memory,
        power,
        energy,
        temperature,
        sm_clock,
        memory_clock,
        throttling,
        pcie,
        sources
    };

    // Whether `result` is a success; remembers what failed.
    bool read(Source source, nvml::Result result);
    void read_values(GpuSample& sample, bool with_pcie);
    void read_links(GpuSample& sample);
    void read_processes(GpuSample& sample);
    void note_failures(MonotonicTime time, std::vector<SamplerNote>& notes);

    const nvml::Library& nvml_;
    nvml::Gpu gpu_;
    GrowingCounter sent_, received_;
    struct State {
        bool worked = false, told = false;
        std::optional<nvml::Result> failure;  // of the last reading
    };
    std::array<State, sources> states_;
    bool lost_ = false, told_lost_ = false;
};

}  // namespace shardscope::profiler
