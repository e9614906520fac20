#include "trainer/lift/recorded_costs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "traces/analysis/communication/matching.h"
#include "traces/schema/joined.h"
#include "traces/store/columns/trace.h"
#include "trainer/lift/settings.h"
#include "trainer/sim/collective_cost.h"

namespace shardscope::trainer::lift {

namespace {

using traces::schema::Operation;
using traces::store::Trace;

// A PyTorch range takes about 10 us of host time. FSDP's or DDP's time beyond this per range of the Plan
// belongs to no range and is the same under any sharding.
constexpr std::int64_t kMostOfRange = 50'000;  // ns
constexpr double kBoundless = 1e30;            // stands for no limit

// The time of a collective with fewer bytes is all latency and does not show the bandwidth.
constexpr double kTellsBandwidth = 64 << 10;

struct Sample {
    double bytes = 0;    // size of the full buffer
    double share = 0;    // bytes on the busiest wire
    double seconds = 0;  // typical for all collectives of this size
};

// The event of the last member to arrive, which waited for no other.
traces::analysis::Interval last_to_arrive(const Trace& trace,
                                          const traces::analysis::Communications& communications,
                                          const traces::analysis::CollectiveMatch& match) {
    for (const traces::analysis::Communication& part : communications.of(match)) {
        if (part.event < 0) continue;
        const auto e = static_cast<std::size_t>(part.event);
        const traces::analysis::Interval own{trace.device.start[e], trace.device.end[e]};
        if (own.length() == match.transfer_ns) return own;
    }
    return {};
}

// Median transfer times, by operation and size. Traces of several ranks separate transfer from waiting; a
// trace of one rank has only their sum.
std::array<std::vector<Sample>, traces::schema::kOperations> samples_of(const Trace& trace,
                                                                        const SharedCores& cores) {
    std::map<std::tuple<int, double, double>, std::vector<double>> times;  // operation, share, bytes
    const traces::analysis::Communications communications = traces::analysis::match_communications(trace);
    for (const traces::analysis::CollectiveMatch& match : communications.matches) {
        const traces::analysis::Communication& part = communications.parts[match.begin];
        if (part.row < 0 || match.transfer_ns <= 0) continue;
        const auto row = static_cast<std::size_t>(part.row);
        const double members = std::max(trace.collectives.group_size[row], 1);
        const auto bytes = static_cast<double>(trace.collectives.bytes[row]);
        if (bytes <= 0 || members < 2 || trace.collectives.phase[row] == traces::schema::Phase::setup)
            continue;
        const Operation operation = trace.collectives.operation[row];
        const std::int64_t transfer = cores.count() == 0
                                          ? match.transfer_ns
                                          : cores.transfer_ns(last_to_arrive(trace, communications, match),
                                                              trace.collectives.group_size[row]);
        if (transfer <= 0) continue;  // kernels occupied all cores throughout
        times[{static_cast<int>(operation), bytes * sim::bus_share(operation, members), bytes}].push_back(
            static_cast<double>(transfer) * kNs);
    }
    std::array<std::vector<Sample>, traces::schema::kOperations> samples;
    for (auto& [key, seconds] : times) {
        const auto& [operation, share, bytes] = key;
        samples[static_cast<std::size_t>(operation)].push_back({bytes, share, median(std::move(seconds))});
    }
    return samples;
}

bool tells_bandwidth(const Sample& sample) {
    return sample.bytes >= kTellsBandwidth;
}

std::string list_of(const std::vector<Operation>& operations) {
    std::vector<std::string_view> names;
    names.reserve(operations.size());
    for (const Operation operation : operations) names.push_back(traces::schema::name(operation));
    return traces::schema::joined(names, ", ");
}

// seconds = latency + share / bandwidth (Hockney's model), by least squares of the relative error, so that
// small collectives count as much as large ones. With one size, or if the fitted line is implausible,
// `latency` is assumed, but at most half of each time. `samples` are in the order of their shares.
sim::CollectiveModel::Measured line_through(const std::vector<Sample>& samples, double latency) {
    double w = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (const Sample& s : samples) {
        const double weight = 1 / (s.seconds * s.seconds);
        w += weight;
        x += weight * s.share;
        y += weight * s.seconds;
        xx += weight * s.share * s.share;
        xy += weight * s.share * s.seconds;
    }
    const bool apart = samples.size() > 1 && samples.back().share >= 2 * samples.front().share;
    const double spread = w * xx - x * x;
    if (apart && spread > 0) {
        const double slope = (w * xy - x * y) / spread, at_zero = (y - slope * x) / w;
        if (slope > 0 && at_zero >= 0) return {at_zero, 1 / slope};
    }
    for (const Sample& s : samples) latency = std::min(latency, s.seconds / 2);
    // With the latency fixed, the slope of least relative error.
    const double slope = (xy - latency * x) / xx;
    return {latency, 1 / slope};
}

// If no collective is large enough to show the bandwidth, small ones are used, with a note that says so.
void know_collectives(const std::array<std::vector<Sample>, traces::schema::kOperations>& samples,
                      double assumed_latency,
                      std::array<sim::CollectiveModel::Measured, traces::schema::kOperations>& measured,
                      std::vector<std::string>& notes) {
    std::vector<Sample> all, telling;
    for (const std::vector<Sample>& own : samples) {
        all.insert(all.end(), own.begin(), own.end());
        std::copy_if(own.begin(), own.end(), std::back_inserter(telling), tells_bandwidth);
    }
    if (all.empty()) return;
    const bool known = !telling.empty();
    std::vector<Sample>& pool = known ? telling : all;
    std::sort(pool.begin(), pool.end(), [](const Sample& a, const Sample& b) { return a.share < b.share; });
    const auto pooled = line_through(pool, assumed_latency);
    std::vector<Operation> absent, small;
    double largest = 0;  // largest collective of the operations in `small`, bytes
    for (std::size_t o = 0; o < samples.size(); ++o) {
        const std::vector<Sample>& own = samples[o];
        const auto operation = static_cast<Operation>(o);
        const bool of_plans = operation == Operation::all_gather || operation == Operation::reduce_scatter ||
                              operation == Operation::all_reduce;
        if (own.empty()) {
            if (!of_plans && operation != Operation::broadcast) continue;
            measured[o] = pooled;
            if (of_plans) absent.push_back(operation);
        } else if (!known || std::any_of(own.begin(), own.end(), tells_bandwidth)) {
            measured[o] = line_through(own, assumed_latency);
        } else {
            // Its time is latency or waiting, which does not grow with the bytes of a larger collective.
            double latency = std::max(pooled.latency, assumed_latency);
            for (const Sample& s : own) latency = std::min(latency, s.seconds);
            measured[o] = {latency, pooled.bandwidth};
            if (of_plans) small.push_back(operation);
            for (const Sample& s : own) largest = of_plans ? std::max(largest, s.bytes) : largest;
        }
    }
    const double rate = pooled.bandwidth * 1e-9;
    if (!absent.empty()) {
        notes.push_back(
            fmt::format("The trace has no {}: their bandwidth is taken from its other collectives ({:.3g} "
                        "GB/s on the bus).",
                        list_of(absent), rate));
    }
    if (!small.empty()) {
        notes.push_back(fmt::format(
            "Its {} move {:.0f} bytes at most, which is too little to derive a bandwidth: that is taken"
            " from its other collectives ({:.3g} GB/s on the bus).",
            list_of(small), largest, rate));
    }
    if (!known) {
        notes.push_back(
            fmt::format("No collective moves {:.0f} bytes or more: the bandwidth ({:.3g} GB/s on the bus) is "
                        "that of small ones, and larger units may be far faster than replayed.",
                        kTellsBandwidth, rate));
    }
}

// The work in a Plan that is not the model's own.
struct EngineWork {
    double optimizer = 0, others = 0;  // bytes that kernels and copies move
    std::int64_t ranges = 0, optimizer_ranges = 0, optimizer_launches = 0;
};

EngineWork work_of(const plan::Plan& plan) {
    EngineWork sums;
    for (const plan::Op& op : plan.ops) {
        if (op.kind == plan::OpKind::push_range) {
            const std::string_view name = plan.names[static_cast<std::size_t>(op.name)];
            const bool lifted = (name.starts_with("nn.Module: ") && name.find("Parallel_") == name.npos) ||
                                name == "loss (backward)";
            const bool optimizer = name.starts_with("Optimizer.") || name == "clip_grad_norm_";
            if (!lifted) ++(optimizer ? sums.optimizer_ranges : sums.ranges);
        }
        const bool launches = op.kind == plan::OpKind::kernel || op.kind == plan::OpKind::memset;
        sums.optimizer_launches += launches && op.phase == plan::Phase::optimizer;
        if (op.stream == plan::Stream::host) continue;
        const auto bytes = static_cast<double>(op.bytes);
        if (op.kind == plan::OpKind::kernel && op.kernel().kernel != plan::Kernel::none) {
            (kernel_info(op.kernel().kernel).kernel_class == plan::KernelClass::optimizer ? sums.optimizer
                                                                                          : sums.others) +=
                bytes;
        } else if ((op.kind == plan::OpKind::memcpy &&
                    op.copy_kind() == traces::schema::kCopyDeviceToDevice) ||
                   op.kind == plan::OpKind::memset) {
            if (op.recorded_ns == 0) sums.others += (op.kind == plan::OpKind::memcpy ? 2 : 1) * bytes;
        }
    }
    return sums;
}

}  // namespace

std::int64_t exposed_waiting(const Trace& trace, traces::store::RankIndex rank,
                             const std::vector<traces::analysis::Interval>& windows,
                             const SharedCores& cores) {
    std::vector<traces::analysis::Interval> kernels, waits;
    for (std::size_t e = 0; e < trace.device.size(); ++e) {
        if (trace.device.rank[e] == rank.column() &&
            trace.device.kind[e] == traces::store::DeviceKind::kernel)
            kernels.push_back({trace.device.start[e], trace.device.end[e]});
    }
    const traces::analysis::Communications communications = traces::analysis::match_communications(trace);
    for (const traces::analysis::CollectiveMatch& match : communications.matches) {
        if (match.transfer_ns <= 0 || match.unmatched) continue;
        for (const traces::analysis::Communication& part : communications.of(match)) {
            if (part.rank != rank.column() || part.event < 0) continue;
            const auto e = static_cast<std::size_t>(part.event);
            waits.push_back({trace.device.start[e], trace.device.end[e] - match.transfer_ns});
        }
    }
    std::erase_if(waits, [](const traces::analysis::Interval& wait) { return wait.length() <= 0; });
    // A replay itself models the waiting for occupied cores.
    const traces::analysis::IntervalSet exposed = traces::analysis::subtract(
        traces::analysis::subtract(traces::analysis::make_union(std::move(waits)),
                                   traces::analysis::make_union(std::move(kernels))),
        cores.full());
    const std::vector<std::int64_t> inside = traces::analysis::length_inside(exposed, windows);
    return std::accumulate(inside.begin(), inside.end(), std::int64_t{0});
}

std::string base_cluster_of(const Trace& trace, bool hosts) {
    const std::string_view own = trace.config_value("sim.cluster");
    const std::string_view device = trace.config_value("run.device");
    if (device == "sim" && !own.empty()) {
        const std::vector<std::string> shipped = sim::shipped_clusters();
        if (std::find(shipped.begin(), shipped.end(), own) != shipped.end()) return std::string(own);
    }
    if (device == "cpu" || hosts) return "laptop";
    const std::string name = trace.ranks.empty() ? "" : trace.ranks.front().device_name;
    for (const auto& [word, cluster] :
         {std::pair("H200", "h200_nvlink"), std::pair("H100", "h100_ib"), std::pair("V100", "v100_pcie")})
        if (name.find(word) != name.npos) return cluster;
    return "a100";
}

sim::Cluster cluster_of(const Trace& trace, const sim::Cluster& base, const RecordedFigures& figures,
                        const SharedCores& cores, std::vector<std::string>& notes, bool hosts) {
    sim::Cluster cluster = base;
    cluster.name = "as recorded";
    cluster.nodes = 0;
    cluster.devices = ranks_of(trace);     // collectives use measured costs, wherever the ranks are
    cluster.device.cores = cores.count();  // 0: recorded times already include any sharing
    cluster.device.busy_share = {};
    cluster.device.kernel_latency = 0;
    cluster.device.kernels.clear();
    cluster.device.memory = kBoundless;
    if (!trace.ranks.empty()) cluster.device.name = trace.ranks.front().device_name;
    for (sim::ClassRates& rates : cluster.device.classes) {
        rates = {};
        rates.flops.fill(kBoundless);
    }
    cluster.host.launch = figures.launch_s;
    cluster.host.event = figures.event_s;
    cluster.host.operation = cluster.host.allocate = cluster.host.grow = cluster.host.wake = 0;

    const double latency = base.intra.latency + base.collectives.latency;
    if (!hosts) know_collectives(samples_of(trace, cores), latency, cluster.collectives.measured, notes);
    return cluster;
}

std::vector<double> meeting_shares(const plan::Plan& plan, bool blocking) {
    std::vector<double> meetings;
    double work = 0;
    std::int32_t micro = -1;
    for (const plan::Op& op : plan.ops) {
        work += static_cast<double>(op.recorded_ns);
        if (op.kind != plan::OpKind::collective) continue;
        if (!blocking && op.micro == micro) meetings.pop_back();
        meetings.push_back(work);
        micro = op.micro;
    }
    for (double& at : meetings) at /= std::max(work, 1.0);
    return meetings;
}

EngineHost calibrate_engine(const plan::Plan& plan, const RecordedFigures& figures, sim::Cluster& cluster) {
    const EngineWork planned = work_of(plan);
    const double others_s = static_cast<double>(figures.engine.kernels_ns) * kNs,
                 optimizer_s = static_cast<double>(figures.engine.optimizer_ns) * kNs;
    if (others_s > 0 && planned.others > 0) cluster.device.memory_bandwidth = planned.others / others_s;
    if (optimizer_s > 0 && planned.optimizer > 0) {
        const double share = planned.optimizer / optimizer_s / cluster.device.memory_bandwidth;
        cluster.device.classes[static_cast<std::size_t>(plan::KernelClass::optimizer)]
            .bandwidth_share.points = {{1, share}};
    }
    EngineHost host;
    const std::int64_t own = std::max<std::int64_t>(figures.engine.host_ns, 0);
    if (planned.ranges > 0) host.operation_ns = std::min(own / planned.ranges, kMostOfRange);
    // PyTorch's optimizers launch more kernels than a Plan's, which updates a shard in one.
    const std::int64_t more = figures.engine.optimizer_launches - planned.optimizer_launches;
    const auto launch_ns = static_cast<std::int64_t>(figures.launch_s / kNs);
    host.step_ns = own - host.operation_ns * planned.ranges + figures.engine.optimizer_host_ns -
                   host.operation_ns * planned.optimizer_ranges + std::max<std::int64_t>(more, 0) * launch_ns;
    host.step_ns = std::max<std::int64_t>(host.step_ns, 0);
    cluster.host.operation = static_cast<double>(host.operation_ns) * kNs;
    return host;
}

}  // namespace shardscope::trainer::lift
