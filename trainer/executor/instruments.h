// What a run's devices and ranks record: the names are registered once, off the hot path. Unused without a
// recorder.
#pragma once

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiler/recorder/recorder.h"
#include "trainer/executor/trace_names.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer::sharding {
class Program;
}

namespace shardscope::trainer::executor {

class Instruments {
  public:
    // `engine`: Device::engine(). `more`: Plans in addition to the program's.
    Instruments(profiler::Recorder& recorder, const sharding::Program& program, const char* engine,
                const std::vector<const plan::Plan*>& more = {});

    profiler::Recorder& recorder() { return recorder_; }

    struct PlanNames {
        std::vector<profiler::NameId> names;    // by Op::name
        std::vector<profiler::NameId> buffers;  // by BufferId
    };
    const PlanNames& of(const plan::Plan& plan) const { return plans_.at(&plan); }

    std::array<profiler::NameId, trace_names::kRuntimeFunctionNames.size()> calls;  // by RuntimeFunction
    profiler::NameId call(trace_names::RuntimeFunction function) const {
        return calls[static_cast<std::size_t>(function)];
    }
    std::array<profiler::NameId, traces::schema::kOperations> collective_kernel, collective_call;
    profiler::NameId nccl_domain, active_bytes, reserved_bytes, device_bytes;

  private:
    void add(const plan::Plan& plan);
    profiler::Recorder& recorder_;
    std::unordered_map<const plan::Plan*, PlanNames> plans_;
};

// Rows that describe the run: configuration, modules, units; streams and prediction of the ranks that record.
void describe_program(profiler::Recorder& recorder, const sharding::Program& program,
                      const std::vector<int>& ranks);

}  // namespace shardscope::trainer::executor
