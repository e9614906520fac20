// A run of a job on a cost model, recorded as if the cluster had been measured.
#pragma once

#include <memory>

#include "plan_jobs.h"
#include "traces/store/columns/column_sink.h"
#include "trainer/sim/sim_trace.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer::testing {

inline std::unique_ptr<traces::store::Trace> played(const job::Job& job, const sim::Cluster& cluster) {
    const sharding::Program program(sim::placed_on(job, cluster));
    traces::store::ColumnSink sink;
    sim::SimTrace trace(sink, program, cluster, job.run.ranks);
    sim::SimOptions options;
    options.every_step = true;
    sim::simulate(program, cluster, options, &trace);
    return sink.take();
}

}  // namespace shardscope::trainer::testing
