#include "trainer/sim/costs.h"

#include <algorithm>

namespace shardscope::trainer::sim {

namespace {

bool is_pageable(const plan::Plan& plan, const plan::Arg& arg) {
    return plan.buffers[static_cast<std::size_t>(arg.buffer)].space == plan::MemorySpace::host;
}

double total_bytes(const plan::Op& op) {
    double bytes = 0;
    for (const plan::Arg& arg : op.args) bytes += static_cast<double>(arg.bytes);
    return bytes;
}

}  // namespace

Arithmetic arithmetic_of(const plan::Op& op, bool tf32) {
    if (op.kernel().dtype == plan::DType::bf16) return Arithmetic::bf16;
    if (op.kernel().dtype == plan::DType::fp16) return Arithmetic::fp16;
    return tf32 && kernel_info(op.kernel().kernel).kernel_class == plan::KernelClass::matmul
               ? Arithmetic::tf32
               : Arithmetic::fp32;
}

double Costs::on_device_bandwidth() const {
    return cluster_.copy.on_device > 0 ? cluster_.copy.on_device : cluster_.device.memory_bandwidth;
}

double Costs::kernel(const plan::Op& op) const {
    const ClassRates& rates = cluster_.device.rates(op.kernel().kernel);
    const Arithmetic arithmetic = arithmetic_of(op, tf32_);
    const auto flops = static_cast<double>(op.flops);
    const auto bytes = static_cast<double>(op.bytes);
    const double computing =
        flops > 0 ? flops / (rates.flops[static_cast<std::size_t>(arithmetic)] * rates.efficiency.at(flops))
                  : 0;
    const double moving =
        bytes > 0 ? bytes / (cluster_.device.memory_bandwidth * rates.bandwidth_share.at(bytes)) : 0;
    return cluster_.device.kernel_latency + std::max(computing, moving);
}

double Costs::copy(const plan::Plan& plan, const plan::Op& op) const {
    const CopyModel& model = cluster_.copy;
    const auto bytes = static_cast<double>(op.bytes);
    const auto over_the_bus = [&](double rate, const plan::Arg& host_side) {
        return model.latency + bytes / (rate * (is_pageable(plan, host_side) ? model.pageable_share : 1) *
                                        model.bandwidth_share.at(bytes));
    };
    switch (op.copy_kind()) {
        case traces::schema::kCopyHostToDevice:
            return over_the_bus(model.to_device, op.args[1]);
        case traces::schema::kCopyDeviceToHost:
            return over_the_bus(model.to_host, op.args[0]);
        case traces::schema::kCopyDiskToHost:
            return bytes * sharers_ / cluster_.disk.read;
        case traces::schema::kCopyHostToDisk:
            return bytes * sharers_ / cluster_.disk.write;
        default:  // on the device: every byte is read and written
            return cluster_.device.kernel_latency + 2 * bytes / on_device_bandwidth();
    }
}

double Costs::on_device(const plan::Plan& plan, const plan::Op& op) const {
    if (op.recorded_ns > 0) return static_cast<double>(op.recorded_ns) * 1e-9;
    switch (op.kind) {
        case plan::OpKind::kernel:
            return kernel(op);
        case plan::OpKind::memcpy:
            return copy(plan, op);
        default:
            return cluster_.device.kernel_latency + static_cast<double>(op.bytes) / on_device_bandwidth();
    }
}

double Costs::latency(const plan::Op& op) const {
    if (is_disk_stream(op.stream)) return 0;
    const bool over_the_bus =
        op.kind == plan::OpKind::memcpy && op.copy_kind() != traces::schema::kCopyDeviceToDevice;
    return over_the_bus ? cluster_.copy.latency : cluster_.device.kernel_latency;
}

double Costs::on_host(const plan::Op& op) const {
    const HostModel& host = cluster_.host;
    if (op.kind == plan::OpKind::host_call) {
        if (op.call() == plan::HostCall::none) return static_cast<double>(op.recorded_ns) * 1e-9;
        const double rate = host.batch_bandwidth > 0 ? host.batch_bandwidth : host.memory_bandwidth;
        return op.call() == plan::HostCall::next_batch ? total_bytes(op) / rate : 0;
    }
    const double moving = (op.kind == plan::OpKind::memcpy ? 2.0 : 1.0) * static_cast<double>(op.bytes);
    return std::max(static_cast<double>(op.flops) / host.flops, moving / host.memory_bandwidth);
}

}  // namespace shardscope::trainer::sim
