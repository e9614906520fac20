// The parts of a fit; each writes its figures and a note of their source into the model.
#pragma once

#include <vector>

#include "trainer/calibrate/calibration.h"
#include "trainer/calibrate/measured_bench.h"
#include "trainer/sim/collective_cost.h"

namespace shardscope::trainer::calibrate {

using Runs = std::vector<MeasuredRun>;
using Benches = std::vector<MeasuredBench>;

// device.busy_share; must run first, since the others convert measured times to those of a lone busy core.
void fit_busy_share(const Runs& runs, Calibration& into);
// The seconds that work would have taken if nothing else had run on its node.
double alone(const MeasuredOp& work, const Calibration& fitted);

// A collective that was recorded on all of its members.
struct CollectiveTime {
    const plan::Op* op = nullptr;
    int rank = 0;  // one of its members
    int members = 0;
    double transfer = 0;      // of the member that arrived last, as if alone on its node; seconds
    double whole = 0;         // until the last member has its data; seconds
    bool finds_cores = true;  // each rank has a core
};
std::vector<CollectiveTime> collective_times(const MeasuredRun& run, const Calibration& fitted);

// [operators.X], [kernels.X], device.memory_bandwidth, device.kernel_latency.
void fit_kernels(const Runs& runs, Calibration& into);
// [copy]
void fit_copies(const Runs& runs, Calibration& into);
// [disk]
void fit_disk(const Runs& runs, Calibration& into);
// Bandwidths and latencies of pairs: [links], or [intra] and [inter] if they are alike. The latencies still
// contain collectives.latency, which fit_collectives takes out of them.
struct LinkFit {
    bool inside = false, between = false;  // whether pairs inside a node, and of nodes, were measured
    std::int64_t pairs = 0;
    double shortest = 0;          // the least latency; seconds
    double latency_of_plan = -1;  // the part of it that is the Plan's; negative: unknown
};
// A message moves `bytes_factor` times its bytes; `devices`: the most of a node of any trace.
LinkFit fit_links(const Benches& benches, double bytes_factor, int devices, Calibration& into);

// How the ranks of a benchmark's collectives (or of its messages: 0 and 1) are spread over nodes.
sim::Spread spread_of(const MeasuredBench& bench, plan::Operation operation, const sim::Cluster& cluster);

// [collectives], [intra], [inter], [links]
void fit_collectives(const Runs& runs, const Benches& benches, Calibration& into);
// [host]
void fit_host(const Runs& runs, Calibration& into);

}  // namespace shardscope::trainer::calibrate
