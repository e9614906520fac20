#include "trainer/sim/host_walk.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "trainer/executor/out_of_memory.h"
#include "trainer/executor/run.h"
#include "trainer/executor/trace_names.h"

namespace shardscope::trainer::sim {

namespace {

// An allocation that first needs a stream to pass an item.
struct WouldWait {
    StreamEvent event;
};

std::array<StreamIndex, kStreams> streams_of(int rank_class) {
    std::array<StreamIndex, kStreams> streams{};
    for (int s = 0; s < kStreams; ++s)
        streams[static_cast<std::size_t>(s)] = VirtualDevice::stream(rank_class, static_cast<Stream>(s));
    return streams;
}

std::string_view launch_name(const Op& op) {
    switch (op.kind) {
        case OpKind::kernel:
            return trace_names::kLaunchKernel;
        case OpKind::memcpy:
            return trace_names::kMemcpyAsync;
        case OpKind::memset:
            return trace_names::kMemsetAsync;
        default:
            return trace_names::kLaunchCollective;
    }
}

}  // namespace

void HostWalk::Memory::wait(StreamEvent event) {
    if (!happened(event)) throw WouldWait{event};
}

std::byte* HostWalk::Memory::take(int /*rank*/, MemorySpace /*space*/, std::int64_t bytes,
                                  bool /*poisoned*/) {
    // No two blocks of a run have the same address; the memory there is never read.
    return reinterpret_cast<std::byte*>(
        std::exchange(next_address_, next_address_ + static_cast<std::uint64_t>(bytes)));
}

HostWalk::HostWalk(Walk& walk, int rank_class)
    : walk_(walk),
      class_(rank_class),
      memory_(walk.device),
      allocator_(memory_, rank_class, streams_of(rank_class), {.device_limit = walk.memory_limit}),
      queues_(walk.ranks.communicators.size()) {
    begin(Stage::setup);
}

Time HostWalk::cost(double seconds) const {
    return std::max<Time>(1, std::llround(seconds * 1e9));  // what follows is always later
}

// --- stages ----------------------------------------------------------------------------------------------

// The first stage from `stage` on that has something to do.
void HostWalk::begin(Stage stage) {
    stage_ = stage;
    next_op_ = 0;
    if (stage_ == Stage::setup) {
        plan_ = walk_.script.setup;
        if (!plan_) return begin(Stage::step);
    }
    if (stage_ == Stage::step) {
        if (step_ >= walk_.steps) return begin(Stage::finish);
        plan_ = &walk_.script.step(step_);
        steps_begun_ = step_ + 1;
        step_start_ = clock_;
        open_range(trace_names::step_range(step_), -1);
    }
    if (stage_ == Stage::finish) {
        plan_ = walk_.script.finish;
        step_ = std::max<std::int64_t>(0, step_ - 1);
        if (!plan_) return drain();
    }
    if (stage_ == Stage::ended) {
        waiting_ = true;
        return;
    }
    blocks_.resize(std::max(blocks_.size(), plan_->buffers.size()), nullptr);
    events_.resize(std::max(events_.size(), static_cast<std::size_t>(plan_->events)));
}

void HostWalk::end_plan() {
    for (const auto& [from, to] : plan_->carry)
        events_[static_cast<std::size_t>(to)] = events_[static_cast<std::size_t>(from)];
    if (stage_ == Stage::step) return end_stage();
    drain();
}

// Waits for all streams, which ends the stage.
void HostWalk::drain() {
    drains_ = true;
    Waits all;
    for (const StreamEvent event : last_) all.add(event);
    wait_for(all);
}

void HostWalk::end_stage() {
    switch (stage_) {
        case Stage::setup:
            return begin(Stage::step);
        case Stage::step:
            close_range();
            if (walk_.observer) walk_.observer->step_ended(class_, step_, step_start_, clock_);
            steps_.push_back({step_start_, clock_, counter_.take_peak()});
            ++step_;
            return begin(Stage::step);
        default:
            return begin(Stage::ended);
    }
}

// --- the walk --------------------------------------------------------------------------------------------

void HostWalk::go_on() {
    if (works_) return end_host_work();
    if (next_op_ == plan_->ops.size()) return end_plan();
    const Op& op = this->op();
    if (launching_) return launch(op);
    carry_out(op);
}

void HostWalk::look() {
    if (!waiting_ || ended()) return;
    if (works_) {
        if (walk_.device.host_works(class_)) return;
        waiting_ = false;
        clock_ = walk_.device.now();
        return;
    }
    for (const StreamEvent event : wanted_.events()) {
        if (!walk_.device.happened(event)) return;
    }
    waiting_ = false;
    if (walk_.device.now() > since_) {
        const double wake = walk_.cluster.host.wake;
        clock_ = walk_.device.now() + (wake > 0 ? cost(wake) : 0);
    }
    end_wait();
}

void HostWalk::carry_out(const Op& op) {
    const HostModel& host = walk_.cluster.host;
    switch (op.kind) {
        case OpKind::allocate:
            return allocate(op);
        case OpKind::free:
            return free(op);
        case OpKind::push_range:
            open_range(name(op), op.range_module);
            clock_ += cost(host.operation);
            ++next_op_;
            return;
        case OpKind::pop_range:
            close_range();
            ++next_op_;
            return;
        case OpKind::host_wait: {
            Waits waits;
            waits.add(events_[static_cast<std::size_t>(op.event)]);
            return wait_for(waits);
        }
        case OpKind::record_event:
            return record_event(op);
        case OpKind::wait_event:
            return wait_event(op);
        case OpKind::host_call:
            if (op.call == HostCall::next_batch && !walk_.script.batches_ahead) return host_work(op);
            clock_ += cost(op.call == HostCall::none ? walk_.costs.on_host(op) : host.operation);
            ++next_op_;
            return;
        case OpKind::kernel:
        case OpKind::memcpy:
        case OpKind::memset:
            if (op.stream == Stream::host) return host_work(op);
            break;
        case OpKind::collective:
            if (walk_.observer) walk_.observer->collective_opened(class_, clock_, op);
            clock_ += 1;
            break;
    }
    // The device gets the work when the launching call ends.
    since_ = clock_;
    clock_ += cost(host.launch);
    launching_ = true;
}

void HostWalk::launch(const Op& op) {
    const auto s = static_cast<std::size_t>(op.stream);
    StreamItem item;
    item.plan = plan_;
    item.op = &op;
    item.step = step_;
    item.correlation = ++correlation_;
    item.waits = std::exchange(waits_[s], {});
    if (op.kind == OpKind::collective) {
        const int c = self().communicators[static_cast<std::size_t>(op.group)];
        Queue& queue = queues_[static_cast<std::size_t>(c)];
        const StreamIndex stream = VirtualDevice::stream(class_, op.stream);
        if (queue.last.stream != stream) item.waits.add(queue.last);
        item.kind = StreamItem::Kind::collective;
        item.communicator = c;
        item.sequence = queue.sequence++;
        const Spread& spread = walk_.ranks.communicators[static_cast<std::size_t>(c)].spread;
        item.duration = cost(collective_seconds(walk_.cluster, spread, op.collective, op.bytes));
    } else {
        item.kind = StreamItem::Kind::work;
        const double slowdown = op.kind == OpKind::kernel ? self().slowdown : 1;
        item.duration = cost(walk_.costs.on_device(*plan_, op) * slowdown);
    }
    const std::int64_t correlation = item.correlation;
    const StreamEvent event = walk_.device.enqueue(VirtualDevice::stream(class_, op.stream), item);
    if (op.kind == OpKind::collective)
        queues_[static_cast<std::size_t>(self().communicators[static_cast<std::size_t>(op.group)])].last =
            event;
    if (walk_.observer) walk_.observer->runtime_call(class_, since_, clock_, launch_name(op), correlation);
    if (op.kind == OpKind::collective) close_range();
    use(op, event);
    launching_ = false;
    ++next_op_;
}

void HostWalk::open_range(std::string_view name, int module) {
    if (walk_.observer) walk_.observer->range_opened(class_, clock_, name, module);
    clock_ += 1;
}

void HostWalk::close_range() {
    if (walk_.observer) walk_.observer->range_closed(class_, clock_);
    clock_ += 1;
}

// --- memory ----------------------------------------------------------------------------------------------

void HostWalk::allocate(const Op& op) {
    const auto id = static_cast<std::size_t>(op.args[0].buffer);
    const Buffer& buffer = plan_->buffers[id];
    if (blocks_[id]) throw std::logic_error("the Plan allocates " + buffer.name + " twice");
    MemoryBlock* block = nullptr;
    try {
        block = allocator_.allocate(buffer.bytes, buffer.space, op.stream);
    } catch (const WouldWait& wait) {
        return wait_for({wait.event});
    } catch (const PoolExhausted& reason) {
        out_of_memory(op, reason.by_limit());
    }
    const Time start = clock_;
    clock_ += cost(walk_.cluster.host.allocate + (allocator_.grew() ? walk_.cluster.host.grow : 0));
    blocks_[id] = block;
    counter_.allocated(*plan_, op);
    if (walk_.observer) {
        if (allocator_.grew()) {
            walk_.observer->runtime_call(
                class_, start, clock_,
                buffer.space == MemorySpace::device ? trace_names::kMallocDevice : trace_names::kMallocHost,
                0);
        }
        walk_.observer->allocated(class_, clock_, *plan_, op, *block);
        tell_memory();
    }
    ++next_op_;
}

void HostWalk::free(const Op& op) {
    MemoryBlock*& block = blocks_[static_cast<std::size_t>(op.args[0].buffer)];
    if (!block) throw std::logic_error("the Plan frees a buffer that is not allocated");
    clock_ += cost(walk_.cluster.host.allocate);
    counter_.freed(*plan_, op);
    if (walk_.observer) walk_.observer->freed(class_, clock_, *plan_, op, *block);
    allocator_.free(std::exchange(block, nullptr));
    tell_memory();
    ++next_op_;
}

// Reports the byte counts where they changed.
void HostWalk::tell_memory() {
    if (!walk_.observer) return;
    const std::int64_t active = allocator_.active_bytes(MemorySpace::device);
    const std::int64_t reserved = allocator_.reserved_bytes(MemorySpace::device);
    if (active == last_active_ && reserved == last_reserved_) return;
    walk_.observer->memory_counts(class_, clock_, active == last_active_ ? -1 : active,
                                  reserved == last_reserved_ ? -1 : reserved);
    last_active_ = active;
    last_reserved_ = reserved;
}

void HostWalk::out_of_memory(const Op& op, bool by_limit) const {
    MemoryShortage shortage{.step = step_, .rank = self().representative, .counter = counter_};
    if (op.unit >= 0) shortage.unit = walk_.script.unit_names[static_cast<std::size_t>(op.unit)];
    shortage.place = by_limit ? walk_.memory_place : "into any memory";
    shortage.remedy = walk_.memory_remedy;
    shortage.reserved = allocator_.reserved_bytes(MemorySpace::device);
    throw OutOfMemory(out_of_memory_sentence(*plan_, op, shortage), walk_.memory_limit);
}

// --- events ----------------------------------------------------------------------------------------------

void HostWalk::record_event(const Op& op) {
    const Time start = clock_;
    clock_ += cost(walk_.cluster.host.event);
    if (walk_.observer) walk_.observer->runtime_call(class_, start, clock_, trace_names::kEventRecord, 0);
    events_[static_cast<std::size_t>(op.event)] = record(op.stream);
    ++next_op_;
}

void HostWalk::wait_event(const Op& op) {
    const Time start = clock_;
    clock_ += cost(walk_.cluster.host.event);
    if (walk_.observer) walk_.observer->runtime_call(class_, start, clock_, trace_names::kStreamWaitEvent, 0);
    const StreamEvent event = events_[static_cast<std::size_t>(op.event)];
    if (event.stream != VirtualDevice::stream(class_, op.stream))
        waits_[static_cast<std::size_t>(op.stream)].add(event);
    ++next_op_;
}

// An event that completes when everything now on the stream, its waits included, is done.
StreamEvent HostWalk::record(Stream stream) {
    const auto s = static_cast<std::size_t>(stream);
    if (!waits_[s].empty()) {
        StreamItem mark;
        mark.waits = std::exchange(waits_[s], {});
        last_[s] = walk_.device.enqueue(VirtualDevice::stream(class_, stream), mark);
    }
    return last_[s];
}

void HostWalk::use(const Op& op, StreamEvent event) {
    for (const Arg& arg : op.args) {
        if (arg.buffer < 0) continue;
        MemoryBlock* block = blocks_[static_cast<std::size_t>(arg.buffer)];
        if (!block) throw std::logic_error("the Plan uses a buffer that is not allocated");
        allocator_.used(block, op.stream, event.sequence);
    }
    last_[static_cast<std::size_t>(op.stream)] = event;
}

// --- waits and the host's own work -----------------------------------------------------------------------

void HostWalk::wait_for(Waits waits) {
    since_ = clock_;
    wanted_ = waits;
    waiting_ = true;
    look();
}

void HostWalk::end_wait() {
    if (!drains_ && op().kind == OpKind::allocate) return;  // to be tried again
    clock_ += cost(walk_.cluster.host.event);
    allocator_.settle();
    if (std::exchange(drains_, false)) {
        tell_memory();
        return end_stage();
    }
    if (walk_.observer) walk_.observer->waited(class_, since_, clock_, op().event, ++correlation_);
    tell_memory();
    ++next_op_;
}

void HostWalk::host_work(const Op& op) {
    if (op.kind == OpKind::kernel) {
        open_range(name(op), op.range_module);
    } else if (op.kind != OpKind::host_call) {
        open_range(op.kind == OpKind::memcpy ? trace_names::kHostCopy : trace_names::kHostZero, -1);
    }
    works_ = true;
    waiting_ = true;
    walk_.device.begin_host_work(class_, cost(walk_.costs.on_host(op)));
}

void HostWalk::end_host_work() {
    works_ = false;
    if (op().kind != OpKind::host_call) close_range();
    ++next_op_;
}

}  // namespace shardscope::trainer::sim
