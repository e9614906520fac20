// Pinned memory through which passes what the hosts keep in files (memory.nvme): one buffer, whose places are
// taken in turn and are free again in the same order. Every Plan begins with an empty ring.
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <optional>
#include <vector>

#include "trainer/plan/builder.h"

namespace shardscope::trainer::sharding {

class FileRing {
  public:
    void declare(std::vector<plan::Buffer>& persistent, std::int64_t bytes);
    void set_up(plan::PlanBuilder& builder);
    void begin_plan(plan::PlanBuilder& builder);

    // A place for so many bytes. With `waits` the host waits, if need be, until what was given back is free;
    // none: there is no room.
    std::optional<plan::Arg> take(plan::PlanBuilder& builder, std::int64_t bytes, bool waits);
    // It is free once these streams have done what is enqueued now.
    void give_back(plan::PlanBuilder& builder, const plan::Arg& place,
                   std::initializer_list<plan::Stream> users);

  private:
    struct Place {
        std::int64_t begin = 0, end = 0;
        bool given_back = false;
        std::vector<plan::EventId> free_after;
    };
    std::optional<std::int64_t> room_for(std::int64_t bytes) const;

    plan::BufferId buffer_ = -1;
    std::int64_t size_ = 0, next_ = 0;
    std::deque<Place> places_;           // the oldest first
    std::vector<plan::EventId> before_;  // the ring is free of their work after these
};

}  // namespace shardscope::trainer::sharding
