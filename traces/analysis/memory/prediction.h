// The memory account's stored prediction for one rank, by part, for comparison with the measured memory.
// Internal to the library. Sizes in bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "traces/analysis/base/selection.h"
#include "traces/store/columns/index.h"

namespace shardscope::traces::schema {
struct PredictionRow;
}

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct RankPrediction {
    const schema::PredictionRow* peak = nullptr;  // null: not stored; lives as long as the trace
    std::map<std::int64_t, std::int64_t> units;   // by id, -1 without a unit
    std::map<std::int64_t, std::int64_t> modules;
    std::map<std::string, std::int64_t, std::less<>> buffers;  // by name
    std::map<std::int64_t, std::int64_t> steps;                // peak by step number

    // The predicted peak of a step: that of the latest stored step up to it, or of the first stored one.
    std::optional<std::int64_t> of_step(std::int64_t number) const;

    // The predicted peak of the rank's selected steps that the trace has. None if steps are not stored, or if
    // a time range is selected, because the account has no times.
    std::optional<std::int64_t> of_steps(const store::Trace& trace, store::RankIndex rank,
                                         const Selection& selection) const;

    // The first step that is predicted to reach the run's peak.
    std::optional<std::int64_t> step_of_peak() const;

    // Whether the selected time contains the predicted peak, so that predicted and measured parts are
    // comparable: for selected steps, if one of them is predicted to reach the peak; for the whole time,
    // unless only a step after the trace's last one reaches it.
    bool applies_to(const store::Trace& trace, store::RankIndex rank, const Selection& selection) const;
};

RankPrediction prediction_of(const store::Trace& trace, store::RankIndex rank);

}  // namespace shardscope::traces::analysis
