// shardscope-train sweep: trains every combination of the given values, one after the other, each in its own
// process, and compares the results.
#pragma once

#include <optional>
#include <string>

#include "trainer/cli/sweep_grid.h"

namespace shardscope::trainer::cli {

struct SweepOptions {
    std::string folder;             // for the traces; empty: sweep-JOBNAME here
    std::optional<double> to_loss;  // also the time until each run's training loss was first so low
    bool dry_run = false;
    bool json = false;
    bool overwrite = false;
};

// `file` is the job file. Returns the exit status: 0 if at least one combination ran (or was predicted, in a
// dry run) and no process crashed, 1 otherwise, 2 if no combination is possible, 128 + n after signal n.
// Throws JobError and traces::store::StoreError before anything runs.
int sweep(const std::string& file, const SweepGrid& grid, const SweepOptions& options);

}  // namespace shardscope::trainer::cli
