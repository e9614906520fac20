#include "traces/analysis/memory/prediction.h"

#include <algorithm>

#include "traces/analysis/memory/peak_search.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {

std::optional<std::int64_t> RankPrediction::of_step(std::int64_t number) const {
    if (steps.empty()) return std::nullopt;
    const auto after = steps.upper_bound(number);
    return after == steps.begin() ? after->second : std::prev(after)->second;
}

std::optional<std::int64_t> RankPrediction::of_steps(const store::Trace& trace, store::RankIndex rank,
                                                     const Selection& selection) const {
    std::optional<std::int64_t> most;
    if (selection.from_ns || selection.to_ns) return most;
    for (const store::Step& step : trace.steps) {
        if (step.rank != rank || !selection.has_step(step.number)) continue;
        if (const auto bytes = of_step(step.number)) most = std::max(most.value_or(0), *bytes);
    }
    return most;
}

std::optional<std::int64_t> RankPrediction::step_of_peak() const {
    const auto at = std::find_if(steps.begin(), steps.end(), [&](const auto& step) {
        return peak != nullptr && step.second == peak->peak_bytes;
    });
    return at != steps.end() ? std::optional(at->first) : std::nullopt;
}

bool RankPrediction::applies_to(const store::Trace& trace, store::RankIndex rank,
                                const Selection& selection) const {
    if (peak == nullptr) return false;
    if (selects_whole_time(selection)) {
        const auto here = of_steps(trace, rank, selection);
        return !here || *here == peak->peak_bytes || !step_of_peak();
    }
    if (selection.from_ns || selection.to_ns) return false;  // the account has no times
    return std::any_of(trace.steps.begin(), trace.steps.end(), [&](const store::Step& step) {
        return step.rank == rank && selection.has_step(step.number) &&
               of_step(step.number) == peak->peak_bytes;
    });
}

RankPrediction prediction_of(const store::Trace& trace, store::RankIndex rank) {
    const int number = trace.ranks[rank.at()].number;
    RankPrediction prediction;
    for (const schema::PredictionRow& row : trace.predictions) {
        if (row.rank == number) prediction.peak = &row;
    }
    for (const schema::PredictionPartRow& row : trace.prediction_parts) {
        if (row.rank != number) continue;
        switch (row.kind) {
            case schema::PredictionPart::unit:
                prediction.units[row.id] += row.bytes;
                break;
            case schema::PredictionPart::module:
                prediction.modules[row.id] += row.bytes;
                break;
            case schema::PredictionPart::buffer:
                prediction.buffers[row.name] += row.bytes;
                break;
            case schema::PredictionPart::step:
                prediction.steps[row.id] = row.bytes;
                break;
        }
    }
    return prediction;
}

}  // namespace shardscope::traces::analysis
