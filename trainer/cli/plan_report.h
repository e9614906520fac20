// The output of `plan`: the Pareto front first, then the best of the rest, why they lose, and the memory by
// formula. Only formatting.
#pragma once

#include <string>
#include <vector>

#include "trainer/planner/anatomy.h"
#include "trainer/planner/row.h"

namespace shardscope::trainer::cli {

struct PlanResult {
    std::vector<planner::Row> rows;  // sorted by number; some numbers may be missing
    std::string cluster, device;     // names
    std::string limit_of;            // "into the 100 bytes of run.memory_limit"; empty: no row is possible
    double seconds = 0;              // wall-clock time
    bool complete = true;            // the whole space was searched: the Pareto front is known
    bool raised_steps = false;       // the job has too few steps to reach a steady one
};

struct PlanPrint {
    bool all = false;  // all rows, not only the Pareto front and the best of the rest
};

//
std::string plan_table(const PlanResult& result, const PlanPrint& print = {});

// The anatomy of one row, next to its simulated peak.
std::string anatomy_table(const planner::Row& row, const planner::Anatomy& anatomy);

// {"cluster":"…","device":"…","limit_of":"…","configurations":n,"fits":n,"too_large":n,"impossible":n,"not_run":n,"complete":true,"best":n|null,
// "fastest":n|null,"ties":[n,…],"front":[n,…],"rows":[{"row":n,"outcome":"fits","settings":{…},"peak_bytes":n,"at_peak":{…},…}],
// "anatomy":{…}}. Figures that a row does not have are absent. `anatomy` is that of
// planner::best_or_smallest, or null.
std::string plan_json(const PlanResult& result, const planner::Anatomy* anatomy);

// If nothing fits, the smallest peak and its causes; otherwise "".
std::string nothing_fits(const PlanResult& result);

}  // namespace shardscope::trainer::cli
