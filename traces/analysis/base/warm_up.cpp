#include "traces/analysis/base/warm_up.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <fmt/core.h>

#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

constexpr double kWarmUpTimes = 1.5;      // a warm-up step takes this many times the others' median
constexpr std::size_t kStepsToJudge = 3;  // with fewer steps the first one is not judged

}  // namespace

std::optional<WarmUp> find_warm_up(const store::Trace& trace, const TraceSteps& steps,
                                   const Selection& selection) {
    if (trace.steps.empty() || selection.first_step || selection.last_step || selection.from_ns ||
        selection.to_ns) {
        return {};
    }
    for (const store::RankIndex r : selected_ranks(trace, selection)) {
        const std::vector<StepWindow> windows = selected_windows(steps.ranks[r.at()], selection);
        if (windows.size() < kStepsToJudge) continue;
        std::vector<std::int64_t> others;
        for (std::size_t i = 1; i < windows.size(); ++i) others.push_back(windows[i].window.length());
        const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
        std::nth_element(others.begin(), middle, others.end());
        const double times = static_cast<double>(windows.front().window.length()) /
                             static_cast<double>(std::max<std::int64_t>(*middle, 1));
        if (times < kWarmUpTimes || windows[1].number <= windows[0].number) continue;
        return WarmUp{windows[0].number, windows[1].number, times};
    }
    return {};
}

Selection without_warm_up(Selection selection, const std::optional<WarmUp>& warm_up) {
    if (warm_up) selection.first_step = warm_up->after;
    return selection;
}

std::string sentence(const WarmUp& warm_up) {
    return fmt::format("Step {} is excluded as warm-up: it takes {:.1f} times as long as the others' median.",
                       warm_up.step, warm_up.times);
}

}  // namespace shardscope::traces::analysis
