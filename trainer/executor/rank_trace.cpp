#include "trainer/executor/rank_trace.h"

#include <numeric>
#include <vector>

#include "trainer/executor/nccl_payloads.h"

namespace shardscope::trainer::executor {

namespace {

// The bytes that a collective moves: those of the Plan, or of the rows that this rank sends.
std::int64_t bytes_of(const plan::Op& op, const device::CollectiveLaunch& launch) {
    const std::vector<std::int64_t>& sends = launch.call.sends;
    if (sends.empty()) return op.bytes;
    return std::accumulate(sends.begin(), sends.end(), std::int64_t{0}) * size_of(launch.call.dtype);
}

}  // namespace

void RankTrace::begin(const plan::Plan& plan) {
    plan_ = &plan;
    if (instruments_) {
        names_ = &instruments_->of(plan);
        if (!log_) log_ = instruments_->recorder().attach_thread("", rank_);
    }
    if (nvtx_) nvtx_names_ = &nvtx_->of(plan);
}

void RankTrace::push_range(const plan::Op& op) const {
    const auto name = static_cast<std::size_t>(op.name);
    if (log_) log_->push(names_->names[name], op.range_module());
    if (nvtx_) nvtx_->push((*nvtx_names_)[name]);
}

void RankTrace::push_range(const std::string& name) const {
    if (log_) log_->push(instruments_->recorder().name(name));
    if (nvtx_) nvtx_->push(name);
}

void RankTrace::pop_range() const {
    if (nvtx_) nvtx_->pop();
    if (log_) log_->pop();
}

void RankTrace::mark(const std::string& name) const {
    if (log_) log_->mark(instruments_->recorder().name(name));
    if (nvtx_) nvtx_->mark(name);
}

void RankTrace::step(std::int64_t number, profiler::Ticks since) const {
    if (log_) log_->step(rank_, number, since, now());
}

void RankTrace::waited(const plan::Op& op, profiler::Ticks since) {
    if (!log_) return;
    const profiler::Ticks end = now();
    const std::int64_t correlation = next_correlation();
    log_->runtime(instruments_->call(*trace_names::call_of(op)), since, end, correlation);
    log_->synchronization(since, end, rank_, -1, traces::schema::kSyncEvent, op.event(), correlation);
}

// --- work on streams -------------------------------------------------------------------------------------

void RankTrace::describe(const plan::Op& op, profiler::DeviceWork& work) {
    if (!log_) return;
    work = {};
    work.device = rank_;
    work.stream = static_cast<int>(op.stream);
    work.correlation = next_correlation();
    work.bytes = op.bytes;
    if (op.kind == plan::OpKind::kernel) {
        work.name = names_->names[static_cast<std::size_t>(op.name)];
        return;
    }
    const auto kind_of = [&](const plan::Arg& arg) {
        return trace_names::memory_kind(plan_->buffers[static_cast<std::size_t>(arg.buffer)].space);
    };
    work.dst_kind = kind_of(op.args[0]);
    if (op.kind == plan::OpKind::memset) return;
    work.src_kind = kind_of(op.args[1]);
    work.copy_kind = op.copy_kind();
}

void RankTrace::describe(const plan::Op& op, device::CollectiveLaunch& launch) {
    if (!log_) return;
    launch.recorded = true;
    profiler::CollectiveWork& row = launch.row;
    row.rank = rank_;
    row.correlation = next_correlation();
    row.operation = op.collective().operation;
    row.bytes = bytes_of(op, launch);
    row.padding = op.collective().padding;
    row.group = format_as(launch.communicator);
    row.group_size = launch.members;
    row.sequence = launch.sequence;
    row.unit = op.unit;
    row.phase = op.phase;
    profiler::DeviceWork& kernel = launch.kernel;
    kernel.name = instruments_->collective_kernel[static_cast<std::size_t>(op.collective().operation)];
    kernel.device = rank_;
    kernel.stream = static_cast<int>(op.stream);
    kernel.correlation = row.correlation;
}

void RankTrace::push_collective(const plan::Op& op, const device::CollectiveLaunch& launch) const {
    if (!log_ && !tells_collectives()) return;
    const NcclPayload payload = nccl_payload(launch.call.operation, launch.communicator, launch.members,
                                             bytes_of(op, launch), launch.call.divisor);
    if (log_) {
        if (payload.schema != 0) log_->payload(payload.schema, &payload.value, payload.size);
        log_->push(instruments_->collective_call[static_cast<std::size_t>(launch.call.operation)], -1,
                   instruments_->nccl_domain);
    }
    if (tells_collectives()) nvtx_->push_collective(launch.call.operation, payload);
}

void RankTrace::pop_collective(const device::CollectiveLaunch& launch) const {
    if (tells_collectives()) nvtx_->pop_collective();
    if (!log_) return;
    log_->pop();
    if (!device_.records_collectives()) log_->collective(launch.row);
}

// --- memory ----------------------------------------------------------------------------------------------

void RankTrace::grew(plan::MemorySpace space, profiler::Ticks since) const {
    if (log_) log_->runtime(instruments_->call(trace_names::growth_call(space)), since, now(), 0);
}

void RankTrace::memory(const plan::Op& op, const MemoryBlock& block, bool allocation) const {
    if (!log_) return;
    const auto id = static_cast<std::size_t>(op.args[0].buffer);
    const plan::Buffer& buffer = plan_->buffers[id];
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

void RankTrace::memory_changed(std::int64_t active, std::int64_t reserved) const {
    if (!log_) return;
    if (active >= 0) log_->counter(rank_, instruments_->active_bytes, static_cast<double>(active));
    if (reserved < 0) return;
    log_->counter(rank_, instruments_->reserved_bytes, static_cast<double>(reserved));
    const std::int64_t used = device_.bytes_in_use(rank_);
    if (used >= 0) log_->counter(rank_, instruments_->device_bytes, static_cast<double>(used));
}

}  // namespace shardscope::trainer::executor
