// How long the whole parameters of units are held, and how long compute waits for them. Internal to the
// library. Times in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "traces/analysis/path/blocking_calls.h"

namespace shardscope::traces {

struct Trace;

// Gathers and compute kernels of the units must be added in the order of their starts on the device.
//
// A kernel uses the last gather that was launched before it and has ended when it starts. A unit is held from
// the start of a gather to the end of the last kernel that used it; if the next gather was launched before
// that, two copies live for a while. An unused gather belongs to the next one if that was launched before it
// ended (a unit made of several collectives). Wait: see units.h.
class UnitResidencies {
  public:
    UnitResidencies(const Trace& trace, std::size_t units, const BlockingCalls& blocking);

    // `id`: identifies the gather in the results. `step`: index of its rank's step.
    void add_gather(std::size_t id, std::size_t event, std::int32_t unit, std::int32_t step,
                    std::int64_t launched);
    // `stream_free_from`: when the earlier work of the kernel's stream ended.
    void add_kernel(std::size_t event, std::int32_t unit, std::int64_t launched,
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
    Unit& of(std::size_t event, std::int32_t unit);
    void wait(Unit& unit, std::size_t kernel, std::int64_t launched, std::int64_t stream_free_from) const;
    void add_times(const Unit& unit, std::vector<Times>& times) const;

    const Trace& trace_;
    const BlockingCalls& blocking_;
    const std::size_t units_;
    std::vector<Unit> by_rank_and_unit_;
};

}  // namespace shardscope::traces
