// What --dry-run prints: the units, the Plan of each kind of step or, with --generate, of each forward, the
// memory account. Nothing is trained.
#pragma once

#include <string>

#include "trainer/sharding/program.h"

namespace shardscope::trainer::cli {

std::string dry_run_text(const sharding::Program& program);

// {"predicted_peak_bytes":n,"at_peak":{...},"where":"...","step_peaks":[n,...],"parameters":n,"units":[...],
//  "steady_step":{"operations":n,"flops":n,"collectives":{"all_gather":{"count":n,"bytes":n}}}}
// With --generate there is no steady_step. Of a pipeline there is one for each place:
//  "places":[{"first_rank":n,"predicted_peak_bytes":n,
//  "stages":[{"stage":n,"first":"...","last":"...","parameters":n,"flops":n}],"steady_step":{...}}]
std::string dry_run_json(const sharding::Program& program);

}  // namespace shardscope::trainer::cli
