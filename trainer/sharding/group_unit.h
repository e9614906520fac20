// A unit as fully_shard (FSDP2) keeps it, layout fsdp2: every parameter is cut by its first dimension into N
// pieces of whole rows (the last ones are padded and may be empty).
//
// A gather copies this rank's pieces into its place in a buffer of W bytes and gathers that in place (on the
// streams pre_unshard and unshard). When the parameters are needed, the compute stream copies them out into
// one buffer per parameter (W together). The gather's buffer is freed immediately in the backward; in the
// forward, when the next unit is about to be copied out.
//
// Gradients are copied into a buffer of W bytes, pieces of the same rank side by side and converted to the
// type of the reduction. It is reduce-scattered, and freed when the next unit reaches that point, so that at
// most one is pending. Under no_sync, gradients are kept in the type of the reduction.
#pragma once

#include "trainer/sharding/unit.h"

namespace shardscope::trainer::sharding {

// What one unit of a job leaves for the next unit to free.
struct GroupPending {
    // After this, gathers may reuse the memory of the forward's last gather buffer once its copy-out is done.
    void free_gathered(plan::PlanBuilder& builder);

    plan::Tensor gathered;          // the forward's most recent gather buffer
    plan::EventId copied_at = -1;   // the end of its copy-out
    plan::Tensor reduced;           // the input of the most recent reduce-scatter
    plan::EventId reduced_at = -1;  // its end
};

class GroupUnit final : public FsdpUnit {
  public:
    GroupUnit(const UnitOptions& options, Parallelism& owner, GroupPending& pending, int module,
              std::string name, int id, std::vector<const model::Parameter*> parameters);

    void setup(plan::PlanBuilder& builder, bool sync_module_states) override;
    void prepare_gather(plan::PlanBuilder& builder) override;
    void gather(plan::PlanBuilder& builder) override;
    void wait_gathered(plan::PlanBuilder& builder) override;
    void release(plan::PlanBuilder& builder) override;
    bool prepares() const override { return true; }
    plan::Arg parameter(const model::Parameter& parameter) const override;
    plan::Tensor new_gradient(plan::PlanBuilder& builder, const model::Parameter& parameter) override;
    void gradient_ready(plan::PlanBuilder& builder, const model::Parameter& parameter,
                        plan::Tensor gradient) override;
    void concatenate_gradients(plan::PlanBuilder&) override {}
    void keep_gradients(plan::PlanBuilder&) override {}  // gradient_ready() has kept them
    void reduce(plan::PlanBuilder& builder, int divisor) override;
    void end_backward() override;

  private:
    struct Piece {
        std::int64_t first = 0;     // offset in the shard, in elements
        std::int64_t elements = 0;  // elements of one rank's piece, including padding
        plan::BufferId full = -1;   // the parameter, padded to N pieces
    };
    struct Gradient {
        plan::Tensor made;  // the gradient of this backward
        int uses = 0;       // uses of the parameter in this backward, over which it is summed
        plan::Tensor kept;  // the gradient of earlier backwards, unreduced, in the type of the reduction
    };
    std::vector<plan::Segment> piece_segments() const;
    plan::Tensor in_reduce_type(plan::PlanBuilder& builder, const model::Parameter& parameter,
                                plan::Tensor gradient) const;

    GroupPending& pending_;
    std::vector<Piece> pieces_;  // one per parameter
    // Used while a Plan is written.
    plan::Tensor gather_buffer_, on_device_;
    plan::EventId prepared_ = -1, ready_ = -1;
    bool copied_out_ = false;
    std::vector<Gradient> gradients_;  // one per parameter
};

}  // namespace shardscope::trainer::sharding
