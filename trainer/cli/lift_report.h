// The output of `plan TRACE`; only formatting.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "trainer/lift/counterfactuals.h"

namespace shardscope::trainer::cli {

struct LiftResult {
    const lift::Lifted& lifted;
    const lift::Replay& unmodified;
    const std::vector<lift::Replay>& rows;  // sorted by number; some numbers may be missing
    std::string links;                      // origin of the links: "as recorded", "h100_ib", "50 GB/s"
    int wanted = 0;                         // row whose PyTorch lines are printed; 0: the best
    bool complete = true;                   // no row is missing
    // A row as a job file; "": there is none, as for a run of another program.
    std::function<std::string(const lift::Replay&)> job_of;
};

// The row whose PyTorch lines are printed: the wanted one, else the fastest on the Pareto front; null if none
// is possible.
const lift::Replay* shown_row(const LiftResult& result);

// `all`: every row, not only the Pareto front and the best of the rest.
std::string lift_table(const LiftResult& result, bool all);

// docs/counterfactuals.md describes its contents.
std::string lift_json(const LiftResult& result);

// The difference from the unmodified replay: "-11.4 GiB, +3.0 % step"; only bytes if the trace has no times.
std::string difference_of(const lift::Replay& row, const LiftResult& result);

}  // namespace shardscope::trainer::cli
