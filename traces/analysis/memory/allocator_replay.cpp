#include "traces/analysis/memory/allocator_replay.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace shardscope::traces::analysis {
namespace {

// Names a request that is only tried; no block has this address.
constexpr std::uint64_t kTriedRequest = std::numeric_limits<std::uint64_t>::max();

class RequestReplay {
    using Kind = AllocatorEvent::Kind;

  public:
    RequestReplay(const AllocatorHistory& history, const AllocatorSettings& settings, std::int64_t limit,
                  const IntervalSet* selected)
        : history_(history),
          settings_(settings),
          limit_(limit),
          selected_(selected),
          allocator_(settings, limit) {
        for (const InitialSegment& segment : history.initial)
            allocator_.add_segment(segment.place, segment.pieces, segment.expandable);
        for (const AllocatorEvent& event : history.events) {
            if (event.kind == Kind::segment && event.bytes > 0)
                allocator_.offer_address(event.bytes, std::max(event.stream, 0), event.address);
        }
    }

    AllocatorReplay run() {
        const auto& events = history_.events;
        std::int64_t from = std::numeric_limits<std::int64_t>::min();
        for (const AllocatorEvent& event : events) {
            look(from, event.time);
            from = event.time;
            apply(event);
            note_changes(event.time);
        }
        look(from, std::numeric_limits<std::int64_t>::max());
        result_.retries = allocator_.retries();
        result_.segments = allocator_.segments();
        return std::move(result_);
    }

  private:
    void apply(const AllocatorEvent& event) {
        switch (event.kind) {
            case Kind::allocate:
                ++result_.allocations;
                if (!allocator_.allocate(event.address, event.bytes, event.stream, event.pool)) {
                    ++result_.failed;
                } else if (allocator_.address_of(event.address) == event.address) {
                    ++result_.at_recorded_address;
                }
                break;
            case Kind::request_free:
                allocator_.request_free(event.address);
                break;
            case Kind::free:
                allocator_.free(event.address);
                break;
            case Kind::fail:
                try_request(event);
                break;
            case Kind::empty_cache:
                allocator_.empty_cache();
                break;
            case Kind::end_step:
                if (settings_.empty_cache) allocator_.empty_cache();
                break;
            case Kind::segment:
                break;
        }
    }

    // The recorded program went on without the memory: a request that fits is undone; one that fails leaves
    // the cache released.
    void try_request(const AllocatorEvent& event) {
        const std::int64_t limit = event.limit > 0 ? event.limit : limit_;
        constexpr std::size_t kMostTried = 1000;  // each costs a copy
        if (limit == 0 || result_.failures.size() >= kMostTried) {
            result_.failures.emplace_back();
            return;
        }
        RequestOutcome outcome{.state = allocator_.state()};
        CachingAllocator tried = allocator_;
        tried.set_limit(limit);
        outcome.fits = tried.allocate(kTriedRequest, event.bytes, event.stream, event.pool);
        outcome.left = limit - tried.reserved();
        if (!outcome.fits) {
            // What an allocator without a limit would need beyond it.
            CachingAllocator larger = tried;
            larger.set_limit(0);
            larger.allocate(kTriedRequest, event.bytes, event.stream, event.pool);
            outcome.left = limit - larger.reserved();
            tried.set_limit(limit_);
            allocator_ = std::move(tried);
        }
        result_.failures.emplace_back(outcome);
    }

    // The state is that of [from, to), or of a moment.
    void look(std::int64_t from, std::int64_t to) {
        if (allocator_.reserved() <= result_.peak.reserved) return;
        if (selected_ != nullptr) {
            while (next_ < selected_->size() && (*selected_)[next_].end <= from) ++next_;
            if (next_ == selected_->size() || (*selected_)[next_].start > to) return;
            from = std::max(from, (*selected_)[next_].start);
        }
        result_.peak = allocator_.state();
        result_.peak_time = std::max<std::int64_t>(from, 0);
    }

    void note_changes(std::int64_t time) {
        for (const auto& all = allocator_.changes(); result_.changes.size() < all.size();)
            result_.changes.push_back({time, all[result_.changes.size()]});
    }

    const AllocatorHistory& history_;
    const AllocatorSettings& settings_;
    std::int64_t limit_;
    const IntervalSet* selected_;
    std::size_t next_ = 0;  // of selected_
    CachingAllocator allocator_;
    AllocatorReplay result_;
};

}  // namespace

AllocatorReplay replay_allocator(const AllocatorHistory& history, const AllocatorSettings& settings,
                                 std::int64_t limit, const IntervalSet* selected) {
    return RequestReplay(history, settings, limit, selected).run();
}

}  // namespace shardscope::traces::analysis
