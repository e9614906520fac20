// See lane.h.
#include "traces/lanes/lane.h"

#include <algorithm>

namespace shardscope::traces::lanes {

std::string_view paint_name(Paint paint) {
    if (paint < kFirstRangePaint) return store::kDeviceKindNames[paint];
    if (paint < kRuntimePaint)
        return store::kRangeKindNames[static_cast<std::size_t>(paint - kFirstRangePaint)];
    switch (paint) {
        case kRuntimePaint:
            return "runtime call";
        case kWaitPaint:
            return "waiting";
        case kMarkPaint:
            return "mark";
        case kArrivalPaint:
            return "ranks arrive";
        default:
            return "transfer";
    }
}

void LanePaints::finish(const Lane& lane) {
    paint_.shrink_to_fit();
    std::array<bool, kPaints> is_used{};
    for (const Paint paint : paint_) is_used[paint] = true;
    used_.clear();
    for (Paint paint = 0; paint < kPaints; ++paint) {
        if (is_used[paint]) used_.push_back(paint);
    }
    sums_.clear();
    if (used_.size() < 2) return;
    sums_.reserve((paint_.size() / kGroup + 1) * used_.size());
    PaintTimes times{};
    for (std::size_t i = 0; i <= paint_.size(); i += kGroup) {
        for (const Paint paint : used_) sums_.push_back(times[paint]);
        walk(lane, i, std::min(i + kGroup, paint_.size()), times);
    }
}

void LanePaints::walk(const Lane& lane, std::size_t first, std::size_t last, PaintTimes& times) const {
    for (std::size_t i = first; i < last; ++i) times[paint_[i]] += lane.length(i);
}

void LanePaints::add_times(const Lane& lane, std::size_t first, std::size_t last, PaintTimes& times) const {
    if (first >= last) return;
    if (used_.size() < 2) {
        times[paint_[first]] += lane.busy(first, last);
        return;
    }
    const std::size_t from = (first + kGroup - 1) / kGroup, to = last / kGroup;
    if (from >= to) return walk(lane, first, last, times);
    walk(lane, first, from * kGroup, times);
    const std::size_t n = used_.size();
    for (std::size_t u = 0; u < n; ++u) times[used_[u]] += sums_[to * n + u] - sums_[from * n + u];
    walk(lane, to * kGroup, last, times);
}

Paint LanePaints::dominant(const Lane& lane, std::size_t first, std::size_t last) const {
    if (first >= last) return 0;
    if (used_.size() < 2 || last - first == 1) return paint_[first];
    PaintTimes times{};
    add_times(lane, first, last, times);
    Paint best = paint_[first];
    for (const Paint paint : used_) {
        if (times[paint] > times[best]) best = paint;
    }
    return best;
}

std::size_t LanePaints::memory() const {
    return paint_.memory() + used_.memory() + sums_.memory();
}

bool LanePaints::fits(std::size_t events) const {
    return paint_.size() == events && !used_.empty() &&
           sums_.size() == (used_.size() < 2 ? 0 : (events / kGroup + 1) * used_.size());
}

void Lane::reserve(std::size_t events) {
    offset_.reserve(events);
    busy_in_block_.reserve(events);
    row_.reserve(events);
    paints_.reserve(events);
    blocks_.reserve(events / kBlock + 2);
}

bool Lane::add(std::int64_t start, std::int64_t end, store::EventRef event, Paint paint) {
    if (start < last_end_) return false;
    last_end_ = std::max(start, end);
    open_.push_back({start, last_end_});
    row_.push_back(static_cast<std::uint32_t>(event.kind) << kKindShift |
                   (static_cast<std::uint32_t>(event.index) & kRowMask));
    paints_.add(paint);
    if (open_.size() == kBlock) seal();
    return true;
}

void Lane::seal() {
    Block block;
    block.start = open_.front().start;
    block.busy = busy_;
    const bool fits = open_.back().end - block.start <= std::numeric_limits<std::uint32_t>::max();
    if (!fits) block.wide = static_cast<std::int32_t>(wide_.size());
    std::int64_t busy = 0;
    for (const Whole& event : open_) {
        offset_.push_back(fits ? static_cast<std::uint32_t>(event.start - block.start) : 0);
        busy_in_block_.push_back(fits ? static_cast<std::uint32_t>(busy) : 0);
        if (!fits) wide_.push_back({event.start, busy});
        busy += event.end - event.start;
        block.longest = std::max(block.longest, event.end - event.start);
    }
    busy_ += busy;
    blocks_.push_back(block);
    open_.clear();
}

void Lane::finish() {
    if (!open_.empty()) seal();
    open_.shrink_to_fit();
    blocks_.push_back({.start = last_end_, .busy = busy_, .longest = -1, .wide = -1});
    for (auto* column : {&offset_, &busy_in_block_, &row_}) column->shrink_to_fit();
    blocks_.shrink_to_fit();
    wide_.shrink_to_fit();
    longest_super_.assign(size() / kSuperBlock + 1, -1);
    for (std::size_t b = 0; b + 1 < blocks_.size(); ++b) {
        std::int64_t& longest = longest_super_[b * kBlock / kSuperBlock];
        longest = std::max(longest, blocks_[b].longest);
    }
    paints_.finish(*this);
}

std::size_t Lane::first_ending_after(std::int64_t time) const {
    // Events do not overlap: of those that start by `time` only the last may end after it.
    const std::size_t next =
        time == std::numeric_limits<std::int64_t>::max() ? size() : first_starting_from(0, time + 1);
    return next > 0 && end(next - 1) > time ? next - 1 : next;
}

std::size_t Lane::first_starting_from(std::size_t at, std::int64_t time) const {
    if (at >= size() || start(at) >= time) return std::min(at, size());
    const std::size_t low = last_block_before(at / kBlock, time);
    const Block& block = blocks_[low];
    const std::size_t from = std::max(at, low * kBlock), to = std::min((low + 1) * kBlock, size());
    if (block.wide >= 0) {
        const auto first = wide_.begin() + block.wide;
        const auto found =
            std::partition_point(first + static_cast<std::ptrdiff_t>(from % kBlock),
                                 first + static_cast<std::ptrdiff_t>(from % kBlock + (to - from)),
                                 [time](const Wide& w) { return w.start < time; });
        return low * kBlock + static_cast<std::size_t>(found - first);
    }
    const auto sought = static_cast<std::uint64_t>(time - block.start);
    if (sought > std::numeric_limits<std::uint32_t>::max()) return to;
    // Events are spread over their block: the sought one is mostly in the line of memory where it is guessed.
    std::size_t guess = std::clamp(guessed(low, time), from, to - 1);
    if (offset_[guess] < sought) {
        while (guess < to && offset_[guess] < sought) ++guess;
    } else {
        while (guess > from && offset_[guess - 1] >= sought) --guess;
    }
    return guess;
}

std::size_t Lane::next_lasting(std::size_t at, std::int64_t ns) const {
    std::size_t i = at;
    while (i < size()) {
        if (i % kSuperBlock == 0 && longest_super_[i / kSuperBlock] < ns) {
            i += kSuperBlock;
        } else if (i % kBlock == 0 && blocks_[i / kBlock].longest < ns) {
            i += kBlock;
        } else if (length(i) >= ns) {
            return i;
        } else {
            ++i;
        }
    }
    return size();
}

std::size_t Lane::memory() const {
    return offset_.memory() + busy_in_block_.memory() + row_.memory() + blocks_.memory() +
           longest_super_.memory() + wide_.memory() + paints_.memory();
}

bool Lane::complete(const store::Trace& trace) {
    const std::size_t events = row_.size();
    if (events == 0 || offset_.size() != events || busy_in_block_.size() != events ||
        blocks_.size() != (events + kBlock - 1) / kBlock + 1 ||
        longest_super_.size() != events / kSuperBlock + 1 || !paints_.fits(events))
        return false;
    // Differences of times that lie apart by less than half of 64 bits can be computed.
    constexpr std::int64_t kLatest = std::numeric_limits<std::int64_t>::max() / 2;
    const auto computable = [](std::int64_t time) { return time >= -kLatest && time <= kLatest; };
    for (const Wide& event : wide_) {
        if (!computable(event.start)) return false;
    }
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
        const std::size_t its_events = std::min(events, (b + 1) * kBlock) - std::min(events, b * kBlock);
        const std::int64_t wide = blocks_[b].wide;
        if (wide < -1 || wide > static_cast<std::int64_t>(wide_.size()) ||
            (wide >= 0 && its_events > wide_.size() - static_cast<std::size_t>(wide)))
            return false;
        if (!computable(blocks_[b].start) || (b > 0 && blocks_[b].start < blocks_[b - 1].start)) return false;
    }
    std::array<std::size_t, std::size_t{1} << (32 - kKindShift)> rows{};
    const auto rows_of = [&rows](store::EventKind kind) -> std::size_t& {
        return rows[static_cast<std::size_t>(kind)];
    };
    rows_of(store::EventKind::none) = std::size_t{kRowMask} + 1;
    rows_of(store::EventKind::device) = trace.device.size();
    rows_of(store::EventKind::range) = trace.ranges.size();
    rows_of(store::EventKind::runtime) = trace.runtime.size();
    rows_of(store::EventKind::wait) = trace.synchronizations.size();
    rows_of(store::EventKind::mark) = trace.marks.size();
    bool known = true;
    for (const std::uint32_t row : row_) known &= (row & kRowMask) < rows[row >> kKindShift];
    busy_ = blocks_.back().busy;
    last_end_ = blocks_.back().start;
    return known;
}

}  // namespace shardscope::traces::lanes
