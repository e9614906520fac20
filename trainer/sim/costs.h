// The cost of one operation of a Plan on a cluster, in seconds. For collectives see collective_cost.h.
#pragma once

#include "trainer/plan/plan.h"
#include "trainer/sim/cluster.h"

namespace shardscope::trainer::sim {

// The rate at which a kernel computes. `tf32`: see Costs.
Arithmetic arithmetic_of(const plan::Op& op, bool tf32);

class Costs {
  public:
    // `tf32`: fp32 matmuls run at TF32's rate (precision.tf32). `sharers`: the ranks of a node, which share
    // its disks.
    explicit Costs(const Cluster& cluster, bool tf32 = false, int sharers = 1)
        : cluster_(cluster), tf32_(tf32), sharers_(sharers) {}

    // A kernel, memcpy or memset on a stream of the device: its latency (kernel_latency; for a copy to or
    // from the host, the copy's) plus the longer of the times of its arithmetic and its bytes. A copy to or
    // from a disk has no latency: others of its stream are under way meanwhile.
    double on_device(const plan::Plan& plan, const plan::Op& op) const;
    // The part of it, its latency, in which the device can serve others.
    double latency(const plan::Op& op) const;
    // The same work on the host's thread; making a batch writes its bytes once.
    double on_host(const plan::Op& op) const;

  private:
    double kernel(const plan::Op& op) const;
    double copy(const plan::Plan& plan, const plan::Op& op) const;
    double on_device_bandwidth() const;

    const Cluster& cluster_;
    bool tf32_;
    int sharers_;
};

}  // namespace shardscope::trainer::sim
