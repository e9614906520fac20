// The ranges that a rank's host thread opens and closes, in the trace and for a tool that listens to NVTX.
#include "trainer/executor/nccl_payloads.h"
#include "trainer/executor/rank_runner.h"

namespace shardscope::trainer {

void RankRunner::push_range(const Op& op) {
    const auto name = static_cast<std::size_t>(op.name);
    if (log_) log_->push(names_->names[name], op.range_module);
    if (shared_.nvtx) shared_.nvtx->push((*nvtx_names_)[name]);
}

void RankRunner::pop_range() {
    if (shared_.nvtx) shared_.nvtx->pop();
    if (log_) log_->pop();
}

// The range of work on Stream::host.
void RankRunner::push_host_work(const Op& op) {
    if (op.kind == OpKind::kernel) return push_range(op);
    const auto push = [&](auto& to, const auto& names) {
        to.push(op.kind == OpKind::memcpy ? names.host_copy
                : op.dims[0] == 0         ? names.host_zero
                                          : names.host_fill);
    };
    if (log_) push(*log_, *shared_.instruments);
    if (shared_.nvtx) push(*shared_.nvtx, *shared_.nvtx);
}

void RankRunner::push_collective(const Op& op) {
    const bool tells = shared_.nvtx && !shared_.device.announces_collectives();
    if (!log_ && !tells) return;
    const Communicator& communicator = this->communicator(op.group);
    const NcclPayload payload =
        nccl_payload(op.collective, communicator.id, communicator.members, op.bytes, op.divisor);
    if (log_) {
        const Instruments& names = *shared_.instruments;
        if (payload.schema != 0) log_->payload(payload.schema, &payload.value, payload.size);
        log_->push(names.collective_call[static_cast<std::size_t>(op.collective)], -1, names.nccl_domain);
    }
    if (tells) shared_.nvtx->push_collective(op.collective, payload);
}

void RankRunner::pop_collective() {
    if (shared_.nvtx && !shared_.device.announces_collectives()) shared_.nvtx->pop_collective();
    if (log_) log_->pop();
}

}  // namespace shardscope::trainer
