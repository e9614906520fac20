// One sweep over starts and instants with a stack of open ranges for each thread.
#include "traces/store/columns/nesting.h"

#include <algorithm>
#include <limits>

namespace shardscope::traces::store {

namespace {

class OpenRanges {
  public:
    OpenRanges(std::span<const std::int64_t> end, std::vector<std::uint16_t>& depth)
        : end_(end), depth_(depth) {}

    // Drops the ranges that have ended by `time`.
    void advance(std::int64_t time) {
        while (!stack_.empty() && end_of(stack_.back()) <= time) stack_.pop_back();
    }
    // The innermost open range around one that opens now and lasts until `end`. Ranges that end earlier are
    // dropped: the new range encloses everything that they would.
    std::int32_t enclosing(std::int64_t end) {
        while (!stack_.empty() && end_of(stack_.back()) < end) stack_.pop_back();
        return innermost();
    }
    std::int32_t innermost() const { return stack_.empty() ? -1 : stack_.back(); }
    // Places the range in the first free row below its parent's; otherwise ranges that outlast the enclosing
    // ones would be placed lower and lower.
    void open(std::int32_t range, std::int64_t time, std::int32_t parent) {
        constexpr std::size_t kLowest = std::numeric_limits<std::uint16_t>::max();
        std::size_t row = parent < 0 ? 0 : depth_[static_cast<std::size_t>(parent)] + std::size_t{1};
        while (row < kLowest && row < taken_until_.size() && taken_until_[row] > time) ++row;
        row = std::min(row, kLowest);
        if (row >= taken_until_.size()) taken_until_.resize(row + 1, time);
        taken_until_[row] = end_of(range);
        depth_[static_cast<std::size_t>(range)] = static_cast<std::uint16_t>(row);
        stack_.push_back(range);
    }

  private:
    std::int64_t end_of(std::int32_t range) const { return end_[static_cast<std::size_t>(range)]; }

    std::span<const std::int64_t> end_;
    std::vector<std::uint16_t>& depth_;
    std::vector<std::int32_t> stack_;        // no range outlasts the one below it
    std::vector<std::int64_t> taken_until_;  // by row
};

}  // namespace

Nesting nest(std::span<const std::int64_t> start, std::span<const std::int64_t> end,
             std::span<const std::uint16_t> thread, std::span<const std::int64_t> instants,
             std::span<const std::uint16_t> instant_thread) {
    Nesting result;
    result.parent.assign(start.size(), -1);
    result.depth.assign(start.size(), 0);
    result.innermost.assign(instants.size(), -1);

    std::size_t threads = 0;
    for (const auto t : thread) threads = std::max<std::size_t>(threads, t + std::size_t{1});
    for (const auto t : instant_thread) threads = std::max<std::size_t>(threads, t + std::size_t{1});
    std::vector<OpenRanges> open(threads, OpenRanges(end, result.depth));

    const auto answer = [&](std::size_t i) {
        OpenRanges& stack = open[instant_thread[i]];
        stack.advance(instants[i]);
        result.innermost[i] = stack.innermost();
    };
    std::size_t next_instant = 0;
    for (std::size_t r = 0; r < start.size(); ++r) {
        // A range that starts at an instant encloses it, so only earlier instants are answered first.
        while (next_instant < instants.size() && instants[next_instant] < start[r]) answer(next_instant++);
        OpenRanges& stack = open[thread[r]];
        stack.advance(start[r]);
        result.parent[r] = stack.enclosing(end[r]);
        stack.open(static_cast<std::int32_t>(r), start[r], result.parent[r]);
    }
    while (next_instant < instants.size()) answer(next_instant++);
    return result;
}

}  // namespace shardscope::traces::store
