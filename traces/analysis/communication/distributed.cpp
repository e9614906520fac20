// Sums over matched collectives; see distributed.h.
#include "traces/analysis/communication/distributed.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/core.h>

#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/communication/axes.h"
#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/communication/host_collectives.h"
#include "traces/analysis/communication/matching.h"
#include "traces/analysis/time/steps.h"
#include "traces/schema/sort_rows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

int size_class(std::int64_t bytes) {
    if (bytes <= 0) return -1;
    return static_cast<int>(std::upper_bound(std::begin(kSizeClasses), std::end(kSizeClasses), bytes) -
                            std::begin(kSizeClasses));
}

struct TrafficSums {
    Traffic traffic;
    Bandwidths rates;

    void add(std::int64_t bytes, std::int64_t transfer_ns, int group_size) {
        ++traffic.count;
        traffic.bytes += bytes;
        traffic.transfer_ns += transfer_ns;
        rates.add(traffic.operation, bytes, transfer_ns, group_size);
    }
};

class DistributedAnalysis {
  public:
    DistributedAnalysis(const store::Trace& trace, const Selection& selection)
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
        report_.axes = axis_traffic(trace_, selection_, steps_, all_);
        for (const CollectiveMatch& match : all_.matches) add(match);
        add_host_collectives();
        for (auto& [key, sums] : traffic_) {
            sums.traffic.algbw_gbps = sums.rates.algbw();
            sums.traffic.busbw_gbps = sums.rates.busbw();
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
        for (const store::RankIndex r : selected_ranks(trace_, selection_)) {
            RankTraffic rank;
            rank.rank = trace_.ranks[r.at()].number;
            rank.host = trace_.ranks[r.at()].host;
            rank.place = place_in_mesh(trace_, r);
            for (const RankOverlap& o : overlap.ranks) {
                if (o.rank != rank.rank) continue;
                rank.parts = o.sum;
                rank.steps = static_cast<std::int64_t>(o.steps.size());
            }
            rank.device_known = has_device_[r.at()];
            rank_place_[r.at()] = static_cast<int>(report_.ranks.size());
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
        TrafficSums& sums = traffic_[{false, first.row < 0, group, first.operation, kind}];
        Traffic& traffic = sums.traffic;
        traffic.operation = first.operation;
        traffic.group = group;
        if (first.row >= 0) traffic.axis = axis_of(trace_, group);
        traffic.group_size = std::max(traffic.group_size, group_size);
        traffic.size_class = kind;
        traffic.nodes = hosts_.nodes_of(group);
        sums.add(bytes, match.transfer_ns, group_size);
        ++report_.collectives;
        hosts_.add(parts, match);
        SlowCollective slow{.operation = first.operation,
                            .group = group,
                            .sequence = sequence,
                            .bytes = bytes,
                            .transfer_ns = match.transfer_ns,
                            .ends = match.ends};
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

    // Adds the host threads' collectives, each with its counterparts. Their ranges do not record the group.
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
        TrafficSums& sums = traffic_[{true, false, -1, first.operation, kind}];
        Traffic& traffic = sums.traffic;
        traffic.operation = first.operation;
        traffic.group = -1;
        traffic.size_class = kind;
        traffic.on_host = true;
        sums.add(bytes, first.transfer_ns, 0);
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

    // Keeps several times as many as are reported, so that sorting is rare.
    void remember(const SlowCollective& slow) {
        report_.slowest.push_back(slow);
        if (report_.slowest.size() >= 8 * kMostSlow) keep_slowest();
    }
    void keep_slowest() {
        schema::sort_rows(report_.slowest,
                          [](const auto& a, const auto& b) { return a.waiting_ns > b.waiting_ns; });
        if (report_.slowest.size() > kMostSlow) report_.slowest.resize(kMostSlow);
    }

    const store::Trace& trace_;
    const Selection& selection_;
    const TraceSteps steps_;
    const std::vector<bool> selected_;
    const Communications all_;
    HostsAnalysis hosts_;
    std::vector<bool> has_device_;  // by rank index
    std::vector<int> rank_place_;
    std::map<std::tuple<bool, bool, std::int64_t, schema::Operation, int>, TrafficSums> traffic_;
    DistributedReport report_;
};

}  // namespace

DistributedReport distributed_report(const store::Trace& trace, const Selection& selection) {
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

namespace {

// How much compute hides host threads' collectives is unknown.
bool knows_overlap(const RankTraffic& r) {
    return r.device_known && !r.on_host;
}
bool knows_collectives(const RankTraffic& r) {
    return r.device_known || r.on_host;
}

// The mean per step in us, if known.
store::Cell mean_us(const RankTraffic& r, std::int64_t ns, bool known) {
    return known ? us_cell(static_cast<double>(ns) / static_cast<double>(std::max<std::int64_t>(r.steps, 1)))
                 : store::Cell();
}
template <std::int64_t OverlapParts::*Part>
store::Cell overlap_of(const RankTraffic& r) {
    return mean_us(r, r.parts.*Part, knows_overlap(r));
}
store::Cell sum_us(const RankTraffic& r, std::int64_t ns) {
    return knows_collectives(r) ? us_cell(static_cast<double>(ns)) : store::Cell();
}
// The mean is an integer if the sum is divisible.
store::Cell mean_of(const RankTraffic& r, std::int64_t sum) {
    const std::int64_t steps = std::max<std::int64_t>(r.steps, 1);
    return sum % steps == 0 ? store::Cell(sum / steps)
                            : store::Cell(static_cast<double>(sum) / static_cast<double>(steps));
}

template <class Row>
store::Cell group_of(const Row& row) {
    return row.group == -1 ? store::Cell() : store::Cell(row.group);
}
template <class Row>
store::Cell carried_by(const Row& row) {
    return to_cell(row.on_host ? "host" : "device");
}

std::string size_text(std::int64_t bytes) {
    return bytes >= (1 << 20) ? fmt::format("{} MiB", bytes >> 20) : fmt::format("{} KiB", bytes >> 10);
}
// "64 KiB - 1 MiB".
store::Cell size_of(const Traffic& traffic) {
    constexpr int kClasses = static_cast<int>(std::size(kSizeClasses));
    const int size = traffic.size_class;
    if (size < 0) return to_cell("unknown");
    if (size == 0) return "< " + size_text(kSizeClasses[0]);
    if (size >= kClasses) return ">= " + size_text(kSizeClasses[kClasses - 1]);
    return size_text(kSizeClasses[size - 1]) + " - " + size_text(kSizeClasses[size]);
}

constexpr ResultColumn kCarriedBy = {"on", "", Unit::text,
                                     "What executed it: \"device\", or \"host\" threads.", in_json};
constexpr ResultColumn kOperation = {"name", "Operation", Unit::text, "The kind of collective."};
constexpr ResultColumn kGroup = {"group", "Group", Unit::index,
                                 "The communicator; in tables numbered in the order in which they appear."};
constexpr ResultColumn kBytes = {"bytes", "MiB", Unit::bytes, "Sum of the full buffers."};

}  // namespace

Fields<RankTraffic> rank_traffic_fields() {
    using R = RankTraffic;
    static constexpr Field<R> kFields[] = {
        {kRankColumn, value_of<&R::rank>},
        {{"host", "Host", Unit::text, "Name of the rank's host."}, value_of<&R::host>},
        {{.key = "place",
          .title = "Place",
          .unit = Unit::text,
          .meaning = "Its place in a mesh of several axes: \"data 0, tensor 1\".",
          .shown = in_table | in_json,
          .where_known = true},
         [](const R& r) { return known_text(r.place); }},
        {{"steps", "", Unit::count, "Kept steps.", in_json}, value_of<&R::steps>},
        {kCarriedBy, carried_by<R>},
        {{"computation_us", "Computation", Unit::us,
          "Compute kernels without overlapping communication; mean per step."},
         [](const R& r) { return mean_us(r, r.parts.computation, r.device_known); }},
        {{"overlapped_us", "Overlapped", Unit::us,
          "Communication that overlaps compute kernels; mean per step."},
         overlap_of<&OverlapParts::overlapped>},
        {{"exposed_communication_us", "Exposed", Unit::us,
          "Communication outside compute kernels; mean per step."},
         overlap_of<&OverlapParts::exposed_communication>},
        {{"other_us", "Other", Unit::us, "Neither of them; mean per step."},
         overlap_of<&OverlapParts::other>},
        {{"overlap_percent", "", Unit::percent, "Share of communication that overlaps compute kernels.",
          in_json},
         [](const R& r) {
             return r.parts.communication() > 0 ? store::Cell(r.parts.overlap_percent()) : store::Cell();
         }},
        {{"collectives", "Collectives", Unit::count, "Collectives; mean per step.", in_table},
         [](const R& r) { return knows_collectives(r) ? mean_of(r, r.collectives) : store::Cell(); }},
        {{"bytes", "MiB", Unit::bytes, "Full buffers; mean per step.", in_table},
         [](const R& r) { return r.bytes > 0 ? mean_of(r, r.bytes) : store::Cell(); }},
        {{"transfer_us", "Transfer", Unit::us, "Shortest duration among the ranks of each; mean per step.",
          in_table},
         [](const R& r) { return mean_us(r, r.transfer_ns, knows_collectives(r)); }},
        {{"waiting_us", "Waiting", Unit::us, "Durations without the transfer; mean per step.", in_table},
         [](const R& r) { return mean_us(r, r.ns - r.transfer_ns, knows_collectives(r)); }},
        {{"collectives", "", Unit::count, "Collectives.", in_json},
         [](const R& r) { return knows_collectives(r) ? store::Cell(r.collectives) : store::Cell(); }},
        {{"bytes", "", Unit::bytes, "Full buffers.", in_json}, known_value_of<&R::bytes>},
        {{"us", "", Unit::us, "Durations.", in_json}, [](const R& r) { return sum_us(r, r.ns); }},
        {{"transfer_us", "", Unit::us, "Shortest duration among the ranks of each.", in_json},
         [](const R& r) { return sum_us(r, r.transfer_ns); }},
        {{"waiting_us", "", Unit::us, "Durations without the transfer.", in_json},
         [](const R& r) { return sum_us(r, r.ns - r.transfer_ns); }},
    };
    return kFields;
}

Fields<Traffic> traffic_fields() {
    using T = Traffic;
    static constexpr Field<T> kFields[] = {
        {kOperation, [](const T& t) { return to_cell(name(t.operation)); }},
        {kCarriedBy, carried_by<T>},
        {kGroup, group_of<T>},
        {{.key = kAxisColumn.key,
          .title = kAxisColumn.title,
          .meaning = kAxisColumn.meaning,
          .where_known = true},
         [](const T& t) { return known_text(t.axis); }},
        {{"group_size", "Ranks", Unit::index, "Ranks of the group."}, known_value_of<&T::group_size>},
        {{"nodes", "", Unit::count, "Hosts that the group spans.", in_programs}, known_value_of<&T::nodes>},
        {{"within", "Within", Unit::text, "Hosts that the group spans.", in_table},
         [](const T& t) {
             if (t.nodes == 0) return store::Cell();
             return to_cell(t.nodes == 1 ? "one node" : fmt::format("{} nodes", t.nodes));
         }},
        {{"size", "Size", Unit::text, "Class of the full buffer's size."}, size_of},
        {{"count", "Count", Unit::count, "Number of collectives; each counts once."}, value_of<&T::count>},
        {kBytes, known_value_of<&T::bytes>},
        {{"transfer_us", "Transfer", Unit::us, "Sum of the shortest durations."}, micros_of<&T::transfer_ns>},
        {{"waiting_us", "", Unit::us, "Sum over ranks of duration without transfer.", in_programs},
         micros_of<&T::waiting_ns>},
        {{"wait_part_us", "Wait/part", Unit::us, "Waiting of one rank's part, a mean.", in_table},
         [](const T& t) {
             return t.parts > 0 ? us_cell(static_cast<double>(t.waiting_ns) / static_cast<double>(t.parts))
                                : store::Cell();
         }},
        {{"parts", "", Unit::count, "Ranks' parts with a time.", in_programs}, value_of<&T::parts>},
        {{"unmatched", "", Unit::count, "Parts without a counterpart.", in_programs},
         value_of<&T::unmatched>},
        {{"algbw_gbps", "algbw", Unit::gbps, "Algorithm bandwidth.", everywhere, 2},
         known_value_of<&T::algbw_gbps>},
        {{"busbw_gbps", "busbw", Unit::gbps, "Bus bandwidth.", everywhere, 2},
         known_value_of<&T::busbw_gbps>},
    };
    return kFields;
}

Fields<SlowCollective> slow_collective_fields() {
    using S = SlowCollective;
    static constexpr Field<S> kFields[] = {
        {kOperation, [](const S& s) { return to_cell(name(s.operation)); }},
        {kCarriedBy, carried_by<S>},
        {kGroup, group_of<S>},
        {{"sequence", "Number", Unit::count, "Its number in the group."},
         [](const S& s) { return s.sequence >= 0 ? store::Cell(s.sequence) : store::Cell(); }},
        {{.key = "from_rank",
          .title = "From",
          .unit = Unit::index,
          .meaning = "Of a message: the rank that sends it.",
          .where_known = true},
         [](const S& s) { return s.ends.known() ? store::Cell(s.ends.source) : store::Cell(); }},
        {{.key = "to_rank",
          .title = "To",
          .unit = Unit::index,
          .meaning = "Of a message: the rank that receives it.",
          .where_known = true},
         [](const S& s) { return s.ends.known() ? store::Cell(s.ends.destination) : store::Cell(); }},
        {{"start_ns", "Start", Unit::ns, "When the first rank began it."}, value_of<&S::start_ns>},
        {kBytes, known_value_of<&S::bytes>},
        {{"ranks", "Ranks", Unit::index, "Ranks that took part."}, value_of<&S::ranks>},
        {{"transfer_us", "Transfer", Unit::us, "The shortest duration."}, micros_of<&S::transfer_ns>},
        {{"longest_us", "Longest", Unit::us, "The longest duration."}, micros_of<&S::longest_ns>},
        {{"waiting_us", "Waiting", Unit::us, "Sum over ranks of duration without transfer."},
         micros_of<&S::waiting_ns>},
        {{"last_rank", "Last rank", Unit::index, "The rank that arrived last."}, value_of<&S::last_rank>},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
