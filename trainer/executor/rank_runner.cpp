#include "trainer/executor/rank_runner.h"

#include <atomic>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "trainer/executor/cpu_kernels.h"
#include "trainer/executor/live_board.h"
#include "trainer/job/job.h"
#include "trainer/job/learning_rate.h"
#include "trainer/plan/kernel_table.h"

namespace shardscope::trainer::executor {

namespace {

std::array<device::StreamIndex, plan::kStreams> add_streams(device::Device& device, int rank) {
    std::array<device::StreamIndex, plan::kStreams> streams{};
    for (std::size_t s = 0; s < streams.size(); ++s) {
        streams[s] = device.add_stream(rank, static_cast<plan::Stream>(s));
    }
    return streams;
}

// What is the same in every launch.
device::KernelContext context_of(const Shared& shared, int rank) {
    const plan::Mesh& mesh = shared.mesh;
    device::KernelContext context;
    context.data_rank = mesh.data_rank(rank);
    context.data_ranks = mesh.data_size();
    context.place = mesh.shard_index(rank);
    context.tensor = mesh.tensor_index(rank);
    context.tensors = mesh.tensor;
    context.cut = {mesh.context, mesh.context_index(rank), shared.job.is_causal()};
    context.seed = shared.job.run.seed;
    return context;
}

device::KernelContext expert_context_of(const Shared& shared, int rank) {
    device::KernelContext context = context_of(shared, rank);
    context.place = shared.mesh.place(plan::Group::expert_shard, rank);
    context.tensor = shared.mesh.place(plan::Group::expert, rank);
    context.tensors = shared.mesh.expert;
    return context;
}

AllocatorOptions allocator_options(Shared& shared, int rank) {
    AllocatorOptions options;
    options.device_limit = shared.job.run.memory_limit;
    if (shared.poison) options.poison_stream = shared.device.add_stream(rank, plan::Stream::compute);
    return options;
}

}  // namespace

RankRunner::RankRunner(int rank, Shared& shared, plan::BufferId product_workspaces, HostCalls calls)
    : RankRunner(rank, shared, product_workspaces, std::move(calls), add_streams(shared.device, rank)) {}

RankRunner::RankRunner(int rank, Shared& shared, plan::BufferId product_workspaces, HostCalls calls,
                       const Streams& streams)
    : PlanWalk(shared.device, rank, streams, allocator_options(shared, rank)),
      rank_(rank),
      shared_(shared),
      product_workspaces_(product_workspaces),
      calls_(std::move(calls)),
      streams_(streams),
      context_(context_of(shared, rank)),
      expert_context_(expert_context_of(shared, rank)),
      trace_(rank, shared.device, shared.instruments, shared.nvtx) {
    if (shared.job.precision.scales_loss()) scaler_.emplace(shared.job.precision);
}

void RankRunner::run(const plan::Plan& plan, std::int64_t step) {
    const job::Job& job = shared_.job;
    step_ = step;
    lr_ = learning_rate(job.optimizer, batch_factor(job), job.run.steps, step);
    overflowed_ = false;
    trace_.begin(plan);
    begin_plan(plan);
    for (const plan::Op& op : plan.ops) carry_out(op);
    end_plan();
}

void RankRunner::drain() {
    for (const device::StreamEvent event : order().last()) shared_.device.wait(event);
    settle();
    report_memory();
}

plan::HostView RankRunner::contents(const plan::Arg& arg) {
    const MemoryBlock* block = find_block(arg.buffer);
    if (!block) return {};
    std::byte* data = address(arg);
    if (data < block->data || arg.bytes < 0 || data + arg.bytes > block->data + block->capacity) {
        throw std::logic_error("a view reaches beyond its buffer");
    }
    const auto size = static_cast<std::size_t>(arg.bytes);
    if (shared_.device.host_reads(block->space)) return plan::HostView({data, size});
    std::vector<std::byte> copy(size);
    shared_.device.copy(rank_, copy.data(), data, arg.bytes);
    return {std::move(copy), [this, data](std::span<const std::byte> bytes) {
                shared_.device.copy(rank_, data, bytes.data(), std::ssize(bytes));
            }};
}

std::byte* RankRunner::address(const plan::Arg& arg) const {
    if (arg.buffer < 0) return nullptr;
    const std::int64_t first = arg.stride == 0 ? 0 : arg.stride * shared_.mesh.place(arg.along, rank_);
    return block_of(arg.buffer).data + arg.offset + first;
}

// --- memory ----------------------------------------------------------------------------------------------

void RankRunner::allocated(const plan::Op& op, const MemoryBlock& block, profiler::Ticks since) {
    if (op.args[0].buffer == product_workspaces_) {
        shared_.device.use_product_workspaces(rank_, block.data, buffer_of(op).bytes / 2);
    }
    if (allocator().grew()) trace_.grew(block.space, since);
    trace_.memory(op, block, true);
}

void RankRunner::freeing(const plan::Op& op, const MemoryBlock& block) {
    shared_.delays.maybe_sleep();
    trace_.memory(op, block, false);
}

void RankRunner::explain(const plan::Op& op, bool by_limit, MemoryShortage& shortage) const {
    const std::int64_t limit = shared_.job.run.memory_limit;
    shortage.step = step_;
    shortage.rank = rank_;
    if (op.unit >= 0) shortage.unit = shared_.unit_names[static_cast<std::size_t>(op.unit)];
    if (by_limit) {
        shortage.place = fmt::format("into the {} bytes of run.memory_limit", limit);
        shortage.remedy = "raise run.memory_limit, or ";
        shortage.room = limit;
    } else {
        shortage.place = shared_.device.out_of_memory_place(rank_, buffer_of(op).space);
        shortage.room = shared_.device.memory_for(rank_, shortage.reserved);
    }
}

// --- the host's own part ---------------------------------------------------------------------------------

void RankRunner::host_call(const plan::Op& op) {
    const auto data = [&](std::size_t i) { return i < op.args.size() ? address(op.args[i]) : nullptr; };
    switch (op.call()) {
        case plan::HostCall::none:
            break;
        case plan::HostCall::next_batch:
            calls_.next_batch(data(0), data(1));
            break;
        case plan::HostCall::read_loss: {
            std::vector<double> losses(static_cast<std::size_t>(op.args[0].bytes) / sizeof(double));
            std::memcpy(losses.data(), data(0), losses.size() * sizeof(double));
            std::int32_t module = -1;
            if (data(1)) module = std::atomic_ref(*reinterpret_cast<std::int32_t*>(data(1))).load();
            std::optional<double> norm;
            if (data(2)) std::memcpy(&norm.emplace(), data(2), sizeof(double));
            calls_.read_loss(plan().kind == plan::PlanKind::finish ? step_ : step_ - 1, losses, module, norm);
            break;
        }
        case plan::HostCall::read_validation_loss: {
            std::vector<double> values(static_cast<std::size_t>(op.args[0].bytes) / sizeof(double));
            std::memcpy(values.data(), data(0), values.size() * sizeof(double));
            calls_.read_validation_loss(values);
            break;
        }
        case plan::HostCall::read_overflow: {
            overflowed_ = *reinterpret_cast<const float*>(data(0)) != 0;
            const LossScaleStep step = scaler_->update(step_, overflowed_);
            if (overflowed_) trace_.mark(overflow_line(rank_, step));
            if (calls_.scaled_loss) calls_.scaled_loss(step);
            break;
        }
        case plan::HostCall::read_logits:
            calls_.read_logits({reinterpret_cast<const float*>(data(0)),
                                static_cast<std::size_t>(op.args[0].bytes) / sizeof(float)});
            break;
    }
}

void RankRunner::host_wait(const plan::Op& op, device::StreamEvent event) {
    const profiler::Ticks since = trace_.now();
    shared_.delays.maybe_sleep();
    const bool for_file =
        event.stream == index(plan::Stream::disk_read) || event.stream == index(plan::Stream::disk_write);
    const std::int64_t start = for_file ? profiler::monotonic_ns() : 0;
    shared_.device.wait(event);
    if (for_file && (plan().kind == plan::PlanKind::first || plan().kind == plan::PlanKind::steady))
        file_wait_s_ += 1e-9 * static_cast<double>(profiler::monotonic_ns() - start);
    settle();
    trace_.waited(op, since);
    report_memory();
}

// The Plan has already waited for the inputs.
void RankRunner::host_work(const plan::Op& op) {
    if (is_skipped(op)) return;
    shared_.delays.maybe_sleep();
    prepare(op);
    trace_.push_range(op);
    execute(launch_);
    trace_.pop_range();
}

// --- what it enqueues ------------------------------------------------------------------------------------

bool RankRunner::is_skipped(const plan::Op& op) const {
    return overflowed_ && op.kind == plan::OpKind::kernel &&
           plan::kernel_info(op.kernel().kernel).kernel_class == plan::KernelClass::optimizer;
}

void RankRunner::prepare(const plan::Op& op) {
    launch_.op = &op;
    launch_.data.clear();
    for (const plan::Arg& arg : op.args) launch_.data.push_back(address(arg));
    const bool is_kernel = op.kind == plan::OpKind::kernel;
    const bool is_of_experts = is_kernel && op.kernel().along == plan::Group::expert_shard;
    device::KernelContext& context = launch_.context;
    context = is_of_experts ? expert_context_ : context_;
    context.step = step_;
    context.micro_step = step_ * shared_.job.train.accumulation + op.micro;
    context.lr = lr_;
    context.updates = step_;
    if (scaler_) {
        context.updates -= scaler_->state().skipped;
        context.loss_scale = scaler_->state().scale;
    }
    if (is_kernel && op.kernel().segments >= 0)
        context.segments = plan().segments[static_cast<std::size_t>(op.kernel().segments)];
}

device::StreamEvent RankRunner::start(const plan::Op& op, const device::Waits& waits) {
    prepare(op);
    trace_.describe(op, launch_.work);
    const RuntimeCall call = trace_.runtime_call(op, launch_.work.correlation);
    return shared_.device.enqueue(index(op.stream), waits, launch_);
}

plan::CommunicatorId RankRunner::communicator(const plan::Op& op) const {
    const plan::CollectiveOp& own = op.collective();
    return is_message(op) ? channel_of(shared_.mesh, rank_, own) : shared_.mesh.id(own.group, rank_);
}

// Of an all_to_all with counts, which the Plan has copied to the host and waited for.
std::vector<std::int64_t> RankRunner::elements_by_member(const plan::Arg& counts, std::size_t members,
                                                         std::int64_t row) const {
    const auto* rows = reinterpret_cast<const std::int32_t*>(address(counts));
    const std::size_t each = static_cast<std::size_t>(counts.bytes) / sizeof(std::int32_t) / members;
    std::vector<std::int64_t> elements(members);
    for (std::size_t m = 0; m < members; ++m)
        elements[m] = row * std::accumulate(rows + m * each, rows + (m + 1) * each, std::int64_t{0});
    return elements;
}

device::StreamEvent RankRunner::start(const plan::Op& op, const device::Waits& waits,
                                      plan::CommunicatorId communicator, std::int64_t sequence) {
    device::CollectiveLaunch launch;
    launch.communicator = communicator;
    const plan::CollectiveOp& own = op.collective();
    if (is_message(op)) {  // Mesh::channel
        launch.place = own.operation == plan::Operation::send ? 0 : 1;
        launch.members = 2;
    } else {
        const plan::Group group =
            communicator == plan::CommunicatorId::world ? plan::Group::world : own.group;
        launch.place = shared_.mesh.place(group, rank_);
        launch.members = shared_.mesh.size(group);
    }
    launch.sequence = sequence;
    launch.call.operation = own.operation;
    launch.call.dtype = own.dtype;
    launch.call.output = address(op.args[0]);
    launch.call.input = address(op.args[op.args.size() > 1 ? 1 : 0]);
    launch.call.full_elements = op.bytes / size_of(own.dtype);
    if (own.row > 0) {
        const auto members = static_cast<std::size_t>(launch.members);
        launch.call.sends = elements_by_member(op.args[2], members, own.row);
        launch.call.receives = elements_by_member(op.args[3], members, own.row);
    }
    launch.call.divisor = own.divisor;
    launch.call.reduction = own.reduction;
    launch.step = step_;
    launch.unit = op.unit;
    launch.phase = op.phase;
    shared_.delays.maybe_sleep();
    trace_.describe(op, launch);
    trace_.push_collective(op, launch);
    device::StreamEvent event;
    {
        const RuntimeCall call = trace_.runtime_call(op, launch.row.correlation);
        event = shared_.device.enqueue(index(op.stream), waits, launch);
    }
    shared_.device.hold(event);
    if (shared_.live) {
        const LiveCollective live = shared_.live->collective(rank_, communicator, sequence, own.operation);
        const profiler::Ticks now = profiler::ticks();
        live.enter(now);
        live.leave(now);
    }
    trace_.pop_collective(launch);
    return event;
}

}  // namespace shardscope::trainer::executor
