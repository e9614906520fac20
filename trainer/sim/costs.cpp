#include "trainer/sim/costs.h"

#include <algorithm>

namespace shardscope::trainer::sim {

namespace {

bool is_pageable(const Plan& plan, const Arg& arg) {
    return plan.buffers[static_cast<std::size_t>(arg.buffer)].space == MemorySpace::host;
}

double total_bytes(const Op& op) {
    double bytes = 0;
    for (const Arg& arg : op.args) bytes += static_cast<double>(arg.bytes);
    return bytes;
}

}  // namespace

double Costs::kernel(const Op& op) const {
    const OpClass c = class_of(op.kernel);
    const ClassRates& rates = cluster_.device.rates(c);
    Arithmetic arithmetic = op.dtype == DType::bf16 ? Arithmetic::bf16 : Arithmetic::fp32;
    if (tf32_ && c == OpClass::matmul && arithmetic == Arithmetic::fp32) arithmetic = Arithmetic::tf32;
    const auto flops = static_cast<double>(op.flops);
    const auto bytes = static_cast<double>(op.bytes);
    const double computing =
        flops > 0 ? flops / (rates.flops[static_cast<std::size_t>(arithmetic)] * rates.efficiency.at(flops))
                  : 0;
    const double moving =
        bytes > 0 ? bytes / (cluster_.device.memory_bandwidth * rates.bandwidth_share.at(bytes)) : 0;
    return cluster_.device.kernel_latency + std::max(computing, moving);
}

double Costs::copy(const Plan& plan, const Op& op) const {
    const CopyModel& model = cluster_.copy;
    const auto bytes = static_cast<double>(op.bytes);
    const auto over_the_bus = [&](double rate, const Arg& host_side) {
        return model.latency + bytes / (rate * (is_pageable(plan, host_side) ? model.pageable_share : 1));
    };
    switch (op.copy_kind) {
        case traces::kCopyHostToDevice:
            return over_the_bus(model.to_device, op.args[1]);
        case traces::kCopyDeviceToHost:
            return over_the_bus(model.to_host, op.args[0]);
        default:  // read and written
            return cluster_.device.kernel_latency + 2 * bytes / cluster_.device.memory_bandwidth;
    }
}

double Costs::on_device(const Plan& plan, const Op& op) const {
    switch (op.kind) {
        case OpKind::kernel:
            return kernel(op);
        case OpKind::memcpy:
            return copy(plan, op);
        default:
            return cluster_.device.kernel_latency +
                   static_cast<double>(op.bytes) / cluster_.device.memory_bandwidth;
    }
}

double Costs::on_host(const Op& op) const {
    const HostModel& host = cluster_.host;
    if (op.kind == OpKind::host_call) {
        return op.call == HostCall::next_batch ? total_bytes(op) / host.memory_bandwidth : 0;
    }
    const double moving = (op.kind == OpKind::memcpy ? 2.0 : 1.0) * static_cast<double>(op.bytes);
    return std::max(static_cast<double>(op.flops) / host.flops, moving / host.memory_bandwidth);
}

}  // namespace shardscope::trainer::sim
