#include "trainer/sharding/host_files.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "trainer/plan/disk_block.h"
#include "trainer/sharding/optimizer.h"
#include "trainer/sharding/values.h"

namespace shardscope::trainer::sharding {

namespace {

// One is read, one updated and one written.
constexpr std::int64_t kLargestInRing = 3;

}  // namespace

std::int64_t HostFiles::File::state_begin() const {
    return plan::whole_blocks(bytes);
}

std::int64_t HostFiles::File::narrow_begin() const {
    return state_begin() + plan::whole_blocks(state_bytes);
}

std::int64_t HostFiles::File::region() const {
    return narrow_begin() + plan::whole_blocks(narrow);
}

void HostFiles::add(plan::BufferId parameters, std::int64_t bytes, std::int64_t narrow) {
    File file;
    file.parameters = parameters;
    file.bytes = bytes;
    file.narrow = narrow;
    files_.push_back(file);
}

HostFiles::File& HostFiles::of(plan::BufferId parameters) {
    const auto file =
        std::lower_bound(files_.begin(), files_.end(), parameters,
                         [](const File& each, plan::BufferId id) { return each.parameters < id; });
    if (file == files_.end() || file->parameters != parameters)
        throw std::logic_error("the buffer is not in a file");
    return *file;
}

void HostFiles::add_slot(std::vector<plan::Buffer>& persistent, OptimizerSlot& slot, std::size_t states) {
    File& file = of(slot.parameter.buffer);
    ++file.slots;
    if (states == 0) return;
    if (file.state < 0) {
        const plan::Buffer& parameters = persistent[static_cast<std::size_t>(file.parameters)];
        file.state = static_cast<plan::BufferId>(persistent.size());
        persistent.push_back({parameters.name + ".state", plan::MemoryCategory::optimizer_state,
                              plan::MemorySpace::disk, 0, parameters.unit, parameters.module});
    }
    for (std::size_t i = 0; i < states; ++i) {
        slot.state.push_back({file.state, file.state_bytes, slot.elements * kFloat});
        file.state_bytes += slot.elements * kFloat;
    }
    persistent[static_cast<std::size_t>(file.state)].bytes = file.state_bytes;
}

void HostFiles::declare_ring(std::vector<plan::Buffer>& persistent) {
    std::int64_t largest = plan::kDiskBlock;
    for (const File& file : files_) largest = std::max(largest, file.region());
    ring_.declare(persistent, kLargestInRing * largest);
}

// Reads come after the writes of earlier Plans.
void HostFiles::begin_plan(plan::PlanBuilder& builder) {
    for (File& file : files_) {
        file.place = {};
        file.read = -1;
        file.loaded = false;
    }
    builder.order(plan::Stream::disk_write, plan::Stream::disk_read);
    ring_.begin_plan(builder);
}

void HostFiles::end_plan() const {
    if (std::any_of(files_.begin(), files_.end(), [](const File& file) { return file.loaded; }))
        throw std::logic_error("the ring still has a file that was loaded");
}

plan::Arg HostFiles::fill(plan::PlanBuilder& builder, plan::BufferId parameters) {
    File& file = of(parameters);
    file.place = ring_.take(builder, file.region(), true).value();
    file.loaded = true;
    file.with_state = false;
    return in_ring(file, 0, file.bytes);
}

bool HostFiles::read_ahead(plan::PlanBuilder& builder, plan::BufferId parameters, bool with_state,
                           bool may_wait) {
    File& file = of(parameters);
    if (file.place.buffer >= 0) return true;
    const std::optional<plan::Arg> place = ring_.take(builder, file.region(), may_wait);
    if (!place) return false;
    const plan::PlanBuilder::Range range(builder, "swap_in");
    file.place = *place;
    file.with_state = with_state && file.state >= 0;
    file.left = file.slots;
    builder.memcpy(in_ring(file, 0, file.bytes), builder.whole(file.parameters),
                   traces::schema::kCopyDiskToHost, plan::Stream::disk_read);
    if (file.with_state) {
        builder.memcpy(in_ring(file, file.state_begin(), file.state_bytes), builder.whole(file.state),
                       traces::schema::kCopyDiskToHost, plan::Stream::disk_read);
    }
    file.read = builder.new_event();
    builder.record(file.read, plan::Stream::disk_read);
    return true;
}

// What was read ahead and not loaded: the order of the modules was another one. False: the oldest in the ring
// is in use.
bool HostFiles::forget_oldest(plan::PlanBuilder& builder) {
    const std::optional<std::int64_t> begin = ring_.oldest_in_use();
    for (File& file : files_) {
        if (file.place.buffer < 0 || file.loaded || file.place.offset != begin) continue;
        free(builder, file, {plan::Stream::disk_read});
        return true;
    }
    return false;
}

plan::Arg HostFiles::load(plan::PlanBuilder& builder, plan::BufferId parameters, bool with_state) {
    File& file = of(parameters);
    const bool lacks_state = with_state && !file.with_state && file.state >= 0;
    if (file.place.buffer >= 0 && lacks_state) free(builder, file, {plan::Stream::disk_read});
    while (!read_ahead(builder, parameters, with_state, true)) {
        if (!forget_oldest(builder))
            throw std::logic_error("the ring of files has no room for what must be loaded");
    }
    if (!std::exchange(file.loaded, true)) {
        const plan::PlanBuilder::Range range(builder, "synchronize_reads");
        builder.host_wait(file.read);
    }
    return in_ring(file, 0, file.bytes);
}

OptimizerSlot HostFiles::load(plan::PlanBuilder& builder, const OptimizerSlot& slot, bool with_state) {
    load(builder, slot.parameter.buffer, with_state);
    const File& file = of(slot.parameter.buffer);
    OptimizerSlot loaded = slot;
    loaded.parameter = in_ring(file, slot.parameter.offset, slot.parameter.bytes);
    for (plan::Arg& state : loaded.state)
        state = in_ring(file, file.state_begin() + state.offset, state.bytes);
    loaded.narrow = in_ring(file, file.narrow_begin() + slot.narrow.offset, slot.narrow.bytes);
    return loaded;
}

void HostFiles::updated(plan::PlanBuilder& builder, const OptimizerSlot& slot) {
    File& file = of(slot.parameter.buffer);
    if (--file.left == 0) store(builder, file.parameters);
}

void HostFiles::store(plan::PlanBuilder& builder, plan::BufferId parameters) {
    const plan::PlanBuilder::Range range(builder, "swap_out");
    const File& file = of(parameters);
    builder.memcpy(builder.whole(file.parameters), in_ring(file, 0, file.bytes),
                   traces::schema::kCopyHostToDisk, plan::Stream::disk_write);
    if (file.with_state) {
        builder.memcpy(builder.whole(file.state), in_ring(file, file.state_begin(), file.state_bytes),
                       traces::schema::kCopyHostToDisk, plan::Stream::disk_write);
    }
    // They may also be on their way to the device.
    free(builder, of(parameters), {plan::Stream::disk_write, plan::Stream::pre_unshard});
}

void HostFiles::let_go(plan::PlanBuilder& builder, plan::BufferId parameters, plan::Stream user) {
    free(builder, of(parameters), {user});
}

void HostFiles::free(plan::PlanBuilder& builder, File& file, std::initializer_list<plan::Stream> users) {
    ring_.give_back(builder, file.place, users);
    file.place = {};
    file.loaded = false;
}

}  // namespace shardscope::trainer::sharding
