// A lane is one line of bars: events that do not overlap, sorted by time, with the data that folding needs
// (sums of busy time, longest event by block). Pure data and arithmetic, any thread. Times in nanoseconds.
//
// Ten million events have to fit beside the trace's columns, so an event takes only 13 bytes here: a block of
// 64 events has full times; an event has its start relative to the block's, the busy time before it in the
// block, the row of the trace's columns, and its paint. A block longer than 4.29 s, which 32 bits cannot
// hold, keeps whole times (`wide_`).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "traces/analysis/waits/waits.h"
#include "traces/store/columns/column.h"
#include "traces/store/columns/column_bound.h"
#include "traces/store/columns/event_columns.h"
#include "traces/store/columns/names.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::lanes {

// --- The look of a bar, as a small number: one of the kinds below or, if the timeline is not coloured by
// kind, one of kHues hues or a cause (color_modes.h). Plain data.

using Paint = std::uint8_t;

// By kind: device events, then host ranges, then the rest.
inline constexpr int kFirstRangePaint = store::kDeviceKinds;
inline constexpr Paint kRuntimePaint = kFirstRangePaint + store::kRangeKinds;
inline constexpr Paint kWaitPaint = kRuntimePaint + 1;      // synchronisation of the host
inline constexpr Paint kMarkPaint = kRuntimePaint + 2;      // an instant that was marked
inline constexpr Paint kArrivalPaint = kRuntimePaint + 3;   // of a collective: until all ranks have arrived
inline constexpr Paint kTransferPaint = kRuntimePaint + 4;  // of a collective: from then on
inline constexpr int kKindPaints = kTransferPaint + 1;

// By name, module or unit.
inline constexpr int kHues = 12;
inline constexpr Paint kFirstHue = kKindPaints;
inline constexpr Paint kNoHue = kFirstHue + kHues;  // it has no module, no unit

// By cause of exposure: communication and copies.
inline constexpr Paint kFirstCause = kNoHue + 1;
inline constexpr Paint kHiddenPaint = kFirstCause + traces::analysis::kExposureCauses;  // not exposed
inline constexpr int kPaints = kHiddenPaint + 1;

constexpr Paint paint_of(store::DeviceKind kind) {
    return static_cast<Paint>(kind);
}
constexpr Paint paint_of(store::RangeKind kind) {
    return static_cast<Paint>(kFirstRangePaint + static_cast<int>(kind));
}

// "Kernel", "module", "waiting": what a bar with this paint is; of a kind only.
std::string_view paint_name(Paint paint);

// --- The paints of a lane's events, and which paint has the most time in any stretch of them. A lane has its
// own by kind; the same events by name, module or unit have others. Pure data, any thread. Times in
// nanoseconds.

class Lane;
using PaintTimes = std::array<std::int64_t, kPaints>;  // busy time by paint

class LanePaints {
  public:
    void reserve(std::size_t events) { paint_.reserve(events); }
    void add(Paint paint) { paint_.push_back(paint); }
    void finish(const Lane& lane);  // to be called after the last add(): computes the sums

    Paint paint(std::size_t i) const { return paint_[i]; }
    std::size_t size() const { return paint_.size(); }
    void prefetch(std::size_t i) const { __builtin_prefetch(&paint_[i]); }
    // The paint with the most time in events [first, last); for events of zero length the first one's.
    Paint dominant(const Lane& lane, std::size_t first, std::size_t last) const;
    // Adds the busy time of events [first, last) by paint.
    void add_times(const Lane& lane, std::size_t first, std::size_t last, PaintTimes& times) const;
    const store::Column<Paint>& used() const { return used_; }
    std::size_t memory() const;
    // Calls visit(name, column, bound) for each column, to keep them in a file or take them from one.
    template <typename Self, typename Visit>
    static void visit_columns(Self& self, Visit visit) {
        visit("paint", self.paint_, store::ColumnBound::index(kPaints));
        visit("used", self.used_, store::ColumnBound::index(kPaints));
        visit("sums", self.sums_, store::ColumnBound());
    }
    bool fits(std::size_t events) const;  // whether columns that were taken are those of so many events

  private:
    static constexpr std::size_t kGroup = 16;  // number of events with a common sum
    void walk(const Lane& lane, std::size_t first, std::size_t last, PaintTimes& times) const;

    store::Column<Paint> paint_;
    store::Column<Paint> used_;         // in order; sums are kept only if there are several
    store::Column<std::int64_t> sums_;  // up to each group, by used paint
};

class Lane {
  public:
    void reserve(std::size_t events);
    // Events must be added in order of start; one that starts before the previous one's end is refused
    // (false), one that ends before it starts gets length zero. `event.index` is below 2^29.
    bool add(std::int64_t start, std::int64_t end, store::EventRef event, Paint paint);
    // To be called after the last add(): computes the sums. Before it only size() and last_end() are valid.
    void finish();

    std::size_t size() const { return row_.size(); }
    std::int64_t last_end() const { return last_end_; }
    std::int64_t start(std::size_t i) const {
        const Block& b = blocks_[i / kBlock];
        return b.wide < 0 ? b.start + offset_[i] : wide(b, i).start;
    }
    std::int64_t end(std::size_t i) const { return start(i) + length(i); }
    std::int64_t length(std::size_t i) const { return busy_before(i + 1) - busy_before(i); }
    Paint paint(std::size_t i) const { return paints_.paint(i); }
    const LanePaints& paints() const { return paints_; }
    store::EventRef event(std::size_t i) const {
        const auto kind = static_cast<store::EventKind>(row_[i] >> kKindShift);
        return kind == store::EventKind::none ? store::EventRef{} : store::EventRef{kind, row_[i] & kRowMask};
    }

    // The first event that ends after `time`; size() if there is none.
    std::size_t first_ending_after(std::int64_t time) const;
    // The first event from `at` on that starts at or after `time`, by galloping search: cheap if it is near.
    std::size_t first_starting_from(std::size_t at, std::int64_t time) const;
    // The first event from `at` on that lasts at least `ns`; size() if there is none.
    std::size_t next_lasting(std::size_t at, std::int64_t ns) const;

    // Asks for the memory that first_starting_from() and busy() need in events [first, last) at time_of(0),
    // time_of(1) and so on, `count` rising times. Where these are far apart, each call would otherwise wait
    // for memory several times.
    template <typename TimeOf>
    void prefetch(const LanePaints& paints, std::size_t first, std::size_t last, int count,
                  const TimeOf& time_of) const {
        std::size_t block = first / kBlock;
        for (int t = 0; t < count && block * kBlock < last; ++t) {
            const std::int64_t time = time_of(t);
            block = last_block_before(block, time);
            const std::size_t guess = std::min(guessed(block, time), last - 1);
            __builtin_prefetch(&offset_[guess]);
            __builtin_prefetch(&busy_in_block_[guess]);
            paints.prefetch(guess);
        }
    }

    // Busy time of the whole events [first, last).
    std::int64_t busy(std::size_t first, std::size_t last) const {
        return busy_before(last) - busy_before(first);
    }
    // The kind with the most time in events [first, last).
    Paint dominant(std::size_t first, std::size_t last) const { return paints_.dominant(*this, first, last); }

    // Bytes used on the heap.
    std::size_t memory() const;
    // As in LanePaints, with those of the lane's own paints.
    template <typename Self, typename Visit>
    static void visit_columns(Self& self, Visit visit) {
        constexpr store::ColumnBound any;
        visit("offset", self.offset_, any);
        visit("busy", self.busy_in_block_, any);
        visit("row", self.row_, any);
        visit("blocks", self.blocks_, any);
        visit("longest", self.longest_super_, any);
        visit("wide", self.wide_, any);
        LanePaints::visit_columns(self.paints_, visit);
    }
    // Completes a lane whose columns were taken from a file; false: they do not fit together, or one of its
    // events is not in the trace.
    bool complete(const store::Trace& trace);

  private:
    static constexpr std::size_t kBlock = 64, kSuperBlock = kBlock * 64;
    static constexpr int kKindShift = 29;
    static constexpr std::uint32_t kRowMask = (1U << kKindShift) - 1;
    struct Block {
        std::int64_t start = 0;
        std::int64_t busy = 0;     // of all events before it
        std::int64_t longest = 0;  // of its events
        std::int32_t wide = -1;    // index of its first event in `wide_`, -1 none
    };
    struct Wide {
        std::int64_t start = 0, busy = 0;  // before it in its block
    };
    struct Whole {
        std::int64_t start = 0, end = 0;
    };

    const Wide& wide(const Block& b, std::size_t i) const {
        return wide_[static_cast<std::size_t>(b.wide) + i % kBlock];
    }
    // Busy time of events [0, i).
    std::int64_t busy_before(std::size_t i) const {
        const Block& b = blocks_[i / kBlock];  // there is one more block than the events need
        if (i % kBlock == 0 || i >= size()) return i >= size() ? busy_ : b.busy;
        return b.busy + (b.wide < 0 ? busy_in_block_[i] : wide(b, i).busy);
    }
    // The last block from `block` on that starts before `time`, by galloping search; `block` if none does.
    std::size_t last_block_before(std::size_t block, std::int64_t time) const {
        const std::size_t count = blocks_.size() - 1;
        std::size_t step = 1;
        while (block + step < count && blocks_[block + step].start < time) {
            block += step;
            step *= 2;
        }
        for (; step > 0; step /= 2) {
            if (block + step < count && blocks_[block + step].start < time) block += step;
        }
        return block;
    }
    // About the first event of a block that starts at or after `time`, as if they were evenly spread.
    std::size_t guessed(std::size_t block, std::int64_t time) const {
        const std::int64_t span = blocks_[block + 1].start - blocks_[block].start;
        const std::int64_t into = std::clamp<std::int64_t>(time - blocks_[block].start, 0, span);
        return block * kBlock +
               static_cast<std::size_t>(
                   span > 0 ? static_cast<double>(into) / static_cast<double>(span) * kBlock : 0);
    }
    void seal();

    store::Column<std::uint32_t> offset_, busy_in_block_, row_;
    store::Column<Block> blocks_;
    store::Column<std::int64_t> longest_super_;
    store::Column<Wide> wide_;
    LanePaints paints_;
    std::vector<Whole> open_;  // the events of the block that is being filled
    std::int64_t busy_ = 0, last_end_ = std::numeric_limits<std::int64_t>::min();
};

}  // namespace shardscope::traces::lanes
