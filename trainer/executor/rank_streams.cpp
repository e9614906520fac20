// What a rank's host thread enqueues on its streams.
#include <utility>

#include "trainer/executor/rank_runner.h"
#include "trainer/executor/runtime_call.h"
#include "trainer/executor/trace_names.h"
#include "trainer/job/job.h"

namespace shardscope::trainer {

void RankRunner::prepare(const Plan& plan, const Op& op, Launch& launch) {
    launch.op = &op;
    launch.data.clear();
    for (const Arg& arg : op.args) launch.data.push_back(address(arg));
    const Job& job = shared_.job;
    launch.context = {rank_,
                      shared_.mesh.ranks,
                      shared_.mesh.shard_index(rank_),
                      job.run.seed,
                      step_,
                      step_ * job.train.accumulation + op.micro,
                      lr_,
                      {}};
    if (op.segments >= 0) launch.context.segments = plan.segments[static_cast<std::size_t>(op.segments)];
}

void RankRunner::describe_work(const Plan& plan, const Op& op, profiler::DeviceWork& work) {
    work = {};
    work.device = rank_;
    work.stream = static_cast<int>(op.stream);
    work.correlation = next_correlation();
    work.bytes = op.bytes;
    if (op.kind == OpKind::kernel) {
        work.name = names_->names[static_cast<std::size_t>(op.name)];
        return;
    }
    work.copy_kind = op.copy_kind;
    const auto kind_of = [&](const Arg& arg) {
        return trace_names::memory_kind(plan.buffers[static_cast<std::size_t>(arg.buffer)].space);
    };
    work.dst_kind = kind_of(op.args[0]);
    if (op.kind == OpKind::memcpy) work.src_kind = kind_of(op.args[1]);
}

void RankRunner::enqueue(const Plan& plan, const Op& op) {
    prepare(plan, op, launch_);
    NameId call = NameId::none;
    if (log_) {
        describe_work(plan, op, launch_.work);
        const Instruments& names = *shared_.instruments;
        call = op.kind == OpKind::kernel   ? names.launch_kernel
               : op.kind == OpKind::memcpy ? names.memcpy_async
                                           : names.memset_async;
    }
    const RuntimeCall launching(log_, call, launch_.work.correlation);
    use(op, shared_.device.enqueue(index(op.stream), take_waits(op.stream), launch_));
}

RankRunner::Communicator& RankRunner::communicator(Group group) {
    Communicator& own = communicators_[static_cast<std::size_t>(group)];
    return own.id == 0 ? communicators_[static_cast<std::size_t>(Group::world)] : own;
}

void RankRunner::enqueue_collective(const Op& op) {
    Communicator& communicator = this->communicator(op.group);
    CollectiveLaunch launch;
    launch.communicator = communicator.id;
    launch.place = communicator.place;
    launch.members = communicator.members;
    launch.sequence = communicator.sequence++;
    launch.call.operation = op.collective;
    launch.call.dtype = op.dtype;
    launch.call.output = address(op.args[0]);
    launch.call.input = address(op.args[1]);
    launch.call.full_elements = op.bytes / size_of(op.dtype);
    launch.call.divisor = op.divisor;
    launch.step = step_;
    launch.unit = op.unit;
    launch.phase = op.phase;

    Waits waits = take_waits(op.stream);
    if (communicator.last.stream != index(op.stream)) waits.add(communicator.last);
    shared_.delays.maybe_sleep();
    if (log_) {
        describe_collective(op, launch);
    }
    push_collective(op);
    {
        const RuntimeCall call(log_, log_ ? shared_.instruments->launch_collective : NameId::none,
                               launch.row.correlation);
        communicator.last = shared_.device.enqueue(index(op.stream), waits, launch);
    }
    shared_.device.hold(communicator.last);
    pop_collective();
    if (log_ && !shared_.device.records_collectives()) log_->collective(launch.row);
    use(op, communicator.last);
}

void RankRunner::describe_collective(const Op& op, CollectiveLaunch& launch) {
    launch.recorded = true;
    profiler::CollectiveWork& row = launch.row;
    row.rank = rank_;
    row.correlation = next_correlation();
    row.operation = op.collective;
    row.bytes = op.bytes;
    row.padding = op.padding;
    row.group = launch.communicator;
    row.group_size = launch.members;
    row.sequence = launch.sequence;
    row.unit = op.unit;
    row.phase = op.phase;
    profiler::DeviceWork& kernel = launch.kernel;
    kernel.name = shared_.instruments->collective_kernel[static_cast<std::size_t>(op.collective)];
    kernel.device = rank_;
    kernel.stream = static_cast<int>(op.stream);
    kernel.correlation = row.correlation;
}

void RankRunner::use(const Op& op, StreamEvent event) {
    for (const Arg& arg : op.args) {
        if (arg.buffer < 0) continue;
        allocator_.used(blocks_[static_cast<std::size_t>(arg.buffer)], op.stream, event.sequence);
    }
    last_[static_cast<std::size_t>(op.stream)] = event;
}

// Returns the event that happens when everything now in the stream, its waits included, is done.
StreamEvent RankRunner::record(Stream stream) {
    const auto s = static_cast<std::size_t>(stream);
    if (!waits_[s].empty()) {
        last_[s] = shared_.device.mark(index(stream), take_waits(stream));
    }
    shared_.device.hold(last_[s]);
    return last_[s];
}

Waits RankRunner::take_waits(Stream stream) {
    return std::exchange(waits_[static_cast<std::size_t>(stream)], {});
}

}  // namespace shardscope::trainer
