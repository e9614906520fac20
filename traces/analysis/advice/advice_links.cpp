// See advice_links.h. Only large collectives measure bandwidth: latency is a small part of their time.
#include "traces/analysis/advice/advice_links.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "traces/analysis/base/percentile.h"
#include "traces/analysis/communication/matching.h"
#include "traces/analysis/topology/nominal_bandwidth.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

constexpr std::int64_t kLargeBytes = 4 << 20;
constexpr double kLargeNs = 1e5;       // smallest expected time of a collective that is judged
constexpr double kSlowOfGroups = 1.5;  // factor over the fastest group's time
constexpr double kSlowOfNominal = 2;   // factor over the time that the nominal bandwidth predicts

// The hosts of a group's ranks.
struct GroupPlace {
    int ranks = 0;
    std::map<std::string_view, int> hosts;  // members by host
    bool known = true;                      // all its ranks are in the trace, on hosts with names
    int fewest() const {
        int least = ranks;
        for (const auto& [host, members] : hosts) least = std::min(least, members);
        return least;
    }
    std::string names() const {
        std::string text;
        for (const auto& [host, members] : hosts) text += (text.empty() ? "" : ", ") + std::string(host);
        return text;
    }
};

std::map<std::int64_t, GroupPlace> places(const store::Trace& trace) {
    std::map<std::int64_t, std::set<std::uint16_t>> members;
    std::map<std::int64_t, int> sizes;
    const store::Collectives& all = trace.collectives;
    for (std::size_t i = 0; i < all.size(); ++i) {
        members[all.group[i]].insert(all.rank[i]);
        sizes[all.group[i]] = std::max(sizes[all.group[i]], static_cast<int>(all.group_size[i]));
    }
    std::map<std::int64_t, GroupPlace> found;
    for (const auto& [group, ranks] : members) {
        GroupPlace& place = found[group];
        place.ranks = static_cast<int>(ranks.size());
        place.known = sizes[group] == place.ranks;
        for (const std::uint16_t rank : ranks) {
            ++place.hosts[trace.ranks[rank].host];
            place.known = place.known && !trace.ranks[rank].host.empty();
        }
    }
    return found;
}

struct Large {
    std::size_t match = 0;
    std::int64_t group = 0, bytes = 0, transfer = 0;
    schema::Operation operation = schema::Operation::other;
    const GroupPlace* place = nullptr;
    double expected = 0;  // ns; 0: unknown
};

// The time of the slowest of the usual algorithms, first between the hosts, then within them; 0: unknown.
double expected_ns(const Large& c, double intra, double inter) {
    const double p = c.place->ranks, m = static_cast<double>(c.place->hosts.size()), k = p / m;
    const auto n = static_cast<double>(c.bytes);
    // A tree carries all bytes of an all-reduce up and down.
    const bool all = c.operation == schema::Operation::all_reduce;
    double seconds = 0;
    if (m > 1) {
        if (inter <= 0) return 0;
        seconds += (all ? 2 : (m - 1) / m) * n / (inter * c.place->fewest());
    }
    if (k > 1) {
        if (intra <= 0) return 0;
        seconds += (all ? 2 : (k - 1) / k) * n / intra;
    }
    return seconds * 1e9;
}

bool is_selected(const Communication& part, const std::vector<bool>& selected) {
    return part.event >= 0 && selected[static_cast<std::size_t>(part.event)];
}

std::vector<Large> large_collectives(const store::Trace& trace, const Communications& communications,
                                     const std::vector<bool>& selected,
                                     const std::map<std::int64_t, GroupPlace>& groups) {
    const double intra = nominal_bandwidth(trace, false), inter = nominal_bandwidth(trace, true);
    std::vector<Large> found;
    for (std::size_t m = 0; m < communications.matches.size(); ++m) {
        const CollectiveMatch& match = communications.matches[m];
        const Communication& part = communications.parts[match.begin];
        if (part.row < 0 || match.unmatched || match.transfer_ns <= 0) continue;
        const auto parts = communications.of(match);
        if (std::none_of(parts.begin(), parts.end(),
                         [&](const Communication& of_rank) { return is_selected(of_rank, selected); })) {
            continue;
        }
        if (part.operation != schema::Operation::all_gather &&
            part.operation != schema::Operation::reduce_scatter &&
            part.operation != schema::Operation::all_reduce) {
            continue;
        }
        const auto row = static_cast<std::size_t>(part.row);
        Large c{.match = m,
                .group = trace.collectives.group[row],
                .bytes = trace.collectives.bytes[row],
                .transfer = match.transfer_ns,
                .operation = part.operation};
        c.place = &groups.at(c.group);
        if (c.bytes < kLargeBytes || !c.place->known || c.place->ranks < 2) continue;
        c.expected = expected_ns(c, intra, inter);
        found.push_back(c);
    }
    return found;
}

// Expects the fastest group's time for the same collective, if several groups have it.
void expect_as_other_groups(std::vector<Large>& all) {
    std::map<std::tuple<schema::Operation, std::int64_t, int, std::size_t>,
             std::map<std::int64_t, std::vector<std::int64_t>>>
        times;
    const auto key = [](const Large& c) {
        return std::tuple(c.operation, c.bytes, c.place->ranks, c.place->hosts.size());
    };
    for (const Large& c : all) times[key(c)][c.group].push_back(c.transfer);
    std::map<std::tuple<schema::Operation, std::int64_t, int, std::size_t>, double> fastest;
    for (auto& [same, groups] : times) {
        if (groups.size() < 2) continue;
        for (auto& [group, own] : groups) {
            const auto median = static_cast<double>(upper_median(own));
            const auto [at, first] = fastest.try_emplace(same, median);
            if (!first) at->second = std::min(at->second, median);
        }
    }
    for (Large& c : all) {
        const auto at = fastest.find(key(c));
        c.expected = at == fastest.end() ? 0 : at->second;
    }
}

void judge(const store::Trace& trace, const Communications& communications, const std::vector<bool>& selected,
           const std::vector<Large>& all, double slow, bool by_groups, LinkReport& report) {
    // Judges links within a host and between hosts separately.
    for (const bool between : {false, true}) {
        double expected = 0, measured = 0;
        std::set<std::int64_t> groups, slow_groups;
        std::vector<const Large*> late;
        for (const Large& c : all) {
            if ((c.place->hosts.size() > 1) != between || c.expected < kLargeNs) continue;
            report.judged = true;
            groups.insert(c.group);
            if (static_cast<double>(c.transfer) <= slow * c.expected) continue;
            slow_groups.insert(c.group);
            late.push_back(&c);
            expected += c.expected;
            measured += static_cast<double>(c.transfer);
        }
        if (late.empty() || measured <= slow * expected || report.slow) continue;
        report.slow = true;
        report.between = between;
        report.by_groups = by_groups;
        report.times = measured / expected;
        report.event_factors.assign(trace.device.size(), 1);
        if (slow_groups.size() < groups.size()) report.where = late.front()->place->names();
        for (const Large* c : late) {
            for (const Communication& part : communications.of(communications.matches[c->match])) {
                if (!is_selected(part, selected)) continue;
                report.transfer_ns += c->transfer;
                report.event_factors[static_cast<std::size_t>(part.event)] =
                    c->expected / static_cast<double>(c->transfer);
            }
        }
    }
}

}  // namespace

LinkReport link_report(const store::Trace& trace, const std::vector<bool>& selected) {
    LinkReport report;
    const Communications communications = match_communications(trace);
    const std::map<std::int64_t, GroupPlace> groups = places(trace);
    std::vector<Large> all = large_collectives(trace, communications, selected, groups);
    judge(trace, communications, selected, all, kSlowOfNominal, false, report);
    if (report.slow) return report;
    expect_as_other_groups(all);
    judge(trace, communications, selected, all, kSlowOfGroups, true, report);
    return report;
}

}  // namespace shardscope::traces::analysis
