#include "trainer/executor/rank_runner.h"

#include <cstring>
#include <stdexcept>
#include <utility>

#include "trainer/executor/cpu_kernels.h"

namespace shardscope::trainer {

namespace {

using profiler::ticks;

// A runtime call on the host thread: from construction to end of scope.
class RuntimeCall {
  public:
    RuntimeCall(profiler::ThreadLog* log, profiler::NameId name, std::int64_t correlation)
        : log_(log), name_(name), correlation_(correlation), start_(log ? ticks() : 0) {}
    ~RuntimeCall() {
        if (log_) log_->runtime(name_, start_, ticks(), correlation_);
    }
    RuntimeCall(const RuntimeCall&) = delete;
    RuntimeCall& operator=(const RuntimeCall&) = delete;

  private:
    profiler::ThreadLog* log_;
    profiler::NameId name_;
    std::int64_t correlation_;
    std::uint64_t start_;
};

int memory_kind(MemorySpace space) {
    return space == MemorySpace::device   ? traces::kMemKindDevice
           : space == MemorySpace::pinned ? traces::kMemKindPinned
                                          : traces::kMemKindPageable;
}

}  // namespace

RankRunner::RankRunner(int rank, Shared& shared, std::array<StreamIndex, kStreams> streams)
    : rank_(rank), shared_(shared), streams_(streams), allocator_(shared.scheduler, streams) {}

void RankRunner::run(const Plan& plan, std::int64_t step) {
    step_ = step;
    if (shared_.instruments) {
        names_ = &shared_.instruments->of(plan);
        log_ = shared_.instruments->recorder().attach_thread("", rank_);
    }
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
                if (log_) log_->push(names_->names[static_cast<std::size_t>(op.name)], op.range_module);
                break;
            case OpKind::pop_range:
                if (log_) log_->pop();
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
                waits_[static_cast<std::size_t>(op.stream)].push_back(
                    events_[static_cast<std::size_t>(op.event)]);
                break;
            }
            case OpKind::kernel:
            case OpKind::memcpy:
            case OpKind::memset:
                enqueue(plan, op);
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
    for (const StreamEvent event : last_) shared_.scheduler.wait(event);
}

std::span<float> RankRunner::contents(const Plan& plan, BufferId buffer) {
    const auto id = static_cast<std::size_t>(buffer);
    if (id >= blocks_.size() || !blocks_[id]) return {};
    return {reinterpret_cast<float*>(blocks_[id]->data),
            static_cast<std::size_t>(plan.buffers[id].bytes) / sizeof(float)};
}

// --- host operations
// -----------------------------------------------------------------------------------------

void RankRunner::allocate(const Plan& plan, const Op& op) {
    const auto id = static_cast<std::size_t>(op.args[0].buffer);
    const Buffer& buffer = plan.buffers[id];
    if (blocks_[id]) throw std::logic_error("the Plan allocates " + buffer.name + " twice");
    const std::uint64_t start = log_ ? ticks() : 0;
    Block* block = allocator_.allocate(buffer.bytes, buffer.space, op.stream);
    blocks_[id] = block;
    counter_.allocated(plan, op);
    if (!log_) return;
    Instruments& names = *shared_.instruments;
    if (allocator_.grew()) {
        log_->runtime(buffer.space == MemorySpace::device ? names.malloc_device : names.malloc_host, start,
                      ticks(), 0);
        if (buffer.space == MemorySpace::device) {
            log_->counter(rank_, names.reserved_bytes, static_cast<double>(reserved_bytes()));
        }
    }
    record_memory(plan, op, *block, true);
}

void RankRunner::free(const Plan& plan, const Op& op) {
    Block*& block = blocks_[static_cast<std::size_t>(op.args[0].buffer)];
    if (!block) {
        throw std::logic_error("the Plan frees " +
                               plan.buffers[static_cast<std::size_t>(op.args[0].buffer)].name +
                               ", which is not allocated");
    }
    counter_.freed(plan, op);
    if (log_) record_memory(plan, op, *block, false);
    allocator_.free(std::exchange(block, nullptr));
}

void RankRunner::record_memory(const Plan& plan, const Op& op, const Block& block, bool allocation) {
    const auto id = static_cast<std::size_t>(op.args[0].buffer);
    const Buffer& buffer = plan.buffers[id];
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
    work.name = names_->buffers[id];
    log_->memory(work);
}

void RankRunner::host_call(const Plan& plan, const Op& op) {
    switch (op.call) {
        case HostCall::none:
            break;
        case HostCall::next_batch:
            shared_.dataset.fill(first_sample_of(step_, shared_.group.ranks(), rank_, shared_.batch),
                                 shared_.batch, address(op.args[0]), address(op.args[1]));
            break;
        case HostCall::read_loss: {
            double loss = 0;
            std::memcpy(&loss, address(op.args[0]), sizeof loss);
            const bool last_step = plan.kind == PlanKind::finish;
            shared_.on_loss(rank_, last_step ? step_ : step_ - 1, loss);
            break;
        }
    }
}

void RankRunner::host_wait(const Op& op) {
    const StreamEvent event = events_[static_cast<std::size_t>(op.event)];
    const std::uint64_t start = log_ ? ticks() : 0;
    shared_.scheduler.wait(event);
    if (!log_) return;
    const std::uint64_t end = ticks();
    const std::int64_t correlation = next_correlation();
    log_->runtime(shared_.instruments->event_synchronize, start, end, correlation);
    log_->synchronization(start, end, rank_, -1, traces::kSyncEvent, op.event, correlation);
}

// --- work on streams
// -----------------------------------------------------------------------------------------

std::byte* RankRunner::address(const Arg& arg) const {
    if (arg.buffer < 0) return nullptr;
    const Block* block = blocks_[static_cast<std::size_t>(arg.buffer)];
    if (!block) throw std::logic_error("the Plan uses a buffer that is not allocated");
    return block->data + arg.offset;
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

std::vector<StreamEvent> RankRunner::take_waits(Stream stream) {
    return std::exchange(waits_[static_cast<std::size_t>(stream)], {});
}

void RankRunner::enqueue(const Plan& plan, const Op& op) {
    std::vector<std::byte*> data;
    data.reserve(op.args.size());
    for (const Arg& arg : op.args) data.push_back(address(arg));
    const KernelContext context{rank_, shared_.seed, step_};
    profiler::DeviceWork work;
    NameId call = NameId::none;
    if (log_) {
        const Instruments& names = *shared_.instruments;
        work.device = rank_;
        work.stream = static_cast<int>(op.stream);
        work.correlation = next_correlation();
        work.bytes = op.bytes;
        if (op.kind == OpKind::kernel) {
            call = names.launch_kernel;
            work.name = names_->names[static_cast<std::size_t>(op.name)];
        } else {
            call = op.kind == OpKind::memcpy ? names.memcpy_async : names.memset_async;
            work.copy_kind = op.copy_kind;
            const auto kind_of = [&](const Arg& arg) {
                return memory_kind(plan.buffers[static_cast<std::size_t>(arg.buffer)].space);
            };
            work.dst_kind = kind_of(op.args[0]);
            if (op.kind == OpKind::memcpy) work.src_kind = kind_of(op.args[1]);
        }
    }
    const bool recorded = log_ != nullptr;
    Shared& shared = shared_;
    const Op* what = &op;
    Work run = [what, data = std::move(data), context, work, recorded, &shared](int worker) {
        const std::uint64_t start = recorded ? ticks() : 0;
        if (what->kind == OpKind::kernel) {
            run_kernel(*what, data, context);
        } else if (what->kind == OpKind::memcpy) {
            std::memcpy(data[0], data[1], static_cast<std::size_t>(what->args[0].bytes));
        } else {
            std::memset(data[0], 0, static_cast<std::size_t>(what->args[0].bytes));
        }
        if (!recorded) return;
        const std::uint64_t end = ticks();
        profiler::ThreadLog& log = *shared.worker_logs[static_cast<std::size_t>(worker)];
        if (what->kind == OpKind::kernel) {
            log.kernel(start, end, work);
        } else if (what->kind == OpKind::memcpy) {
            log.memcpy(start, end, work);
        } else {
            log.memset(start, end, work);
        }
    };
    const Priority priority = op.kind == OpKind::kernel ? Priority::compute : Priority::copy;
    const RuntimeCall launch(log_, call, work.correlation);
    use(op, shared_.scheduler.enqueue(index(op.stream), priority, take_waits(op.stream), std::move(run)));
}

void RankRunner::enqueue_collective(const Op& op) {
    constexpr std::int64_t kFloat = sizeof(float);
    const std::int64_t sequence = sequence_++;
    CollectiveCall call;
    call.operation = op.collective;
    call.output = reinterpret_cast<float*>(address(op.args[0]));
    call.input = reinterpret_cast<const float*>(address(op.args[1]));
    call.full_elements = op.bytes / kFloat;
    call.average = op.average;
    const auto ranks = static_cast<std::size_t>(shared_.group.ranks());
    const auto part = static_cast<std::size_t>(rank_);

    std::vector<StreamEvent> waits = take_waits(op.stream);
    waits.push_back(last_collective_);
    if (!log_) {
        auto meeting = shared_.group.join(rank_, sequence, call);
        last_collective_ =
            shared_.scheduler.enqueue_arrival(index(op.stream), std::move(waits), std::move(meeting), part);
        use(op, last_collective_);
        return;
    }

    Instruments& names = *shared_.instruments;
    const auto operation = static_cast<std::size_t>(op.collective);
    const std::int64_t correlation = next_correlation();
    profiler::CollectiveWork row;
    row.rank = rank_;
    row.correlation = correlation;
    row.operation = op.collective;
    row.bytes = op.bytes;
    row.padding = op.padding;
    row.group = 0;
    row.group_size = static_cast<int>(ranks);
    row.sequence = sequence;
    row.unit = op.unit;
    row.phase = op.phase;
    profiler::DeviceWork kernel;
    kernel.name = names.collective_kernel[operation];
    kernel.device = rank_;
    kernel.stream = static_cast<int>(op.stream);
    kernel.correlation = correlation;

    log_->push(names.collective_call[operation], -1, names.nccl_domain);
    auto meeting = shared_.group.join(rank_, sequence, call);
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
        last_collective_ =
            shared_.scheduler.enqueue_arrival(index(op.stream), std::move(waits), std::move(meeting), part);
    }
    log_->pop();
    use(op, last_collective_);
}

}  // namespace shardscope::trainer
