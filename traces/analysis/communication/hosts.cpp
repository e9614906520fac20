// See hosts.h.
#include "traces/analysis/communication/hosts.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "traces/analysis/base/percentile.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

using Where = HostTraffic::Where;
constexpr std::size_t kPlaces = 3;

// Converts a fact of the merge from us to ns.
std::optional<std::int64_t> fact_ns(const store::Trace& trace, const char* key) {
    const std::string text(trace.config_value(key));
    char* end = nullptr;
    const double us = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(std::abs(us) < 1e15)) return {};
    return std::llround(us * 1e3);
}

std::optional<ClockAgreement> clock_agreement(const store::Trace& trace) {
    const auto residual = fact_ns(trace, "merge.residual_us");
    if (!residual) return {};
    return ClockAgreement{.collectives = std::strtoll(
                              std::string(trace.config_value("merge.collectives")).c_str(), nullptr, 10),
                          .residual_ns = *residual,
                          .worst_ns = fact_ns(trace, "merge.residual_worst_us").value_or(0),
                          .uncertainty_ns = fact_ns(trace, "merge.clock_uncertainty_us")};
}

}  // namespace

const char* name(Where where) {
    return where == Where::within ? "within" : where == Where::between ? "between" : "unknown";
}

std::vector<HostPlace> hosts_of(const store::Trace& trace) {
    std::vector<HostPlace> hosts;
    std::map<std::string_view, std::size_t> places;
    for (const store::Rank& rank : trace.ranks) {
        const auto [place, is_new] = places.emplace(rank.host, hosts.size());
        if (is_new) hosts.push_back({.name = rank.host, .ranks = {}});
        hosts[place->second].ranks.push_back({rank.number, rank.local_rank, rank.cpus});
    }
    return hosts;
}

HostsAnalysis::HostsAnalysis(const store::Trace& trace)
    : trace_(trace), sums_(kPlaces * schema::kOperations) {
    report_.hosts = hosts_of(trace);
    report_.known = trace.device.size() > 0 || trace.collectives.size() > 0;
    std::map<std::string_view, std::size_t> places;
    for (std::size_t h = 0; h < report_.hosts.size(); ++h) places.emplace(report_.hosts[h].name, h);
    for (const store::Rank& rank : trace.ranks) host_of_.push_back(places.at(rank.host));
    late_.resize(report_.hosts.size());
    complete_.resize(report_.hosts.size());
    report_.clocks = clock_agreement(trace);
    find_groups();
}

void HostsAnalysis::find_groups() {
    std::map<std::int64_t, std::pair<std::set<std::uint16_t>, int>> groups;
    const store::Collectives& all = trace_.collectives;
    auto last = groups.end();  // rows of one group are mostly consecutive
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (last == groups.end() || last->first != all.group[i])
            last = groups.try_emplace(all.group[i]).first;
        last->second.first.insert(all.rank[i]);
        last->second.second = std::max(last->second.second, static_cast<int>(all.group_size[i]));
    }
    for (const auto& [id, found] : groups) {
        const auto& [ranks, size] = found;
        RankGroup group{.group = id, .size = size, .ranks = {}};
        std::set<std::size_t> hosts;
        for (const std::uint16_t rank : ranks) {
            group.ranks.push_back(trace_.ranks[rank].number);
            hosts.insert(host_of_[rank]);
        }
        const bool known = size > 0 && static_cast<int>(ranks.size()) == size &&
                           std::none_of(hosts.begin(), hosts.end(),
                                        [&](std::size_t h) { return report_.hosts[h].name.empty(); });
        if (known) group.hosts = static_cast<int>(hosts.size());
        report_.groups.push_back(std::move(group));
    }
}

int HostsAnalysis::nodes_of(std::int64_t group) const {
    const auto at = std::lower_bound(report_.groups.begin(), report_.groups.end(), group,
                                     [](const RankGroup& g, std::int64_t id) { return g.group < id; });
    return at != report_.groups.end() && at->group == group ? at->hosts : 0;
}

void HostsAnalysis::add(std::span<const Communication> parts, const CollectiveMatch& match) {
    const Communication& first = parts.front();
    std::int64_t bytes = 0;
    int size = 0, nodes = 0;
    if (first.row >= 0) {
        const auto row = static_cast<std::size_t>(first.row);
        const std::int64_t id = trace_.collectives.group[row];
        bytes = trace_.collectives.bytes[row];
        size = trace_.collectives.group_size[row];
        nodes = nodes_of(id);
        auto group = std::lower_bound(report_.groups.begin(), report_.groups.end(), id,
                                      [](const RankGroup& g, std::int64_t value) { return g.group < value; });
        ++group->collectives;
        group->bytes += bytes;
    }
    const Where where = nodes == 0 ? Where::unknown : nodes == 1 ? Where::within : Where::between;
    Sums& sums = sums_[static_cast<std::size_t>(where) * schema::kOperations +
                       static_cast<std::size_t>(first.operation)];
    HostTraffic& traffic = sums.traffic;
    traffic.where = where;
    traffic.operation = first.operation;
    ++traffic.count;
    traffic.bytes += bytes;
    traffic.transfer_ns += std::max<std::int64_t>(match.transfer_ns, 0);
    for (const Communication& part : parts) {
        const std::int64_t ns = duration(trace_, part);
        if (ns >= 0) traffic.waiting_ns += ns - match.transfer_ns;
    }
    if (match.transfer_ns > 0) sums.rates.add(first.operation, bytes, match.transfer_ns, size);
    if (where == Where::between && !match.unmatched && ends_together(first.operation)) add_skew(parts);
}

// All ranks end together, so a rank arrived later than the first by the difference of their durations.
void HostsAnalysis::add_skew(std::span<const Communication> parts) {
    std::int64_t longest = -1;
    for (const Communication& part : parts) {
        const std::int64_t ns = duration(trace_, part);
        if (ns < 0) return;
        longest = std::max(longest, ns);
    }
    std::fill(complete_.begin(), complete_.end(), -1);
    for (const Communication& part : parts) {
        std::int64_t& complete = complete_[host_of_[part.rank]];
        complete = std::max(complete, longest - duration(trace_, part));
    }
    std::int64_t first = INT64_MAX, last = -1;
    for (const std::int64_t complete : complete_) {
        if (complete < 0) continue;
        first = std::min(first, complete);
        last = std::max(last, complete);
    }
    skews_.push_back(last - first);
    const bool one_is_last = std::count(complete_.begin(), complete_.end(), last) == 1;
    for (std::size_t h = 0; h < complete_.size(); ++h) {
        if (complete_[h] < 0) continue;
        ++report_.hosts[h].collectives;
        late_[h].push_back(complete_[h] - first);
        if (one_is_last && complete_[h] == last) ++report_.hosts[h].last;
    }
}

HostsReport HostsAnalysis::take() {
    for (Sums& sums : sums_) {
        if (sums.traffic.count == 0) continue;
        sums.traffic.algbw_gbps = sums.rates.algbw();
        sums.traffic.busbw_gbps = sums.rates.busbw();
        report_.traffic.push_back(sums.traffic);
    }
    std::erase_if(report_.groups, [](const RankGroup& group) { return group.collectives == 0; });
    for (std::size_t h = 0; h < late_.size(); ++h)
        report_.hosts[h].median_late_ns = std::llround(percentile(std::span(late_[h]), 0.5));
    report_.skewed = static_cast<std::int64_t>(skews_.size());
    if (!skews_.empty()) report_.worst_skew_ns = *std::max_element(skews_.begin(), skews_.end());
    report_.median_skew_ns = std::llround(percentile(std::span(skews_), 0.5));
    return std::move(report_);
}

Fields<HostTraffic> host_traffic_fields() {
    using T = HostTraffic;
    static constexpr Field<T> kFields[] = {
        {{"hosts", "Hosts", Unit::text, "Whether the group lies within a host or spans several."},
         [](const T& t) { return to_cell(name(t.where)); }},
        {{"name", "Operation", Unit::text, "The kind of collective."},
         [](const T& t) { return to_cell(name(t.operation)); }},
        {{"count", "Count", Unit::count, "Number of collectives; each counts once."}, value_of<&T::count>},
        {{"bytes", "MiB", Unit::bytes, "Sum of the full buffers."}, known_value_of<&T::bytes>},
        {{"transfer_us", "Transfer", Unit::us, "Sum of the shortest durations."}, micros_of<&T::transfer_ns>},
        {{"waiting_us", "Waiting", Unit::us, "Sum over ranks of duration without transfer."},
         micros_of<&T::waiting_ns>},
        {{"algbw_gbps", "algbw", Unit::gbps, "Algorithm bandwidth.", everywhere, 2},
         known_value_of<&T::algbw_gbps>},
        {{"busbw_gbps", "busbw", Unit::gbps, "Bus bandwidth.", everywhere, 2},
         known_value_of<&T::busbw_gbps>},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
