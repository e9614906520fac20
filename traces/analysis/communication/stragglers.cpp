// Compares the durations of matched collectives; see stragglers.h.
#include "traces/analysis/communication/stragglers.h"

#include <algorithm>
#include <array>
#include <span>

#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/communication/matching.h"
#include "traces/analysis/time/steps.h"
#include "traces/schema/sort_rows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

struct ArrivalSums {
    std::int64_t collectives = 0;
    std::vector<Arrivals> ranks;  // by index into Trace::ranks
};

struct Part {
    std::uint16_t rank;
    std::int64_t ns;
};

void add(std::span<const Part> parts, ArrivalSums& sums) {
    std::int64_t shortest = parts[0].ns, longest = shortest;
    for (const Part& part : parts) {
        shortest = std::min(shortest, part.ns);
        longest = std::max(longest, part.ns);
    }
    std::int64_t second = longest;
    std::size_t shortest_count = 0;
    for (const Part& part : parts) {
        if (part.ns == shortest) {
            ++shortest_count;
        } else {
            second = std::min(second, part.ns);
        }
    }
    ++sums.collectives;
    for (const Part& part : parts) {
        Arrivals& rank = sums.ranks[part.rank];
        ++rank.collectives;
        rank.late_ns += longest - part.ns;
        rank.waited_ns += part.ns - shortest;
        if (part.ns > shortest || shortest_count > 1) continue;
        ++rank.last;
        rank.held_ns += second - shortest;
    }
}

std::vector<Arrivals> latest_first(const store::Trace& trace, const ArrivalSums& sums,
                                   const Selection& selection) {
    std::vector<Arrivals> ranks;
    for (std::size_t r = 0; r < sums.ranks.size(); ++r) {
        if (sums.ranks[r].collectives == 0) continue;
        if (selection.rank && trace.ranks[r].number != *selection.rank) continue;
        ranks.push_back(sums.ranks[r]);
        ranks.back().rank = trace.ranks[r].number;
    }
    schema::sort_rows(ranks, [](const Arrivals& a, const Arrivals& b) { return a.late_ns > b.late_ns; });
    return ranks;
}

}  // namespace

bool equally_late(const std::vector<Arrivals>& ranks) {
    return ranks.size() > 1 &&
           are_alike(static_cast<double>(ranks.front().late_ns), static_cast<double>(ranks.back().late_ns));
}

std::optional<int> latest_rank(const StragglersReport& report) {
    if (report.ranks.size() < 2 || equally_late(report.ranks)) return {};
    return report.ranks.front().rank;
}

StragglersReport straggler_report(const store::Trace& trace, const Selection& selection) {
    StragglersReport report;
    if (has_flight_records(trace)) report.flight = flight_report(trace, selection);
    report.trace_ranks = static_cast<int>(trace.ranks.size());
    Selection when = selection;  // without the rank: each rank is compared with all others
    when.rank = {};
    const TraceSteps steps = find_steps(trace);
    report.warm_up = find_warm_up(trace, steps, when);
    const std::vector<bool> selected = selected_events(trace, steps, without_warm_up(when, report.warm_up));
    const Communications all = match_communications(trace);
    const std::vector<Arrivals> none(trace.ranks.size());
    std::array<ArrivalSums, schema::kOperations> kinds;
    ArrivalSums whole{.collectives = 0, .ranks = none};
    std::vector<Part> parts;
    for (const CollectiveMatch& match : all.matches) {
        parts.clear();
        bool any = false;
        for (const Communication& part : all.of(match)) {
            const std::int64_t ns = duration(trace, part);
            if (ns < 0) continue;
            any = any || selected[static_cast<std::size_t>(part.event)];
            parts.push_back({part.rank, ns});
        }
        if (!any) continue;
        if (match.unmatched && parts.size() < 2) {
            report.unmatched += static_cast<std::int64_t>(parts.size());
        }
        if (parts.size() < 2) continue;
        ArrivalSums& kind = kinds[static_cast<std::size_t>(all.parts[match.begin].operation)];
        if (kind.ranks.empty()) kind.ranks = none;
        add(parts, kind);
        add(parts, whole);
    }
    report.collectives = whole.collectives;
    report.ranks = latest_first(trace, whole, selection);
    for (std::size_t o = 0; o < kinds.size(); ++o) {
        if (kinds[o].collectives == 0) continue;
        report.kinds.push_back({static_cast<schema::Operation>(o), kinds[o].collectives,
                                latest_first(trace, kinds[o], selection)});
    }
    return report;
}

Fields<Arrivals> arrival_fields() {
    using A = Arrivals;
    static constexpr Field<A> kFields[] = {
        {{"rank", "Rank", Unit::index, "Number of the rank."}, value_of<&A::rank>},
        {{"collectives", "Collectives", Unit::count,
          "Those in which at least two ranks' durations are known."},
         value_of<&A::collectives>},
        {{"last", "Last", Unit::count, "Collectives in which it alone arrived last."}, value_of<&A::last>},
        {{"last_percent", "Last", Unit::percent, "Share of the collectives.", in_table},
         [](const A& a) {
             return store::Cell(a.collectives > 0
                                    ? 100.0 * static_cast<double>(a.last) / static_cast<double>(a.collectives)
                                    : 0.0);
         }},
        {{"late_us", "Behind the first", Unit::us, "Sum of how long after the first rank it came."},
         micros_of<&A::late_ns>},
        {{"late_mean_us", "Mean", Unit::us, "The same for each collective.", in_table},
         [](const A& a) {
             const auto collectives = static_cast<double>(std::max<std::int64_t>(a.collectives, 1));
             return us_cell(static_cast<double>(a.late_ns) / collectives);
         }},
        {{"held_us", "Delayed others", Unit::us,
          "Sum of its delays after the second-to-last rank, if it was last."},
         micros_of<&A::held_ns>},
        {{"waited_us", "Waited itself", Unit::us, "Sum of its own waits for the last."},
         micros_of<&A::waited_ns>},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
