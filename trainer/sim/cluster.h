// The cost model of a cluster, which need not exist: rates of a device, times of a host, bandwidths of the
// links. Read from a TOML file (load_cluster); it contains all that the simulator assumes about a machine.
// Times are seconds, rates per second, sizes bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/plan/kernel_table.h"

namespace shardscope::trainer::sim {

// A cost model that cannot be used; the message is one sentence: file, line, key, what is wrong, what to do.
class ClusterError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Types of arithmetic, each with its own rate.
enum class Arithmetic : std::uint8_t { fp32, tf32, bf16, fp16 };
inline constexpr std::size_t kArithmetics = 4;
inline constexpr std::array<std::string_view, kArithmetics> kArithmeticNames = {"fp32", "tf32", "bf16",
                                                                                "fp16"};

// The share of a rate that work of a given size reaches: points of rising size, linear in the logarithm of
// the size between them, constant beyond the ends. Without points, always the full rate.
struct Curve {
    struct Point {
        double size = 0, share = 0;
    };
    std::vector<Point> points;

    double at(double size) const;
};

// The rates of a class of kernels, whose time is the longer of arithmetic (flops / (rate *
// efficiency(flops))) and memory (bytes / (memory_bandwidth * bandwidth_share(bytes))).
struct ClassRates {
    std::array<double, kArithmetics> flops{};  // per second
    Curve efficiency;                          // over flops
    Curve bandwidth_share;                     // over bytes
};

enum class DeviceType : std::uint8_t { cpu, gpu };

struct DeviceModel {
    std::string name;  // "NVIDIA H200"
    DeviceType type = DeviceType::gpu;
    double memory = 0;            // bytes
    double reserve = 0;           // the part that the allocator cannot use (CUDA context, NCCL)
    double memory_bandwidth = 0;  // bytes/s
    double kernel_latency = 0;    // before the work of each kernel, memset and copy on the device
    double wake = 0;              // added to it if the device (cpu: a core) was idle
    // cpu: the cores that all ranks of a node share; more work at the same time than cores slows down. 0:
    // each rank has its own device.
    int cores = 0;
    Curve busy_share;           // share of a core's speed, over the number of busy cores of the node
    double price_per_hour = 0;  // per device, in USD; 0: not given
    std::array<ClassRates, plan::kKernelClasses> classes;
    std::map<plan::Kernel, ClassRates> kernels;  // kernels with their own rates, which override their class's

    const ClassRates& rates(plan::KernelClass c) const { return classes[static_cast<std::size_t>(c)]; }
    const ClassRates& rates(plan::Kernel kernel) const {
        const auto own = kernels.find(kernel);
        return own != kernels.end() ? own->second : rates(kernel_info(kernel).kernel_class);
    }
};

// The thread that walks the Plan, and the memory of its node.
struct HostModel {
    double operation = 0;         // per call of an operator or a module (each range that opens)
    double launch = 0;            // to enqueue a kernel, copy, memset or collective
    double event = 0;             // to record an event, make a stream wait, or find that a wait has ended
    double wake = 0;              // added to `event`: until a thread that had to wait for an event continues
    double allocate = 0;          // to get a block from the caching allocator, or return it
    double grow = 0;              // added to `allocate` if the allocator takes new memory from the device
    double flops = 0;             // per second, for kernels that the host runs (optimizer under offload)
    double memory_bandwidth = 0;  // for those kernels, and for copies on the host
    double memory = 0;            // bytes of a node, which its ranks share; 0: unknown
    double batch_bandwidth = 0;   // bytes/s at which it makes batches; 0: memory_bandwidth
    // The thread carries out the work of all streams itself, one item after another, as PyTorch does without
    // a GPU; never read from a file.
    bool carries_out = false;
};

struct CopyModel {  // between host and device
    double latency = 0;
    double to_device = 0, to_host = 0;  // bytes/s, pinned memory
    double pageable_share = 1;          // share of those rates if the host memory is not pinned
    Curve bandwidth_share;              // share of those rates, over bytes
    double on_device = 0;  // bytes/s that copies and memsets on the device read and write; 0: as its memory
};

// The files of a node, on disks that its ranks share.
struct DiskModel {
    double read = 3e9, write = 1.5e9;  // bytes/s, of all ranks together
    double capacity = 0;               // bytes; 0: unknown
};

struct Link {
    double latency = 0;     // per step of a collective over the link
    double bandwidth = 0;   // bytes/s in one direction that collectives reach
    bool shared = false;    // between nodes: all devices of a node share one link (else each has its own)
    Curve bandwidth_share;  // over the bytes of the full buffer
};

// A figure for each pair of things, row by row: from the row's to the column's. Empty: all pairs are alike.
struct PairFigures {
    int size = 0;
    std::vector<double> values;

    bool known() const { return size > 0; }
    double of(int from, int to) const {
        return values[static_cast<std::size_t>(from) * static_cast<std::size_t>(size) +
                      static_cast<std::size_t>(to)];
    }
    bool operator==(const PairFigures&) const = default;
};

// Links that differ from pair to pair: of the devices of each node, and of the nodes. What is empty is as in
// Cluster::intra and ::inter.
struct PairLinks {
    PairFigures bandwidth, latency;            // bytes/s in one direction; seconds per step of a collective
    PairFigures node_bandwidth, node_latency;  // the same between nodes, for each device

    bool operator==(const PairLinks&) const = default;
};

// The algorithms of collectives (collective_cost.h gives the time of each).
enum class Algorithm : std::uint8_t { direct, ring, tree, hierarchical, shared_memory };
inline constexpr std::array<std::string_view, 5> kAlgorithmNames = {"direct", "ring", "tree", "hierarchical",
                                                                    "shared_memory"};

struct CollectiveModel {
    double latency = 0;                  // once per collective
    Algorithm inside = Algorithm::ring;  // for a group within one node
    Algorithm across = Algorithm::ring;  // for a group that spans several nodes
    // Costs measured in a trace, by Operation, which replace the formulas; never read from a file.
    struct Measured {
        double latency = 0;    // seconds per collective
        double bandwidth = 0;  // bytes/s on the busiest wire (nccl-tests' bus bandwidth); 0: not measured
    };
    std::array<Measured, traces::schema::kOperations> measured{};
    bool blocking = false;  // the host waits for each before it continues (Gloo); never read from a file
    double beside_work =
        1;  // factor of the time of one beside which the host goes on to work; not from a file
};

struct Cluster {
    std::string name, file;
    int nodes = 0;    // 0: as many as the ranks need
    int devices = 1;  // per node
    DeviceModel device;
    HostModel host;
    CopyModel copy;
    DiskModel disk;
    Link intra, inter;  // inside a node, between nodes
    PairLinks links;
    CollectiveModel collectives;

    int ranks_per_device = 1;  // consecutive ranks that share a device; never read from a file

    int ranks_of_node() const { return devices * ranks_per_device; }
    int node_of(int rank) const { return rank / ranks_of_node(); }
    // The rank's device, counted over all nodes.
    int device_of(int rank) const { return rank / ranks_per_device; }
    // Of a job of so many ranks: those of its first node, which share its disks.
    int sharers(int ranks) const { return std::min(ranks, ranks_of_node()); }
};

// `name`: a shipped model ("h200_nvlink"), or a path (anything with a '/' or ".toml"). Throws ClusterError.
Cluster load_cluster(const std::string& name);
// The same from text, which messages call `file`.
Cluster parse_cluster(const std::string& toml, const std::string& file);
// Names of the shipped models, sorted.
std::vector<std::string> shipped_clusters();

}  // namespace shardscope::trainer::sim
