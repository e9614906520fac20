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
    for (const std::size_t slot : slots) bytes += slots_[slot].gradient.bytes;
    if (files_ && complete && updates_one_by_one()) {
        need_state(builder);
        for (const std::size_t slot : slots)
            if (!read_ahead(builder, slot, false)) break;  // the host has kernels to launch first
    }
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
    need_state(builder);
    update_slots(builder, arrival.slots,
                 arrivals_.empty() ? std::vector<std::size_t>() : arrivals_.front().slots);
}

// While one is updated, the next one is read, and more as long as there is room.
void OptimizerPlanner::update_slots(plan::PlanBuilder& builder, const std::vector<std::size_t>& slots,
                                    const std::vector<std::size_t>& later) {
    std::vector<std::size_t> all = slots;
    all.insert(all.end(), later.begin(), later.end());
    for (std::size_t i = 0, ahead = 0; i < slots.size(); ++i) {
        ahead = std::max(ahead, i);
        while (files_ && ahead < all.size() && read_ahead(builder, all[ahead], ahead <= i + 1)) ++ahead;
        update_slot(builder, slots[i]);
    }
}

void OptimizerPlanner::update_slot(plan::PlanBuilder& builder, std::size_t slot) {
    const OptimizerSlot& own = slots_[slot];
    const plan::PlanBuilder::Scope scope(builder, plan::Phase::optimizer, own.module, own.unit);
    const OptimizerSlot at = files_ ? files_->load(builder, own, true) : own;
    update(builder, {&at, at.segments}, {});
    copy_to_device(builder, at);
    if (files_) files_->updated(builder, own);
    updated_.insert(slot);
}

bool OptimizerPlanner::read_ahead(plan::PlanBuilder& builder, std::size_t slot, bool may_wait) {
    const OptimizerSlot& own = slots_[slot];
    const plan::PlanBuilder::Scope scope(builder, plan::Phase::optimizer, own.module, own.unit);
    return files_->read_ahead(builder, own.parameter.buffer, true, may_wait);
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
    plan::BufferId loaded = -1;  // the file
    const auto leave = [&] {
        if (files_ && loaded >= 0) files_->let_go(builder, loaded, plan::Stream::pre_unshard);
    };
    for (const OptimizerSlot& slot : slots_) {
        if (slot.on_device.buffer < 0) continue;
        if (slot.parameter.buffer != loaded) leave();
        loaded = slot.parameter.buffer;
        copy_to_device(builder, files_ ? files_->load(builder, slot, false) : slot);
    }
    leave();
    builder.order(plan::Stream::pre_unshard, plan::Stream::compute);
}

}  // namespace shardscope::trainer::sharding
