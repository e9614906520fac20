// Prints a Plan for people: one line per operation, in program order, with the stream, the bytes, and the
// memory allocated after it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/plan/plan.h"

namespace shardscope::trainer::plan {

// Names for the ids in operations: of units (indexed by unit) and of modules (indexed by module).
struct PlanLabels {
    std::vector<std::string> units;
    std::vector<std::string> modules;
};

// `live_bytes`: device memory allocated when the Plan begins; updated to what is allocated when it ends.
std::string print_plan(const Plan& plan, const PlanLabels& labels, std::int64_t& live_bytes);

// "113,348,608".
std::string with_thousands(std::int64_t value);

}  // namespace shardscope::trainer::plan
