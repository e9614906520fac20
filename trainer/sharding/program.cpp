#include "trainer/sharding/program.h"

#include <stdexcept>
#include <utility>

#include "trainer/model/models.h"
#include "trainer/sharding/ddp.h"
#include "trainer/sharding/fsdp.h"
#include "trainer/sharding/wrap.h"

namespace shardscope::trainer {

namespace {

std::unique_ptr<Module> wrap_model(const Job& job) {
    std::unique_ptr<Module> model = make_model(job);
    switch (job.parallel.mode) {
        case ParallelMode::fsdp:
            return apply_wrap(std::move(model), job);
        case ParallelMode::ddp:
            return std::make_unique<DistributedDataParallel>(std::move(model));
        case ParallelMode::none:
            break;
    }
    return model;
}

std::unique_ptr<Parallelism> make_parallelism(const Job& job, const ModuleTree& tree) {
    switch (job.parallel.mode) {
        case ParallelMode::fsdp:
            return std::make_unique<Fsdp>(tree, job.optimizer, job.fsdp, job.run.ranks);
        case ParallelMode::ddp:
            return std::make_unique<Ddp>(tree, job.optimizer, job.ddp, job.run.ranks);
        case ParallelMode::none:
            break;
    }
    return std::make_unique<Replicated>(tree, job.optimizer);
}

}  // namespace

Program::Program(const Job& job)
    : job_(job), tree_(number_modules(wrap_model(job))), parallelism_(make_parallelism(job_, tree_)) {
    persistent_ = parallelism_->persistent();
    persistent_.push_back(
        {"loss (host)", MemoryCategory::other, MemorySpace::pinned, sizeof(double), -1, -1});
    loss_host_ = static_cast<BufferId>(persistent_.size() - 1);
    loss_event_ = parallelism_->lasting_events();

    setup_ = make_setup();
    // A step's Plan depends on what the step before left behind; once a step leaves what it found, every
    // later one is the same.
    for (std::string before = state_key();; before = state_key()) {
        steps_.push_back(make_step(steps_.empty() ? PlanKind::first : PlanKind::steady));
        if (state_key() == before) break;
        if (steps_.size() > 16) throw std::logic_error("the schedule does not become steady");
    }
    finish_ = make_finish();
}

std::string Program::state_key() const {
    return parallelism_->state_key() + (loss_pending_ ? " loss" : "");
}

MemoryPeak Program::predict_peak() const {
    MemoryAccount account;
    account.walk(setup_);
    for (std::size_t i = 0; i <= steps_.size(); ++i) account.walk(step(i));  // the steady one twice
    return account.counter().peak();
}

Plan Program::make_setup() {
    PlanBuilder builder(PlanKind::setup, persistent_);
    builder.reserve_events(loss_event_ + 1);
    {
        const PlanBuilder::Scope scope(builder, Phase::setup, -1, -1);
        const PlanBuilder::Range range(builder, "setup");
        builder.allocate(loss_host_, Stream::host);
        parallelism_->setup(builder);
        if (job_.run.ranks > 1) {
            // Nobody starts before all are there.
            builder.order(Stream::compute, Stream::post_backward);
            builder.collective(Operation::barrier, {}, {}, 0, 0, false, Stream::post_backward);
            const EventId event = builder.new_event();
            builder.record(event, Stream::post_backward);
            builder.host_wait(event);
        }
    }
    return builder.take();
}

// The loop of every PyTorch tutorial: zero_grad, next batch, forward, loss, backward, step. The loss is read
// one step late, so that the host runs ahead of the device by one step at most.
Plan Program::make_step(PlanKind kind) {
    PlanBuilder builder(kind, persistent_);
    builder.reserve_events(loss_event_ + 1);
    Tape tape(builder);
    Graph graph{builder, tape, *parallelism_};
    parallelism_->begin_step(builder);
    {
        const PlanBuilder::Scope scope(builder, Phase::none, -1, -1);
        parallelism_->optimizer().zero_grad(builder);
    }
    const BatchShape shape = batch_shape(job_);
    Tensor input, target;
    {
        const PlanBuilder::Scope scope(builder, Phase::data, -1, -1);
        Tensor host_input = builder.new_tensor("input (host)", MemoryCategory::activations, shape.input_bytes,
                                               Stream::host, MemorySpace::pinned);
        Tensor host_target = builder.new_tensor("target (host)", MemoryCategory::activations,
                                                shape.target_bytes, Stream::host, MemorySpace::pinned);
        {
            const PlanBuilder::Range range(builder,
                                           "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
            builder.host_call(HostCall::next_batch, "next_batch", {host_input, host_target});
        }
        const PlanBuilder::Range range(builder, "aten::to");
        input = builder.new_tensor("input", MemoryCategory::activations, shape.input_bytes);
        target = builder.new_tensor("target", MemoryCategory::activations, shape.target_bytes);
        builder.memcpy(input, host_input, traces::kCopyHostToDevice);
        builder.memcpy(target, host_target, traces::kCopyHostToDevice);
    }
    Tensor output, loss_value;
    {
        const PlanBuilder::Scope scope(builder, Phase::forward, -1, -1);
        output = call(graph, *tree_.root, input);
        loss_value = loss(graph, job_, output, target);
    }
    tape.backward();
    {
        const PlanBuilder::Scope scope(builder, Phase::backward, -1, -1);
        parallelism_->end_backward();
    }
    parallelism_->optimizer().step(builder);

    {
        const PlanBuilder::Scope scope(builder, Phase::none, -1, -1);
        const PlanBuilder::Range range(builder, "aten::item");
        if (loss_pending_) {
            builder.host_wait(loss_event_);
            builder.host_call(HostCall::read_loss, "read_loss", {builder.whole(loss_host_)});
        }
        builder.memcpy(builder.whole(loss_host_), {loss_value.view.buffer, 0, sizeof(double)},
                       traces::kCopyDeviceToHost);
        builder.record(loss_event_, Stream::compute);
    }
    loss_pending_ = true;
    parallelism_->end_step();
    input = target = output = loss_value = {};  // end of the loop's body
    return builder.take();
}

Plan Program::make_finish() {
    PlanBuilder builder(PlanKind::finish, persistent_);
    builder.reserve_events(loss_event_ + 1);
    builder.host_wait(loss_event_);
    builder.host_call(HostCall::read_loss, "read_loss", {builder.whole(loss_host_)});
    return builder.take();
}

}  // namespace shardscope::trainer
