// A job as Plans: the wrapped model, and one Plan per kind of step. Built once, before the first step; from
// then on every rank reads that of its role.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/model/module.h"
#include "trainer/plan/account.h"
#include "trainer/plan/plan.h"
#include "trainer/sharding/parallelism.h"
#include "trainer/sharding/pipeline_step.h"
#include "trainer/sharding/stages.h"
#include "trainer/sharding/workload.h"

namespace shardscope::trainer::sharding {

// The purpose of a Program.
enum class Purpose : std::uint8_t {
    train,     // set-up, steps, finish; validation if the job holds out text
    generate,  // set-up and forwards of texts to continue, on one rank that holds everything
};

// Texts that are continued together.
struct Texts {
    int count = 1;
    int prompt = 0;           // tokens of the longest, at most model.context; 0: no key/value cache is kept
    std::int64_t tokens = 0;  // that follow each: the context may be full before all have
    bool int8 = false;        // weights of Linears are held in int8 (kernels/int8_linear.h)
};

// The memory account of a run.
struct MemoryPrediction {
    plan::MemoryPeak peak;
    std::vector<std::int64_t> steps;  // peak of step 0, 1, …; the last value holds for all later steps
};

// The Plans of the ranks of one role. A role is a place in the pipeline: its ranks hold the same stages of
// the model and do the same. With a parameter server the workers are the first role, each server is another.
// The Program that is made from a job is that of role 0 and owns the others; without pipeline parallelism it
// is the only one. The module tree is the whole model's in every role, and units are numbered over all roles.
class Program {
  public:
    // Throws JobError if the job is impossible (a wrap policy that matches nothing). With checkpoint.load the
    // optimizer's state exists from set-up on, and the run begins with `first_step`.
    explicit Program(const job::Job& job, Purpose purpose = Purpose::train, std::int64_t first_step = 0);
    // To generate: evaluation() reads the last model.context tokens of each text. With a cache, prefill()
    // reads the prompts and decode() one more token of each text, and there is an evaluation only if the
    // context may be full.
    Program(const job::Job& job, const Texts& texts);
    // The same for a workload that a job file cannot describe, which has no pipeline: each role needs one.
    Program(const job::Job& job, std::unique_ptr<Workload> workload, Purpose purpose = Purpose::train);
    Program(const Program&) = delete;  // its parts refer to each other
    Program& operator=(const Program&) = delete;

    int roles() const { return 1 + static_cast<int>(others_.size()); }
    const Program& role(int role) const {
        return role == 0 ? *this : *others_[static_cast<std::size_t>(role) - 1];
    }
    int role_of(int rank) const { return mesh().role(rank); }
    const Program& of(int rank) const { return role(role_of(rank)); }

    const job::Job& job() const { return job_; }
    const plan::Mesh& mesh() const { return std::as_const(*parallelism_).mesh(); }
    // Lets each of the first so many ranks send messages to each other one (Mesh::talk), in Plans that are
    // not the Program's.
    void let_talk(int ranks) { parallelism_->let_talk(ranks); }
    const model::ModuleTree& modules() const { return tree_; }
    // Of all roles, one after the other.
    const std::vector<UnitInfo>& units() const { return units_; }
    int unit_of(const model::Parameter& parameter) const;

    // Of a parameter that is stored in int8; no buffer: it is not.
    plan::Arg scales(const model::Parameter& parameter) const { return parallelism_->scales(parameter); }
    // Where every rank has the buffer of a module.
    plan::Arg buffer(const model::ModuleBuffer& buffer) const { return parallelism_->buffer(buffer); }

    const OptimizerPlanner& optimizer() const { return std::as_const(*parallelism_).optimizer(); }

    const plan::Plan& setup() const { return setup_; }
    // Steps in a row that have one Plan.
    struct Stretch {
        std::size_t first = 0;  // step; it ends where the next one begins, and the last one with the cycle
        plan::Plan plan;
    };
    // The first ones can differ (no optimizer state yet, nothing queued), and so can a later one (a hook that
    // begins).
    const std::vector<Stretch>& stretches() const { return stretches_; }
    // The Plan of a step. From warm_up_steps() on the Plans of cycle() steps repeat.
    const plan::Plan& step(std::size_t step) const;
    std::size_t warm_up_steps() const { return warm_up_steps_; }
    std::size_t cycle() const { return static_cast<std::size_t>(parallelism_->period()); }
    // Calls visit(Plan, steps of the cycle that have it) for each Plan of the cycle.
    template <class Visit>
    void for_cycle(const Visit& visit) const {
        for (std::size_t i = 0; i < stretches_.size(); ++i)
            if (stretches_[i].first >= warm_up_steps_)
                visit(stretches_[i].plan, end_of(i) - stretches_[i].first);
    }
    // Reads the last step's loss.
    const plan::Plan& finish() const { return finish_; }

    // Of a pipeline; null without one.
    const Stages* stages() const { return stages_ ? &*stages_ : nullptr; }
    const pipeline::Schedule* schedule() const { return stages_ ? &stages_->schedule : nullptr; }
    // Whether a rank of this role computes losses; of a pipeline, those of the last stage do.
    bool has_loss() const {
        return computes() && (!stages_ || stages_->place_of(stages_->count() - 1) == role_);
    }
    // Whether it reads samples; servers do not.
    bool computes() const { return parallelism_->computes(); }

    // One batch of held-out samples, forward only (null if nothing is held out), or of texts to continue.
    const plan::Plan* evaluation() const { return evaluation_ ? &*evaluation_ : nullptr; }
    const plan::Plan* prefill() const { return prefill_ ? &*prefill_ : nullptr; }
    const plan::Plan* decode() const { return decode_ ? &*decode_ : nullptr; }

    // Predicts the memory of the whole run: set-up, warm-up, steady step.
    MemoryPrediction predict() const;
    // The predictions of all roles, and that of the role that needs the most.
    std::vector<MemoryPrediction> predict_roles() const;
    MemoryPrediction predict_largest() const;

    // Every Plan that a rank of this role may execute.
    std::vector<const plan::Plan*> plans() const;

    // Device memory for the matmuls (memory.gemm_workspace_bytes, twice); -1 if none.
    plan::BufferId product_workspaces() const { return workspace_; }

  private:
    struct Variables {  // variables of a training loop: what they refer to lives until they are assigned
                        // again
        plan::Tensor output, input, target, loss;
    };
    Program(const job::Job& job, std::unique_ptr<Workload> workload, Purpose purpose, int role,
            const Stages* of_another, std::int64_t first_step, const Texts& texts = {});
    void make_plans();
    void make_server_plans();
    void add_units_of(Program& role);
    void check_messages() const;
    void check_offload() const;
    plan::PlanBuilder new_builder(plan::PlanKind kind) const;
    model::Graph new_graph(plan::PlanBuilder& builder, plan::Tape& tape) const;
    Variables micro_batch(plan::PlanBuilder& builder, MicroBatch micro);
    Variables micro_batches(plan::PlanBuilder& builder);
    PipelineStep pipeline_step(plan::PlanBuilder& builder) const;
    void keep_loss(plan::PlanBuilder& builder, int micro, const plan::Tensor& loss) const;
    void read_loss(plan::PlanBuilder& builder) const;
    plan::Plan make_setup();
    plan::Plan make_step(std::size_t step);
    plan::Plan make_finish();
    plan::Plan make_evaluation();
    void declare_cache();
    void make_generation();
    plan::Plan make_forward(plan::Phase phase, const char* name, model::Cached* cached);
    void read_logits(plan::PlanBuilder& builder, const plan::Tensor& logits) const;
    std::string state_key() const;
    // Of a stretch: the first step behind it.
    std::size_t end_of(std::size_t stretch) const {
        return stretch + 1 < stretches_.size() ? stretches_[stretch + 1].first : warm_up_steps_ + cycle();
    }

    job::Job job_;
    std::int64_t first_step_;
    bool copies_activations_ = false;  // to the host, in some step
    int role_;
    std::unique_ptr<Workload> workload_;
    model::ModuleTree tree_;
    std::optional<Stages> stages_;  // of a pipeline
    std::unique_ptr<Parallelism> parallelism_;
    Purpose purpose_;
    Texts texts_;                      // that are continued
    plan::BufferId cache_ = -1;        // device: keys and values of all layers
    std::vector<plan::Arg> keys_;      // by module id: an attention's part of it
    plan::BufferId loss_host_ = -1;    // pinned: the losses of the previous step, one per micro-batch
    plan::BufferId finite_host_ = -1;  // pinned: the flag that kernels write (see KernelOp::checks_output)
    plan::BufferId norm_host_ = -1;    // pinned: the gradient norm of the previous step; -1: not reported
    plan::BufferId losses_ = -1;       // device: the same losses during the step; -1 with one micro-batch
    // Device: workspaces of the matmul library's handles (memory.gemm_workspace_bytes).
    plan::BufferId workspace_ = -1;
    plan::EventId loss_event_ = -1;  // the copies have ended
    bool loss_pending_ = false;
    plan::Plan setup_, finish_;
    std::optional<plan::Plan> evaluation_, prefill_, decode_;
    std::vector<Stretch> stretches_;
    std::size_t warm_up_steps_ = 0;
    std::vector<std::unique_ptr<Program>> others_;  // of role 0: those of roles 1, 2, …
    std::vector<UnitInfo> units_;
    std::vector<int> first_units_;  // of role 0: the number of each role's first unit
};

}  // namespace shardscope::trainer::sharding
