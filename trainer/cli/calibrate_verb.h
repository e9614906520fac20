// shardscope-train calibrate: fits a cost model (sim.cluster) to traces and reports its error against them.
#pragma once

#include <string>
#include <vector>

namespace shardscope::trainer::cli {

struct CalibrateOptions {
    bool json = false;
    bool overwrite = false;
    std::string output;  // file to write the model to
    std::string base;    // model for the figures that no trace shows; empty: one shipped for the device
};

// Returns the exit status. Throws JobError (a trace or an option that cannot be used) and
// traces::store::StoreError.
int calibrate_traces(const std::vector<std::string>& traces, const CalibrateOptions& options);

}  // namespace shardscope::trainer::cli
