// Reads and writes of files.
#include <fmt/core.h>

#include "trainer/calibrate/fit.h"

namespace shardscope::trainer::calibrate {

// The ranks of a node read and write at the same time, as in the simulator: the node's rate is that of one
// rank's copies, as many times as it has ranks. Copies that end together share their time, so that only sums
// tell a rate.
void fit_disk(const Runs& runs, Calibration& into) {
    const auto fit = [&](int copy_kind, const char* key, double& rate) {
        double bytes = 0, seconds = 0;
        std::int64_t copies = 0;
        for (const MeasuredRun& run : runs) {
            for (const MeasuredOp& work : run.work) {
                if (work.op->kind != plan::OpKind::memcpy || work.op->copy_kind() != copy_kind) continue;
                bytes += static_cast<double>(work.op->bytes) * run.ranks_of_node();
                seconds += alone(work, into);
                ++copies;
            }
        }
        const bool measured = bytes > 0 && seconds > 0;
        if (measured) rate = bytes / seconds;
        into.note(key, measured, fmt::format("{} copies measured", copies));
    };
    fit(traces::schema::kCopyDiskToHost, "disk.read", into.cluster.disk.read);
    fit(traces::schema::kCopyHostToDisk, "disk.write", into.cluster.disk.write);
}

}  // namespace shardscope::trainer::calibrate
