// See exposed.h.
#include "traces/analysis/waits/exposed.h"

#include <algorithm>
#include <map>
#include <utility>

#include "traces/analysis/waits/wait_names.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {

ExposedReport exposed_report(const store::Trace& trace, const Selection& selection) {
    const store::DeviceEvents& device = trace.device;
    const TraceSteps steps = find_steps(trace);
    const std::vector<bool> counts = selected_events(trace, steps, selection);
    const WaitFinder waits(trace);
    const WaitNames names(trace);
    std::vector<std::map<std::pair<std::string, ExposureCause>, ExposedShare>> shares(trace.ranks.size());
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (!counts[i] || device.kind[i] == store::DeviceKind::kernel) continue;
        const std::int32_t step = steps.event[i];
        if (step < 0 || step >= steps.ranks[device.rank[i]].kept()) continue;
        const Exposure exposure = waits.exposure(i);
        if (exposure.ns == 0) continue;
        const std::string operation = names.kind_of(i);
        for (int c = 0; c < kExposureCauses; ++c) {
            const std::int64_t ns = exposure.causes[static_cast<std::size_t>(c)];
            if (ns == 0) continue;
            const auto cause = static_cast<ExposureCause>(c);
            ExposedShare& share = shares[device.rank[i]][{operation, cause}];
            ++share.events;
            share.ns += ns;
            if (ns <= share.longest) continue;
            share.longest = ns;
            share.event = static_cast<std::int32_t>(i);
        }
    }
    ExposedReport report;
    for (const store::RankIndex r : selected_ranks(trace, selection)) {
        RankExposed rank{trace.ranks[r.at()].number, {}};
        const auto kept = static_cast<double>(selected_windows(steps.ranks[r.at()], selection).size());
        double sum = 0;
        for (auto& [key, share] : shares[r.at()]) {
            const auto event = static_cast<std::size_t>(share.event);
            std::tie(share.operation, share.cause) = key;
            share.longest_of = names.event(event);
            share.about = names.of_cause(waits.exposure(event), share.cause);
            if (kept > 0) share.us_per_step = static_cast<double>(share.ns) * 1e-3 / kept;
            sum += static_cast<double>(share.ns);
            rank.shares.push_back(std::move(share));
        }
        for (ExposedShare& share : rank.shares)
            share.percent = sum > 0 ? 100 * static_cast<double>(share.ns) / sum : 0;
        std::stable_sort(rank.shares.begin(), rank.shares.end(),
                         [](const ExposedShare& a, const ExposedShare& b) { return a.ns > b.ns; });
        report.ranks.push_back(std::move(rank));
    }
    return report;
}

Fields<ExposedShare> exposed_fields() {
    using S = ExposedShare;
    static constexpr Field<S> kFields[] = {
        {{"operation", "Operation", Unit::text, "The collective, or the kind of copy."},
         value_of<&S::operation>},
        {{"cause", "", Unit::text,
          "late_rank, queued, host_waited, issued_late, too_long or nothing_to_hide_it.", in_programs},
         [](const S& s) {
             return store::Cell(std::string(kExposureCauseNames[static_cast<std::size_t>(s.cause)]));
         }},
        {{"cause", "Cause", Unit::text, "Why it is exposed.", in_table},
         [](const S& s) { return store::Cell(std::string(title(s.cause))); }},
        {{"events", "Events", Unit::count, "Events that are exposed for this cause."}, value_of<&S::events>},
        {{"exposed_us", "Exposed", Unit::us,
          "The sum of their times for this cause in which no kernel of their rank runs."},
         micros_of<&S::ns>},
        {{"exposed_per_step_us", "Per step", Unit::us, "The same per kept step."}, value_of<&S::us_per_step>},
        {{"percent", "Share", Unit::percent, "Share of the exposed time of the rank."},
         value_of<&S::percent>},
        {{"longest_us", "Longest", Unit::us, "The most of one event."}, micros_of<&S::longest>},
        {{"longest_of", "Longest of", Unit::text, "That event."}, value_of<&S::longest_of>},
        {{"about", "About", Unit::text,
          "Of that event: the late rank, what it was queued behind, or what the host waited for."},
         [](const S& s) { return known_text(s.about); }},
    };
    return kFields;
}

void name_gaps(const store::Trace& trace, const Selection& selection, IdleReport& report) {
    const WaitFinder finder(trace);
    const WaitNames names(trace);
    const IdleDetails details = idle_details(trace, selection, 0, report.kernel_wait_ns);
    for (std::size_t r = 0; r < report.ranks.size() && r < details.ranks.size(); ++r) {
        for (const StreamIdleDetails& stream : details.ranks[r].streams) {
            struct Sum {
                IdleWait wait;
                Wait longest;
            };
            std::array<Sum, kWaitsFor> sums;
            for (const IdleGap& gap : stream.gaps) {
                for (const Wait& wait : finder.before(static_cast<std::size_t>(gap.event), gap.from)) {
                    Sum& sum = sums[static_cast<std::size_t>(wait.what)];
                    ++sum.wait.count;
                    sum.wait.ns += wait.length();
                    if (wait.length() > sum.longest.length()) sum.longest = wait;
                }
            }
            std::vector<IdleWait> waits;
            for (std::size_t k = 0; k < sums.size(); ++k) {
                IdleWait& wait = sums[k].wait;
                if (wait.count == 0) continue;
                if (stream.stream.known()) {
                    wait.stream = trace.streams[stream.stream.at()].id;
                    wait.stream_name = trace.streams[stream.stream.at()].name;
                }
                wait.what = kWaitForNames[k];
                wait.title = title(static_cast<WaitFor>(k));
                wait.longest = sums[k].longest.length();
                wait.longest_for = names.wait(sums[k].longest);
                waits.push_back(std::move(wait));
            }
            std::stable_sort(waits.begin(), waits.end(),
                             [](const IdleWait& a, const IdleWait& b) { return a.ns > b.ns; });
            std::vector<IdleWait>& all = report.ranks[r].waits;
            all.insert(all.end(), std::make_move_iterator(waits.begin()),
                       std::make_move_iterator(waits.end()));
        }
    }
}

}  // namespace shardscope::traces::analysis
