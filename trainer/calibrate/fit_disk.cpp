// Reads and writes of files.
#include <fmt/core.h>

#include "trainer/calibrate/fit.h"
#include "trainer/calibrate/fit_curve.h"

namespace shardscope::trainer::calibrate {

// The ranks of a node read and write at the same time, as in the simulator: the node's rate is that of one
// rank's copies, as many times as it has ranks.
void fit_disk(const Runs& runs, Calibration& into) {
    const auto fit = [&](int copy_kind, const char* key, double& rate) {
        std::vector<Weighted> rates;
        for (const MeasuredRun& run : runs) {
            const int sharers = (run.job.run.ranks + run.nodes - 1) / run.nodes;
            for (const MeasuredOp& work : run.work) {
                if (work.op->kind != plan::OpKind::memcpy || work.op->copy_kind() != copy_kind) continue;
                const double seconds = alone(work, into);
                const auto bytes = static_cast<double>(work.op->bytes) * sharers;
                if (seconds > 0 && bytes > 0) rates.push_back({bytes / seconds, bytes});
            }
        }
        if (!rates.empty()) rate = weighted_median(rates);
        into.note(key, !rates.empty(), fmt::format("{} copies measured", rates.size()));
    };
    fit(traces::schema::kCopyDiskToHost, "disk.read", into.cluster.disk.read);
    fit(traces::schema::kCopyHostToDisk, "disk.write", into.cluster.disk.write);
}

}  // namespace shardscope::trainer::calibrate
