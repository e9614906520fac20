// What compute does with the units of a rank: whose compute runs at every moment, how long the whole
// parameters of units are held, and how long compute waits for them. Internal to the library. Times in
// nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "traces/analysis/base/intervals.h"
#include "traces/store/columns/index.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// The compute of one rank; each instant belongs to the unit whose kernel started first.
class UnitCompute {
  public:
    void add(Interval kernel, store::UnitIndex unit);  // in order of start

    // Adds to `by_unit` the compute within `time`; returns the sum.
    std::int64_t overlap(Interval time, std::unordered_map<store::UnitIndex, std::int64_t>& by_unit) const;

  private:
    struct Piece {
        Interval time;
        store::UnitIndex unit;
    };
    std::vector<Piece> pieces_;  // disjoint, sorted by time
    std::int64_t last_end_ = std::numeric_limits<std::int64_t>::min();
};

// Calls in which a host thread waits for the device ("cudaStreamSynchronize" and similar).
class BlockingCalls {
  public:
    // Ignores calls directly inside the ranges `left_out`.
    BlockingCalls(const store::Trace& trace, std::span<const std::int32_t> left_out);

    // The start of the call that blocked the thread at `time`; `time` itself if none did.
    std::int64_t since(std::uint16_t thread, std::int64_t time) const;

  private:
    const store::Trace& trace_;
    std::vector<std::vector<std::int32_t>> by_thread_;  // by thread, sorted by time
};

// Gathers and compute kernels of the units must be added in the order of their starts on the device.
//
// A kernel uses the last gather that was launched before it and has ended when it starts. A unit is held from
// the start of a gather to the end of the last kernel that used it; if the next gather was launched before
// that, two copies live for a while. An unused gather belongs to the next one if that was launched before it
// ended (a unit made of several collectives). Wait: see units.h.
class UnitResidencies {
  public:
    UnitResidencies(const store::Trace& trace, std::size_t units, const BlockingCalls& blocking);

    // `id`: identifies the gather in the results. `step`: index of its rank's step.
    void add_gather(std::size_t id, std::size_t event, store::UnitIndex unit, std::int32_t step,
                    std::int64_t launched);
    // `stream_free_from`: when the earlier work of the kernel's stream ended.
    void add_kernel(std::size_t event, store::UnitIndex unit, std::int64_t launched,
                    std::int64_t stream_free_from);

    struct Times {  // of one gather
        std::size_t id = 0;
        std::int64_t wait = 0;
        std::int64_t held = 0;   // set on the first gather of a unit made of several
        std::int64_t freed = 0;  // since the last use before it in the same step
    };
    std::vector<Times> times() const;

  private:
    struct Gather {
        std::size_t id = 0, event = 0;
        std::int64_t launched = 0, last_use = -1, wait = 0;
        std::int32_t step = -1;
        bool used = false;
    };
    struct Unit {  // of one rank
        std::vector<Gather> gathers;
        std::size_t waited_for = 0;  // index of the first gather that no kernel has needed yet
    };
    Unit& of(std::size_t event, store::UnitIndex unit);
    void wait(Unit& unit, std::size_t kernel, std::int64_t launched, std::int64_t stream_free_from) const;
    void add_times(const Unit& unit, std::vector<Times>& times) const;

    const store::Trace& trace_;
    const BlockingCalls& blocking_;
    const std::size_t units_;
    std::vector<Unit> by_rank_and_unit_;
};

}  // namespace shardscope::traces::analysis
