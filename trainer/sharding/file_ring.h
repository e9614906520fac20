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

    // A place for so many bytes; none: the oldest places are in use, or, unless the host `may_wait` for their
    // users, were given back only.
    std::optional<plan::Arg> take(plan::PlanBuilder& builder, std::int64_t bytes, bool may_wait);
    // It is free once these streams have done what is enqueued now.
    void give_back(plan::PlanBuilder& builder, const plan::Arg& place,
                   std::initializer_list<plan::Stream> users);

    // Where the oldest place begins; none: it was given back, or there is none.
    std::optional<std::int64_t> oldest_in_use() const {
        return places_.empty() || places_.front().given_back ? std::nullopt
                                                             : std::optional(places_.front().begin);
    }

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
