// See bus_bandwidth.h.
#include "traces/analysis/communication/bus_bandwidth.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <tuple>

#include <fmt/core.h>

#include "traces/analysis/base/percentile.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/communication/axes.h"
#include "traces/analysis/communication/collectives.h"
#include "traces/schema/text.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

using Where = HostTraffic::Where;

// One collective or message.
struct Sample {
    std::int64_t bytes = 0, ns = 0;
};

double median_of(std::vector<double>& values) {
    return percentile(std::span<double>(values), 0.5);
}

BandwidthPoint point_of(std::span<const Sample> samples, double factor) {
    BandwidthPoint point;
    point.count = static_cast<std::int64_t>(samples.size());
    std::vector<std::int64_t> sizes;
    std::vector<double> us, busbw;
    for (const Sample& sample : samples) {
        sizes.push_back(sample.bytes);
        us.push_back(static_cast<double>(sample.ns) * 1e-3);
        // Bytes per nanosecond are GB/s.
        busbw.push_back(factor * static_cast<double>(sample.bytes) / static_cast<double>(sample.ns));
    }
    point.bytes = lower_median(sizes);
    point.median_us = median_of(us);
    point.low_us = percentile(std::span<double>(us), 0.25);
    point.high_us = percentile(std::span<double>(us), 0.75);
    point.busbw_gbps = median_of(busbw);
    point.low_gbps = percentile(std::span<double>(busbw), 0.25);
    point.high_gbps = percentile(std::span<double>(busbw), 0.75);
    point.algbw_gbps = factor > 0 ? point.busbw_gbps / factor : 0;
    return point;
}

// Four bins an octave.
std::int64_t bin_of(std::int64_t bytes) {
    return std::llround(4 * std::log2(static_cast<double>(bytes)));
}

// `samples` by size.
std::vector<BandwidthPoint> points_of(std::vector<Sample>& samples, double factor) {
    std::sort(samples.begin(), samples.end(),
              [](const Sample& a, const Sample& b) { return a.bytes < b.bytes; });
    std::size_t sizes = 0;
    for (std::size_t i = 0; i < samples.size(); ++i)
        sizes += i == 0 || samples[i].bytes != samples[i - 1].bytes ? 1 : 0;
    const auto key = [&](const Sample& sample) {
        return sizes <= kMostSizes ? sample.bytes : bin_of(sample.bytes);
    };
    std::vector<BandwidthPoint> points;
    for (auto first = samples.begin(); first != samples.end();) {
        const auto last = std::find_if(first, samples.end(), [&, own = key(*first)](const Sample& sample) {
            return key(sample) != own;
        });
        points.push_back(point_of({first, last}, factor));
        first = last;
    }
    return points;
}

class BandwidthAnalysis {
  public:
    BandwidthAnalysis(const store::Trace& trace, const Selection& selection)
        : trace_(trace), hosts_(trace), selection_(selection) {
        for (const store::Rank& rank : trace.ranks) host_of_[rank.number] = rank.host;
        links_ = bound_of_links();
        adapters_ = bound_of_adapters();
        copy_rate_ = fact(kCopyRateFact);
        alone_copy_rate_ = fact(kAloneCopyRateFact);
    }

    BusBandwidthReport take() {
        const TraceSteps steps = find_steps(trace_);
        const std::vector<bool> selected = selected_events(trace_, steps, selection_);
        const Communications all = match_communications(trace_);
        for (const CollectiveMatch& match : all.matches) {
            const auto parts = all.of(match);
            if (std::any_of(parts.begin(), parts.end(), [&](const Communication& part) {
                    return part.event >= 0 && selected[static_cast<std::size_t>(part.event)];
                }))
                add(parts, match);
        }
        for (auto& [key, samples] : samples_) report_.curves.push_back(curve_of(key, samples));
        for (auto& [ends, samples] : of_pairs_) report_.pairs.push_back(pair_of(ends, samples));
        return std::move(report_);
    }

  private:
    using Key = std::tuple<schema::Operation, std::string, int, Where>;

    void add(std::span<const Communication> parts, const CollectiveMatch& match) {
        const Communication& first = parts.front();
        if (first.operation == schema::Operation::barrier) return;  // it has no bytes
        const std::int64_t bytes =
            first.row >= 0 ? trace_.collectives.bytes[static_cast<std::size_t>(first.row)] : 0;
        const bool message = schema::is_point_to_point(first.operation);
        const int ranks = message ? 2
                          : first.row >= 0
                              ? trace_.collectives.group_size[static_cast<std::size_t>(first.row)]
                              : 0;
        const double factor = bus_factor(first.operation, ranks);
        if (bytes <= 0 || match.transfer_ns <= 0 || !(factor > 0) || !std::isfinite(factor)) {
            ++report_.left_out;
            return;
        }
        const std::int64_t group = trace_.collectives.group[static_cast<std::size_t>(first.row)];
        const Where where = match.ends.known() ? where_of(match.ends) : where_of(hosts_.nodes_of(group));
        samples_[{message ? schema::Operation::send : first.operation, std::string(axis_of(trace_, group)),
                  ranks, where}]
            .push_back({bytes, match.transfer_ns});
        if (message && match.ends.known()) of_pairs_[match.ends].push_back({bytes, match.transfer_ns});
    }

    // Of the links between the GPUs of a host, if all have the same rate: which of them a collective uses is
    // not known.
    BandwidthBound bound_of_links() const {
        BandwidthBound bound;
        for (const schema::TopologyRow& row : trace_.topology) {
            const bool gpus = row.from.starts_with("GPU") && row.to.starts_with("GPU");
            if (!gpus || row.host != row.to_host || row.from == row.to) continue;
            const double gbps = row.bytes_per_second * 1e-9;
            if (gbps <= 0 || (bound.gbps > 0 && std::abs(gbps - bound.gbps) > 0.01 * bound.gbps)) return {};
            bound = {bound.gbps > 0 ? std::min(gbps, bound.gbps) : gbps,
                     fmt::format("the link between two GPUs{}",
                                 row.link.empty() ? "" : fmt::format(" ({})", row.link))};
        }
        return bound;
    }
    // Of the adapters of a host together, InfiniBand's where there are any, if they are alike on all hosts.
    BandwidthBound bound_of_adapters() const {
        for (const std::string_view kind : {"infiniband", "ethernet"}) {
            std::map<std::string, double> rates;  // by host; -1: one is unknown
            for (const schema::DeviceRow& row : trace_.devices) {
                if (row.kind != kind || !row.visible) continue;
                double& rate = rates[row.host];
                rate = row.bytes_per_second <= 0 || rate < 0 ? -1 : rate + row.bytes_per_second;
            }
            if (rates.empty()) continue;
            const double first = rates.begin()->second;
            const bool alike = std::all_of(rates.begin(), rates.end(), [&](const auto& rate) {
                return rate.second > 0 && std::abs(rate.second - first) <= 0.01 * first;
            });
            return alike ? BandwidthBound{first * 1e-9,
                                          fmt::format("the {} adapters of a host",
                                                      kind == "ethernet" ? "Ethernet" : "InfiniBand")}
                         : BandwidthBound();
        }
        return {};
    }
    double fact(std::string_view key) const {
        const auto number = schema::number_of<double>(trace_.config_value(key));
        return number && std::isfinite(*number) ? std::max(0.0, *number) : 0;
    }
    static Where where_of(int nodes) {
        return nodes == 0 ? Where::unknown : nodes == 1 ? Where::within : Where::between;
    }
    const std::string& host_of(int rank) const {
        static const std::string kUnknown;
        const auto found = host_of_.find(rank);
        return found == host_of_.end() ? kUnknown : found->second;
    }
    Where where_of(const MessageEnds& ends) const {
        const std::string &from = host_of(ends.source), &to = host_of(ends.destination);
        return from.empty() || to.empty() ? Where::unknown : from == to ? Where::within : Where::between;
    }

    BandwidthCurve curve_of(const Key& key, std::vector<Sample>& samples) const {
        BandwidthCurve curve;
        std::tie(curve.operation, curve.axis, curve.ranks, curve.where) = key;
        const double factor = bus_factor(curve.operation, curve.ranks);
        for (const Sample& sample : samples) curve.bytes += sample.bytes;
        curve.count = static_cast<std::int64_t>(samples.size());
        curve.points = points_of(samples, factor);
        // A copy rate is of one host's memory. Of a message's two ranks one copies.
        const bool message = schema::is_point_to_point(curve.operation);
        const double rate = message ? alone_copy_rate_ : copy_rate_;
        const double moved = memory_bytes_moved(curve.operation, 1.0, curve.ranks);
        if (curve.where == Where::within && rate > 0 && moved > 0) {
            curve.bound = {factor / moved * rate * 1e-9, "the host's memory"};
        } else if (curve.where != Where::unknown) {
            curve.bound = curve.where == Where::within ? links_ : adapters_;
        }
        return curve;
    }

    PairBandwidth pair_of(const MessageEnds& ends, std::vector<Sample>& samples) const {
        PairBandwidth pair;
        pair.ends = ends;
        pair.count = static_cast<std::int64_t>(samples.size());
        const std::vector<BandwidthPoint> points = points_of(samples, 1);
        pair.smallest_bytes = samples.front().bytes;
        pair.largest_bytes = samples.back().bytes;
        std::vector<double> smallest;  // alone, whatever else the first bin has
        for (const Sample& sample : samples)
            if (sample.bytes == pair.smallest_bytes)
                smallest.push_back(static_cast<double>(sample.ns) * 1e-3);
        pair.latency_us = median_of(smallest);
        for (const BandwidthPoint& point : points) {
            if (point.busbw_gbps <= pair.busbw_gbps) continue;
            pair.busbw_gbps = point.busbw_gbps;
            pair.bytes = point.bytes;
        }
        pair.where = where_of(ends);
        return pair;
    }

    const store::Trace& trace_;
    const HostsAnalysis hosts_;
    const Selection& selection_;
    std::map<int, std::string> host_of_;  // by rank number
    BandwidthBound links_, adapters_;
    double copy_rate_ = 0, alone_copy_rate_ = 0;  // bytes per second; 0 unknown
    std::map<Key, std::vector<Sample>> samples_;
    std::map<MessageEnds, std::vector<Sample>> of_pairs_;
    BusBandwidthReport report_;
};

}  // namespace

BusBandwidthReport bus_bandwidth(const store::Trace& trace, const Selection& selection) {
    return BandwidthAnalysis(trace, selection).take();
}

double memory_bytes_moved(schema::Operation operation, double bytes, int ranks) {
    if (ranks < 1) return 0;
    const double piece = bytes / ranks;
    switch (operation) {
        case schema::Operation::reduce_scatter:
            return bytes + piece;  // its piece of every rank's input, and the sum
        case schema::Operation::all_reduce:
            return bytes + piece + 2 * bytes;  // as a reduce_scatter, then an all_gather of the sums
        case schema::Operation::all_gather:
        case schema::Operation::all_to_all:
        case schema::Operation::broadcast:
        case schema::Operation::send:
        case schema::Operation::recv:
            return 2 * bytes;
        default:
            return 0;
    }
}

std::vector<BandwidthRow> bandwidth_rows(const BusBandwidthReport& report) {
    std::vector<BandwidthRow> rows;
    for (const BandwidthCurve& curve : report.curves)
        for (const BandwidthPoint& point : curve.points) rows.push_back({&curve, point});
    return rows;
}

std::string size_text(std::int64_t bytes) {
    constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
    return fmt::format("{:.4g} {}", value, kUnits[unit]);
}

std::string curve_name(const BandwidthCurve& curve) {
    std::string text(schema::name(curve.operation));
    if (!curve.axis.empty()) text += ", " + curve.axis;
    if (!schema::is_point_to_point(curve.operation)) text += fmt::format(", {} ranks", curve.ranks);
    if (curve.where == Where::within) text += ", within a host";
    if (curve.where == Where::between) text += ", between hosts";
    return text;
}

namespace {

template <auto Member>
store::Cell of_point(const BandwidthRow& row) {
    return to_cell(row.point.*Member);
}

}  // namespace

Fields<BandwidthRow> bandwidth_fields() {
    using R = BandwidthRow;
    using P = BandwidthPoint;
    static constexpr Field<R> kFields[] = {
        {{"operation", "Operation", Unit::text, "The kind of collective; a send with its receive is a send."},
         [](const R& r) { return to_cell(schema::name(r.curve->operation)); }},
        {kAxisColumn, [](const R& r) { return known_text(r.curve->axis); }},
        {{"ranks", "Ranks", Unit::index, "Ranks of the communicator."},
         [](const R& r) { return to_cell(r.curve->ranks); }},
        {{"where", "Where", Unit::text, "Whether its ranks are within one host or between hosts."},
         [](const R& r) { return to_cell(std::string_view(name(r.curve->where))); }},
        {{"bytes", "", Unit::bytes,
          "Size of the full buffer; the median of a quarter of an octave if a curve has more than 64 sizes.",
          in_programs},
         of_point<&P::bytes>},
        {{"size", "Size", Unit::text, "The size, with its unit.", in_table},
         [](const R& r) { return to_cell(size_text(r.point.bytes)); }},
        {{"count", "Count", Unit::count, "Collectives of this size; each counts once."}, of_point<&P::count>},
        {{"median_us", "Median", Unit::us,
          "Median of the transfers (the shortest duration among the ranks)."},
         of_point<&P::median_us>},
        {{"low_us", "", Unit::us, "First quartile of the transfers.", in_programs}, of_point<&P::low_us>},
        {{"high_us", "", Unit::us, "Third quartile of the transfers.", in_programs}, of_point<&P::high_us>},
        {{"algbw_gbps", "algbw", Unit::gbps, "Median of the algorithm bandwidths.", everywhere, 3},
         of_point<&P::algbw_gbps>},
        {{"busbw_gbps", "busbw", Unit::gbps, "Median of the bus bandwidths.", everywhere, 3},
         of_point<&P::busbw_gbps>},
        {{"low_gbps", "from", Unit::gbps, "First quartile of the bus bandwidths.", everywhere, 3},
         of_point<&P::low_gbps>},
        {{"high_gbps", "to", Unit::gbps, "Third quartile of the bus bandwidths.", everywhere, 3},
         of_point<&P::high_gbps>},
        {{"bound_gbps", "Bound", Unit::gbps,
          "The bus bandwidth that memory, links or adapters allow; data in caches can be faster.", everywhere,
          2, true},
         [](const R& r) { return known_cell(r.curve->bound.gbps); }},
        {{"bound_of", "Bound of", Unit::text, "What sets the bound.", in_programs},
         [](const R& r) { return known_text(r.curve->bound.of); }},
    };
    return kFields;
}

Fields<PairBandwidth> pair_bandwidth_fields() {
    using P = PairBandwidth;
    static constexpr Field<P> kFields[] = {
        {{"source", "From", Unit::index, "Number of the rank that sends."},
         [](const P& p) { return to_cell(p.ends.source); }},
        {{"destination", "To", Unit::index, "Number of the rank that receives."},
         [](const P& p) { return to_cell(p.ends.destination); }},
        {{"where", "Where", Unit::text, "Whether both are within one host or on two.", in_programs},
         [](const P& p) { return to_cell(std::string_view(name(p.where))); }},
        {{"count", "Messages", Unit::count, "Messages from the one to the other."}, value_of<&P::count>},
        {{"smallest_bytes", "", Unit::bytes, "The smallest size.", in_programs},
         value_of<&P::smallest_bytes>},
        {{"largest_bytes", "", Unit::bytes, "The largest size.", in_programs}, value_of<&P::largest_bytes>},
        {{"latency_us", "Latency", Unit::us, "Median transfer of the messages of the smallest size.",
          everywhere, 2},
         value_of<&P::latency_us>},
        {{"busbw_gbps", "Highest", Unit::gbps, "The highest median bandwidth of a size.", everywhere, 2},
         value_of<&P::busbw_gbps>},
        {{"bytes", "", Unit::bytes, "The size that reached it.", in_programs}, value_of<&P::bytes>},
        {{"size", "of size", Unit::text, "The size that reached it.", in_table},
         [](const P& p) { return to_cell(size_text(p.bytes)); }},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
