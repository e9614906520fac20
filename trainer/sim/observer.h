// Observes a simulated run: called for each class of ranks as events happen. SimTrace is one; this base class
// ignores everything.
#pragma once

#include <cstdint>
#include <string_view>

#include "trainer/executor/allocator.h"
#include "trainer/executor/step_metrics.h"
#include "trainer/executor/trace_names.h"
#include "trainer/plan/mesh.h"
#include "trainer/plan/plan.h"
#include "trainer/sim/rank_classes.h"
#include "trainer/sim/virtual_device.h"

namespace shardscope::trainer::sim {

class RunObserver {
  public:
    virtual ~RunObserver() = default;

    // Called first; `ranks` outlives the run.
    virtual void begun(const plan::Mesh& /*mesh*/, const RankClasses& /*ranks*/) {}

    // --- the host's thread -----------------------------------------------------------------------------
    virtual void range_opened(int /*rank_class*/, Time /*at*/, std::string_view /*name*/, int /*module*/) {}
    // The range of a collective's call, with the payload that NCCL's ranges carry.
    virtual void collective_opened(int /*rank_class*/, Time /*at*/, const plan::Op&) {}
    virtual void range_closed(int /*rank_class*/, Time /*at*/) {}
    virtual void runtime_call(int /*rank_class*/, Time /*start*/, Time /*end*/,
                              executor::trace_names::RuntimeFunction, std::int64_t /*correlation*/) {}
    virtual void waited(int /*rank_class*/, Time /*start*/, Time /*end*/, plan::EventId,
                        std::int64_t /*correlation*/) {}
    virtual void allocated(int /*rank_class*/, Time /*at*/, const plan::Plan&, const plan::Op&,
                           const executor::MemoryBlock&) {}
    virtual void freed(int /*rank_class*/, Time /*at*/, const plan::Plan&, const plan::Op&,
                       const executor::MemoryBlock&) {}
    // A negative count has not changed.
    virtual void memory_counts(int /*rank_class*/, Time /*at*/, std::int64_t /*active*/,
                               std::int64_t /*reserved*/) {}
    virtual void step_ended(int /*rank_class*/, std::int64_t /*step*/, Time /*start*/, Time /*end*/,
                            const executor::StepMemory& /*memory*/) {}

    // --- the device --------------------------------------------------------------------------------------
    virtual void work_ended(int /*rank_class*/, const StreamItem&, Time /*start*/, Time /*end*/) {}
};

}  // namespace shardscope::trainer::sim
