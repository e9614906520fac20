// DistributedDataParallel: every rank holds everything; gradients are collected in buckets, in the reverse
// order of the parameters, and each full bucket is all-reduced while the backward goes on.
#pragma once

#include <memory>

#include "trainer/sharding/replicated.h"

namespace shardscope::trainer {

class DistributedDataParallel final : public Module {
  public:
    explicit DistributedDataParallel(std::unique_ptr<Module> inner);
    Tensor forward(Graph& graph, const Tensor& input) override;
    bool is_wrapper() const override { return true; }
};

class Ddp final : public Replicated {
  public:
    Ddp(const ModuleTree& tree, const OptimizerSection& optimizer, const DdpSection& options, int ranks);

    void setup(PlanBuilder& builder) override;
    void begin_step(PlanBuilder& builder) override;
    void gradient_ready(const Parameter& parameter, Tensor gradient) override;
    void end_backward() override;
    int unit_of(const Parameter& parameter) const override;

  private:
    struct Bucket {
        std::vector<const Parameter*> parameters;
        BufferId buffer = -1;
        std::int64_t elements = 0;
        std::size_t pending = 0;  // gradients of this backward that are not there yet
    };
    void launch_ready_buckets();

    int ranks_;
    std::vector<Bucket> buckets_;
    std::vector<int> bucket_of_;           // by parameter id
    std::vector<std::int64_t> offset_of_;  // bytes in its bucket, by parameter id
    std::size_t next_bucket_ = 0;          // buckets are launched strictly in order
};

}  // namespace shardscope::trainer
