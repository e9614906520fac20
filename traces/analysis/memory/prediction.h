// The memory account's stored prediction of one rank, by part: what the memory analyses put beside what was
// measured. Internal to the room. Sizes in bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace shardscope::traces {

struct PredictionRow;
struct Selection;
struct Trace;

struct RankPrediction {
    const PredictionRow* peak = nullptr;         // null: none is stored; lives as long as the trace
    std::map<std::int64_t, std::int64_t> units;  // by id, -1 for what belongs to none
    std::map<std::int64_t, std::int64_t> modules;
    std::map<std::string, std::int64_t, std::less<>> buffers;  // by name
    std::map<std::int64_t, std::int64_t> steps;                // peak by step number

    // The predicted peak of a step: that of the latest stored number up to it (the first one's before that).
    std::optional<std::int64_t> of_step(std::int64_t number) const;

    // The predicted peak of the rank's steps that the trace has and the selection leaves; none where no steps
    // are stored, and for a part of the time: the account knows no times.
    std::optional<std::int64_t> of_steps(const Trace& trace, int rank_index,
                                         const Selection& selection) const;

    // The first step that is predicted to reach the run's peak.
    std::optional<std::int64_t> step_of_peak() const;

    // Whether the time that a selection leaves holds the predicted peak, so that its parts may stand beside
    // the measured ones: selected steps do where one of them is predicted to reach it, all of the time unless
    // only a later step than the trace's last is.
    bool applies_to(const Trace& trace, int rank_index, const Selection& selection) const;
};

// `rank_index` is an index into Trace::ranks.
RankPrediction prediction_of(const Trace& trace, int rank_index);

}  // namespace shardscope::traces
