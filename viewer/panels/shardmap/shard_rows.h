// What the shard map shows of the states of units (traces/analysis/fsdp/shard_states.h): one lane per unit
// folded to pixel columns, the moments to step to, and how many units are whole. Pure arithmetic, no drawing;
// any thread. Times in nanoseconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/analysis/fsdp/shard_states.h"
#include "traces/analysis/memory/memory.h"
#include "traces/analysis/time/summary.h"
#include "viewer/model/session.h"

namespace shardscope::viewer::panels {

// Neighbouring pixel columns that look alike.
struct StateRun {
    int first = 0, count = 0;
    traces::analysis::ShardState state =
        traces::analysis::ShardState::sharded;  // the one with the most time, except sharded
    float share = 0;                            // fraction of the time that is not sharded, 0 < share <= 1
    bool operator==(const StateRun&) const = default;
};

// A unit's history with the time spent in each state before each change, so that a column of pixels costs
// O(log n) however many changes it contains. Points into the history.
class StateLane {
  public:
    explicit StateLane(const traces::analysis::UnitHistory& history);

    // The time in each state within [from, to); the sum is the range's length.
    std::array<std::int64_t, traces::analysis::kShardStates> time_in(std::int64_t from,
                                                                     std::int64_t to) const;
    // Column i covers [from + i (to - from) / columns, from + (i + 1) (to - from) / columns). Columns that
    // are sharded throughout have no run.
    std::vector<StateRun> fold(std::int64_t from, std::int64_t to, int columns) const;

  private:
    std::array<std::int64_t, traces::analysis::kShardStates> up_to(std::int64_t time) const;
    const traces::analysis::UnitHistory* history_;
    std::vector<std::array<std::int64_t, traces::analysis::kShardStates>>
        before_;  // up to each change, from the first
};

// The moments at which any unit of the rank changes, sorted, without duplicates.
std::vector<std::int64_t> change_times(const traces::analysis::ShardStates& states,
                                       traces::store::RankIndex rank);
// The nearest moment after (before) `time`; nullopt if there is none.
std::optional<std::int64_t> next_change(const std::vector<std::int64_t>& times, std::int64_t time);
std::optional<std::int64_t> previous_change(const std::vector<std::int64_t>& times, std::int64_t time);

struct ShardCounts {  // of one rank at one time
    std::array<int, traces::analysis::kShardStates> units{};
    int whole = 0;                 // units whose whole parameters are in device memory
    std::int64_t whole_bytes = 0;  // of the units whose size is known
    int allocated = 0;             // units whose whole parameters the host program holds
};
ShardCounts counts_at(const traces::analysis::ShardStates& states, traces::store::RankIndex rank,
                      std::int64_t time);

// The first moment in [from, to) at which the most units of the rank are not sharded: shown before the user
// has chosen a moment. `from` if nothing happens.
std::int64_t busiest_moment(const traces::analysis::ShardStates& states, traces::store::RankIndex rank,
                            const std::vector<std::int64_t>& times, std::int64_t from, std::int64_t to);

// The bytes of whole parameters in device memory, by the states and the units' sizes: shown below the map if
// a trace has no memory events. The category is unsharded_parameters.
std::vector<traces::analysis::MemoryPoint> whole_parameters_curve(const traces::analysis::ShardStates& states,
                                                                  traces::store::RankIndex rank);

// --- How the mesh divides the parameters among ranks: the ranks of a stage have its units, a tensor group
// divides their weights, FSDP shards the rest.

class ShardShares {
  public:
    ShardShares() = default;
    ShardShares(const traces::store::Trace& trace, const traces::analysis::ShardStates& states);

    // False: only other stages have the unit. Where there is no pipeline all ranks have all units.
    bool holds(traces::store::RankIndex rank, traces::store::UnitIndex unit) const {
        return held_.empty() || held_[rank.at() * units_ + unit.at()];
    }
    bool divides_units() const { return !held_.empty(); }
    // "ranks 4-7".
    std::string holders(traces::store::UnitIndex unit) const;
    // A rank's part along each axis of several ranks: "Tensor", "slice 1 of 2 (from 0)".
    struct Part {
        std::string axis, text;
    };
    std::vector<Part> parts(traces::store::RankIndex rank) const;
    // The fraction of its stages' weights that the rank keeps; empty if FSDP alone divides them.
    std::string sentence(traces::store::RankIndex rank) const;

  private:
    struct Axis {
        std::string title, noun;
        std::vector<int> places;  // of every rank
        int size = 1;
    };
    // "slice 1 of 2 (from 0)".
    static std::string place_text(const Axis& axis, traces::store::RankIndex rank);

    std::vector<Axis> axes_;    // of several ranks, in the order of the mesh
    std::vector<int> numbers_;  // of the ranks
    std::vector<int>
        gather_sizes_;  // by rank: the most ranks among which it gathers units; 1: it gathers none
    std::size_t units_ = 0;
    std::vector<bool> held_;  // by rank, then unit; empty: no pipeline
};

// --- Which part of the time the shard map shows, and how zooming, scrolling and stepping change it. Pure
// arithmetic, no drawing; any thread. Times in nanoseconds.

struct StepTime {  // from the first work of a step, on the host or the device, to the end of its device work
    std::int64_t number = 0;
    model::TimeRange time;
};
// The kept steps of one rank, in order of time.
std::vector<StepTime> step_times(const traces::store::Trace& trace,
                                 const traces::analysis::RankSummary& rank);

class ShardView {
  public:
    enum Mode { own = -1, step, timeline, whole };  // those from 0 on have buttons; own: zoomed by the wheel
    int mode = step;

    void start() { *this = {}; }  // resets it for another trace
    void set_steps(std::vector<StepTime> steps) { steps_ = std::move(steps); }
    // Called every frame with the range that can be shown, the timeline's range, and the cursor's time.
    void update(model::TimeRange all, model::TimeRange timeline_shows, std::int64_t cursor);

    const model::TimeRange& range() const { return range_; }
    // The latest step that contains the time; nullptr outside all steps.
    const StepTime* step_at(std::int64_t time) const;
    // The part of a middle step that is inside `all`; `all` if there are no steps.
    model::TimeRange middle_step(model::TimeRange all) const;

    // `share`: the mouse's position as a fraction of the range; `notches` of the wheel, > 0 shows less time.
    void zoom(model::TimeRange all, double share, double notches);
    void pan(model::TimeRange all, double share);  // fraction of the range; > 0 to later times
    void follow(std::int64_t cursor);  // after a step of the cursor: the range moves along if necessary

  private:
    model::TimeRange around(std::int64_t time, model::TimeRange all) const;
    std::vector<StepTime> steps_;
    model::TimeRange range_;
    std::optional<model::TimeRange> chosen_;  // the step that is shown
};

}  // namespace shardscope::viewer::panels
