// shardscope-train plan: which configurations of a job fit a cluster, how fast each would be, and which to
// choose. Nothing is trained; every figure is simulated.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "trainer/job/job.h"

namespace shardscope::trainer::cli {

struct PlanOptions {
    bool json = false;
    bool all = false;       // print every row
    bool time_all = false;  // also time those that do not fit
    bool meshes = false;    // try meshes instead of the options of one
    bool overwrite = false;
    std::string output;              // database of the rows; empty: none is written
    std::string write;               // a row's number or "best"; empty: none is written
    std::vector<std::string> files;  // files to write it to: *.toml, *.sqlite
};

// `file` is the job file. Returns the exit status: 0 if something fits, 1 if nothing does, 128 + n after
// signal n. Throws JobError and traces::store::StoreError.
int plan(const std::string& file, const std::vector<job::Override>& overrides, const PlanOptions& options);

}  // namespace shardscope::trainer::cli
