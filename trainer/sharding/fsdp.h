// FullyShardedDataParallel: the schedule of gathers, frees and reductions around the modules, as
// torch.distributed.fsdp does it (docs/fsdp.md gives the order of events). The hooks' names are PyTorch's.
// This file decides when a gather or a reduction happens; the unit (unit.h) decides what it consists of.
//
// Strategies (trainer/job/strategy.h) differ in three decisions: whether a unit is freed after its forward,
// among whom it is sharded, and whether it is sharded at all.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "trainer/job/strategy.h"
#include "trainer/sharding/group_unit.h"
#include "trainer/sharding/parallelism.h"
#include "trainer/sharding/unit.h"
#include "trainer/sharding/wrap.h"

namespace shardscope::trainer::sharding {

class Fsdp final : public Parallelism {
  public:
    Fsdp(const job::Job& job, const model::ModuleTree& tree);

    const std::vector<UnitInfo>& units() const override { return infos_; }
    int unit_of(const model::Parameter& parameter) const override;
    void setup(plan::PlanBuilder& builder) override;
    void begin_step(plan::PlanBuilder& builder) override;
    void begin_micro_batch(MicroBatch micro) override;
    void begin_stage(const std::vector<int>& units) override { stage_units_ = units; }
    void begin_backward(MicroBatch micro) override;
    void gather_unit(int unit) override { unshard(unit); }
    void free_unit(int unit) override { reshard(unit); }
    void end_backward() override;
    void end_step() override;
    void end_evaluation() override;
    plan::EventId lasting_events() const override;
    std::string state_key() const override;

    plan::Arg parameter(const model::Parameter& parameter) override;
    plan::Tensor new_gradient(const model::Parameter& parameter) override;
    void gradient_ready(const model::Parameter& parameter, plan::Tensor gradient) override;

    // The unit of a wrapper's operations.
    int unit_of(const FullyShardedDataParallel& wrapper) const;
    // Hooks of the wrapper modules.
    void pre_forward(model::Graph& graph, FullyShardedDataParallel& wrapper, const plan::Tensor& input);
    void post_forward(model::Graph& graph, FullyShardedDataParallel& wrapper, const plan::Tensor& output);

  private:
    struct State {
        std::unique_ptr<FsdpUnit> unit;
        bool is_root = false;
        bool frees_after_forward = false;  // as its strategy, or a rule of its own, says
        bool stays_after_forward = false;
        bool awaits_backward = false;     // its forward has ended, its backward has not begun
        bool in_backward = false;         // from its pre-backward hook to its post-backward hook
        bool has_backward_nodes = false;  // since it was prefetched; no forward of it was recorded since
        bool ends_with_backward = false;  // no node of the tape runs its post-backward hook
        int leaves_nodes_of = -1;         // the unit that it prefetched in a forward that will be recomputed
    };

    int next_unit(int id);
    void unshard(int unit);
    void reshard(int unit);
    void wait_for_optimizer();
    void rate_limiter();
    void pre_backward(int unit);
    void post_backward(int unit);
    void prefetch_forward(model::Graph& graph, int unit);
    void prefetch_backward(int unit);
    void leave_backward_nodes(model::Graph& graph, int unit);
    void run_post_backward_hook(int unit);
    void gradients_leave(int unit);
    void carry_free_events();
    std::vector<bool> frees_after_forward(const job::Job& job, const model::ModuleTree& tree,
                                          const std::vector<WrappedModule>& wrapped) const;
    bool stays_after_forward(const State& state) const;
    bool stays_after_backward(const State& state) const;
    // Whether this backward completes the unit's gradients.
    bool reduces(int unit) const {
        return synchronizes_ && (waiting_ == nullptr || unit_of(*waiting_) != unit);
    }
    int module_of(int unit) const { return infos_[static_cast<std::size_t>(unit)].module; }
    State& at(int unit) { return units_[static_cast<std::size_t>(unit)]; }
    FsdpUnit& unit(int id) { return *at(id).unit; }
    FsdpUnit& unit_with(const model::Parameter& parameter) { return unit(unit_of(parameter)); }

    job::FsdpSection options_;
    const job::StrategyTraits& strategy_;
    bool accumulation_sync_;
    bool limits_ = false;           // whether the all-gather limiter is on
    bool synchronizes_ = true;      // whether this backward reduces
    std::vector<int> stage_units_;  // of a pipeline: those that the current one reads
    // The wrapper's units, of a pipeline those that the current stage reads: the root's wrapper is called by
    // every stage.
    std::vector<int> units_of(const FullyShardedDataParallel& wrapper) const;
    void before_forward(model::Graph& graph, int unit, const plan::Tensor& input);
    void free_after_forward(int unit);
    // Whether units are gathered and freed only as the schedule of a pipeline says, not around their modules.
    bool by_schedule() const { return mesh_.pipeline > 1 && !evaluating_; }
    bool prepares_ = false;           // whether gathers begin on the pre_unshard stream
    bool offload_ = false;            // fsdp.cpu_offload
    bool optimizer_on_host_ = false;  // memory.offload: the device keeps shards in the type that it gathers
    std::vector<std::vector<std::size_t>> trained_slots_;  // by unit
    // With NO_SHARD in low precision, a unit's copy, including the root's, is freed after each use (PyTorch's
    // post_reshard).
    bool frees_copies_ = false;
    int divisor_ = 1;       // divisor of the sum over ranks and micro-batches
    GroupPending pending_;  // declared before units_, which refer to it
    std::vector<State> units_;
    std::vector<UnitInfo> infos_;
    std::vector<int> unit_of_;             // indexed by parameter id
    std::vector<int> post_forward_order_;  // units, in the order in which their forward ended
    // Order in the first forward of the run, which forward_prefetch follows; fully_shard's is that of the
    // modules.
    std::vector<int> pre_forward_order_;
    bool order_known_ = false;

    // The all-gather limiter's queue: events of frees, oldest first. Before a gather, if two or more are
    // queued, the host waits for the oldest. Between Plans the queue is in event slots 0, 1, ...
    std::deque<plan::EventId> free_events_;
};

}  // namespace shardscope::trainer::sharding
