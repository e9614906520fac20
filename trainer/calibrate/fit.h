// The parts of a fit; each writes its figures and a note of their source into the model.
#pragma once

#include <vector>

#include "trainer/calibrate/calibration.h"

namespace shardscope::trainer::calibrate {

using Runs = std::vector<MeasuredRun>;

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
// [collectives], [intra], [inter]
void fit_collectives(const Runs& runs, Calibration& into);
// [host]
void fit_host(const Runs& runs, Calibration& into);

}  // namespace shardscope::trainer::calibrate
