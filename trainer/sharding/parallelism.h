// What a parallel mode decides about a step: where parameters live, when they are gathered, when gradients
// are reduced. There is one implementation per mode (replicated.h, ddp.h, fsdp.h); program.h calls them in
// the order of a PyTorch training loop. They write operations and execute nothing.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/model/module.h"
#include "trainer/sharding/optimizer.h"

namespace shardscope::trainer::sharding {

// An FSDP unit or DDP bucket, as the trace describes it.
struct UnitInfo {
    int module = -1;
    std::string name;
    std::int64_t elements = 0, padded_elements = 0, shard_elements = 0;
    std::int64_t gather_bytes = 0;  // bytes of a gather's full buffer (or of a bucket's all-reduce)
};

// The position of a micro-batch in its step.
struct MicroBatch {
    int index = 0, count = 1;
    bool first() const { return index == 0; }
    bool last() const { return index + 1 == count; }
};

class Parallelism : public model::ParameterStore {
  public:
    Parallelism(const job::Job& job, plan::Mesh mesh, const model::ModuleTree& tree);

    const plan::Mesh& mesh() const { return mesh_; }
    void let_talk(int ranks) { mesh_.talkers = ranks; }

    virtual const std::vector<UnitInfo>& units() const = 0;
    virtual int unit_of(const model::Parameter& parameter) const = 0;

    // Called once: parameters and other persistent buffers, initial values.
    virtual void setup(plan::PlanBuilder& builder) = 0;

    // Called once, before set-up: the buffers of modules, which every rank has whole.
    void set_up_buffers(plan::PlanBuilder& builder);
    plan::Arg buffer(const model::ModuleBuffer& buffer) final {
        return buffers_[static_cast<std::size_t>(buffer.id)];
    }

    std::size_t add_slot(OptimizerSlot slot) { return optimizer_.add_slot(persistent_, std::move(slot)); }

    // The Plan of a step is written between begin_step and end_step, in this order: zero_grad; for each
    // micro-batch begin_micro_batch, forward of the root module, backward, end_backward; the optimizer's
    // step; after_optimizer.
    //
    // In a pipeline, forwards and backwards of stages alternate: begin_stage comes before each, with
    // begin_micro_batch before a forward and begin_backward before a backward, and end_backward after the
    // last one. The units of the stages that are next are gathered and freed between them.
    virtual void begin_step(plan::PlanBuilder& builder) {
        builder_ = &builder;
        optimizer_.begin_plan(builder);
    }
    // Before it: the number of the step in the run, whose first step has the number `first`.
    void set_step(std::int64_t step, std::int64_t first) {
        step_ = step;
        optimizer_.set_step(step, first);
    }
    virtual void begin_micro_batch(MicroBatch micro) { micro_ = micro; }
    virtual void begin_stage(const std::vector<int>& /*units*/) {}  // those that it reads
    virtual void begin_backward(MicroBatch micro) { micro_ = micro; }
    // Before a backward: the parameter whose gradient waits for the backward of another stage, which reads
    // it, too; null: none.
    void set_waiting(const model::Parameter* parameter) { waiting_ = parameter; }
    virtual void gather_unit(int /*unit*/) {}
    virtual void free_unit(int /*unit*/) {}
    virtual void end_backward() {}
    virtual void optimize() { optimizer_.step(*builder_); }
    virtual void after_optimizer() {}
    virtual void end_step() {
        optimizer_.end_plan();
        builder_ = nullptr;
    }

    // A Plan that only computes outputs is written between these two: it has no gradient and leaves nothing
    // behind.
    virtual void begin_evaluation(plan::PlanBuilder& builder) {
        evaluating_ = true;
        builder_ = &builder;
        optimizer_.begin_plan(builder);
    }
    virtual void end_evaluation() {
        evaluating_ = false;
        builder_ = nullptr;
    }

    // A server calls no module: it writes the whole Plan of a step, or of an evaluation.
    virtual bool computes() const { return true; }
    virtual void serve(plan::PlanBuilder&) {}

    OptimizerPlanner& optimizer() { return optimizer_; }
    const OptimizerPlanner& optimizer() const { return optimizer_; }
    const std::vector<plan::Buffer>& persistent() const { return persistent_; }
    // Adds a buffer that may live across Plans.
    plan::BufferId declare(plan::Buffer buffer) {
        persistent_.push_back(std::move(buffer));
        return static_cast<plan::BufferId>(persistent_.size() - 1);
    }

    // Another one, for which all Plans are written again, if they depend on what the last Plan has shown;
    // else null.
    virtual std::unique_ptr<Parallelism> with_what_it_learned(const job::Job&) const { return nullptr; }

    // Event slots [0, lasting_events) keep their meaning between Plans.
    virtual plan::EventId lasting_events() const { return 0; }

    // The next Plan is the same if the keys are equal. The key changes while a run warms up.
    virtual std::string state_key() const {
        return std::string(optimizer_.has_state() ? "s" : "-") + (optimizer_.has_gradients() ? "g" : "-") +
               (optimizer_.has_exchanged() ? " 1-bit" : "");
    }
    // The first step from `step` on that is planned otherwise than the one before it although the keys are
    // equal; none: there is no such step.
    virtual std::optional<std::int64_t> next_change(std::int64_t /*step*/) const { return std::nullopt; }
    // The number of steps after which Plans repeat as long as the keys are equal.
    virtual std::int64_t period() const { return 1; }

    // Sums a gradient of which each rank of a tensor group has computed a part, in place.
    static void sum_over_tensor_group(plan::PlanBuilder& builder, const plan::Arg& gradient,
                                      plan::DType dtype = plan::DType::fp32);

    // Writes the initial values of the part of `parameter` that a rank holds: `first` is the parameter's
    // first element in the flat sequence, `to` is a piece of that sequence, and `per_rank` is the number of
    // elements of a piece (0: all).
    static void initialize(plan::PlanBuilder& builder, const model::Parameter& parameter, const plan::Arg& to,
                           std::int64_t first, std::int64_t per_rank,
                           plan::Stream stream = plan::Stream::compute);

  protected:
    plan::PlanBuilder& builder() { return *builder_; }
    // Declares a buffer that lives from set-up on.
    plan::Arg declare_whole(plan::Buffer buffer) {
        const std::int64_t bytes = buffer.bytes;
        return {declare(std::move(buffer)), 0, bytes};
    }

    plan::Mesh mesh_;
    OptimizerPlanner optimizer_;
    std::vector<plan::Buffer> persistent_;
    std::vector<const model::ModuleBuffer*> module_buffers_;
    std::vector<plan::Arg> buffers_;  // of `module_buffers_`
    std::int64_t step_ = 0;
    MicroBatch micro_;
    const model::Parameter* waiting_ = nullptr;
    bool evaluating_ = false;

  private:
    plan::PlanBuilder* builder_ = nullptr;
};

}  // namespace shardscope::trainer::sharding
