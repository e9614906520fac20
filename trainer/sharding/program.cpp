#include "trainer/sharding/program.h"

#include <algorithm>
#include <functional>
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "trainer/model/activation_offload.h"
#include "trainer/model/layers.h"
#include "trainer/model/models.h"
#include "trainer/plan/messages.h"
#include "trainer/sharding/ddp.h"
#include "trainer/sharding/fsdp.h"
#include "trainer/sharding/job_mesh.h"
#include "trainer/sharding/parameter_server.h"
#include "trainer/sharding/values.h"
#include "trainer/sharding/wrap.h"

namespace shardscope::trainer::sharding {

namespace {

// To generate text, one rank holds everything and reads one sample of each text.
job::Job job_for(job::Job job, Purpose purpose, int texts) {
    if (purpose == Purpose::train) return job;
    job.parallel.tensor = 1;
    job.parallel.sequence = false;
    job = on_one_tensor_group(std::move(job));
    job.data.batch = texts;
    job.train = {};
    job.precision = {};
    job.memory = {};
    return job;
}

std::unique_ptr<model::Module> wrap_model(const job::Job& job, Workload& workload) {
    std::unique_ptr<model::Module> model = workload.model(job);
    switch (job.parallel.mode) {
        case job::ParallelMode::fsdp:
            return workload.wrap(std::move(model), job);
        case job::ParallelMode::ddp:
            return std::make_unique<DistributedDataParallel>(std::move(model));
        case job::ParallelMode::server:
        case job::ParallelMode::none:
            break;
    }
    return model;
}

// A tied head has no weight of its own: the embedding's table stays fp32.
model::ModuleTree make_tree(std::unique_ptr<model::Module> root, const Texts& texts) {
    model::ModuleTree tree = number_modules(std::move(root));
    for (model::Module* module : tree.modules) {
        if (texts.int8 && dynamic_cast<const model::Linear*>(module) && !module->parameters().empty())
            module->parameters().front().stored = plan::DType::int8;
    }
    return tree;
}

std::unique_ptr<Parallelism> make_parallelism(const job::Job& job, const model::ModuleTree& tree, int role) {
    switch (job.parallel.mode) {
        case job::ParallelMode::server:
            if (role == 0) return std::make_unique<ServedWorker>(job, mesh_of(job), tree);
            return std::make_unique<ParameterServer>(job, mesh_of(job), tree);
        case job::ParallelMode::fsdp:
            return std::make_unique<Fsdp>(job, tree);
        case job::ParallelMode::ddp:
            return std::make_unique<Ddp>(job, mesh_of(job), tree);
        case job::ParallelMode::none:
            break;
    }
    return std::make_unique<Replicated>(job, mesh_of(job), tree);
}

}  // namespace

Program::Program(const job::Job& job, std::unique_ptr<Workload> workload, Purpose purpose)
    : Program(job, std::move(workload), purpose, 0, nullptr, 0) {
    if (mesh().pipeline > 1) throw std::logic_error("the roles of a pipeline need a workload each");
    add_units_of(*this);
}

Program::Program(const job::Job& job, Purpose purpose, std::int64_t first_step)
    : Program(job, workload_of_job(), purpose, 0, nullptr, first_step) {
    const int roles = 1 + mesh().role(mesh().ranks - 1);
    for (int r = 1; r < roles; ++r)
        others_.push_back(
            std::unique_ptr<Program>(new Program(job, workload_of_job(), purpose, r, stages(), first_step)));
    add_units_of(*this);
    for (const std::unique_ptr<Program>& other : others_) add_units_of(*other);
    check_messages();
    check_offload();
}

Program::Program(const job::Job& job, const Texts& texts)
    : Program(job, workload_of_job(), Purpose::generate, 0, nullptr, 0, texts) {
    add_units_of(*this);
}

Program::Program(const job::Job& job, std::unique_ptr<Workload> workload, Purpose purpose, int role,
                 const Stages* of_another, std::int64_t first_step, const Texts& texts)
    : job_(job_for(job, purpose, texts.count)),
      first_step_(first_step),
      role_(role),
      workload_(std::move(workload)),
      tree_(make_tree(wrap_model(job_, *workload_), texts)),
      stages_(job_.parallel.pipeline > 1 ? std::optional(make_stages(job_, tree_, role, of_another))
                                         : std::nullopt),
      parallelism_(make_parallelism(job_, tree_, role)),
      purpose_(purpose),
      texts_(texts) {
    make_plans();
}

// A schedule from a file has been checked before (stages.cpp): what is wrong here is a mistake in this
// program.
void Program::check_messages() const {
    if (mesh().pipeline == 1 && !mesh().ring) return;
    const auto check = [&](const std::function<const plan::Plan*(const Program&)>& plan_of) {
        std::vector<const plan::Plan*> plans;
        plans.reserve(static_cast<std::size_t>(roles()));
        for (int r = 0; r < roles(); ++r) plans.push_back(plan_of(role(r)));
        const std::string problem = plan::find_message_problem(mesh(), plans);
        if (!problem.empty()) throw std::logic_error(problem);
    };
    std::set<std::size_t> steps;
    for (int r = 0; r < roles(); ++r)
        for (const Stretch& stretch : role(r).stretches_) steps.insert(stretch.first);
    for (const std::size_t s : steps) check([s](const Program& own) { return &own.step(s); });
    if (evaluation_) check([](const Program& own) { return own.evaluation(); });
}

// Some role copies what its layers save, if that is wanted.
void Program::check_offload() const {
    if (!job_.memory.offload.activations || purpose_ != Purpose::train) return;
    for (int r = 0; r < roles(); ++r)
        if (role(r).copies_activations_) return;
    throw job::JobError(
        fmt::format("{}memory.offload: no layer of the model but the last saves a tensor of {} bytes or "
                    "more, so there are "
                    "no activations to offload; omit \"activations\"",
                    where(job_, "memory.offload"), model::kSmallestOffload));
}

// Numbers the role's units after those of the roles before it.
void Program::add_units_of(Program& role) {
    const auto first = static_cast<int>(units_.size());
    first_units_.push_back(first);
    const std::vector<UnitInfo>& own = role.parallelism_->units();
    units_.insert(units_.end(), own.begin(), own.end());
    if (first == 0) return;
    const auto renumber = [&](plan::Plan& plan) {
        for (plan::Op& op : plan.ops)
            if (op.unit >= 0) op.unit += first;
        for (plan::Buffer& buffer : plan.buffers)
            if (buffer.unit >= 0) buffer.unit += first;
    };
    renumber(role.setup_);
    renumber(role.finish_);
    for (Stretch& stretch : role.stretches_) renumber(stretch.plan);
    if (role.evaluation_) renumber(*role.evaluation_);
}

int Program::unit_of(const model::Parameter& parameter) const {
    for (int r = 0; r < roles(); ++r) {
        const int unit = role(r).parallelism_->unit_of(parameter);
        if (unit >= 0) return first_units_[static_cast<std::size_t>(r)] + unit;
    }
    return -1;
}

void Program::make_plans() {
    stretches_.clear();
    loss_pending_ = false;
    if (stages_ && stages_->copied() != nullptr && role_ != stages_->place_of(0))
        parallelism_->optimizer().set_copy(stages_->copied()->id);
    const auto declare = [&](const char* name, plan::MemorySpace space, std::int64_t bytes) {
        return parallelism_->declare({name, plan::MemoryCategory::other, space, bytes, -1, -1});
    };
    if (!computes()) return make_server_plans();
    const std::int64_t losses = job_.train.accumulation * kDouble;
    loss_host_ = declare("loss (host)", plan::MemorySpace::pinned, losses);
    finite_host_ = declare("non-finite flag", plan::MemorySpace::pinned, sizeof(std::int32_t));
    if (job_.train.reports_norm())
        norm_host_ = declare("gradient norm (host)", plan::MemorySpace::pinned, kDouble);
    if (job_.train.accumulation > 1 && has_loss())
        losses_ = declare("losses", plan::MemorySpace::device, losses);
    if (job_.memory.gemm_workspace_bytes > 0) {
        workspace_ = declare("workspaces of matrix products", plan::MemorySpace::device,
                             2 * job_.memory.gemm_workspace_bytes);
    }
    if (texts_.prompt > 0) declare_cache();
    loss_event_ = parallelism_->lasting_events();

    setup_ = make_setup();
    if (purpose_ == Purpose::generate) return make_generation();
    // A step's Plan depends on the state that the step before left; while steps leave the state that they
    // found, the next Plans are the same, up to the next step that is planned otherwise. Where these come
    // again and again, the warm-up has ended once no step of a whole cycle has left another state.
    std::size_t step = 0;
    warm_up_steps_ = 0;
    for (std::string before = state_key();; before = state_key()) {
        stretches_.push_back({step, make_step(step)});
        if (auto learned = parallelism_->with_what_it_learned(job_)) {
            parallelism_ = std::move(learned);
            return make_plans();
        }
        ++step;
        if (state_key() != before) {
            warm_up_steps_ = step;
        } else {
            const auto change = parallelism_->next_change(static_cast<std::int64_t>(step));
            if (!change) break;
            step = static_cast<std::size_t>(*change);
            if (cycle() == 1) warm_up_steps_ = step;
        }
        if (cycle() > 1 && step >= warm_up_steps_ + cycle()) break;
        if (stretches_.size() > 16) throw std::logic_error("the schedule does not become steady");
    }
    finish_ = make_finish();
    if (job_.validates() || job_.tests()) evaluation_ = make_evaluation();
}

// Each step of a server is like the others, but for the first one's allocations.
void Program::make_server_plans() {
    loss_event_ = parallelism_->lasting_events();
    setup_ = make_setup();
    const auto serve = [this](plan::PlanKind kind) {
        plan::PlanBuilder builder = new_builder(kind);
        parallelism_->serve(builder);
        return builder.take();
    };
    stretches_.push_back({0, serve(plan::PlanKind::first)});
    stretches_.push_back({1, serve(plan::PlanKind::steady)});
    warm_up_steps_ = 1;
    finish_ = new_builder(plan::PlanKind::finish).take();
    if (job_.validates() || job_.tests()) evaluation_ = serve(plan::PlanKind::validation);
}

std::string Program::state_key() const {
    return parallelism_->state_key() + (loss_pending_ ? " loss" : "");
}

const plan::Plan& Program::step(std::size_t step) const {
    if (step >= warm_up_steps_) step = warm_up_steps_ + (step - warm_up_steps_) % cycle();
    auto stretch = stretches_.end() - 1;
    while (stretch->first > step) --stretch;
    return stretch->plan;
}

std::vector<const plan::Plan*> Program::plans() const {
    std::vector<const plan::Plan*> all = {&setup_, &finish_};
    for (const Stretch& stretch : stretches_) all.push_back(&stretch.plan);
    for (const std::optional<plan::Plan>* plan : {&evaluation_, &prefill_, &decode_})
        if (*plan) all.push_back(&**plan);
    return all;
}

MemoryPrediction Program::predict() const {
    MemoryPrediction prediction;
    plan::MemoryAccount account;
    account.walk(setup_);
    account.take_peak();
    const auto walk = [&](const plan::Plan& plan) {
        account.walk(plan);
        prediction.steps.push_back(account.take_peak());
    };
    if (purpose_ == Purpose::generate) {
        for (const plan::Plan* plan : {prefill(), decode(), evaluation()})
            if (plan) walk(*plan);
    }
    // Each Plan that repeats is walked twice, as it may start anew.
    for (std::size_t i = 0; i < stretches_.size(); ++i) {
        const bool is_steady = cycle() == 1 && i + 1 == stretches_.size();
        const std::size_t steps = is_steady ? 2 : end_of(i) - stretches_[i].first;
        for (std::size_t s = 0; s < std::min<std::size_t>(steps, 2); ++s) walk(stretches_[i].plan);
        if (steps > 2) prediction.steps.resize(prediction.steps.size() + steps - 2, prediction.steps.back());
    }
    prediction.peak = account.counter().peak();
    return prediction;
}

std::vector<MemoryPrediction> Program::predict_roles() const {
    std::vector<MemoryPrediction> all;
    all.reserve(static_cast<std::size_t>(roles()));
    for (int r = 0; r < roles(); ++r) all.push_back(role(r).predict());
    return all;
}

MemoryPrediction Program::predict_largest() const {
    const std::vector<MemoryPrediction> all = predict_roles();
    return *std::max_element(all.begin(), all.end(),
                             [](const auto& a, const auto& b) { return a.peak.bytes < b.peak.bytes; });
}

plan::PlanBuilder Program::new_builder(plan::PlanKind kind) const {
    plan::PlanBuilder builder(kind, parallelism_->persistent());
    builder.reserve_events(loss_event_ + 1);
    return builder;
}

plan::Plan Program::make_setup() {
    plan::PlanBuilder builder = new_builder(plan::PlanKind::setup);
    {
        const plan::PlanBuilder::Scope scope(builder, plan::Phase::setup, -1, -1);
        const plan::PlanBuilder::Range range(builder, "setup");
        if (loss_host_ >= 0) builder.allocate(loss_host_, plan::Stream::host);
        if (finite_host_ >= 0) {
            builder.allocate(finite_host_, plan::Stream::host);
            builder.memset(builder.whole(finite_host_), plan::Stream::host, 0xFF);  // -1: all is finite
        }
        if (norm_host_ >= 0) builder.allocate(norm_host_, plan::Stream::host);
        if (losses_ >= 0) builder.allocate(losses_, plan::Stream::compute);
        if (workspace_ >= 0) builder.allocate(workspace_, plan::Stream::compute);
        if (cache_ >= 0) builder.allocate(cache_, plan::Stream::compute);
        if (computes()) parallelism_->set_up_buffers(builder);
        parallelism_->setup(builder);
        // Set-up fills it from the checkpoint; without one, the first step makes it, as in PyTorch.
        if (!job_.checkpoint.load.empty() && purpose_ == Purpose::train)
            parallelism_->optimizer().allocate_state(builder);
        if (job_.run.ranks > 1) {
            // No rank starts before all are ready.
            builder.order(plan::Stream::compute, plan::Stream::post_backward);
            builder.collective({.operation = plan::Operation::barrier}, {}, {}, 0,
                               plan::Stream::post_backward);
            const plan::EventId event = builder.new_event();
            builder.record(event, plan::Stream::post_backward);
            builder.host_wait(event);
        }
    }
    return builder.take();
}

model::Graph Program::new_graph(plan::PlanBuilder& builder, plan::Tape& tape) const {
    model::Graph graph{{}, builder, tape, *parallelism_};
    graph.dtype = dtype_of(job_.precision.param);
    graph.buffer_dtype = dtype_of(job_.precision.buffer);
    graph.tensor = job_.parallel.tensor;
    graph.sequence = job_.parallel.sequence;
    graph.data = mesh().data_size();
    graph.all_data = mesh().all_data();
    graph.samples = job_.data.batch;
    graph.context = job_.parallel.context;
    graph.ring = mesh().ring;
    return graph;
}

// The forward and backward of one micro-batch.
Program::Variables Program::micro_batch(plan::PlanBuilder& builder, MicroBatch micro) {
    builder.set_micro(micro.index);
    parallelism_->begin_micro_batch(micro);
    plan::Tape tape(builder);
    model::ActivationOffload offload(builder, tape);
    model::Graph graph = new_graph(builder, tape);
    graph.finite_flag = builder.whole(finite_host_);
    if (job_.memory.offload.activations) graph.offload = &offload;
    Workload::Batch batch;
    {
        const plan::PlanBuilder::Scope scope(builder, plan::Phase::data, -1, -1);
        batch = workload_->load_batch(builder, job_, {});
    }
    plan::Tensor output, loss_value;
    {
        const plan::PlanBuilder::Scope scope(builder, plan::Phase::forward, -1, -1);
        output = call(graph, *tree_.root, batch.input);
        loss_value = workload_->loss(graph, job_, output, batch.target);
    }
    tape.backward();
    copies_activations_ = copies_activations_ || offload.copies();
    {
        const plan::PlanBuilder::Scope scope(builder, plan::Phase::backward, -1, -1);
        parallelism_->end_backward();
    }
    return {std::move(output), std::move(batch.input), std::move(batch.target), std::move(loss_value)};
}

void Program::keep_loss(plan::PlanBuilder& builder, int micro, const plan::Tensor& loss) const {
    if (losses_ < 0 || !loss) return;
    builder.memcpy({losses_, micro * kDouble, kDouble}, {loss.view.buffer, 0, kDouble},
                   traces::schema::kCopyDeviceToDevice);
}

PipelineStep Program::pipeline_step(plan::PlanBuilder& builder) const {
    return PipelineStep({builder, job_, *workload_, tree_, *parallelism_, *stages_, role_,
                         builder.whole(finite_host_),
                         [this, &builder](plan::Tape& tape) { return new_graph(builder, tape); }});
}

// Those of a step, in turn or as the schedule of the pipeline says. What the last one has computed.
Program::Variables Program::micro_batches(plan::PlanBuilder& builder) {
    Variables variables;
    if (stages_) {
        PipelineStep step = pipeline_step(builder);
        step.train([&](int micro, const plan::Tensor& loss) {
            keep_loss(builder, micro, loss);
            variables.loss = loss;
        });
        const plan::PlanBuilder::Scope scope(builder, plan::Phase::backward, -1, -1);
        parallelism_->end_backward();
        step.add_copied_gradients();
        copies_activations_ = copies_activations_ || step.copies_activations();
        return variables;
    }
    const int count = job_.train.accumulation;
    for (int i = 0; i < count; ++i) {
        variables = {};
        workload_->end_variables();
        variables = micro_batch(builder, {i, count});
        keep_loss(builder, i, variables.loss);
    }
    return variables;
}

// The host takes what the previous step has copied.
void Program::read_loss(plan::PlanBuilder& builder) const {
    std::vector<plan::Arg> from = {builder.whole(loss_host_), builder.whole(finite_host_)};
    if (norm_host_ >= 0) from.push_back(builder.whole(norm_host_));
    builder.host_call(plan::HostCall::read_loss, "read_loss", std::move(from));
}

// The loop of every PyTorch tutorial: zero_grad; for each micro-batch next batch, forward, loss, backward;
// step. The loss is read one step late, so that the host is ahead of the device by at most one step.
plan::Plan Program::make_step(std::size_t step) {
    plan::PlanBuilder builder = new_builder(step == 0 ? plan::PlanKind::first : plan::PlanKind::steady);
    parallelism_->set_step(static_cast<std::int64_t>(step), first_step_);
    parallelism_->begin_step(builder);
    {
        const plan::PlanBuilder::Scope scope(builder, plan::Phase::none, -1, -1);
        parallelism_->optimizer().zero_grad(builder);
        // What is loaded is the host's.
        if (step == 0 && !(job_.checkpoint.load.empty() && job_.checkpoint.initial_load.empty()))
            parallelism_->optimizer().copy_parameters(builder);
    }
    Variables variables = micro_batches(builder);
    parallelism_->optimize();
    parallelism_->after_optimizer();
    {
        const plan::PlanBuilder::Scope scope(builder, plan::Phase::none, -1, -1);
        workload_->after_optimizer(builder);
        const plan::PlanBuilder::Range range(builder, "aten::item");
        if (loss_pending_) {
            builder.host_wait(loss_event_);
            read_loss(builder);
        }
        if (variables.loss) {
            const plan::Arg losses =
                losses_ >= 0 ? builder.whole(losses_) : plan::Arg{variables.loss.view.buffer, 0, kDouble};
            builder.memcpy(builder.whole(loss_host_), losses, traces::schema::kCopyDeviceToHost);
        }
        if (norm_host_ >= 0) parallelism_->optimizer().copy_norm(builder, builder.whole(norm_host_));
        builder.record(loss_event_, plan::Stream::compute);
    }
    loss_pending_ = true;
    parallelism_->end_step();
    variables = {};  // end of the loop's body
    workload_->end_variables();
    return builder.take();
}

plan::Plan Program::make_finish() {
    plan::PlanBuilder builder = new_builder(plan::PlanKind::finish);
    builder.host_wait(loss_event_);
    read_loss(builder);
    return builder.take();
}

// A forward of held-out samples, which leaves nothing behind, and its result.
plan::Plan Program::make_evaluation() {
    plan::PlanBuilder builder = new_builder(plan::PlanKind::validation);
    parallelism_->begin_evaluation(builder);
    {
        const plan::PlanBuilder::Scope scope(builder, plan::Phase::validation, -1, -1);
        plan::Tape tape(builder);
        tape.set_recording(false);
        model::Graph graph = new_graph(builder, tape);
        graph.training = false;
        Workload::Batch batch;
        plan::Tensor output, result, accuracy;
        if (stages_) {
            result = pipeline_step(builder).evaluate();
        } else {
            batch = workload_->load_batch(builder, job_, {});
            output = call(graph, *tree_.root, batch.input);
            result = workload_->loss(graph, job_, output, batch.target);
            accuracy = model::accuracy(graph, job_, output, batch.target);
        }
        if (!result) {  // of a stage before the last
            parallelism_->end_evaluation();
            return builder.take();
        }
        const std::int64_t bytes = kDouble + (accuracy ? kDouble : 0);
        const plan::Tensor on_host = builder.new_tensor("validation loss (host)", plan::MemoryCategory::other,
                                                        bytes / size_of(plan::DType::fp64), plan::DType::fp64,
                                                        plan::Stream::host, plan::MemorySpace::pinned);
        const plan::BufferId host = on_host.view.buffer;
        builder.memcpy({host, 0, kDouble}, {result.view.buffer, 0, kDouble},
                       traces::schema::kCopyDeviceToHost);
        if (accuracy) builder.memcpy({host, kDouble, kDouble}, accuracy, traces::schema::kCopyDeviceToHost);
        const plan::EventId copied = builder.new_event();
        builder.record(copied, plan::Stream::compute);
        builder.host_wait(copied);
        builder.host_call(plan::HostCall::read_validation_loss, "read_validation_loss", {on_host});
        parallelism_->end_evaluation();
    }
    return builder.take();
}

}  // namespace shardscope::trainer::sharding
