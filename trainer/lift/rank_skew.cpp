#include "trainer/lift/rank_skew.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "traces/store/columns/trace.h"

namespace shardscope::trainer::lift {

namespace {

using traces::analysis::Interval;
using traces::store::RankIndex;

struct Operators {
    std::vector<double> ends;
    std::vector<traces::schema::StringId> names;
    double all = 0;
};

// The time of a step until each of its operators ends, without the waits in between.
Operators work_of(const traces::store::Trace& trace, RankIndex rank, Interval step) {
    std::vector<Interval> waits;
    for (std::size_t w = 0; w < trace.synchronizations.size(); ++w) {
        const Interval wait{trace.synchronizations.start[w], trace.synchronizations.end[w]};
        if (trace.synchronizations.rank[w] == rank.column() && wait.start >= step.start &&
            wait.start < step.end)
            waits.push_back(wait);
    }
    const traces::analysis::IntervalSet waiting = traces::analysis::make_union(std::move(waits));
    Operators work;
    std::int64_t waited = 0;
    auto next = waiting.begin();
    for (std::size_t e = 0; e < trace.device.size(); ++e) {
        if (trace.device.rank[e] != rank.column() ||
            trace.device.kind[e] == traces::store::DeviceKind::communication)
            continue;
        const std::int64_t end = trace.device.end[e];
        if (end <= step.start || end > step.end) continue;
        for (; next != waiting.end() && next->end <= end; ++next) waited += next->length();
        work.ends.push_back(static_cast<double>(end - step.start - waited));
        work.names.push_back(trace.device.name[e]);
    }
    for (; next != waiting.end(); ++next) waited += next->length();
    work.all = static_cast<double>(step.length() - waited);
    return work;
}

}  // namespace

RankSkew::RankSkew(const traces::store::Trace& converted, RankIndex rank,
                   const std::vector<std::int64_t>& steps)
    : rank_(rank) {
    if (converted.ranks.size() < 2) return;
    for (const std::int64_t number : steps) {
        StepWork made;
        std::vector<Operators> all;
        for (std::size_t r = 0; r < converted.ranks.size(); ++r) {
            const auto step = std::find_if(
                converted.steps.begin(), converted.steps.end(),
                [&](const auto& own) { return own.rank == RankIndex(r) && own.number == number; });
            if (step == converted.steps.end()) break;
            all.push_back(work_of(converted, RankIndex(r), {step->start, step->end}));
        }
        if (all.size() != converted.ranks.size()) continue;
        std::size_t common = all.front().names.size();
        for (const Operators& own : all) {
            const auto apart = std::mismatch(own.names.begin(), own.names.end(), all.front().names.begin(),
                                             all.front().names.end());
            common = std::min(common, static_cast<std::size_t>(apart.first - own.names.begin()));
        }
        if (common == 0) continue;
        for (Operators& own : all) {
            own.ends.resize(common);
            own.ends.push_back(std::max(own.all, own.ends.back()));
            made.ranks.push_back(std::move(own.ends));
        }
        made.mean.assign(made.ranks.front().size(), 0);
        for (const Work& own : made.ranks)
            for (std::size_t k = 0; k < own.size(); ++k)
                made.mean[k] += own[k] / static_cast<double>(made.ranks.size());
        steps_.push_back(std::move(made));
    }
}

double RankSkew::waiting(const std::vector<double>& shares) const {
    if (steps_.empty() || shares.empty()) return 0;
    double sum = 0, work = 0;
    for (const StepWork& step : steps_) {
        std::vector<std::size_t> cuts;
        for (const double share : shares) {
            const auto at = std::lower_bound(step.mean.begin(), step.mean.end(), share * step.mean.back());
            cuts.push_back(std::min<std::size_t>(static_cast<std::size_t>(at - step.mean.begin()),
                                                 step.mean.size() - 1));
        }
        // Work after the last meeting belongs to the piece before the next step's first.
        double waiting = 0;
        std::vector<double> rest(step.ranks.size(), 0);
        for (std::size_t r = 0; r < step.ranks.size(); ++r)
            rest[r] = step.ranks[r].back() - step.ranks[r][cuts.back()];
        std::size_t previous = 0;
        for (std::size_t c = 0; c < cuts.size(); ++c) {
            double slowest = 0;
            double own = 0;
            for (std::size_t r = 0; r < step.ranks.size(); ++r) {
                const Work& own_work = step.ranks[r];
                const double piece = own_work[cuts[c]] + (c == 0 ? rest[r] : -own_work[previous]);
                slowest = std::max(slowest, piece);
                if (RankIndex(r) == rank_) own = piece;
            }
            waiting += slowest - own;
            previous = cuts[c];
        }
        sum += waiting;
        work += step.ranks[rank_.at()].back();
    }
    return work > 0 ? sum / work : 0;
}

}  // namespace shardscope::trainer::lift
