// FullyShardedDataParallel, FULL_SHARD, with FSDP1's flat parameters: the schedule of gathers, frees and
// reductions around the modules, as torch.distributed.fsdp writes it (see docs/fsdp.md for the order of
// events). The hooks' names are PyTorch's.
//
// Memory, per unit of W bytes: a shard of W/N lives always; the flat parameter of W from unshard to reshard;
// in the backward one gradient per parameter (W together), then the flat gradient that they are concatenated
// into (W), which the reduce-scatter turns into the gradient's shard.
#pragma once

#include <deque>
#include <vector>

#include "trainer/sharding/parallelism.h"
#include "trainer/sharding/wrap.h"

namespace shardscope::trainer {

class Fsdp final : public Parallelism {
  public:
    Fsdp(const ModuleTree& tree, const OptimizerSection& optimizer, const FsdpSection& options, int ranks);

    const std::vector<UnitInfo>& units() const override { return infos_; }
    int unit_of(const Parameter& parameter) const override;
    void setup(PlanBuilder& builder) override;
    void begin_step(PlanBuilder& builder) override;
    void end_backward() override;
    void end_step() override;
    EventId lasting_events() const override;
    std::string state_key() const override;

    Arg parameter(const Parameter& parameter) override;
    Tensor new_gradient(const Parameter& parameter) override;
    void gradient_ready(const Parameter& parameter, Tensor gradient) override;

    // Hooks of the wrapper modules.
    void pre_forward(Graph& graph, FullyShardedDataParallel& wrapper);
    void post_forward(Graph& graph, FullyShardedDataParallel& wrapper);

  private:
    struct Unit {
        std::vector<const Parameter*> parameters;
        std::int64_t elements = 0, padded = 0, shard = 0;
        BufferId full = -1;
        std::size_t slot = 0;
        // While a Plan is written:
        bool gathered = false;
        bool awaits_backward = false;  // its forward ended, its backward has not begun
        EventId ready = -1;
        std::vector<Tensor> gradients;  // one per parameter, in the flat order
    };

    void unshard(int unit);
    void wait_unsharded(int unit);
    void reshard(int unit);
    void rate_limiter();
    void pre_backward(int unit);
    Tensor concatenate_gradients(int unit);
    void post_backward(int unit, const Tensor& flat_gradient);
    void prefetch(int unit);
    int module_of(int unit) const { return infos_[static_cast<std::size_t>(unit)].module; }
    Unit& at(int unit) { return units_[static_cast<std::size_t>(unit)]; }

    FsdpSection options_;
    int ranks_;
    std::vector<Unit> units_;
    std::vector<UnitInfo> infos_;
    std::vector<int> unit_of_;             // by parameter id
    std::vector<std::size_t> place_of_;    // position in its unit, by parameter id
    std::vector<std::int64_t> offset_of_;  // elements before it in the flat parameter, by parameter id
    std::vector<int> post_forward_order_;  // units, in the order in which their forward ended

    // The all-gather limiter: events of frees, oldest first. Before a gather, if two or more are queued, the
    // host waits for the oldest. Between Plans the queue stands in event slots 0, 1, ...
    std::deque<EventId> free_events_;
};

}  // namespace shardscope::trainer
