// What a rank's host threads did in a step, in order of time: module calls, launches with their device
// events, allocations and frees, waits. Also the role of each host range: the model's own work, or that of
// FSDP, DDP and the optimizer around it (the engine). Times in nanoseconds.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/analysis/base/intervals.h"
#include "traces/store/columns/index.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::trainer::lift {

struct Point {
    enum class Kind : std::uint8_t {
        close,  // `index` in HostRanges, of a module's range; the calls of a thread nest
        open,
        enter,     // `index` in HostRanges: FSDP's, DDP's or the optimizer's outermost range; only if
        leave,     // hosts carried out the work
        work,      // `index` in DeviceEvents, launched from `time` to `end`
        allocate,  // `index` in MemoryEvents
        free,
        event,  // a call that records or waits for an event on a stream
        wait,   // a call in which the host waits
        other,  // another runtime call
    };
    Kind kind = Kind::other;
    std::int64_t time = 0, end = 0;
    std::int32_t index = -1;
    std::int32_t range = -1;  // the innermost range around it; -1 none
};

class HostRangeRoles {
  public:
    // `hosts`: see HostPoints; the work that adds up gradients then is DDP's, if it is not a view.
    explicit HostRangeRoles(const traces::store::Trace& trace, bool hosts = false);

    bool engine(std::int32_t range) const { return has(range, kEngine); }        // FSDP's or DDP's
    bool optimizer(std::int32_t range) const { return has(range, kOptimizer); }  // step, zero_grad, clipping
    bool backward(std::int32_t range) const { return has(range, kBackward); }    // autograd's
    // The outermost autograd node around a range; -1 none.
    std::int32_t node(std::int32_t range) const {
        return range < 0 ? -1 : node_[static_cast<std::size_t>(range)];
    }
    // The forward operator that a node belongs to; -1 unknown.
    std::int32_t forward_of(std::int32_t node) const { return forward_[static_cast<std::size_t>(node)]; }

  private:
    static constexpr std::uint8_t kEngine = 1, kOptimizer = 2, kBackward = 4;
    bool has(std::int32_t range, std::uint8_t role) const {
        return range >= 0 && (roles_[static_cast<std::size_t>(range)] & role) != 0;
    }
    std::vector<std::uint8_t> roles_;
    std::vector<std::int32_t> node_, forward_;
};

// Whether a range is an optimizer's, or the clipping of its gradients.
bool is_optimizer_name(std::string_view range);
// Whether modules of this class are wrappers (of FSDP1 or DDP) around the model's own.
bool is_wrapper(std::string_view class_name);

class HostPoints {
  public:
    // `hosts`: the trace is one that as_device_trace() has made.
    HostPoints(const traces::store::Trace& trace, const HostRangeRoles& roles, traces::store::RankIndex rank,
               bool hosts = false);

    traces::store::RankIndex rank() const { return rank_; }
    std::vector<Point> of(traces::analysis::Interval host) const;
    // The latest end of the rank's communication at or before `time`; 0 none.
    std::int64_t communication_before(std::int64_t time) const;
    // The range around `time` that began last, among all threads of the rank.
    std::int32_t innermost(std::int64_t time) const;

  private:
    std::int32_t innermost(std::size_t thread, std::int64_t time) const;
    void add_calls(std::size_t thread, traces::analysis::Interval host, std::vector<Point>& points) const;
    void add_engine(std::size_t thread, traces::analysis::Interval host, std::vector<Point>& points) const;

    const traces::store::Trace& trace_;
    const HostRangeRoles& roles_;
    const traces::store::RankIndex rank_;
    const bool hosts_;
    std::vector<std::vector<std::int32_t>> ranges_;  // by thread of the trace, in order of start
    std::vector<std::int32_t> event_of_call_;        // by runtime call; -1 none
    std::vector<bool> waits_;                        // by runtime call
    std::vector<std::int64_t> communication_ends_;   // the rank's, sorted
};

}  // namespace shardscope::trainer::lift
