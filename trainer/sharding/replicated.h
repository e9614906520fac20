// Every rank holds every parameter. On one rank this is plain training (mode none); ddp.h adds the averaging
// of gradients.
#pragma once

#include "trainer/sharding/parallelism.h"

namespace shardscope::trainer {

class Replicated : public Parallelism {
  public:
    Replicated(const ModuleTree& tree, const OptimizerSection& optimizer);

    const std::vector<UnitInfo>& units() const override { return units_; }
    int unit_of(const Parameter&) const override { return -1; }
    void setup(PlanBuilder& builder) override;
    Arg parameter(const Parameter& parameter) override;
    Tensor new_gradient(const Parameter& parameter) override;
    void gradient_ready(const Parameter&, Tensor) override {}

  protected:
    const ModuleTree& tree_;
    std::vector<UnitInfo> units_;
};

}  // namespace shardscope::trainer
