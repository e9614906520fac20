#include "traces/analysis/prediction.h"

#include <algorithm>

#include "traces/analysis/peak_search.h"
#include "traces/store/trace.h"

namespace shardscope::traces {

std::optional<std::int64_t> RankPrediction::of_step(std::int64_t number) const {
    if (steps.empty()) return std::nullopt;
    const auto after = steps.upper_bound(number);
    return after == steps.begin() ? after->second : std::prev(after)->second;
}

bool RankPrediction::applies_to(const Trace& trace, int rank_index, const Selection& selection) const {
    if (peak == nullptr) return false;
    if (selects_whole_time(selection)) return true;
    if (selection.from_ns || selection.to_ns) return false;  // the account knows no times
    return std::any_of(trace.steps.begin(), trace.steps.end(), [&](const Step& step) {
        return step.rank == rank_index && selection.has_step(step.number) &&
               of_step(step.number) == peak->peak_bytes;
    });
}

RankPrediction prediction_of(const Trace& trace, int rank_index) {
    const int number = trace.ranks[static_cast<std::size_t>(rank_index)].number;
    RankPrediction prediction;
    for (const PredictionRow& row : trace.predictions) {
        if (row.rank == number) prediction.peak = &row;
    }
    for (const PredictionPartRow& row : trace.prediction_parts) {
        if (row.rank != number) continue;
        switch (row.kind) {
            case PredictionPart::unit:
                prediction.units[row.id] += row.bytes;
                break;
            case PredictionPart::module:
                prediction.modules[row.id] += row.bytes;
                break;
            case PredictionPart::buffer:
                prediction.buffers[row.name] += row.bytes;
                break;
            case PredictionPart::step:
                prediction.steps[row.id] = row.bytes;
                break;
        }
    }
    return prediction;
}

}  // namespace shardscope::traces
