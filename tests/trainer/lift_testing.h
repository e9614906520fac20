// Runs that are recorded, exported as PyTorch's JSON, read again and lifted.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "jobs.h"
#include "trace_testing.h"
#include "traces/export/chrome_trace.h"
#include "traces/import/open.h"
#include "traces/store/write/writer.h"
#include "trainer/lift/counterfactuals.h"
#include "trainer/sim/sim_trace.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer::testing {

inline traces::store::WriterOptions writer_options(const std::string& path) {
    traces::store::WriterOptions options;
    options.path = path;
    options.on_this_machine = false;
    return options;
}

// The duration of a simulated run's last step, in seconds.
inline double simulated_step(const job::Job& job, const sim::Cluster& cluster) {
    const sharding::Program program(job);
    return sim::simulate(program, cluster).classes.front().steps.back().seconds;
}

// A simulated run's trace, through PyTorch's JSON.
inline std::unique_ptr<traces::store::Trace> simulated_json(const job::Job& job, const sim::Cluster& cluster,
                                                            const std::string& folder) {
    const std::string database = folder + "/run.sqlite", json = folder + "/run.json";
    {
        const sharding::Program program(job);
        traces::store::DatabaseWriter writer(writer_options(database));
        sim::SimTrace trace(writer, program, cluster, job.run.ranks);
        sim::SimOptions options;
        options.every_step = true;
        trace.summarise(sim::simulate(program, cluster, options, &trace));
        writer.finish(trace.duration(), 0);
    }
    traces::exports::ChromeExportOptions options;
    options.overwrite = true;
    traces::exports::export_chrome(database, json, options);
    return traces::importer::open_any({json});
}

}  // namespace shardscope::trainer::testing
