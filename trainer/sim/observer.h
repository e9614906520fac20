// The observer of a simulated run, called for each class of ranks as things happen; the trace's writer is
// one.
#pragma once

#include <cstdint>
#include <string_view>

#include "trainer/executor/allocator.h"
#include "trainer/plan/mesh.h"
#include "trainer/plan/plan.h"
#include "trainer/sim/rank_classes.h"
#include "trainer/sim/virtual_device.h"

namespace shardscope::trainer::sim {

class RunObserver {
  public:
    virtual ~RunObserver() = default;

    // Before anything happens; `ranks` outlives the run.
    virtual void begun(const Mesh& mesh, const RankClasses& ranks) = 0;

    // --- the host's thread -----------------------------------------------------------------------------
    virtual void range_opened(int rank_class, Time at, std::string_view name, int module) = 0;
    // A collective's call, with what NCCL's ranges carry.
    virtual void collective_opened(int rank_class, Time at, const Op& op) = 0;
    virtual void range_closed(int rank_class, Time at) = 0;
    virtual void runtime_call(int rank_class, Time start, Time end, std::string_view name,
                              std::int64_t correlation) = 0;
    virtual void waited(int rank_class, Time start, Time end, EventId event, std::int64_t correlation) = 0;
    virtual void allocated(int rank_class, Time at, const Plan& plan, const Op& op,
                           const MemoryBlock& block) = 0;
    virtual void freed(int rank_class, Time at, const Plan& plan, const Op& op, const MemoryBlock& block) = 0;
    virtual void memory_counts(int rank_class, Time at, std::int64_t active, std::int64_t reserved) = 0;
    virtual void step_ended(int rank_class, std::int64_t step, Time start, Time end) = 0;

    // --- the device --------------------------------------------------------------------------------------
    virtual void work_ended(int rank_class, const StreamItem& item, Time start, Time end) = 0;
};

}  // namespace shardscope::trainer::sim
