// shardscope-train calibrate: a cost model for sim.cluster from traces of runs, and its error against them.
#pragma once

#include <string>
#include <vector>

namespace shardscope::trainer {

struct CalibrateOptions {
    bool json = false;
    bool overwrite = false;
    std::string output;  // the model's file
    std::string base;    // model with the figures that no trace shows; empty: a shipped one for the device
};

// Returns the exit status. Throws JobError (a trace or an option that cannot be used) and traces::StoreError.
int calibrate_traces(const std::vector<std::string>& traces, const CalibrateOptions& options);

}  // namespace shardscope::trainer
