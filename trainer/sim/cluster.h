// A cluster, which need not exist, as figures: what a device computes, how long a host takes, what the wires
// carry. Read from a TOML file (load_cluster); everything that the simulator assumes about a machine is here.
// Times are seconds, rates per second, sizes bytes.
#pragma once

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

// Rates of arithmetic that differ.
enum class Arithmetic : std::uint8_t { fp32, tf32, bf16 };
inline constexpr std::size_t kArithmetics = 3;
inline constexpr std::array<std::string_view, kArithmetics> kArithmeticNames = {"fp32", "tf32", "bf16"};

// The share of a rate that work of a given size reaches: points of rising size, linear in the logarithm of
// the size between them, constant beyond the ends. No points: the full rate, always.
struct Curve {
    struct Point {
        double size = 0, share = 0;
    };
    std::vector<Point> points;

    double at(double size) const;
};

// How fast kernels of a class are: the longer of arithmetic (flops / (rate * efficiency(flops))) and memory
// (bytes / (memory_bandwidth * bandwidth_share(bytes))).
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
    double reserve = 0;           // the part that the allocator cannot have (CUDA context, NCCL)
    double memory_bandwidth = 0;  // bytes/s
    double kernel_latency = 0;    // for each kernel, memset and copy on the device, before its work
    double wake = 0;              // added to it where the device (cpu: a core) was idle before
    // cpu: the cores that all ranks of a node share; work that runs at the same time beyond them slows down.
    // 0: each rank's device is its own.
    int cores = 0;
    Curve busy_share;           // share of a core's speed, over the number of busy cores of the node
    double price_per_hour = 0;  // per device, in USD; 0: not given
    std::array<ClassRates, kKernelClasses> classes;
    std::map<Kernel, ClassRates> kernels;  // those with rates of their own, besides their class's

    const ClassRates& rates(KernelClass c) const { return classes[static_cast<std::size_t>(c)]; }
    const ClassRates& rates(Kernel kernel) const {
        const auto own = kernels.find(kernel);
        return own != kernels.end() ? own->second : rates(kernel_info(kernel).kernel_class);
    }
};

// The thread that walks the Plan, and the memory of its node.
struct HostModel {
    double operation = 0;         // for an operator's or a module's call: each range that opens
    double launch = 0;            // to enqueue a kernel, copy, memset or collective
    double event = 0;             // to record an event, to make a stream wait, to find a wait over
    double wake = 0;              // added to it, until a thread that had to wait for an event continues
    double allocate = 0;          // to get a block from the caching allocator, or return it
    double grow = 0;              // added to it where the allocator takes new memory from the device
    double flops = 0;             // per second, for kernels that the host runs (optimizer under offload)
    double memory_bandwidth = 0;  // for those, and for copies on the host
    double batch_bandwidth = 0;   // bytes/s of batches that it makes; 0: memory_bandwidth
};

struct CopyModel {  // between host and device
    double latency = 0;
    double to_device = 0, to_host = 0;  // bytes/s, pinned memory
    double pageable_share = 1;          // share of those rates where the host's side is not pinned
    Curve bandwidth_share;              // share of those rates, over bytes
    double on_device = 0;  // bytes/s that copies and memsets on the device read and write; 0: as its memory
};

struct Link {
    double latency = 0;     // per step of a collective over the link
    double bandwidth = 0;   // bytes/s in one direction that collectives reach
    bool shared = false;    // between nodes: one for all devices of a node (else one for each)
    Curve bandwidth_share;  // over the bytes of the full buffer
};

// The algorithms of collectives (collective_cost.h has the time of each).
enum class Algorithm : std::uint8_t { direct, ring, tree, hierarchical, shared_memory };
inline constexpr std::array<std::string_view, 5> kAlgorithmNames = {"direct", "ring", "tree", "hierarchical",
                                                                    "shared_memory"};

struct CollectiveModel {
    double latency = 0;                  // once for each collective
    Algorithm inside = Algorithm::ring;  // a group within one node
    Algorithm across = Algorithm::ring;  // a group over several
    // What a trace shows of an operation, in place of the formulas, by Operation; never read from a file.
    struct Measured {
        double latency = 0;    // seconds for each
        double bandwidth = 0;  // bytes/s on the busiest wire (nccl-tests' bus bandwidth); 0: not measured
    };
    std::array<Measured, traces::kOperations> measured{};
};

struct Cluster {
    std::string name, file;
    int nodes = 0;    // 0: as many as the ranks need
    int devices = 1;  // per node
    DeviceModel device;
    HostModel host;
    CopyModel copy;
    Link intra, inter;  // inside a node, between nodes
    CollectiveModel collectives;

    int node_of(int rank) const { return rank / devices; }
};

// `name`: a shipped model ("h200_nvlink"), or a path (anything with a '/' or ".toml"). Throws ClusterError.
Cluster load_cluster(const std::string& name);
// The same from text; messages name it `file`.
Cluster parse_cluster(const std::string& toml, const std::string& file);
// Names of the models that are shipped, sorted; empty where none are found.
std::vector<std::string> shipped_clusters();

}  // namespace shardscope::trainer::sim
