// Cost models: parses their text into figures, and finds the text by name.
#include "trainer/sim/cluster.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>

#include <fmt/core.h>

#include "traces/schema/joined.h"
#include "trainer/job/nearest.h"
#include "trainer/sim/figure_reader.h"
#include "trainer/sim/shipped_clusters.h"

namespace shardscope::trainer::sim {

namespace {

constexpr double kLongestLatency = 10;  // seconds; more means a mistaken unit

std::string rate_of(Arithmetic arithmetic, std::string_view what) {
    return fmt::format("the {} operations a second that {} reaches at best",
                       kArithmeticNames[static_cast<std::size_t>(arithmetic)], what);
}

// Figures that a section omits keep their values, which are those of a similar class.
void read_rates(FigureReader& read, const std::string& section, std::string_view what, Presence presence,
                ClassRates& rates) {
    const bool given =
        read.positive(section, "fp32", rate_of(Arithmetic::fp32, what), rates.flops[0], presence);
    for (const Arithmetic arithmetic : {Arithmetic::tf32, Arithmetic::bf16, Arithmetic::fp16}) {
        double& rate = rates.flops[static_cast<std::size_t>(arithmetic)];
        if (given) rate = rates.flops[0];
        read.positive(section, kArithmeticNames[static_cast<std::size_t>(arithmetic)],
                      rate_of(arithmetic, what), rate, Presence::optional);
    }
    read.curve(section, "efficiency", rates.efficiency);
    read.curve(section, "bandwidth_share", rates.bandwidth_share);
}

void read_class(FigureReader& read, plan::KernelClass c, Presence presence, ClassRates& rates) {
    const std::string_view name = plan::kKernelClassNames[static_cast<std::size_t>(c)];
    read_rates(read, fmt::format("operators.{}", name), name, presence, rates);
}

void read_classes(FigureReader& read, DeviceModel& device) {
    const auto rates = [&](plan::KernelClass c) -> ClassRates& {
        return device.classes[static_cast<std::size_t>(c)];
    };
    read_class(read, plan::KernelClass::matmul, Presence::required, rates(plan::KernelClass::matmul));
    read_class(read, plan::KernelClass::elementwise, Presence::required,
               rates(plan::KernelClass::elementwise));
    for (const plan::KernelClass c :
         {plan::KernelClass::attention, plan::KernelClass::norm, plan::KernelClass::embedding,
          plan::KernelClass::loss, plan::KernelClass::optimizer, plan::KernelClass::copy,
          plan::KernelClass::compression}) {
        rates(c) = rates(c == plan::KernelClass::attention ? plan::KernelClass::matmul
                                                           : plan::KernelClass::elementwise);
        read_class(read, c, Presence::optional, rates(c));
    }
}

// Kernels that have their own section, which omits what equals their class.
void read_kernels(FigureReader& read, DeviceModel& device) {
    for (const plan::KernelInfo& info : plan::kernel_table()) {
        const std::string section = fmt::format("kernels.{}", info.name);
        if (info.kernel == plan::Kernel::none || !read.has(section)) continue;
        ClassRates& rates = device.kernels[info.kernel] = device.rates(info.kernel_class);
        read_rates(read, section, info.name, Presence::optional, rates);
    }
}

void read_device(FigureReader& read, DeviceModel& device) {
    read.text("device", "name", "the device's name, as the trace shows it", device.name);
    static constexpr std::array<std::string_view, 2> kTypes = {"cpu", "gpu"};
    std::size_t type = 0;
    read.choice("device", "type", kTypes, type);
    device.type = static_cast<DeviceType>(type);
    read.positive("device", "memory", "the bytes of a device's memory", device.memory);
    read.number("device", "reserve", "the bytes of it that the CUDA context and NCCL take", 0, device.memory,
                device.reserve, Presence::optional);
    read.positive("device", "memory_bandwidth", "the bytes per second of a device's memory",
                  device.memory_bandwidth);
    read.number("device", "kernel_latency", "the seconds before a kernel's work", 0, kLongestLatency,
                device.kernel_latency);
    read.number("device", "wake", "the seconds until an idle device starts on what it is given", 0,
                kLongestLatency, device.wake, Presence::optional);
    const Presence cores = device.type == DeviceType::cpu ? Presence::required : Presence::optional;
    if (read.count("device", "cores", "the cores that the ranks of a node share", 1, 65536, device.cores,
                   cores) &&
        device.type == DeviceType::gpu) {
        throw ClusterError(
            "device.cores: ranks share the cores of a \"cpu\", not of a \"gpu\"; omit the figure");
    }
    read.positive("device", "price_per_hour", "the price of a device for an hour, in USD",
                  device.price_per_hour, Presence::optional);
    read.curve("device", "busy_share", device.busy_share);
    read_classes(read, device);
    read_kernels(read, device);
}

void read_host(FigureReader& read, HostModel& host) {
    const auto seconds = [&](std::string_view key, std::string_view what, double& into) {
        read.number("host", key, what, 0, kLongestLatency, into);
    };
    seconds("operation", "the host's seconds for each operator or module call", host.operation);
    seconds("launch", "the host's seconds to enqueue a kernel, copy or collective", host.launch);
    seconds("event", "the host's seconds to record an event, or to make a stream wait for one", host.event);
    read.number("host", "wake", "the host's seconds until a thread that had to wait continues", 0,
                kLongestLatency, host.wake, Presence::optional);
    seconds("allocate", "the host's seconds for a block of the caching allocator", host.allocate);
    seconds("grow", "the host's seconds to take new memory from the device", host.grow);
    read.positive("host", "flops", "the operations a second of what the host does itself", host.flops);
    read.positive("host", "memory_bandwidth", "the bytes per second of a host's memory",
                  host.memory_bandwidth);
    read.positive("host", "memory", "the bytes of a node's memory", host.memory, Presence::optional);
    read.positive("host", "batch_bandwidth", "the bytes per second of batches that the host makes",
                  host.batch_bandwidth, Presence::optional);
}

void read_copy(FigureReader& read, CopyModel& copy) {
    read.number("copy", "latency", "the seconds of a copy between host and device besides its bytes", 0,
                kLongestLatency, copy.latency);
    read.positive("copy", "to_device", "the bytes per second from pinned memory to the device",
                  copy.to_device);
    read.positive("copy", "to_host", "the bytes per second from the device to pinned memory", copy.to_host);
    read.number("copy", "pageable_share", "the share of those rates that memory that is not pinned reaches",
                1e-3, 1, copy.pageable_share);
    read.curve("copy", "bandwidth_share", copy.bandwidth_share);
    read.positive("copy", "on_device", "the bytes per second that copies on the device read and write",
                  copy.on_device, Presence::optional);
}

void read_disk(FigureReader& read, DiskModel& disk) {
    const auto figure = [&](std::string_view key, std::string_view what, double& into) {
        read.positive("disk", key, what, into, Presence::optional);
    };
    figure("read", "the bytes per second that the ranks of a node read from its files", disk.read);
    figure("write", "the bytes per second that the ranks of a node write to its files", disk.write);
    figure("capacity", "the bytes that the files of a node may have", disk.capacity);
}

void read_link(FigureReader& read, std::string_view section, std::string_view where, Link& link) {
    read.number(section, "latency", fmt::format("the seconds of one step of a collective {}", where), 0,
                kLongestLatency, link.latency);
    read.positive(section, "bandwidth",
                  fmt::format("the bytes per second, one way, that collectives reach {}", where),
                  link.bandwidth);
    read.curve(section, "bandwidth_share", link.bandwidth_share);
}

void read_links(FigureReader& read, Cluster& cluster) {
    const auto devices = [&](std::string_view key, std::string_view what, double low, double high,
                             PairFigures& into) {
        read.pairs("links", key, what, "cluster.devices", cluster.devices, low, high, into);
    };
    constexpr double kMostBandwidth = 1e18;
    devices("bandwidth", "the bytes per second, one way, from each device of a node to each other", 1,
            kMostBandwidth, cluster.links.bandwidth);
    devices("latency", "the seconds of one step from each device of a node to each other", 0, kLongestLatency,
            cluster.links.latency);
    const auto nodes = [&](std::string_view key, std::string_view what, double low, double high,
                           PairFigures& into) {
        read.pairs("links", key, what, "cluster.nodes", cluster.nodes, low, high, into);
    };
    nodes("node_bandwidth", "the bytes per second, one way, of a device from each node to each other", 1,
          kMostBandwidth, cluster.links.node_bandwidth);
    nodes("node_latency", "the seconds of one step from each node to each other", 0, kLongestLatency,
          cluster.links.node_latency);
}

Algorithm read_algorithm(FigureReader& read, std::string_view key) {
    std::size_t algorithm = 0;
    read.choice("collectives", key, kAlgorithmNames, algorithm);
    return static_cast<Algorithm>(algorithm);
}

std::string read_file(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    std::ostringstream text;
    if (stream) text << stream.rdbuf();
    if (!stream || stream.bad()) {
        throw ClusterError(
            fmt::format("{}: the cost model cannot be read ({}); give the path of a .toml file, "
                        "or one of {}",
                        path, std::strerror(errno), traces::schema::joined(shipped_clusters(), ", ")));
    }
    return text.str();
}

}  // namespace

double Curve::at(double size) const {
    if (points.empty()) return 1;
    if (size <= points.front().size) return points.front().share;
    if (size >= points.back().size) return points.back().share;
    const auto above = std::upper_bound(points.begin(), points.end(), size,
                                        [](double s, const Point& point) { return s < point.size; });
    const Point &low = *(above - 1), &high = *above;
    const double way = std::log(size / low.size) / std::log(high.size / low.size);
    return low.share + way * (high.share - low.share);
}

Cluster parse_cluster(const std::string& toml, const std::string& file) {
    FigureReader read(toml, file);
    Cluster cluster;
    cluster.file = file;
    read.text("cluster", "name", "the cluster's name", cluster.name);
    read.count("cluster", "nodes", "the number of nodes", 1, 1 << 20, cluster.nodes, Presence::optional);
    read.count("cluster", "devices", "the number of devices of a node", 1, 65536, cluster.devices);
    read_device(read, cluster.device);
    read_host(read, cluster.host);
    read_copy(read, cluster.copy);
    read_disk(read, cluster.disk);
    read.number("collectives", "latency", "the seconds of each collective besides its steps", 0,
                kLongestLatency, cluster.collectives.latency);
    cluster.collectives.inside = read_algorithm(read, "inside");
    read_link(read, "intra", "inside a node", cluster.intra);
    if (cluster.nodes != 1) {
        cluster.collectives.across = read_algorithm(read, "across");
        read_link(read, "inter", "between nodes", cluster.inter);
        read.boolean("inter", "shared", cluster.inter.shared);
    }
    if (read.has("links")) read_links(read, cluster);
    read.end();
    return cluster;
}

Cluster load_cluster(const std::string& name) {
    for (const ShippedCluster& shipped : shipped_cluster_files()) {
        if (shipped.name == name) return parse_cluster(std::string(shipped.toml), name + ".toml");
    }
    const bool path = name.find('/') != std::string::npos || name.ends_with(".toml");
    if (path) return parse_cluster(read_file(name), name);
    const std::vector<std::string> shipped = shipped_clusters();
    const std::vector<std::string_view> known(shipped.begin(), shipped.end());
    const std::string_view guess = job::nearest(name, known);
    throw ClusterError(
        fmt::format("sim.cluster: there is no cost model \"{}\"; {}use the path of a .toml "
                    "file, or one of {}",
                    name, guess.empty() ? "" : fmt::format("did you mean {}? ", guess),
                    traces::schema::joined(shipped, ", ")));
}

std::vector<std::string> shipped_clusters() {
    std::vector<std::string> names;
    for (const ShippedCluster& shipped : shipped_cluster_files()) names.emplace_back(shipped.name);
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace shardscope::trainer::sim
