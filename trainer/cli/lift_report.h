// What `plan TRACE` prints. Only printing.
#pragma once

#include <string>
#include <vector>

#include "trainer/lift/counterfactuals.h"

namespace shardscope::trainer {

struct LiftResult {
    const lift::Lifted& lifted;
    const lift::Replay& unmodified;
    const std::vector<lift::Replay>& rows;  // in the order of their numbers, which may leave some out
    std::string links;                      // whose they are: "as recorded", "h100_ib", "50 GB/s"
    int wanted = 0;                         // the row whose lines of PyTorch are printed; 0: the best
    bool complete = true;                   // all rows are there
};

// The row that the lines are printed for: the wanted one, else the fastest of the front; null: none can be.
const lift::Replay* shown_row(const LiftResult& result);

// MB = 2^20 bytes. `all`: every row, not only the front and the best of the rest.
std::string lift_table(const LiftResult& result, bool all);

// docs/counterfactuals.md says what is in it.
std::string lift_json(const LiftResult& result);

// "-11.4 GB, +3.0 % step": against the unmodified replay.
std::string difference_of(const lift::Replay& row, const lift::Replay& unmodified);

}  // namespace shardscope::trainer
