#include "trainer/sharding/parameter_server.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "trainer/sharding/values.h"

namespace shardscope::trainer::sharding {

namespace {

// One of the `parts` of a buffer.
plan::Arg part_of(const plan::Arg& whole, int parts, int number) {
    const std::int64_t bytes = whole.bytes / parts;
    return {whole.buffer, number * bytes, bytes};
}

plan::Op& exchange(plan::PlanBuilder& builder, plan::Operation operation, int peer, const plan::Arg& part,
                   plan::Stream stream) {
    return builder.collective({.operation = operation, .group = plan::Group::world, .peer = peer}, part, part,
                              part.bytes, stream);
}

}  // namespace

// --- a worker ----------------------------------------------------------------------------------------------

void ServedWorker::pull() {
    const plan::PlanBuilder::Scope scope(builder(), builder().phase(), 0, -1);
    const plan::PlanBuilder::Range range(builder(), "pull");
    builder().order(plan::Stream::compute, plan::Stream::receive);
    for (int server = 0; server < mesh_.servers; ++server) {
        exchange(builder(), plan::Operation::recv, mesh_.workers() + server,
                 part_of(builder().whole(flat_parameters_), parts_, server), plan::Stream::receive);
    }
    builder().order(plan::Stream::receive, plan::Stream::compute);
}

void ServedWorker::begin_step(plan::PlanBuilder& builder) {
    Replicated::begin_step(builder);
    pull();
}

void ServedWorker::begin_evaluation(plan::PlanBuilder& builder) {
    Replicated::begin_evaluation(builder);
    pull();
}

void ServedWorker::optimize() {
    const plan::PlanBuilder::Scope scope(builder(), plan::Phase::optimizer, 0, -1);
    const plan::PlanBuilder::Range range(builder(), "push");
    const plan::Arg gradients = builder().whole(flat_gradients_);
    if (micro_.count > 1) {
        const std::int64_t n = gradients.bytes / kFloat;
        builder().kernel(plan::Kernel::scale, "aten::div_", {gradients}, {n}, n).kernel().scalars = {
            1.0 / micro_.count};
    }
    builder().order(plan::Stream::compute, plan::Stream::send);
    for (int server = 0; server < mesh_.servers; ++server) {
        exchange(builder(), plan::Operation::send, mesh_.workers() + server,
                 part_of(gradients, parts_, server), plan::Stream::send);
    }
    builder().free(flat_gradients_);
}

// --- a server ----------------------------------------------------------------------------------------------

ParameterServer::ParameterServer(const job::Job& job, plan::Mesh mesh, const model::ModuleTree& tree)
    : Parallelism(job, mesh, tree),
      tree_(tree),
      staleness_(job.train.staleness),
      window_(staleness_ < 0 ? kWindow : std::max<std::int64_t>(staleness_, 1) + 1) {
    OptimizerSlot slot;
    slot.name = "served";
    slot.module = 0;
    std::int64_t total = 0;
    for (const model::Parameter* p : tree.held) {
        if (!p->trained) continue;
        slot.segments.push_back({p->id, total, p->elements(), true, !p->is_vector(), false});
        total += p->elements();
    }
    slot.elements = slot.per_rank = (total + mesh.servers - 1) / mesh.servers;
    const auto declare_part = [&](const std::string& name, plan::MemoryCategory category) {
        return declare_whole({name, category, plan::MemorySpace::device, slot.elements * kFloat, -1, 0});
    };
    slot.parameter = declare_part("served parameters", plan::MemoryCategory::parameters);
    for (int worker = 0; worker < mesh.workers(); ++worker) {
        gradients_.push_back(
            declare_part(fmt::format("gradients of rank {}", worker), plan::MemoryCategory::gradients));
        if (!synchronous())
            answers_.push_back(declare_part(fmt::format("parameters for rank {}", worker),
                                            plan::MemoryCategory::communication));
    }
    slot.gradient = gradients_.front();
    optimizer_.keep_gradients();
    optimizer_.add_slot(persistent_, std::move(slot));
}

void ParameterServer::setup(plan::PlanBuilder& builder) {
    const OptimizerSlot& slot = optimizer_.slot(0);
    const plan::PlanBuilder::Scope scope(builder, plan::Phase::setup, 0, -1);
    builder.allocate(slot.parameter.buffer, plan::Stream::compute);
    builder.memset(slot.parameter);  // padding stays zero
    for (const plan::Segment& segment : slot.segments)
        initialize(builder, *tree_.parameters[static_cast<std::size_t>(segment.parameter)], slot.parameter,
                   segment.first, slot.per_rank);
}

// What it keeps beside the parameters.
void ParameterServer::allocate(plan::PlanBuilder& builder) {
    for (const auto* buffers : {&gradients_, &answers_})
        for (const plan::Arg& buffer : *buffers) builder.allocate(buffer.buffer, plan::Stream::compute);
    if (!optimizer_.has_state()) optimizer_.allocate_state(builder);
}

// The parameters as they are, to a worker; a copy of them if an update may come while they are sent.
void ParameterServer::answer(plan::PlanBuilder& builder, int worker) const {
    const plan::Stream stream = plan::serve_stream(worker);
    plan::Arg from = optimizer_.slot(0).parameter;
    if (!synchronous() && builder.phase() != plan::Phase::validation) {
        const plan::PlanBuilder::Turn turn(builder, stream);
        const plan::Arg& answer = answers_[static_cast<std::size_t>(worker)];
        builder.memcpy(answer, from, traces::schema::kCopyDeviceToDevice);
        from = answer;
    }
    exchange(builder, plan::Operation::send, worker, from, stream);
}

void ParameterServer::update_with(plan::PlanBuilder& builder, int worker) {
    const plan::PlanBuilder::Turn turn(builder, plan::serve_stream(worker));
    optimizer_.set_gradient(0, gradients_[static_cast<std::size_t>(worker)]);
    optimizer_.step(builder);
}

void ParameterServer::update_with_all(plan::PlanBuilder& builder) {
    const std::int64_t n = optimizer_.slot(0).elements;
    const plan::Arg& sum = gradients_.front();
    for (std::size_t worker = 1; worker < gradients_.size(); ++worker)
        builder.kernel(plan::Kernel::accumulate, "aten::add_", {sum, gradients_[worker]}, {n}, n);
    builder.kernel(plan::Kernel::scale, "aten::div_", {sum}, {n}, n).kernel().scalars = {
        1.0 / static_cast<double>(gradients_.size())};
    optimizer_.step(builder);
}

// All workers get the parameters before any gradient is waited for: they share streams if they are many.
void ParameterServer::serve(plan::PlanBuilder& builder) {
    const bool evaluates = builder.kind() == plan::PlanKind::validation;
    const plan::PlanBuilder::Scope scope(builder,
                                         evaluates ? plan::Phase::validation : plan::Phase::optimizer, 0, -1);
    const plan::PlanBuilder::Range range(builder, "serve");
    // Slot k has the event of k steps ago, when all gradients of that step had been taken.
    if (!evaluates) builder.host_wait(static_cast<plan::EventId>(window_));
    const bool begins = builder.kind() == plan::PlanKind::first;
    if (begins) allocate(builder);
    for (int worker = 0; worker < mesh_.workers(); ++worker) {
        if (synchronous() || begins) builder.order(plan::Stream::compute, plan::serve_stream(worker));
        answer(builder, worker);
    }
    if (evaluates) return;
    for (int worker = 0; worker < mesh_.workers(); ++worker) {
        exchange(builder, plan::Operation::recv, worker, gradients_[static_cast<std::size_t>(worker)],
                 plan::serve_stream(worker));
        if (!synchronous()) update_with(builder, worker);
    }
    for (int worker = 0; worker < mesh_.workers(); ++worker)
        builder.order(plan::serve_stream(worker), plan::Stream::compute);
    if (synchronous()) update_with_all(builder);
    builder.record(0, plan::Stream::compute);
    for (auto slot = static_cast<plan::EventId>(window_); slot > 0; --slot) builder.carry(slot - 1, slot);
}

}  // namespace shardscope::trainer::sharding
