#include "trainer/sharding/file_ring.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace shardscope::trainer::sharding {

void FileRing::declare(std::vector<plan::Buffer>& persistent, std::int64_t bytes) {
    size_ = bytes;
    buffer_ = static_cast<plan::BufferId>(persistent.size());
    persistent.push_back({"ring of files", plan::MemoryCategory::other, plan::MemorySpace::pinned, bytes});
}

void FileRing::set_up(plan::PlanBuilder& builder) {
    builder.allocate(buffer_, plan::Stream::host);
    places_.clear();
    next_ = 0;
}

void FileRing::begin_plan(plan::PlanBuilder& builder) {
    places_.clear();
    next_ = 0;
    before_.clear();
    for (const plan::Stream stream :
         {plan::Stream::disk_read, plan::Stream::disk_write, plan::Stream::pre_unshard}) {
        before_.push_back(builder.new_event());
        builder.record(before_.back(), stream);
    }
}

// The places in use are one stretch of the ring, or all but one.
std::optional<std::int64_t> FileRing::room_for(std::int64_t bytes) const {
    const bool empty = places_.empty();
    const std::int64_t first = empty ? size_ : places_.front().begin, next = empty ? 0 : next_;
    if (next < first || empty) return next + bytes <= first ? std::optional(next) : std::nullopt;
    if (next == first) return std::nullopt;
    if (next + bytes <= size_) return next;
    return bytes <= first ? std::optional<std::int64_t>(0) : std::nullopt;
}

std::optional<plan::Arg> FileRing::take(plan::PlanBuilder& builder, std::int64_t bytes, bool may_wait) {
    std::optional<std::int64_t> begin;
    while (!(begin = room_for(bytes))) {
        if (!may_wait || places_.empty() || !places_.front().given_back) return std::nullopt;
        for (const plan::EventId event : places_.front().free_after) builder.host_wait(event);
        places_.pop_front();
    }
    for (const plan::EventId event : std::exchange(before_, {})) builder.host_wait(event);
    next_ = *begin + bytes;
    places_.push_back({*begin, next_, false, {}});
    return plan::Arg{buffer_, *begin, bytes};
}

void FileRing::give_back(plan::PlanBuilder& builder, const plan::Arg& place,
                         std::initializer_list<plan::Stream> users) {
    const auto own = std::find_if(places_.begin(), places_.end(),
                                  [&](const Place& each) { return each.begin == place.offset; });
    if (own == places_.end()) throw std::logic_error("the ring of files has no such place");
    own->given_back = true;
    for (const plan::Stream user : users) {
        own->free_after.push_back(builder.new_event());
        builder.record(own->free_after.back(), user);
    }
}

}  // namespace shardscope::trainer::sharding
