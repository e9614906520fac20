// A unit as fully_shard (FSDP2) keeps it, layout fsdp2: every parameter is cut by its first dimension into N
// pieces of whole rows (the last ones padded, perhaps empty).
//
// A gather copies this rank's pieces into its place of a buffer of W and gathers that in place (on the
// streams pre_unshard and unshard); when the parameters are needed the compute stream copies them out into
// one buffer per parameter (W together). In the forward the gather's buffer is freed when the next unit is
// about to be copied out, in the backward at once. Gradients are copied into a buffer of W, pieces of the
// same rank side by side and converted to the type of the reduction, which is reduce-scattered and freed when
// the next unit comes to that point: one is pending at most. Under no_sync gradients are kept in the type of
// the reduction.
#pragma once

#include "trainer/sharding/unit.h"

namespace shardscope::trainer {

// Between the units of a job: what one leaves for the next to free.
struct GroupPending {
    // Gathers may reuse the memory of the forward's last gather buffer once its copy-out is done.
    void free_gathered(PlanBuilder& builder);

    Tensor gathered;          // the forward's last gather buffer
    EventId copied_at = -1;   // the end of its copy-out
    Tensor reduced;           // the last reduce-scatter's input
    EventId reduced_at = -1;  // its end
};

class GroupUnit final : public FsdpUnit {
  public:
    GroupUnit(const UnitOptions& options, Parallelism& owner, GroupPending& pending, int module,
              std::string name, int id, std::vector<const Parameter*> parameters);

    void setup(PlanBuilder& builder, bool sync_module_states) override;
    void prepare_gather(PlanBuilder& builder) override;
    void gather(PlanBuilder& builder) override;
    void wait_gathered(PlanBuilder& builder) override;
    void release(PlanBuilder& builder) override;
    bool prepares() const override { return true; }
    Arg parameter(const Parameter& parameter) const override;
    Tensor new_gradient(PlanBuilder& builder, const Parameter& parameter) override;
    void gradient_ready(PlanBuilder& builder, const Parameter& parameter, Tensor gradient) override;
    void concatenate_gradients(PlanBuilder&) override {}
    void keep_gradients(PlanBuilder& builder) override;
    void reduce(PlanBuilder& builder, int divisor) override;
    void end_backward() override;

  private:
    struct Piece {
        std::int64_t first = 0;     // in the shard, elements
        std::int64_t elements = 0;  // of one rank's piece, padding included
        BufferId full = -1;         // the parameter, padded to N pieces
    };
    struct Gradient {
        Tensor made;   // in this backward
        int uses = 0;  // of the parameter in this backward, that it is the sum of
        Tensor kept;   // of the backwards before, unreduced, in the type of the reduction
    };
    std::vector<Segment> piece_segments() const;
    void add_to_kept(PlanBuilder& builder);

    GroupPending& pending_;
    std::vector<Piece> pieces_;  // one per parameter
    // While a Plan is written:
    Tensor gather_buffer_, on_device_;
    EventId prepared_ = -1, ready_ = -1;
    bool copied_out_ = false;
    std::vector<Gradient> gradients_;  // one per parameter
};

}  // namespace shardscope::trainer
