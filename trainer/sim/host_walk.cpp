#include "trainer/sim/host_walk.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "trainer/executor/trace_names.h"

namespace shardscope::trainer::sim {

namespace {

// Thrown by an allocation that must first wait for a stream to complete an item.
struct WouldWait {
    device::StreamEvent event;
};

std::array<device::StreamIndex, plan::kStreams> streams_of(int rank_class) {
    std::array<device::StreamIndex, plan::kStreams> streams{};
    for (int s = 0; s < plan::kStreams; ++s)
        streams[static_cast<std::size_t>(s)] =
            VirtualDevice::stream(rank_class, static_cast<plan::Stream>(s));
    return streams;
}

}  // namespace

void VirtualMemory::wait(device::StreamEvent event) {
    if (!happened(event)) throw WouldWait{event};
}

std::byte* VirtualMemory::take(int /*rank*/, plan::MemorySpace space, std::int64_t bytes, bool /*poisoned*/) {
    const bool shared = space != plan::MemorySpace::device;
    if (shared && !nodes_.take(rank_class_, space, bytes)) return nullptr;
    // Every block of a run has a different address; the memory there is never accessed.
    auto* data = reinterpret_cast<std::byte*>(
        std::exchange(next_address_, next_address_ + static_cast<std::uint64_t>(bytes)));
    if (shared) taken_.emplace(data, bytes);
    return data;
}

void VirtualMemory::give_back(int /*rank*/, plan::MemorySpace space, std::byte* data) noexcept {
    const auto taken = taken_.find(data);
    if (taken == taken_.end()) return;
    nodes_.give_back(rank_class_, space, taken->second);
    taken_.erase(taken);
}

HostWalk::HostWalk(Walk& walk, int rank_class)
    : VirtualMemory(walk.device, walk.nodes, rank_class),
      PlanWalk(*this, rank_class, streams_of(rank_class), {.device_limit = walk.memory_limit}),
      walk_(walk),
      class_(rank_class),
      role_(walk.script.of(self().representative)) {
    begin(Stage::setup);
}

Time HostWalk::cost(double seconds) const {
    return std::max<Time>(1, std::llround(seconds * 1e9));  // so that time always advances
}

// --- stages ----------------------------------------------------------------------------------------------

// Begins the first stage, from `stage` on, that has something to do.
void HostWalk::begin(Stage stage) {
    stage_ = stage;
    next_op_ = 0;
    const plan::Plan* plan = nullptr;
    if (stage_ == Stage::setup) {
        plan = role_.setup;
        if (!plan) return begin(Stage::step);
    }
    if (stage_ == Stage::step) {
        if (step_ >= walk_.steps) return begin(Stage::finish);
        plan = &role_.step(step_);
        steps_begun_ = step_ + 1;
        step_start_ = clock_;
        open_range(executor::trace_names::step_range(step_), -1);
    }
    if (stage_ == Stage::finish) {
        plan = role_.finish;
        step_ = std::max<std::int64_t>(0, step_ - 1);
        if (!plan) return drain();
    }
    if (stage_ == Stage::ended) {
        waiting_ = true;
        return;
    }
    begin_plan(*plan);
}

void HostWalk::plan_ended() {
    end_plan();
    if (stage_ == Stage::step) return end_stage();
    drain();
}

// Waits for all streams, which ends the stage.
void HostWalk::drain() {
    drains_ = true;
    device::Waits all;
    for (const device::StreamEvent event : order().last()) all.add(event);
    wait_for(all);
}

void HostWalk::end_stage() {
    switch (stage_) {
        case Stage::setup:
            return begin(Stage::step);
        case Stage::step:
            close_range();
            walk_.observer.step_ended(class_, step_, step_start_, clock_, {live_bytes(), peak().bytes});
            steps_.push_back({step_start_, clock_, take_peak()});
            ++step_;
            return begin(Stage::step);
        default:
            return begin(Stage::ended);
    }
}

// --- the walk --------------------------------------------------------------------------------------------

void HostWalk::go_on() {
    if (works_) return end_host_work();
    if (launching_) return end_launch();
    if (next_op_ == plan().ops.size()) return plan_ended();
    op_ = &plan().ops[next_op_++];
    try {
        carry_out(*op_);
    } catch (const WouldWait& wait) {
        --next_op_;
        wait_for({wait.event});
    }
}

void HostWalk::look() {
    if (!waiting_ || ended()) return;
    if (works_) {
        if (walk_.device.host_works(class_)) return;
        waiting_ = false;
        clock_ = walk_.device.now();
        return;
    }
    for (const device::StreamEvent event : wanted_.events()) {
        if (!walk_.device.happened(event)) return;
    }
    waiting_ = false;
    walk_.device.hosts_work();
    if (walk_.device.now() > since_) {
        const double wake = walk_.cluster.host.wake;
        clock_ = walk_.device.now() + (wake > 0 ? cost(wake) : 0);
    }
    end_wait();
}

void HostWalk::open_range(const plan::Op& op) {
    open_range(range_of(plan(), op), op.range_module());
    clock_ += cost(walk_.cluster.host.operation);
}

void HostWalk::open_range(std::string_view name, int module) {
    walk_.observer.range_opened(class_, clock_, name, module);
    clock_ += 1;
}

void HostWalk::close_range() {
    walk_.observer.range_closed(class_, clock_);
    clock_ += 1;
}

// --- memory ----------------------------------------------------------------------------------------------

void HostWalk::allocated(const plan::Op& op, const executor::MemoryBlock& block, Time since) {
    clock_ += cost(walk_.cluster.host.allocate + (allocator().grew() ? walk_.cluster.host.grow : 0));
    if (allocator().grew())
        walk_.observer.runtime_call(class_, since, clock_, executor::trace_names::growth_call(block.space),
                                    0);
    walk_.observer.allocated(class_, clock_, plan(), op, block);
}

void HostWalk::freeing(const plan::Op& op, const executor::MemoryBlock& block) {
    clock_ += cost(walk_.cluster.host.allocate);
    walk_.observer.freed(class_, clock_, plan(), op, block);
}

void HostWalk::memory_changed(std::int64_t active, std::int64_t reserved) {
    walk_.observer.memory_counts(class_, clock_, active, reserved);
}

void HostWalk::explain(const plan::Op& op, bool by_limit, executor::MemoryShortage& shortage) const {
    shortage.step = step_;
    shortage.rank = self().representative;
    if (op.unit >= 0) shortage.unit = walk_.script.unit_names[static_cast<std::size_t>(op.unit)];
    shortage.place = by_limit ? walk_.memory_place : "into any memory";
    const plan::MemorySpace space = buffer_of(op).space;
    if (space != plan::MemorySpace::device) {
        const bool disk = space == plan::MemorySpace::disk;
        shortage.of_host = !disk;
        shortage.place =
            fmt::format("into the {:.0f} bytes of {} of {} that the ranks of a node share",
                        walk_.nodes.room(space), disk ? "disk.capacity" : "host.memory", walk_.cluster.name);
    }
    shortage.remedy = walk_.memory_remedy;
    shortage.room = walk_.memory_limit;
}

// --- calls, and work enqueued on streams ------------------------------------------------------------------

// A call that returns immediately.
Time HostWalk::runtime_call(const plan::Op& op) {
    const Time start = clock_;
    clock_ += cost(walk_.cluster.host.event);
    walk_.observer.runtime_call(class_, start, clock_, *executor::trace_names::call_of(op), 0);
    return clock_;
}

device::StreamEvent HostWalk::mark(plan::Stream stream, const device::Waits& waits) {
    StreamItem mark;
    mark.waits = waits;
    return walk_.device.enqueue(VirtualDevice::stream(class_, stream), mark);
}

// The device receives the work when the launching call ends.
void HostWalk::launch(const plan::Op& op) {
    if (op.kind == plan::OpKind::collective) {
        walk_.observer.collective_opened(class_, clock_, op);
        clock_ += 1;
    }
    since_ = clock_;
    clock_ += cost(walk_.cluster.host.launch);
    launching_ = true;
}

void HostWalk::end_launch() {
    launching_ = false;
    enqueue(*op_);
    if (!is_followed(*op_)) return;
    follows_ = true;
    wait_for({order().last()[static_cast<std::size_t>(op_->stream)]});
}

// Whether the host waits for the end of what it has just launched.
bool HostWalk::is_followed(const plan::Op& op) const {
    if (is_serve_stream(op.stream)) return false;  // the workers come in any order
    if (is_disk_stream(op.stream)) return false;   // it has waits of its own for them
    return op.kind == plan::OpKind::collective ? walk_.cluster.collectives.blocking
                                               : walk_.cluster.host.carries_out;
}

// Host and disk copy without their device.
Engine engine_of(const plan::Op& op) {
    if (op.kind != plan::OpKind::memcpy) return Engine::kernels;
    switch (op.copy_kind()) {
        case traces::schema::kCopyDeviceToDevice:
            return Engine::kernels;
        case traces::schema::kCopyHostToDevice:
            return Engine::to_device;
        case traces::schema::kCopyDeviceToHost:
            return Engine::to_host;
        default:
            return Engine::none;
    }
}

device::StreamEvent HostWalk::start(const plan::Op& op, const device::Waits& waits) {
    StreamItem item;
    item.kind = StreamItem::Kind::work;
    item.waits = waits;
    item.takes_core = !is_disk_stream(op.stream);
    const double slowdown = op.kind == plan::OpKind::kernel ? self().slowdown : 1;
    item.duration = cost(walk_.costs.on_device(plan(), op) * slowdown);
    item.engine = engine_of(op);
    item.latency = std::llround(walk_.costs.latency(op) * 1e9);
    return put(op, item);
}

int HostWalk::communicator(const plan::Op& op) const {
    const plan::CollectiveOp& own = op.collective();
    if (!is_message(op)) return self().communicators[static_cast<std::size_t>(own.group)];
    return self().channels.at(channel_of(walk_.script.mesh, self().representative, own));
}

device::StreamEvent HostWalk::start(const plan::Op& op, const device::Waits& waits, int communicator,
                                    std::int64_t sequence) {
    StreamItem item;
    item.kind = StreamItem::Kind::collective;
    item.waits = waits;
    item.communicator = communicator;
    item.sequence = sequence;
    // The two ends of a message take one time.
    const plan::Operation operation = is_message(op) ? plan::Operation::send : op.collective().operation;
    const Spread& spread = walk_.ranks.communicators[static_cast<std::size_t>(communicator)].spread;
    if (!walk_.cluster.collectives.blocking) item.beside_work = walk_.cluster.collectives.beside_work;
    item.duration = cost(collective_seconds(walk_.cluster, spread, operation, op.bytes));
    const device::StreamEvent event = put(op, item);
    close_range();
    return event;
}

device::StreamEvent HostWalk::put(const plan::Op& op, StreamItem item) {
    item.plan = &plan();
    item.op = &op;
    item.step = step_;
    item.correlation = ++correlation_;
    const device::StreamEvent event = walk_.device.enqueue(VirtualDevice::stream(class_, op.stream), item);
    walk_.observer.runtime_call(class_, since_, clock_, *executor::trace_names::call_of(op), correlation_);
    return event;
}

// --- waits and the host's own work -----------------------------------------------------------------------

void HostWalk::wait_for(const device::Waits& waits) {
    since_ = clock_;
    wanted_ = waits;
    waiting_ = true;
    look();
    if (waiting_) walk_.device.hosts_wait();
}

void HostWalk::end_wait() {
    if (!drains_ && op_->kind == plan::OpKind::allocate) return;  // to be tried again
    if (std::exchange(follows_, false)) {
        settle();
        return report_memory();
    }
    clock_ += cost(walk_.cluster.host.event);
    settle();
    if (!drains_) walk_.observer.waited(class_, since_, clock_, op_->event(), ++correlation_);
    report_memory();
    if (std::exchange(drains_, false)) end_stage();
}

void HostWalk::host_call(const plan::Op& op) {
    if (op.call() == plan::HostCall::next_batch && !walk_.script.batches_ahead) return host_work(op);
    clock_ +=
        cost(op.call() == plan::HostCall::none ? walk_.costs.on_host(op) : walk_.cluster.host.operation);
}

void HostWalk::host_work(const plan::Op& op) {
    if (op.kind != plan::OpKind::host_call) open_range(range_of(plan(), op), op.range_module());
    works_ = true;
    waiting_ = true;
    walk_.device.begin_host_work(class_, cost(walk_.costs.on_host(op)));
}

void HostWalk::end_host_work() {
    works_ = false;
    if (op_->kind != plan::OpKind::host_call) close_range();
}

}  // namespace shardscope::trainer::sim
