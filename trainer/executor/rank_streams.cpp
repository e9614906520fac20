// What a rank's host thread enqueues on its streams, and how workers carry it out.
#include <cstring>
#include <stdexcept>
#include <utility>

#include "trainer/executor/nccl_payloads.h"
#include "trainer/executor/rank_runner.h"
#include "trainer/executor/runtime_call.h"
#include "trainer/job/job.h"

namespace shardscope::trainer {

using profiler::ticks;

namespace {

int memory_kind(MemorySpace space) {
    return space == MemorySpace::device   ? traces::kMemKindDevice
           : space == MemorySpace::pinned ? traces::kMemKindPinned
                                          : traces::kMemKindPageable;
}

// On a worker.
void run_launch(const Launch& launch, Shared& shared, int worker) {
    shared.delays.maybe_sleep();
    if (!shared.instruments) return carry_out(launch);
    const std::uint64_t start = ticks();
    carry_out(launch);
    const std::uint64_t end = ticks();
    profiler::ThreadLog& log = *shared.worker_logs[static_cast<std::size_t>(worker)];
    switch (launch.op->kind) {
        case OpKind::kernel:
            return log.kernel(start, end, launch.work);
        case OpKind::memcpy:
            return log.memcpy(start, end, launch.work);
        default:
            return log.memset(start, end, launch.work);
    }
}

}  // namespace

void carry_out(const Launch& launch) {
    const Op& op = *launch.op;
    const auto bytes = static_cast<std::size_t>(op.args.empty() ? 0 : op.args[0].bytes);
    switch (op.kind) {
        case OpKind::kernel:
            return run_kernel(op, launch.data, launch.context);
        case OpKind::memcpy:
            std::memcpy(launch.data[0], launch.data[1], bytes);
            return;
        case OpKind::memset:
            std::memset(launch.data[0], static_cast<int>(op.dims[0]), bytes);
            return;
        default:
            throw std::logic_error("an operation that is no work was enqueued");
    }
}

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
        return memory_kind(plan.buffers[static_cast<std::size_t>(arg.buffer)].space);
    };
    work.dst_kind = kind_of(op.args[0]);
    if (op.kind == OpKind::memcpy) work.src_kind = kind_of(op.args[1]);
}

void RankRunner::enqueue(const Plan& plan, const Op& op) {
    Launch& launch = launches_[static_cast<std::size_t>(op.stream)].take(shared_.scheduler);
    prepare(plan, op, launch);
    NameId call = NameId::none;
    if (log_) {
        describe_work(plan, op, launch.work);
        const Instruments& names = *shared_.instruments;
        call = op.kind == OpKind::kernel   ? names.launch_kernel
               : op.kind == OpKind::memcpy ? names.memcpy_async
                                           : names.memset_async;
    }
    const Priority priority = op.kind == OpKind::kernel ? Priority::compute : Priority::copy;
    const RuntimeCall launching(log_, call, launch.work.correlation);
    launch.event = shared_.scheduler.enqueue(
        index(op.stream), priority, take_waits(op.stream),
        [&launch, shared = &shared_](int worker) { run_launch(launch, *shared, worker); });
    use(op, launch.event);
}

RankRunner::Communicator& RankRunner::communicator(Group group) {
    Communicator& own = communicators_[static_cast<std::size_t>(group)];
    return own.id == 0 ? communicators_[static_cast<std::size_t>(Group::world)] : own;
}

void RankRunner::enqueue_collective(const Op& op) {
    Communicator& communicator = this->communicator(op.group);
    const std::int64_t sequence = communicator.sequence++;
    CollectiveCall call;
    call.operation = op.collective;
    call.dtype = op.dtype;
    call.output = address(op.args[0]);
    call.input = address(op.args[1]);
    call.full_elements = op.bytes / size_of(op.dtype);
    call.divisor = op.divisor;
    const auto part = static_cast<std::size_t>(communicator.place);

    Waits waits = take_waits(op.stream);
    if (communicator.last.stream != index(op.stream)) waits.add(communicator.last);
    shared_.delays.maybe_sleep();
    if (!log_) {
        auto meeting = communicator.group->join(communicator.place, sequence, call);
        communicator.last =
            shared_.scheduler.enqueue_arrival(index(op.stream), waits, std::move(meeting), part);
        return use(op, communicator.last);
    }

    const Instruments& names = *shared_.instruments;
    const auto operation = static_cast<std::size_t>(op.collective);
    const std::int64_t correlation = next_correlation();
    profiler::CollectiveWork row;
    row.rank = rank_;
    row.correlation = correlation;
    row.operation = op.collective;
    row.bytes = op.bytes;
    row.padding = op.padding;
    row.group = communicator.id;
    row.group_size = communicator.group->members();
    row.sequence = sequence;
    row.unit = op.unit;
    row.phase = op.phase;
    profiler::DeviceWork kernel;
    kernel.name = names.collective_kernel[operation];
    kernel.device = rank_;
    kernel.stream = static_cast<int>(op.stream);
    kernel.correlation = correlation;

    const NcclPayload payload =
        nccl_payload(op.collective, communicator.id, row.group_size, op.bytes, op.divisor);
    if (payload.schema != 0) log_->payload(payload.schema, &payload.value, payload.size);
    log_->push(names.collective_call[operation], -1, names.nccl_domain);
    auto meeting = communicator.group->join(communicator.place, sequence, call);
    // The kernel's time is from this rank's arrival to its own data in place; an all_reduce's is in place
    // when all parts are done, because each part writes to every rank.
    Shared& shared = shared_;
    const bool ends_together = op.collective == Operation::all_reduce || op.collective == Operation::barrier;
    meeting->on_part_complete(
        part, [&shared, kernel, row, ends_together](std::uint64_t arrived, std::uint64_t own_end,
                                                    std::uint64_t last_end, int worker) {
            profiler::ThreadLog& log = *shared.worker_logs[static_cast<std::size_t>(worker)];
            log.kernel(arrived, ends_together ? last_end : own_end, kernel);
            log.collective(row);
        });
    {
        const RuntimeCall launch(log_, names.launch_collective, correlation);
        communicator.last =
            shared_.scheduler.enqueue_arrival(index(op.stream), waits, std::move(meeting), part);
    }
    log_->pop();
    use(op, communicator.last);
}

void RankRunner::use(const Op& op, StreamEvent event) {
    for (const Arg& arg : op.args) {
        if (arg.buffer < 0) continue;
        allocator_.used(blocks_[static_cast<std::size_t>(arg.buffer)], op.stream, event.sequence);
    }
    last_[static_cast<std::size_t>(op.stream)] = event;
}

// The event that happens when all that the stream holds now, its waits included, is done.
StreamEvent RankRunner::record(Stream stream) {
    const auto s = static_cast<std::size_t>(stream);
    if (!waits_[s].empty()) {
        last_[s] =
            shared_.scheduler.enqueue(index(stream), Priority::communication, take_waits(stream), [](int) {});
    }
    return last_[s];
}

Waits RankRunner::take_waits(Stream stream) {
    return std::exchange(waits_[static_cast<std::size_t>(stream)], {});
}

}  // namespace shardscope::trainer
