// Sums over matched collectives; see distributed.h.
#include "traces/analysis/communication/distributed.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>

#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/communication/host_collectives.h"
#include "traces/analysis/communication/matching.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/time/steps.h"
#include "traces/schema/sort_rows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces {
namespace {

int size_class(std::int64_t bytes) {
    if (bytes <= 0) return -1;
    return static_cast<int>(std::upper_bound(std::begin(kSizeClasses), std::end(kSizeClasses), bytes) -
                            std::begin(kSizeClasses));
}

struct Sums {
    Traffic traffic;
    std::int64_t timed_ns = 0;
    double timed_bytes = 0, timed_bus_bytes = 0;
};

class DistributedAnalysis {
  public:
    DistributedAnalysis(const Trace& trace, const Selection& selection)
        : trace_(trace),
          selection_(selection),
          steps_(find_steps(trace)),
          selected_(selected_events(trace, steps_, selection)),
          all_(match_communications(trace)),
          hosts_(trace),
          has_device_(trace.ranks.size()) {
        for (const std::uint16_t rank : trace.device.rank) has_device_[rank] = true;
    }

    DistributedReport report() {
        add_ranks();
        for (const CollectiveMatch& match : all_.matches) add(match);
        add_host_collectives();
        for (auto& [key, sums] : traffic_) {
            sums.traffic.algbw_gbps = gbps_or_unknown(sums.timed_bytes, sums.timed_ns);
            sums.traffic.busbw_gbps = gbps_or_unknown(sums.timed_bus_bytes, sums.timed_ns);
            report_.traffic.push_back(sums.traffic);
        }
        keep_slowest();
        report_.hosts = hosts_.take();
        report_.stepped = !trace_.steps.empty();
        report_.stopped = stop_report(trace_);
        return std::move(report_);
    }

  private:
    bool is_selected(const Communication& part) const {
        return part.event >= 0 && selected_[static_cast<std::size_t>(part.event)];
    }

    void add_ranks() {
        const OverlapReport overlap = overlap_report(trace_, selection_);
        rank_place_.assign(trace_.ranks.size(), -1);
        for (const int r : selected_ranks(trace_, selection_)) {
            RankTraffic rank;
            rank.rank = trace_.ranks[static_cast<std::size_t>(r)].number;
            rank.host = trace_.ranks[static_cast<std::size_t>(r)].host;
            for (const RankOverlap& o : overlap.ranks) {
                if (o.rank != rank.rank) continue;
                rank.parts = o.sum;
                rank.steps = static_cast<std::int64_t>(o.steps.size());
            }
            rank.device_known = has_device_[static_cast<std::size_t>(r)];
            rank_place_[static_cast<std::size_t>(r)] = static_cast<int>(report_.ranks.size());
            report_.ranks.push_back(std::move(rank));
        }
    }

    void add(const CollectiveMatch& match) {
        const auto parts = all_.of(match);
        if (std::none_of(parts.begin(), parts.end(), [this](const auto& p) { return is_selected(p); }))
            return;
        const Communication& first = parts.front();
        std::int64_t bytes = 0, group = -1, sequence = -1;
        int group_size = 0;
        if (first.row >= 0) {
            const auto row = static_cast<std::size_t>(first.row);
            bytes = trace_.collectives.bytes[row];
            group = trace_.collectives.group[row];
            sequence = trace_.collectives.sequence[row];
            group_size = trace_.collectives.group_size[row];
        }
        const int kind = size_class(bytes);
        Sums& sums = traffic_[{false, first.row < 0, group, first.operation, kind}];
        Traffic& traffic = sums.traffic;
        traffic.operation = first.operation;
        traffic.group = group;
        traffic.group_size = std::max(traffic.group_size, group_size);
        traffic.size_class = kind;
        traffic.nodes = hosts_.nodes_of(group);
        ++traffic.count;
        traffic.bytes += bytes;
        traffic.transfer_ns += match.transfer_ns;
        if (bytes > 0) {
            sums.timed_ns += match.transfer_ns;
            sums.timed_bytes += static_cast<double>(bytes);
            sums.timed_bus_bytes += static_cast<double>(bytes) * bus_factor(first.operation, group_size);
        }
        ++report_.collectives;
        hosts_.add(parts, match);
        SlowCollective slow{.operation = first.operation,
                            .group = group,
                            .sequence = sequence,
                            .bytes = bytes,
                            .transfer_ns = match.transfer_ns};
        for (const Communication& part : parts) add_part(part, match, traffic, slow);
        if (slow.ranks > 1 && slow.waiting_ns > 0) remember(slow);
    }

    void add_part(const Communication& part, const CollectiveMatch& match, Traffic& traffic,
                  SlowCollective& slow) {
        const std::int64_t ns = duration(trace_, part);
        if (ns < 0) return;
        const auto event = static_cast<std::size_t>(part.event);
        if (slow.ranks == 0 || trace_.device.start[event] < slow.start_ns)
            slow.start_ns = trace_.device.start[event];
        ++slow.ranks;
        slow.longest_ns = std::max(slow.longest_ns, ns);
        slow.waiting_ns += ns - match.transfer_ns;
        if (ns == match.transfer_ns && slow.last_rank < 0) slow.last_rank = trace_.ranks[part.rank].number;
        if (selection_.rank && trace_.ranks[part.rank].number != *selection_.rank) return;
        ++traffic.parts;
        traffic.waiting_ns += ns - match.transfer_ns;
        traffic.unmatched += match.unmatched;
        report_.unmatched += match.unmatched;
        report_.without_metadata += part.row < 0;
        const int place = rank_place_[part.rank];
        const std::int32_t step = steps_.event[event];
        if (place < 0 || !is_selected(part) || step < 0 || step >= steps_.ranks[part.rank].kept()) return;
        RankTraffic& rank = report_.ranks[static_cast<std::size_t>(place)];
        ++rank.collectives;
        if (part.row >= 0) rank.bytes += trace_.collectives.bytes[static_cast<std::size_t>(part.row)];
        rank.ns += ns;
        rank.transfer_ns += match.transfer_ns;
    }

    // What host threads carried out, counterparts together. Their ranges tell no group.
    void add_host_collectives() {
        std::map<std::int32_t, std::vector<SelectedHostCollective>> matches;
        for (const SelectedHostCollective& part :
             selected_host_collectives(trace_, steps_, all_, selection_)) {
            matches[part.collective.match].push_back(part);
            tell_library(part.collective);
        }
        for (const auto& [number, parts] : matches) add(parts);
    }

    void tell_library(const HostCollective& part) {
        const std::string_view name =
            trace_.strings[trace_.ranges.name[static_cast<std::size_t>(part.range)]];
        const std::string_view library = host_library(name);
        std::string& all = report_.host_libraries;
        if (all.find(library) != std::string::npos) return;
        if (!all.empty()) all += " and ";
        all += library;
    }

    void add(const std::vector<SelectedHostCollective>& parts) {
        if (std::none_of(parts.begin(), parts.end(),
                         [this](const auto& p) { return rank_place_[p.collective.rank] >= 0; }))
            return;
        const HostCollective& first = parts.front().collective;
        std::int64_t bytes = 0;
        for (const auto& part : parts) bytes = std::max(bytes, part.collective.bytes);
        const int kind = size_class(bytes);
        Sums& sums = traffic_[{true, false, -1, first.operation, kind}];
        Traffic& traffic = sums.traffic;
        traffic.operation = first.operation;
        traffic.group = -1;
        traffic.size_class = kind;
        traffic.on_host = true;
        ++traffic.count;
        traffic.bytes += bytes;
        traffic.transfer_ns += first.transfer_ns;
        if (bytes > 0) {
            sums.timed_ns += first.transfer_ns;
            sums.timed_bytes += static_cast<double>(bytes);
            sums.timed_bus_bytes += static_cast<double>(bytes) * bus_factor(first.operation, 0);
        }
        ++report_.collectives;
        SlowCollective slow{.operation = first.operation,
                            .group = -1,
                            .bytes = bytes,
                            .start_ns = first.start,
                            .transfer_ns = first.transfer_ns,
                            .on_host = true};
        for (const auto& part : parts) add_part(part, traffic, slow);
        if (slow.ranks > 1 && slow.waiting_ns > 0) remember(slow);
    }

    void add_part(const SelectedHostCollective& part, Traffic& traffic, SlowCollective& slow) {
        const HostCollective& c = part.collective;
        const std::int64_t ns = c.end - c.start, waiting = ns - c.transfer_ns;
        slow.start_ns = std::min(slow.start_ns, c.start);
        ++slow.ranks;
        slow.longest_ns = std::max(slow.longest_ns, ns);
        slow.waiting_ns += waiting;
        if (waiting == 0 && slow.last_rank < 0) slow.last_rank = trace_.ranks[c.rank].number;
        const int place = rank_place_[c.rank];
        if (place < 0) return;
        ++traffic.parts;
        traffic.waiting_ns += waiting;
        traffic.unmatched += c.unmatched;
        report_.unmatched += c.unmatched;
        RankTraffic& rank = report_.ranks[static_cast<std::size_t>(place)];
        rank.on_host = true;
        if (!part.in_step) return;
        ++rank.collectives;
        rank.bytes += c.bytes;
        rank.ns += ns;
        rank.transfer_ns += c.transfer_ns;
    }

    // Keeps a few times as many as are told, so that each costs little.
    void remember(const SlowCollective& slow) {
        report_.slowest.push_back(slow);
        if (report_.slowest.size() >= 8 * kMostSlow) keep_slowest();
    }
    void keep_slowest() {
        sort_rows(report_.slowest, [](const auto& a, const auto& b) { return a.waiting_ns > b.waiting_ns; });
        if (report_.slowest.size() > kMostSlow) report_.slowest.resize(kMostSlow);
    }

    const Trace& trace_;
    const Selection& selection_;
    const TraceSteps steps_;
    const std::vector<bool> selected_;
    const Communications all_;
    HostsAnalysis hosts_;
    std::vector<bool> has_device_;  // by rank index
    std::vector<int> rank_place_;
    std::map<std::tuple<bool, bool, std::int64_t, Operation, int>, Sums> traffic_;
    DistributedReport report_;
};

}  // namespace

DistributedReport distributed_report(const Trace& trace, const Selection& selection) {
    return DistributedAnalysis(trace, selection).report();
}

RankSkew rank_skew(const DistributedReport& report) {
    RankSkew skew;
    if (report.ranks.size() < 2) return skew;
    double sum = 0, most = -1, least_wait = 0, most_wait = -1;
    for (const RankTraffic& rank : report.ranks) {
        if (rank.steps == 0) return {};
        const auto steps = static_cast<double>(rank.steps);
        const double compute = static_cast<double>(rank.parts.computation + rank.parts.overlapped) / steps;
        const double wait = static_cast<double>(rank.ns - rank.transfer_ns) * 1e-3 / steps;
        sum += compute;
        if (rank.device_known && compute > most) {
            most = compute;
            skew.slowest_rank = rank.rank;
        }
        if (skew.waited_for < 0 || wait < least_wait) {
            least_wait = wait;
            skew.waited_for = rank.rank;
        }
        most_wait = std::max(most_wait, wait);
    }
    if (sum > 0) skew.computation = most * static_cast<double>(report.ranks.size()) / sum;
    if (are_alike(skew.computation, 1)) skew.slowest_rank = -1;
    skew.least_waiting_us = least_wait;
    skew.most_waiting_us = most_wait;
    return skew;
}

}  // namespace shardscope::traces
