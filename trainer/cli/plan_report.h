// What `plan` prints: the front first, then the best of the rest, why they lose, and the memory by formula.
// Only printing.
#pragma once

#include <string>
#include <vector>

#include "trainer/planner/anatomy.h"
#include "trainer/planner/row.h"

namespace shardscope::trainer {

struct PlanResult {
    std::vector<planner::Row> rows;  // in the order of their numbers, which may leave some out
    std::string cluster, device;     // names
    std::string limit_of;            // "into the 100 bytes of run.memory_limit"; empty: no row can be
    double seconds = 0;              // of the person's time
    bool complete = true;            // the whole space was searched: the front is known
    bool raised_steps = false;       // the job has fewer steps than a steady one comes after
};

struct PlanPrint {
    bool all = false;  // rows, not only the front and the best of the rest
};

// MB = 2^20 bytes.
std::string plan_table(const PlanResult& result, const PlanPrint& print = {});

// The anatomy of one row beside its simulated peak.
std::string anatomy_table(const planner::Row& row, const planner::Anatomy& anatomy);

// {"cluster":"…","device":"…","limit_of":"…","configurations":n,"fits":n,"too_large":n,"impossible":n,"not_run":n,"complete":true,"best":n|null,
//  "fastest":n|null,"ties":[n,…],"front":[n,…],"rows":[{"row":n,"outcome":"fits","settings":{…},"peak_bytes":n,"at_peak":{…},…}],
//  "anatomy":{…}}. Figures that a row has not are absent. `anatomy`: of planner::best_or_smallest; null:
//  there is none.
std::string plan_json(const PlanResult& result, const planner::Anatomy* anatomy);

// Where nothing fits: the smallest peak and what makes it; "" where something does.
std::string nothing_fits(const PlanResult& result);

}  // namespace shardscope::trainer
