// The walk of a rank's host thread through a Plan: which block of memory a buffer has, what each event slot
// holds, what the next item of each stream waits for, and the queue of each communicator. There is one walk;
// its back ends give what differs: RankRunner runs the operations on a device, sim::HostWalk lets them take
// virtual time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "trainer/device/stream_event.h"
#include "trainer/executor/allocator.h"
#include "trainer/executor/out_of_memory.h"
#include "trainer/executor/stream_order.h"
#include "trainer/plan/account.h"
#include "trainer/plan/plan.h"

namespace shardscope::trainer::executor {

// Backend is the class that derives from this one. It has
//     open_range(op), close_range()            of push_range and pop_range
//     host_call(op)
//     host_wait(op, event)                     calls settle() and report_memory() when the event has happened
//     host_work(op)                            a kernel, memcpy or memset on Stream::host
//     launch(op)                               calls enqueue(op), now or later
//     start(op, waits) -> StreamEvent          puts a kernel, memcpy or memset on its stream
//     start(op, waits, communicator, sequence) -> StreamEvent   the same of a collective
//     communicator(op) -> number               of the rank's queue for a collective
//     mark(stream, waits) -> StreamEvent, hold(event)
//     runtime_call(op)                         the host's call, from here to the end of what is returned
//     now(), allocated(op, block, since), freeing(op, block), memory_changed(active, reserved)
//     explain(op, by_limit, shortage)          fills in what the message says
template <class Backend>
class PlanWalk {
  public:
    const plan::MemoryPeak& peak() const { return counter_.peak(); }
    std::int64_t live_bytes() const { return counter_.live_bytes(); }
    const Allocator& allocator() const { return allocator_; }

  protected:
    PlanWalk(device::MemoryDevice& device, int rank, std::array<device::StreamIndex, plan::kStreams> streams,
             const AllocatorOptions& options)
        : allocator_(device, rank, streams, options) {}

    void begin_plan(const plan::Plan& plan) {
        plan_ = &plan;
        blocks_.resize(std::max(blocks_.size(), plan.buffers.size()), nullptr);
        order_.begin(plan);
    }
    void end_plan() { order_.end(*plan_); }

    void carry_out(const plan::Op& op) {
        switch (op.kind) {
            case plan::OpKind::allocate:
                return allocate(op);
            case plan::OpKind::free:
                return free(op);
            case plan::OpKind::push_range:
                return backend().open_range(op);
            case plan::OpKind::pop_range:
                return backend().close_range();
            case plan::OpKind::host_wait:
                return backend().host_wait(op, order_.event(op.event()));
            case plan::OpKind::host_call:
                return backend().host_call(op);
            case plan::OpKind::record_event: {
                [[maybe_unused]] const auto call = backend().runtime_call(op);
                backend().hold(order_.record(
                    op, [&](const device::Waits& waits) { return backend().mark(op.stream, waits); }));
                return;
            }
            case plan::OpKind::wait_event: {
                [[maybe_unused]] const auto call = backend().runtime_call(op);
                return order_.wait(op);
            }
            case plan::OpKind::kernel:
            case plan::OpKind::memcpy:
            case plan::OpKind::memset:
            case plan::OpKind::collective:
                return is_device_work(op) ? backend().launch(op) : backend().host_work(op);
        }
    }

    // Gives the device the work of an operation.
    void enqueue(const plan::Op& op) {
        device::StreamEvent event;
        if (op.kind == plan::OpKind::collective) {
            const auto communicator = backend().communicator(op);
            // In a simulation both ends of a ring's message may be this rank's.
            const bool receives = op.collective().operation == plan::Operation::recv;
            auto& queue =
                order_.queue(2 * static_cast<std::int64_t>(communicator) + (receives ? 1 : 0), op.stream);
            event = backend().start(op, order_.take_waits(op.stream), communicator, queue.sequence++);
            queue.last = event;
        } else {
            event = backend().start(op, order_.take_waits(op.stream));
        }
        for (const plan::Arg& arg : op.args) {
            if (arg.buffer >= 0) allocator_.used(&block_of(arg.buffer), op.stream, event.sequence);
        }
        order_.started(op.stream, event);
    }

    // Streams may have passed items since, so some freed blocks are no longer active.
    void settle() { allocator_.settle(); }
    // Calls memory_changed with the byte counts of device memory; -1 for one that equals the last reported.
    void report_memory() {
        const std::int64_t active = allocator_.active_bytes(plan::MemorySpace::device);
        const std::int64_t reserved = allocator_.reserved_bytes(plan::MemorySpace::device);
        const bool new_active = std::exchange(last_active_, active) != active;
        const bool new_reserved = std::exchange(last_reserved_, reserved) != reserved;
        if (!new_active && !new_reserved) return;
        backend().memory_changed(new_active ? active : -1, new_reserved ? reserved : -1);
    }

    const plan::Plan& plan() const { return *plan_; }
    const plan::Buffer& buffer_of(const plan::Op& op) const {
        return plan_->buffers[static_cast<std::size_t>(op.args[0].buffer)];
    }
    // Null while the buffer is not allocated, or is not one of a Plan that was walked.
    const MemoryBlock* find_block(plan::BufferId buffer) const {
        const auto id = static_cast<std::size_t>(buffer);
        return buffer < 0 || id >= blocks_.size() ? nullptr : blocks_[id];
    }
    MemoryBlock& block_of(plan::BufferId buffer) const {
        MemoryBlock* block = blocks_[static_cast<std::size_t>(buffer)];
        if (!block) throw std::logic_error("the Plan uses a buffer that is not allocated");
        return *block;
    }
    std::int64_t take_peak() { return counter_.take_peak(); }
    const StreamOrder<device::StreamEvent, device::Waits>& order() const { return order_; }

  private:
    Backend& backend() { return static_cast<Backend&>(*this); }

    void allocate(const plan::Op& op) {
        const plan::Buffer& buffer = buffer_of(op);
        MemoryBlock*& block = blocks_[static_cast<std::size_t>(op.args[0].buffer)];
        if (block) throw std::logic_error("the Plan allocates " + buffer.name + " twice");
        const auto since = backend().now();
        try {
            block = allocator_.allocate(buffer.bytes, buffer.space, op.stream);
        } catch (const PoolExhausted& reason) {
            MemoryShortage shortage{.counter = counter_,
                                    .reserved = allocator_.reserved_bytes(plan::MemorySpace::device)};
            backend().explain(op, reason.by_limit(), shortage);
            throw_out_of_memory(*plan_, op, shortage);
        }
        counter_.allocated(*plan_, op);
        backend().allocated(op, *block, since);
        report_memory();
    }

    void free(const plan::Op& op) {
        MemoryBlock*& block = blocks_[static_cast<std::size_t>(op.args[0].buffer)];
        if (!block) {
            throw std::logic_error("the Plan frees " + buffer_of(op).name + ", which is not allocated");
        }
        backend().freeing(op, *block);
        counter_.freed(*plan_, op);
        allocator_.free(std::exchange(block, nullptr));
        report_memory();
    }

    Allocator allocator_;
    plan::AllocationCounter counter_;
    StreamOrder<device::StreamEvent, device::Waits> order_;
    const plan::Plan* plan_ = nullptr;
    std::vector<MemoryBlock*> blocks_;                    // by buffer; null while not allocated
    std::int64_t last_active_ = -1, last_reserved_ = -1;  // as last reported
};

}  // namespace shardscope::trainer::executor
