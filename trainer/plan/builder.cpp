#include "trainer/plan/builder.h"

#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "trainer/plan/kernel_table.h"

namespace shardscope::trainer::plan {

namespace {

// About 4 GiB of operations; a step of a large model has a million.
constexpr std::size_t kMostOps = std::size_t{1} << 24;

}  // namespace

Storage::Storage(PlanBuilder& builder, BufferId buffer)
    : builder_(&builder), builder_lives_(builder.lives_), buffer_(buffer) {
    ++builder.storages_;
}

Storage::~Storage() {
    if (builder_lives_.expired()) return;
    --builder_->storages_;
    if (away_) return;
    builder_->at_the_end(
        [this] { builder_->append(OpKind::free, Stream::host).args = {builder_->whole(buffer_)}; });
}

void Storage::leave() {
    builder_->free(buffer_);
    away_ = true;
}

void Storage::come_back(Stream stream) {
    builder_->allocate(buffer_, stream);
    away_ = false;
}

PlanBuilder::Scope::Scope(PlanBuilder& builder, Phase phase, int module, int unit)
    : builder_(builder), phase_(builder.phase_), module_(builder.module_), unit_(builder.unit_) {
    builder_.phase_ = phase;
    builder_.module_ = module;
    builder_.unit_ = unit;
}

PlanBuilder::Scope::~Scope() {
    builder_.phase_ = phase_;
    builder_.module_ = module_;
    builder_.unit_ = unit_;
}

PlanBuilder::Range::Range(PlanBuilder& builder, std::string_view name, int module)
    : builder_(builder), written_(!builder.muted()) {
    if (!written_) return;
    const std::int32_t id = builder_.intern(name);
    Op& op = builder_.emit(OpKind::push_range, Stream::host);
    op.name = id;
    op.own = RangeOp{module};
    ++builder_.open_ranges_;
}

PlanBuilder::Range::~Range() {
    if (!written_) return;
    builder_.at_the_end([this] { builder_.append(OpKind::pop_range, Stream::host); });
    --builder_.open_ranges_;
}

PlanBuilder::PlanBuilder(PlanKind kind, std::vector<Buffer> persistent) {
    plan_.kind = kind;
    plan_.buffers = std::move(persistent);
    intern("");
}

Op& PlanBuilder::emit(OpKind kind, Stream stream) {
    return muted_ ? forgotten_ = Op{} : append(kind, stream);
}

Op& PlanBuilder::append(OpKind kind, Stream stream) {
    if (failure_) std::rethrow_exception(failure_);
    if (plan_.ops.size() >= kMostOps) {
        throw std::length_error(fmt::format(
            "a step of this job has more than {} operations; make train.accumulation or the model "
            "smaller",
            kMostOps));
    }
    Op& op = plan_.ops.emplace_back();
    op.kind = kind;
    op.stream = stream;
    op.phase = phase_;
    op.module = module_;
    op.unit = unit_;
    op.micro = micro_;
    if (turn_ && is_work(op) && stream == Stream::compute) {
        op.stream = *turn_;
        op.exclusive = true;
    }
    return op;
}

std::int32_t PlanBuilder::intern(std::string_view name) {
    auto [it, fresh] = names_.try_emplace(std::string(name), static_cast<std::int32_t>(plan_.names.size()));
    if (fresh) plan_.names.emplace_back(name);
    return it->second;
}

BufferId PlanBuilder::new_buffer(Buffer buffer) {
    plan_.buffers.push_back(std::move(buffer));
    return static_cast<BufferId>(plan_.buffers.size() - 1);
}

Tensor PlanBuilder::new_tensor(std::string name, MemoryCategory category, std::int64_t elements, DType dtype,
                               Stream stream, MemorySpace space) {
    if (muted_) return {nullptr, {0, 0, elements * size_of(dtype)}, -1, dtype};
    const BufferId id =
        new_buffer({std::move(name), category, space, elements * size_of(dtype), unit_, module_});
    allocate(id, stream);
    Tensor made{std::make_shared<Storage>(*this, id), whole(id), -1, dtype};
    if (watched_) watched_->push_back(made.storage);
    return made;
}

void PlanBuilder::allocate(BufferId buffer, Stream stream) {
    emit(OpKind::allocate, stream).args = {whole(buffer)};
}

void PlanBuilder::free(BufferId buffer) {
    emit(OpKind::free, Stream::host).args = {whole(buffer)};
}

void PlanBuilder::record(EventId event, Stream stream) {
    emit(OpKind::record_event, stream).own = EventOp{event};
}

void PlanBuilder::wait(EventId event, Stream stream) {
    emit(OpKind::wait_event, stream).own = EventOp{event};
}

void PlanBuilder::host_wait(EventId event) {
    emit(OpKind::host_wait, Stream::host).own = EventOp{event};
}

void PlanBuilder::order(Stream earlier, Stream later) {
    const EventId event = new_event();
    record(event, earlier);
    wait(event, later);
}

Op& PlanBuilder::kernel(Kernel kernel, std::string_view name, std::vector<Arg> args,
                        std::array<std::int64_t, 6> dims, std::int64_t flops, Stream stream) {
    const std::int32_t id = intern(name);
    Op& op = emit(OpKind::kernel, stream);
    op.own = KernelOp{.kernel = kernel, .dims = dims};
    op.name = id;
    op.args = std::move(args);
    op.flops = flops;
    for (const Arg& arg : op.args) op.bytes += arg.bytes;
    if (muted_) return op;
    if (const std::string wrong = misfit(op); !wrong.empty())
        throw std::logic_error("a Plan is impossible: " + wrong);
    return op;
}

Op& PlanBuilder::cast(std::string_view name, const Arg& to, DType to_type, const Arg& from, DType from_type,
                      std::int64_t n, Stream stream) {
    Op& op = kernel(to_type == DType::fp32 ? Kernel::cast_to_fp32 : Kernel::cast_from_fp32, name, {to, from},
                    {n}, 0, stream);
    op.kernel().dtype = to_type == DType::fp32 ? from_type : to_type;
    return op;
}

Op& PlanBuilder::memcpy(const Arg& to, const Arg& from, int copy_kind, Stream stream) {
    Op& op = emit(OpKind::memcpy, stream);
    op.args = {to, from};
    op.own = MemcpyOp{static_cast<std::uint8_t>(copy_kind)};
    op.bytes = to.bytes;
    if (stream == Stream::host) op.name = intern("aten::copy_");
    return op;
}

Op& PlanBuilder::memset(const Arg& to, Stream stream, int value) {
    Op& op = emit(OpKind::memset, stream);
    op.args = {to};
    op.bytes = to.bytes;
    op.own = MemsetOp{value};
    if (stream == Stream::host) op.name = intern(value == 0 ? "aten::zero_" : "aten::fill_");
    return op;
}

Op& PlanBuilder::collective(const CollectiveOp& own, const Arg& output, const Arg& input,
                            std::int64_t full_bytes, Stream stream) {
    Op& op = emit(OpKind::collective, stream);
    op.own = own;
    op.args = {output, input};
    op.bytes = full_bytes;
    return op;
}

Op& PlanBuilder::exchange_rows(const Tensor& output, const Tensor& input, const Tensor& sent,
                               const Tensor& received, std::int64_t row, std::int64_t expected_rows,
                               Group group) {
    Op& op =
        collective({.operation = Operation::all_to_all, .dtype = input.dtype, .group = group, .row = row},
                   output, input, expected_rows * row * size_of(input.dtype), Stream::compute);
    op.args.push_back(sent);
    op.args.push_back(received);
    return op;
}

Op& PlanBuilder::send(const Tensor& from, int peer, Stream stream) {
    return message({.operation = Operation::send, .group = Group::pipeline, .peer = peer}, from, stream);
}

Op& PlanBuilder::receive(const Tensor& into, int peer, Stream stream) {
    return message({.operation = Operation::recv, .group = Group::pipeline, .peer = peer}, into, stream);
}

Op& PlanBuilder::send_on(const Tensor& from) {
    return message({.operation = Operation::send, .group = Group::context}, from, Stream::ring_send);
}

Op& PlanBuilder::receive_on(const Tensor& into) {
    return message({.operation = Operation::recv, .group = Group::context}, into, Stream::ring_receive);
}

Op& PlanBuilder::message(const CollectiveOp& own, const Tensor& tensor, Stream stream) {
    Op& op = emit(OpKind::collective, stream);
    op.own = own;
    op.collective().dtype = tensor.dtype;
    op.args = {tensor.view};
    op.bytes = tensor.bytes();
    return op;
}

Op& PlanBuilder::host_call(HostCall call, std::string_view name, std::vector<Arg> args) {
    const std::int32_t id = intern(name);
    Op& op = emit(OpKind::host_call, Stream::host);
    op.own = HostCallOp{call};
    op.name = id;
    op.args = std::move(args);
    return op;
}

std::int32_t PlanBuilder::add_segments(std::vector<Segment> segments) {
    plan_.segments.push_back(std::move(segments));
    return static_cast<std::int32_t>(plan_.segments.size() - 1);
}

Plan PlanBuilder::take() {
    if (failure_) std::rethrow_exception(failure_);
    if (open_ranges_ != 0) throw std::logic_error("a Plan was taken while a range was open");
    if (storages_ != 0) {
        throw std::logic_error(
            "a Plan was taken while one of its tensors was still referenced, so it would never be freed");
    }
    plan_.ops.shrink_to_fit();  // a Program keeps it, and those of all places of a pipeline
    plan_.buffers.shrink_to_fit();
    return std::move(plan_);
}

}  // namespace shardscope::trainer::plan
