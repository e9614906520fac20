// Measures the messages of a bench over the job's wire alone.
#pragma once

#include <vector>

#include "trainer/executor/collective_bench.h"
#include "trainer/executor/processes.h"

namespace shardscope::trainer::executor {

// Fills in MessageRate::on_wire, in the process of rank 0. Every process calls it at the same point, with the
// same rates, while no process group uses the wire. Throws WireError.
void measure_on_wire(Processes& processes, const CollectiveBenchOptions& options, double timeout_s,
                     std::vector<MessageRate>& messages);

}  // namespace shardscope::trainer::executor
