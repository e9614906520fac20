// The optimizer on the host (memory.offload): gradients come to it, and parameters go back.
#include <algorithm>
#include <utility>

#include "traces/schema/enums.h"
#include "trainer/sharding/optimizer.h"
#include "trainer/sharding/values.h"

namespace shardscope::trainer::sharding {

namespace {

// Gradients that may be on their way to the host: two arrivals, or more as long as they are small. The
// device's memory for them is free only when they have left.
constexpr std::size_t kMostArrivals = 2;
constexpr std::int64_t kMostArriving = std::int64_t{64} << 20;  // bytes

}  // namespace

void OptimizerPlanner::arrive(plan::PlanBuilder& builder, std::vector<std::size_t> slots, plan::EventId event,
                              bool complete) {
    std::int64_t bytes = 0;
    if (files_ && complete && updates_one_by_one()) {
        if (!has_state_) {
            const plan::PlanBuilder::Scope scope(builder, plan::Phase::optimizer, -1, -1);
            allocate_state(builder);
        }
        for (const std::size_t slot : slots)
            if (!read_ahead(builder, slot, true)) break;
    }
    for (const std::size_t slot : slots) bytes += slots_[slot].gradient.bytes;
    arrivals_.push_back({std::move(slots), event, bytes, complete});
    arriving_ += bytes;
    while (arrivals_.size() > kMostArrivals && arriving_ > kMostArriving) take_arrival(builder);
}

void OptimizerPlanner::take_arrival(plan::PlanBuilder& builder) {
    const Arrival arrival = std::move(arrivals_.front());
    arrivals_.pop_front();
    arriving_ -= arrival.bytes;
    builder.host_wait(arrival.event);
    if (!arrival.complete || !updates_one_by_one()) return;
    const plan::PlanBuilder::Range range(builder, "Optimizer.step#" + class_name() + ".step");
    if (!has_state_) {
        const plan::PlanBuilder::Scope scope(builder, plan::Phase::optimizer, -1, -1);
        allocate_state(builder);
    }
    for (const std::size_t slot : arrival.slots) update_slot(builder, slot);
}

void OptimizerPlanner::update_slot(plan::PlanBuilder& builder, std::size_t slot) {
    const OptimizerSlot& own = slots_[slot];
    const plan::PlanBuilder::Scope scope(builder, plan::Phase::optimizer, own.module, own.unit);
    const OptimizerSlot at = files_ ? files_->load(builder, own, true) : own;
    update(builder, {&at, at.segments}, {});
    copy_to_device(builder, at);
    if (files_) files_->done(builder, own, true);
    updated_.insert(slot);
}

bool OptimizerPlanner::read_ahead(plan::PlanBuilder& builder, std::size_t slot, bool waits) {
    const OptimizerSlot& own = slots_[slot];
    const plan::PlanBuilder::Scope scope(builder, plan::Phase::optimizer, own.module, own.unit);
    return files_->read_ahead(builder, own.parameter.buffer, true, waits);
}

// While one is updated, the next one is read, and more as long as there is room.
void OptimizerPlanner::update_from_files(plan::PlanBuilder& builder) {
    std::vector<std::size_t> left;
    for (std::size_t s = 0; s < slots_.size(); ++s)
        if (slots_[s].trained() && !updated_.contains(s)) left.push_back(s);
    for (std::size_t i = 0, ahead = 0; i < left.size(); ++i) {
        ahead = std::max(ahead, i);
        while (ahead < left.size() && read_ahead(builder, left[ahead], ahead <= i + 1)) ++ahead;
        update_slot(builder, left[i]);
    }
}

bool OptimizerPlanner::updates_one_by_one() const {
    return !norm_wanted_ && !scales_loss_ && !job::needs_norms(options_.type);
}

// The last read of the device's copy precedes the gradient that the host has waited for.
void OptimizerPlanner::copy_to_device(plan::PlanBuilder& builder, const OptimizerSlot& slot) const {
    if (slot.on_device.buffer < 0) return;
    const bool sets_up = builder.phase() == plan::Phase::setup;
    const plan::PlanBuilder::Scope scope(builder, sets_up ? plan::Phase::setup : plan::Phase::optimizer,
                                         slot.module, slot.unit);
    plan::Arg from = slot.parameter;
    if (slot.device_type != plan::DType::fp32) {
        from = slot.narrow;
        builder.cast("cast", from, slot.device_type, slot.parameter, plan::DType::fp32,
                     slot.parameter.bytes / kFloat, plan::Stream::host);
    }
    builder.memcpy(slot.on_device, from, traces::schema::kCopyHostToDevice, plan::Stream::pre_unshard);
}

void OptimizerPlanner::copy_parameters(plan::PlanBuilder& builder) {
    if (files_) builder.order(plan::Stream::disk_write, plan::Stream::disk_read);
    for (const OptimizerSlot& slot : slots_) {
        if (slot.on_device.buffer < 0) continue;
        copy_to_device(builder, files_ ? files_->load(builder, slot, false) : slot);
        if (files_) files_->done(builder, slot, false);
    }
    builder.order(plan::Stream::pre_unshard, plan::Stream::compute);
}

}  // namespace shardscope::trainer::sharding
