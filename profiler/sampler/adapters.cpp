#include "profiler/sampler/adapters.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/core.h>

namespace shardscope::profiler {
namespace {

constexpr char kInfiniband[] = "/sys/class/infiniband", kNet[] = "/sys/class/net",
               kNodes[] = "/sys/devices/system/node";
constexpr int kArpEthernet = 1;  // ARPHRD_ETHER, of <linux/if_arp.h>
constexpr int kWord = 4;         // InfiniBand counts words
// A counter of 32 bits of InfiniBand's does not begin again: it stays here until someone clears it.
constexpr std::uint64_t kFull = 0xFFFFFFFF;

// "200 Gb/sec (4X HDR)" in bytes per second; -1: not known.
double bytes_per_second(const std::string& rate) {
    char* end = nullptr;
    const double gigabits = std::strtod(rate.c_str(), &end);
    return end != rate.c_str() && gigabits > 0 ? gigabits * 1e9 / 8 : -1;
}

traces::schema::DeviceRow adapter_row(const SystemFiles& files, const char* kind, const std::string& folder,
                                      const std::string& name) {
    traces::schema::DeviceRow row;
    row.kind = kind;
    row.name = name;
    // A PCI address; a virtual adapter has none, and its parent's name ("virtio1") says nothing.
    const std::string bus = files.target_of(folder + "/device");
    if (bus.find(':') != std::string::npos) row.bus = bus;
    add_place(files, row);
    return row;
}

void number(std::vector<Adapter>& adapters) {
    int next = 0;
    for (Adapter& adapter : adapters) adapter.row.number = next++;
}

}  // namespace

void add_place(const SystemFiles& files, traces::schema::DeviceRow& row) {
    if (row.bus.empty()) return;
    const std::string folder = "/sys/bus/pci/devices/" + row.bus;
    if (const auto node = files.number(folder + "/numa_node"))
        row.numa = static_cast<int>(*node);  // not of "-1"
    row.cpus = files.line(folder + "/local_cpulist");
}

std::vector<Adapter> infiniband_adapters(const SystemFiles& files) {
    std::vector<Adapter> adapters;
    for (const std::string& name : files.names_in(kInfiniband)) {
        const std::string folder = fmt::format("{}/{}", kInfiniband, name);
        for (const std::string& port : files.names_in(folder + "/ports")) {
            const std::string of_port = fmt::format("{}/ports/{}", folder, port);
            Adapter adapter;
            adapter.row = adapter_row(files, "infiniband", folder,
                                      port == "1" ? name : fmt::format("{}:{}", name, port));
            adapter.row.bytes_per_second = bytes_per_second(files.line(of_port + "/rate"));
            const std::string state = files.line(of_port + "/state");  // "4: ACTIVE"
            adapter.is_up = state.empty() || state[0] == '4';
            adapter.sent = of_port + "/counters/port_xmit_data";
            adapter.received = of_port + "/counters/port_rcv_data";
            adapter.unit = kWord;
            adapters.push_back(std::move(adapter));
        }
    }
    number(adapters);
    return adapters;
}

std::vector<Adapter> ethernet_adapters(const SystemFiles& files) {
    std::vector<Adapter> with_device, without;
    for (const std::string& name : files.names_in(kNet)) {
        const std::string folder = fmt::format("{}/{}", kNet, name);
        if (files.number(folder + "/type") != kArpEthernet) continue;
        Adapter adapter;
        adapter.row = adapter_row(files, "ethernet", folder, name);
        // In megabits; a virtual adapter and one that is down have -1, or refuse to say.
        if (const auto speed = files.number(folder + "/speed"); speed && *speed > 0 && *speed < UINT32_MAX)
            adapter.row.bytes_per_second = static_cast<double>(*speed) * 1e6 / 8;
        const std::string state = files.line(folder + "/operstate");
        adapter.is_up = state != "down" && state != "lowerlayerdown" && state != "notpresent";
        adapter.sent = folder + "/statistics/tx_bytes";
        adapter.received = folder + "/statistics/rx_bytes";
        const bool has_device = files.exists(folder + "/device");
        if (has_device)
            with_device.push_back(std::move(adapter));
        else if (adapter.is_up)
            without.push_back(std::move(adapter));
    }
    std::vector<Adapter>& adapters = with_device.empty() ? without : with_device;
    number(adapters);
    return std::move(adapters);
}

std::vector<traces::schema::DeviceRow> numa_nodes(const SystemFiles& files) {
    std::vector<traces::schema::DeviceRow> nodes;
    for (const std::string& name : files.names_in(kNodes)) {
        char* end = nullptr;
        if (!name.starts_with("node") || name.size() == 4) continue;
        const long node = std::strtol(name.c_str() + 4, &end, 10);
        if (*end != '\0' || node < 0 || node > 4096) continue;
        traces::schema::DeviceRow row;
        row.kind = "numa";
        row.number = static_cast<int>(node);
        row.numa = row.number;
        const std::string folder = fmt::format("{}/{}", kNodes, name);
        row.cpus = files.line(folder + "/cpulist");
        // "Node 0 MemTotal:       131072 kB"
        const auto kib = number_behind(files.read(folder + "/meminfo", nullptr, 4096).value_or(""),
                                       fmt::format("Node {} MemTotal:", node));
        if (kib) row.memory_bytes = static_cast<std::int64_t>(*kib) * 1024;
        nodes.push_back(std::move(row));
    }
    return nodes;
}

AdapterCounters::AdapterCounters(const SystemFiles& files, const std::vector<Adapter>& adapters)
    : files_(files) {
    for (const Adapter& adapter : adapters) {
        if (!adapter.is_up) continue;
        const auto direction = [&](const std::string& file, const char* word) {
            const double most =
                adapter.row.bytes_per_second > 0 ? adapter.row.bytes_per_second / adapter.unit : 0;
            return Direction{file, fmt::format("{}_{}_bytes_per_second", adapter.row.kind, word),
                             GrowingCounter(most)};
        };
        adapters_.push_back({adapter.row.name, adapter.row.number, adapter.unit,
                             direction(adapter.sent, "sent"), direction(adapter.received, "received")});
    }
}

void AdapterCounters::sample(Watched& adapter, Direction& direction, Samples& samples) {
    if (direction.ended) return;
    int error = 0;
    const auto value = files_.number(direction.file, &error);
    const MonotonicTime now = MonotonicTime::now();
    const auto tell = [&](const std::string& why) {
        if (!std::exchange(adapter.told, true))
            samples.note(
                now, fmt::format("the traffic of {} is not recorded from here on: {}", adapter.name, why));
    };
    if (!value) {
        direction.ended = true;
        tell(fmt::format("{} cannot be read: {}", direction.file, std::strerror(error)));
        return;
    }
    const auto rate = direction.counter.next(*value, now);
    const bool full = adapter.unit == kWord && *value == kFull && direction.last == kFull;
    direction.last = *value;
    if (full) {
        direction.ended = true;
        tell(fmt::format("{} has 32 bits and is full; perfquery -R clears it", direction.file));
        return;
    }
    if (rate) samples.add({now, direction.name, *rate * adapter.unit, -1, adapter.number});
}

void AdapterCounters::sample(Samples& samples) {
    for (Watched& adapter : adapters_) {
        sample(adapter, adapter.sent, samples);
        sample(adapter, adapter.received, samples);
    }
}

}  // namespace shardscope::profiler
