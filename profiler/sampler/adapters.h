// The network adapters of a host, as /sys lists them, and their counters. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/sampler/growing_counter.h"
#include "profiler/sampler/samples.h"
#include "profiler/sampler/system_files.h"

namespace shardscope::profiler {

struct Adapter {
    traces::schema::DeviceRow row;  // its host is left to the caller
    bool is_up = true;
    std::string sent, received;  // the files that count what it has sent and received
    int unit = 1;                // bytes for each that they count
};

// The ports of InfiniBand (and RoCE) adapters, "mlx5_0", or "mlx5_0:2" for another port than the first. Their
// numbers are those of their names, in the order in which people count.
std::vector<Adapter> infiniband_adapters(const SystemFiles& files);

// Ethernet interfaces that have hardware (or a virtual machine's), by name. Where none has, as in a
// container, those that are up. Never loopback, nor InfiniBand's (IPoIB), which its own counters contain.
std::vector<Adapter> ethernet_adapters(const SystemFiles& files);

// The NUMA nodes, with their processors and memory.
std::vector<traces::schema::DeviceRow> numa_nodes(const SystemFiles& files);

// Adds what /sys says of the device at a PCI address: its NUMA node and the processors nearest to it.
void add_place(const SystemFiles& files, traces::schema::DeviceRow& row);

// Adds "infiniband_sent_bytes_per_second" or "ethernet_…", and the same for received, of every adapter that
// was up at the start.
class AdapterCounters {
  public:
    AdapterCounters(const SystemFiles& files, const std::vector<Adapter>& adapters);

    void sample(Samples& samples);

  private:
    struct Direction {
        std::string file, name;
        GrowingCounter counter;
        std::uint64_t last = 0;
        bool ended = false;
    };
    struct Watched {
        std::string name;
        int number = 0;
        int unit = 1;
        Direction sent, received;
        bool told = false;
    };
    void sample(Watched& adapter, Direction& direction, Samples& samples);

    const SystemFiles& files_;
    std::vector<Watched> adapters_;
};

}  // namespace shardscope::profiler
