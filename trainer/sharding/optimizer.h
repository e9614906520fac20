// The optimizer's half of a Plan: update kernels for slots. A slot is what one rank updates in one piece: a
// shard of a flat parameter, its rows of one parameter, or a whole parameter.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/model/module.h"
#include "trainer/plan/builder.h"
#include "trainer/sharding/host_files.h"
#include "trainer/sharding/onebit.h"

namespace shardscope::trainer::sharding {

// Consecutive parameters form a sequence of elements (`segments` gives the place of each). A rank holds all
// of it (per_rank is 0), or the elements [place * per_rank, (place + 1) * per_rank), where `place` is the
// rank's place in its shard group. What follows the last parameter is padding and stays zero.
struct OptimizerSlot {
    std::string name;
    std::int64_t elements = 0;  // elements that a rank holds
    std::int64_t per_rank = 0;
    std::vector<plan::Segment> segments;
    int unit = -1, module = -1;
    plan::Group along = plan::Group::shard;  // `place` is the rank's place in it
    bool partial_gradient = false;           // to be summed over the tensor group before the step
    bool is_copy = false;  // another place of the pipeline has it, too, and counts it in the norm
    // pinned: the rank's host updates it (cpu_offload, memory.offload)
    plan::MemorySpace space = plan::MemorySpace::device;
    // memory.offload: the device's copy of the parameter, which follows each update, and its type. If that is
    // not fp32, `narrow` is pinned memory where the host converts the parameter.
    plan::Arg on_device, narrow;
    plan::DType device_type = plan::DType::fp32;
    plan::Arg parameter,
        gradient;  // fp32, `elements` of each; the gradient lives from its backward to zero_grad
    // fp32, `elements` each; allocated by the first step, as in PyTorch. The outer momentum of local steps is
    // the last, of which update() knows nothing.
    std::vector<plan::Arg> state;
    // As state: one number of each segment, fp32. NovoGrad's second moments, 1-bit LAMB's mean ratios.
    plan::BufferId moments = -1;

    bool trained() const;
    bool of_experts() const;   // which the ranks of an expert group divide
    bool holds(int id) const;  // of a parameter
};

// A slot's data per element, for checkpoints: state "" is the parameter itself, "exp_avg" its state.
struct StatePiece {
    int parameter = -1;  // the parameter's id
    std::string state;
    std::int64_t first = 0;  // element of the parameter
    std::int64_t elements = 0;
    plan::Arg where;          // fp32; contiguous, without a stride
    bool one_number = false;  // the state is that of the whole parameter, its element 0
};

class OptimizerPlanner {
  public:
    // `mesh`: the ranks that hold the other parts of a slot's sequence. `parameters`: of the whole model.
    OptimizerPlanner(const job::Job& job, plan::Mesh mesh, std::size_t parameters)
        : type_(job.optimizer.type),
          options_(job.optimizer),
          micro_batches_(job.train.accumulation),
          clip_norm_(job.train.clip_norm),
          scales_loss_(job.precision.scales_loss()),
          norm_wanted_(job.train.reports_norm()),
          has_outer_momentum_(job.train.outer_momentum > 0),
          mesh_(mesh),
          parameters_(parameters) {
        options_.type = warm_up_of(type_);
        if (!job.memory.nvme.empty()) files_.emplace();
    }

    // memory.nvme: what the hosts update is in files; else null.
    HostFiles* files() { return files_ ? &*files_ : nullptr; }
    // After the last slot.
    void declare_ring(std::vector<plan::Buffer>& persistent) {
        if (files_) files_->declare_ring(persistent);
    }
    void begin_plan(plan::PlanBuilder& builder) {
        if (files_) files_->begin_plan(builder);
    }
    void end_plan() const {
        if (files_) files_->end_plan();
    }

    // Adds a slot whose buffers are declared, except for its state, which is declared in `persistent`;
    // returns its index.
    std::size_t add_slot(std::vector<plan::Buffer>& persistent, OptimizerSlot slot);
    const OptimizerSlot& slot(std::size_t index) const { return slots_[index]; }
    const std::vector<OptimizerSlot>& slots() const { return slots_; }
    // Names of the state buffers, in the order of OptimizerSlot::state.
    std::vector<std::string_view> state_names() const;

    // The state exists from the start (a checkpoint is loaded): set-up allocates it.
    void allocate_state(plan::PlanBuilder& builder);
    // Frees the gradients of the previous step ("set to None"), except those that are stored elsewhere.
    void zero_grad(plan::PlanBuilder& builder);
    void step(plan::PlanBuilder& builder);
    // Copies the norm of step()'s gradients, an fp64, to pinned memory, and lets go of its buffer. Nothing if
    // the job does not report it.
    void copy_norm(plan::PlanBuilder& builder, const plan::Arg& to);

    // Where the elements of the parameters and of their state are, for a rank: everything that it keeps from
    // step to step, including the parameters that others update for it.
    std::vector<StatePiece> pieces(int rank) const;

    // Before a step's Plan: its number in the run, whose first step has the number `first`.
    void set_step(std::int64_t step, std::int64_t first) {
        step_ = step;
        first_step_ = first;
    }
    std::int64_t first_step() const { return first_step_; }
    // Whether the step takes the gradients of this rank alone, and exchanges momentum; the first of the run
    // that does, if one may.
    bool exchanges_momentum() const { return onebit_ && onebit_->begins_at(first_step_ + step_); }
    std::optional<std::int64_t> first_exchange() const {
        if (!onebit_) return std::nullopt;
        return std::max<std::int64_t>(options_.freeze_step - first_step_, 0);
    }
    bool has_exchanged() const { return onebit_ && onebit_->has_begun(); }

    // The next Plan depends on it.
    bool has_state() const { return has_state_; }
    bool has_gradients() const { return has_gradients_; }
    // Gradients are stored elsewhere (pinned host memory, views of buckets), so that zero_grad does not free
    // them.
    void keep_gradients() { keep_gradients_ = true; }
    // What is trained is updated and kept by other ranks.
    void leave_to_servers() { served_ = true; }
    // The parameter's slots are copies (OptimizerSlot::is_copy).
    void set_copy(int parameter);
    // memory.offload: the gradients of these slots are in host memory after the event; `complete`: those of
    // the whole step. The host waits once too many are on their way, and then updates with complete ones,
    // unless something needs those of all slots first (their norm, or whether one has overflowed).
    void arrive(plan::PlanBuilder& builder, std::vector<std::size_t> slots, plan::EventId event,
                bool complete);
    // All parameters that the host updates, to the device.
    void copy_parameters(plan::PlanBuilder& builder);
    void set_gradient(std::size_t slot, const plan::Arg& gradient) { slots_[slot].gradient = gradient; }

    std::string class_name() const;

  private:
    // Divides the gradients by the loss scale; returns whether one overflowed, of all ranks, where a copy to
    // the host can read it.
    plan::Tensor unscale(plan::PlanBuilder& builder);
    void read_overflow(plan::PlanBuilder& builder, const plan::Tensor& found) const;
    void clip(plan::PlanBuilder& builder);
    bool on_host() const;  // whether the host updates some trained slot
    plan::Tensor new_squares(plan::PlanBuilder& builder, std::size_t count, bool on_host) const;
    // The squares of the gradients of the trained slots, over all ranks.
    plan::Tensor squares_by_slot(plan::PlanBuilder& builder, const std::vector<const OptimizerSlot*>& slots,
                                 bool on_host) const;
    plan::Tensor squares_by_segment(plan::PlanBuilder& builder,
                                    const std::vector<const OptimizerSlot*>& slots, bool on_host) const;
    // Segments that one kernel updates, where their norms begin (two for each), and where, among the slot's
    // moments, theirs do.
    struct SlotPart {
        const OptimizerSlot* slot;
        std::vector<plan::Segment> segments;
        std::size_t first_norm = 0, first_moment = 0;
    };
    std::vector<SlotPart> parts_of_slots() const;
    plan::Arg moments_of(const SlotPart& part) const;
    void compute_norms(plan::PlanBuilder& builder, const SlotPart& part, const plan::Tensor& norms);
    void update(plan::PlanBuilder& builder, const SlotPart& part, const plan::Tensor& norms);
    // On the host, and its copy to the device.
    void update_slot(plan::PlanBuilder& builder, std::size_t slot);
    // `later`: those that are updated after them.
    void update_slots(plan::PlanBuilder& builder, const std::vector<std::size_t>& slots,
                      const std::vector<std::size_t>& later);
    bool read_ahead(plan::PlanBuilder& builder, std::size_t slot, bool may_wait);
    void need_state(plan::PlanBuilder& builder);  // allocates it, unless it exists

    std::vector<std::string_view> own_state_names() const;  // without what an average keeps
    // Gradients on their way to the host.
    struct Arrival {
        std::vector<std::size_t> slots;
        plan::EventId event = -1;
        std::int64_t bytes = 0;
        bool complete = false;
    };
    void take_arrival(plan::PlanBuilder& builder);
    bool updates_one_by_one() const;
    void copy_to_device(plan::PlanBuilder& builder, const OptimizerSlot& slot) const;

    // Whether a number of each segment is kept, and what it is called.
    std::string_view number_name() const;
    void average_ratios(plan::PlanBuilder& builder, const SlotPart& part, const plan::Tensor& norms) const;

    job::OptimizerType type_;
    job::OptimizerSection options_;  // whose type is that of the warm-up
    int micro_batches_;
    std::optional<Onebit> onebit_;
    std::optional<HostFiles> files_;
    std::int64_t step_ = 0, first_step_ = 0;
    double clip_norm_ = 0;
    bool scales_loss_ = false;
    bool norm_wanted_ = false;
    bool has_outer_momentum_ = false;
    plan::Tensor norm_;          // of the step that is planned, fp64
    bool norm_on_host_ = false;  // the host computes it (cpu_offload, memory.offload)
    plan::Mesh mesh_;
    std::size_t parameters_;
    std::vector<OptimizerSlot> slots_;
    std::deque<Arrival> arrivals_;   // oldest first
    std::int64_t arriving_ = 0;      // bytes of them
    std::set<std::size_t> updated_;  // slots, before step()
    bool has_state_ = false, has_gradients_ = false, keep_gradients_ = false, served_ = false;
};

}  // namespace shardscope::trainer::sharding
