// memory.nvme: the parameters that the hosts update, and the optimizer's state, are in files, as in
// ZeRO-Infinity (Rajbhandari et al. 2021). What one piece of host memory would hold, that of an FSDP unit or
// of a parameter, is a file's, and so is the state beside it. Both pass through a ring of pinned memory:
// they are read ahead of the gather that needs the parameters, or of the update, and written after it, while
// the next ones are updated.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "trainer/plan/builder.h"
#include "trainer/sharding/file_ring.h"

namespace shardscope::trainer::sharding {

struct OptimizerSlot;

class HostFiles {
  public:
    // --- before the first Plan ---------------------------------------------------------------------------
    // The file `parameters`, a buffer, of so many bytes. `narrow`: bytes of a copy in the type that is
    // gathered, which the host makes; it is only in the ring.
    void add(plan::BufferId parameters, std::int64_t bytes, std::int64_t narrow = 0);
    // A trained slot of it: room for its state, in a file beside that of the parameters.
    void add_slot(std::vector<plan::Buffer>& persistent, OptimizerSlot& slot, std::size_t states);
    void declare_ring(std::vector<plan::Buffer>& persistent);

    // --- in each Plan ------------------------------------------------------------------------------------
    void set_up(plan::PlanBuilder& builder) { ring_.set_up(builder); }
    void begin_plan(plan::PlanBuilder& builder);
    void end_plan() const;  // throws std::logic_error if something that was loaded is still in the ring
    // New parameters, which store() writes.
    plan::Arg fill(plan::PlanBuilder& builder, plan::BufferId parameters);
    // Begins to read the parameters alone, or what an update needs. Returns false if the ring has no room,
    // see FileRing::take.
    bool read_ahead(plan::PlanBuilder& builder, plan::BufferId parameters, bool with_state, bool may_wait);
    // The parameters in the ring, once they are read.
    plan::Arg load(plan::PlanBuilder& builder, plan::BufferId parameters, bool with_state);
    // The slot in the ring.
    OptimizerSlot load(plan::PlanBuilder& builder, const OptimizerSlot& slot, bool with_state);
    // The slot is updated: with the last trained one of a file, this is written.
    void updated(plan::PlanBuilder& builder, const OptimizerSlot& slot);
    void store(plan::PlanBuilder& builder, plan::BufferId parameters);
    // What was loaded is not needed after the work that `user` has now.
    void let_go(plan::PlanBuilder& builder, plan::BufferId parameters, plan::Stream user);

  private:
    struct File {
        plan::BufferId parameters = -1, state = -1;
        std::int64_t bytes = 0, state_bytes = 0, narrow = 0;
        int slots = 0;  // trained ones
        // In the Plan that is written.
        plan::Arg place;  // in the ring; buffer -1: none
        plan::EventId read = -1;
        bool loaded = false, with_state = false;
        int left = 0;  // slots that are not updated yet

        std::int64_t state_begin() const;
        std::int64_t narrow_begin() const;
        std::int64_t region() const;  // bytes of the ring for all
    };
    File& of(plan::BufferId parameters);
    bool forget_oldest(plan::PlanBuilder& builder);
    void free(plan::PlanBuilder& builder, File& file, std::initializer_list<plan::Stream> users);
    static plan::Arg in_ring(const File& file, std::int64_t begin, std::int64_t bytes) {
        return {file.place.buffer, file.place.offset + begin, bytes};
    }

    FileRing ring_;
    std::vector<File> files_;  // in the order of their buffers
};

}  // namespace shardscope::trainer::sharding
