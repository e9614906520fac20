// A parameter server: the last S = parallel.servers ranks hold the parameters, one after the other in S parts
// of P / S numbers, and the optimizer's state; the n others work. In each step a worker
//
//   recv   from each server   its part of the parameters, 4 P / S bytes
//   send   to each server     its part of the gradients, after the backward
//
// and a server sends and receives 2 n 4 P / S bytes, each worker's on a stream of its own (serve_stream).
// What it does with a gradient depends on train.staleness = s:
//
//   0    synchronous. It waits for those of all workers, and updates once, with their mean: DDP.
//   > 0  bounded. It updates with each as it arrives, and answers with the parameters of that moment: a
//   worker
//        begins step c when all have ended step c - s - 1, so it is at most s ahead of the slowest.
//   -1   asynchronous: the same with a window of kWindow steps, which is only what the server plans ahead.
//
// The staleness of an update is the number of others that the parameters have had since its worker got them;
// of n equal workers it is n - 1 on average. Sources: Li et al., "Scaling distributed machine learning with
// the parameter server" (OSDI 2014); Ho et al., "More effective distributed ML via a stale synchronous
// parallel parameter server" (NeurIPS 2013).
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/sharding/replicated.h"

namespace shardscope::trainer::sharding {

class ServedWorker final : public Replicated {
  public:
    ServedWorker(const job::Job& job, plan::Mesh mesh, const model::ModuleTree& tree)
        : Replicated(job, mesh, tree, mesh.servers) {
        optimizer_.leave_to_servers();
    }

    void begin_step(plan::PlanBuilder& builder) override;
    void begin_evaluation(plan::PlanBuilder& builder) override;
    void optimize() override;

  protected:
    double final_divisor(const OptimizerSlot&) const override { return 1; }  // all parts are divided later

  private:
    void pull();
};

class ParameterServer final : public Parallelism {
  public:
    static constexpr std::int64_t kWindow = 64;

    ParameterServer(const job::Job& job, plan::Mesh mesh, const model::ModuleTree& tree);

    bool computes() const override { return false; }
    void setup(plan::PlanBuilder& builder) override;
    void serve(plan::PlanBuilder& builder) override;
    plan::EventId lasting_events() const override { return static_cast<plan::EventId>(window_ + 1); }

    const std::vector<UnitInfo>& units() const override { return units_; }
    int unit_of(const model::Parameter&) const override { return -1; }
    plan::Arg parameter(const model::Parameter&) override { return {}; }
    plan::Tensor new_gradient(const model::Parameter&) override { return {}; }
    void gradient_ready(const model::Parameter&, plan::Tensor) override {}

  private:
    bool synchronous() const { return staleness_ == 0; }
    void allocate(plan::PlanBuilder& builder);
    void answer(plan::PlanBuilder& builder, int worker) const;
    void update_with(plan::PlanBuilder& builder, int worker);
    void update_with_all(plan::PlanBuilder& builder);

    const model::ModuleTree& tree_;
    std::int64_t staleness_;
    std::int64_t window_;  // steps that are planned at a time
    std::vector<UnitInfo> units_;
    std::vector<plan::Arg> gradients_, answers_;  // by worker
};

}  // namespace shardscope::trainer::sharding
