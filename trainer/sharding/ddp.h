// DistributedDataParallel: every rank holds everything; gradients are collected in buckets, and each full
// bucket is all-reduced while the backward continues. As in PyTorch's reducer, the first step has one bucket
// of everything; then the buckets are made in the order in which gradients became ready.
#pragma once

#include <memory>

#include "trainer/sharding/comm_hook.h"
#include "trainer/sharding/local_steps.h"
#include "trainer/sharding/replicated.h"

namespace shardscope::trainer::sharding {

class DistributedDataParallel final : public model::Module {
  public:
    explicit DistributedDataParallel(std::unique_ptr<model::Module> inner);
    plan::Tensor forward(model::Graph& graph, const plan::Tensor& input) override;
    bool is_wrapper() const override { return true; }
};

class Ddp final : public Replicated {
  public:
    // `order`, if it is known: that in which gradients become ready.
    Ddp(const job::Job& job, plan::Mesh mesh, const model::ModuleTree& tree,
        const std::vector<const model::Parameter*>& order = {});

    void setup(plan::PlanBuilder& builder) override;
    void begin_step(plan::PlanBuilder& builder) override;
    void begin_micro_batch(MicroBatch micro) override;
    void begin_backward(MicroBatch micro) override;
    void before_forward();  // of the wrapper
    void end_backward() override;
    void after_optimizer() override;
    int unit_of(const model::Parameter& parameter) const override;
    std::string state_key() const override;
    // Buckets are rebuilt within the first step if its first backward reduces; then they must be known
    // before.
    std::unique_ptr<Parallelism> with_what_it_learned(const job::Job& job) const override;
    std::optional<std::int64_t> next_change(std::int64_t step) const override;
    std::int64_t period() const override { return local_ ? local_->period() : 1; }

    plan::Tensor new_gradient(const model::Parameter& parameter) override;
    void gradient_ready(const model::Parameter& parameter, plan::Tensor gradient) override;

  protected:
    void gradient_complete(const model::Parameter& parameter) override;
    double final_divisor(const OptimizerSlot& slot) const override;

  private:
    struct Bucket {
        std::vector<const model::Parameter*> parameters;
        plan::BufferId buffer = -1;
        std::int64_t elements = 0;
        int unit = -1;
        plan::Group group = plan::Group::world;  // that its gradients are summed over
        std::size_t pending = 0;                 // gradients of this backward that have not arrived yet
    };
    Bucket declare_bucket(const std::string& name, int unit,
                          const std::vector<const model::Parameter*>& parameters);
    // That of the ranks that have the same parameter; those of experts are summed over fewer.
    plan::Group group_of(const model::Parameter& parameter) const {
        return parameter.is_cut(plan::Group::expert) ? plan::Group::expert_data : mesh_.all_data();
    }
    // One after the other for each group that the parameters have, in their order.
    std::vector<std::vector<const model::Parameter*>> by_group(
        const std::vector<const model::Parameter*>& parameters) const;
    std::vector<Bucket> declare_buckets(const std::vector<const model::Parameter*>& order);
    void use(std::vector<Bucket> buckets);
    bool are_ordered() const { return !ready_order_.empty() && ready_order_.size() == trained().size(); }
    void rebuild_buckets();
    void prepare_buckets();
    void sync_buffers();
    void place(const Bucket& bucket);
    // Whether the gradients of this step stay this rank's own.
    bool keeps_gradients() const { return local_ || optimizer_.exchanges_momentum(); }
    // Whether a reduction includes what an earlier one has already averaged.
    bool repeats_sums() const { return accumulation_sync_ && micro_.count > 1; }
    void copy_to_bucket(const model::Parameter& parameter);
    void launch_ready_buckets();
    using Replicated::leave_device;
    void leave_device(const Bucket& bucket);  // after its reduction, with memory.offload
    void reduce(const Bucket& bucket);
    HookBucket as_hook_sees(const Bucket& bucket) const;
    // Whether the gradients of this step pass the hook. One that keeps an error begins when buckets stay.
    bool is_hooked() const;
    bool is_own(const model::Parameter& parameter) const;  // whether its gradient has memory of its own
    plan::Arg slot_in_bucket(const model::Parameter& parameter) const;
    Bucket& bucket_of(const model::Parameter& parameter);

    job::DdpSection options_;
    std::optional<LocalSteps> local_;  // none: gradients are reduced in each step
    std::unique_ptr<CommHook> hook_;   // null: nothing is compressed
    bool hook_has_begun_ = false;      // whether what it keeps is there
    // The first backward of a static graph that synchronizes only counts what becomes ready; it reduces when
    // it has ended, and the order of the next one makes the buckets.
    bool counts_only_;
    bool accumulation_sync_;
    bool synchronizes_ = true;   // whether this backward reduces
    bool first_buckets_ = true;  // one of everything that is summed over the same ranks
    bool placed_ = false;        // whether they have memory
    std::vector<Bucket> buckets_;
    std::vector<Bucket> next_buckets_;                  // those that follow the first, if the order is known
    std::vector<plan::Arg> own_gradients_;              // indexed by parameter id
    std::vector<int> bucket_of_;                        // indexed by parameter id
    std::vector<std::int64_t> offset_of_;               // bytes in its bucket, indexed by parameter id
    std::vector<const model::Parameter*> ready_order_;  // order in the first backward
    std::size_t next_bucket_ = 0;                       // buckets are launched strictly in order
};

}  // namespace shardscope::trainer::sharding
