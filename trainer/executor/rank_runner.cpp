// The walk through a Plan and the host's immediate work; rank_streams.cpp has what it enqueues.
#include "trainer/executor/rank_runner.h"

#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "trainer/executor/cpu_kernels.h"
#include "trainer/executor/out_of_memory.h"
#include "trainer/executor/run.h"
#include "trainer/executor/runtime_call.h"
#include "trainer/job/job.h"
#include "trainer/job/learning_rate.h"

namespace shardscope::trainer {

using profiler::ticks;

namespace {

std::array<StreamIndex, kStreams> add_streams(Device& device, int rank) {
    std::array<StreamIndex, kStreams> streams{};
    for (std::size_t s = 0; s < streams.size(); ++s) {
        streams[s] = device.add_stream(rank, static_cast<Stream>(s));
    }
    return streams;
}

AllocatorOptions allocator_options(Shared& shared, int rank) {
    AllocatorOptions options;
    options.device_limit = shared.job.run.memory_limit;
    if (shared.poison) options.poison_stream = shared.device.add_stream(rank, Stream::compute);
    return options;
}

const Buffer& buffer_of(const Plan& plan, const Op& op) {
    return plan.buffers[static_cast<std::size_t>(op.args[0].buffer)];
}

}  // namespace

RankRunner::RankRunner(int rank, Shared& shared, HostCalls calls)
    : rank_(rank),
      shared_(shared),
      calls_(std::move(calls)),
      streams_(add_streams(shared.device, rank)),
      allocator_(shared.device, rank, streams_, allocator_options(shared, rank)) {
    for (const Group group : {Group::world, Group::shard, Group::replicate}) {
        Communicator& communicator = communicators_[static_cast<std::size_t>(group)];
        communicator.id = shared.mesh.id(group, rank);
        communicator.place = shared.mesh.place(group, rank);
        communicator.members = shared.mesh.size(group);
    }
}

void RankRunner::run(const Plan& plan, std::int64_t step) {
    const Job& job = shared_.job;
    step_ = step;
    lr_ = learning_rate(job.optimizer, batch_factor(job), job.run.steps, step);
    if (shared_.instruments) {
        names_ = &shared_.instruments->of(plan);
        if (!log_) log_ = shared_.instruments->recorder().attach_thread("", rank_);
    }
    if (shared_.nvtx) nvtx_names_ = &shared_.nvtx->of(plan);
    blocks_.resize(plan.buffers.size(), nullptr);
    events_.resize(static_cast<std::size_t>(plan.events));
    for (const Op& op : plan.ops) {
        switch (op.kind) {
            case OpKind::allocate:
                allocate(plan, op);
                break;
            case OpKind::free:
                free(plan, op);
                break;
            case OpKind::push_range:
                push_range(op);
                break;
            case OpKind::pop_range:
                pop_range();
                break;
            case OpKind::host_wait:
                host_wait(op);
                break;
            case OpKind::host_call:
                host_call(plan, op);
                break;
            case OpKind::record_event: {
                const RuntimeCall call(log_, log_ ? shared_.instruments->event_record : NameId::none, 0);
                events_[static_cast<std::size_t>(op.event)] = record(op.stream);
                break;
            }
            case OpKind::wait_event: {
                const RuntimeCall call(log_, log_ ? shared_.instruments->stream_wait_event : NameId::none, 0);
                const StreamEvent event = events_[static_cast<std::size_t>(op.event)];
                if (event.stream != index(op.stream)) waits_[static_cast<std::size_t>(op.stream)].add(event);
                break;
            }
            case OpKind::kernel:
            case OpKind::memcpy:
            case OpKind::memset:
                if (op.stream == Stream::host) {
                    do_at_once(plan, op);
                } else {
                    enqueue(plan, op);
                }
                break;
            case OpKind::collective:
                enqueue_collective(op);
                break;
        }
    }
    for (const auto& [from, to] : plan.carry) {
        events_[static_cast<std::size_t>(to)] = events_[static_cast<std::size_t>(from)];
    }
}

void RankRunner::drain() {
    for (const StreamEvent event : last_) shared_.device.wait(event);
    allocator_.settle();
    if (log_) record_counters();
}

HostView RankRunner::contents(const Arg& arg) {
    const auto id = static_cast<std::size_t>(arg.buffer);
    if (arg.buffer < 0 || id >= blocks_.size() || !blocks_[id]) return {};
    std::byte* data = address(arg);
    const MemoryBlock& block = *blocks_[id];
    if (data < block.data || arg.bytes < 0 || data + arg.bytes > block.data + block.capacity) {
        throw std::logic_error("a view reaches beyond its buffer");
    }
    const auto size = static_cast<std::size_t>(arg.bytes);
    if (shared_.device.host_reads(block.space)) return HostView({data, size});
    std::vector<std::byte> copy(size);
    shared_.device.copy(rank_, copy.data(), data, arg.bytes);
    return {std::move(copy), [this, data](std::span<const std::byte> bytes) {
                shared_.device.copy(rank_, data, bytes.data(), std::ssize(bytes));
            }};
}

std::byte* RankRunner::address(const Arg& arg) const {
    if (arg.buffer < 0) return nullptr;
    const MemoryBlock* block = blocks_[static_cast<std::size_t>(arg.buffer)];
    if (!block) throw std::logic_error("the Plan uses a buffer that is not allocated");
    return block->data + arg.offset + arg.stride * shared_.mesh.shard_index(rank_);
}

// --- memory ----------------------------------------------------------------------------------------------

void RankRunner::allocate(const Plan& plan, const Op& op) {
    const auto id = static_cast<std::size_t>(op.args[0].buffer);
    const Buffer& buffer = plan.buffers[id];
    if (blocks_[id]) throw std::logic_error("the Plan allocates " + buffer.name + " twice");
    const std::uint64_t start = log_ ? ticks() : 0;
    MemoryBlock* block = nullptr;
    try {
        block = allocator_.allocate(buffer.bytes, buffer.space, op.stream);
    } catch (const PoolExhausted& reason) {
        out_of_memory(plan, op, reason);
    }
    blocks_[id] = block;
    counter_.allocated(plan, op);
    if (op.args[0].buffer == shared_.product_workspaces) {
        shared_.device.use_product_workspaces(rank_, block->data, buffer.bytes / 2);
    }
    if (!log_) return;
    if (allocator_.grew()) {
        const Instruments& names = *shared_.instruments;
        log_->runtime(buffer.space == MemorySpace::device ? names.malloc_device : names.malloc_host, start,
                      ticks(), 0);
    }
    record_memory(plan, op, *block, true);
    record_counters();
}

void RankRunner::free(const Plan& plan, const Op& op) {
    MemoryBlock*& block = blocks_[static_cast<std::size_t>(op.args[0].buffer)];
    if (!block) {
        throw std::logic_error("the Plan frees " + buffer_of(plan, op).name + ", which is not allocated");
    }
    shared_.delays.maybe_sleep();
    counter_.freed(plan, op);
    if (log_) record_memory(plan, op, *block, false);
    allocator_.free(std::exchange(block, nullptr));
    if (log_) record_counters();
}

void RankRunner::record_memory(const Plan& plan, const Op& op, const MemoryBlock& block, bool allocation) {
    const Buffer& buffer = buffer_of(plan, op);
    profiler::MemoryWork work;
    work.rank = rank_;
    work.address = reinterpret_cast<std::uintptr_t>(block.data);
    work.bytes = allocation ? buffer.bytes : -buffer.bytes;
    work.category = buffer.category;
    work.space = buffer.space;
    work.phase = op.phase;
    work.unit = buffer.unit;
    work.module = buffer.module;
    work.stream = static_cast<int>(op.stream);
    work.name = names_->buffers[static_cast<std::size_t>(op.args[0].buffer)];
    log_->memory(work);
}

// Records the counters of device memory that changed.
void RankRunner::record_counters() {
    const Instruments& names = *shared_.instruments;
    const std::int64_t active = allocator_.active_bytes(MemorySpace::device);
    const std::int64_t reserved = allocator_.reserved_bytes(MemorySpace::device);
    if (std::exchange(last_active_, active) != active) {
        log_->counter(rank_, names.active_bytes, static_cast<double>(active));
    }
    if (std::exchange(last_reserved_, reserved) != reserved) {
        log_->counter(rank_, names.reserved_bytes, static_cast<double>(reserved));
        const std::int64_t used = shared_.device.bytes_in_use(rank_);
        if (used >= 0) log_->counter(rank_, names.device_bytes, static_cast<double>(used));
    }
}

void RankRunner::out_of_memory(const Plan& plan, const Op& op, const PoolExhausted& reason) const {
    MemoryShortage shortage{.step = step_, .rank = rank_, .counter = counter_};
    if (op.unit >= 0) shortage.unit = shared_.unit_names[static_cast<std::size_t>(op.unit)];
    shortage.place = reason.by_limit()
                         ? fmt::format("into the {} bytes of run.memory_limit", shared_.job.run.memory_limit)
                         : shared_.device.out_of_memory_place(rank_, buffer_of(plan, op).space);
    if (reason.by_limit()) shortage.remedy = "raise run.memory_limit, or ";
    shortage.reserved = allocator_.reserved_bytes(MemorySpace::device);
    const std::int64_t room = reason.by_limit() ? shared_.job.run.memory_limit
                                                : shared_.device.memory_for(rank_, shortage.reserved);
    throw OutOfMemory(out_of_memory_sentence(plan, op, shortage), room);
}

// --- calls and waits -------------------------------------------------------------------------------------

void RankRunner::host_call(const Plan& plan, const Op& op) {
    const auto data = [&](std::size_t i) { return i < op.args.size() ? address(op.args[i]) : nullptr; };
    switch (op.call) {
        case HostCall::none:
            break;
        case HostCall::next_batch:
            calls_.next_batch(data(0), data(1));
            break;
        case HostCall::read_loss: {
            std::vector<double> losses(static_cast<std::size_t>(op.args[0].bytes) / sizeof(double));
            std::memcpy(losses.data(), data(0), losses.size() * sizeof(double));
            std::int32_t module = -1;
            if (data(1)) module = std::atomic_ref(*reinterpret_cast<std::int32_t*>(data(1))).load();
            calls_.read_loss(plan.kind == PlanKind::finish ? step_ : step_ - 1, losses, module);
            break;
        }
        case HostCall::read_validation_loss: {
            double loss = 0;
            std::memcpy(&loss, data(0), sizeof loss);
            calls_.read_validation_loss(loss);
            break;
        }
        case HostCall::read_logits:
            calls_.read_logits({reinterpret_cast<const float*>(data(0)),
                                static_cast<std::size_t>(op.args[0].bytes) / sizeof(float)});
            break;
    }
}

void RankRunner::host_wait(const Op& op) {
    const StreamEvent event = events_[static_cast<std::size_t>(op.event)];
    const std::uint64_t start = log_ ? ticks() : 0;
    shared_.delays.maybe_sleep();
    shared_.device.wait(event);
    allocator_.settle();
    if (!log_) return;
    const std::uint64_t end = ticks();
    const std::int64_t correlation = next_correlation();
    log_->runtime(shared_.instruments->event_synchronize, start, end, correlation);
    log_->synchronization(start, end, rank_, -1, traces::kSyncEvent, op.event, correlation);
    record_counters();
}

// Does work on Stream::host; the Plan has already waited for its inputs.
void RankRunner::do_at_once(const Plan& plan, const Op& op) {
    shared_.delays.maybe_sleep();
    prepare(plan, op, launch_);
    push_host_work(op);
    execute(launch_);
    pop_range();
}

}  // namespace shardscope::trainer
