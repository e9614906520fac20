// The job's figures and the notes of a UtilizationReport, from its devices. Internal to the library.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "traces/analysis/job/owned_counters.h"
#include "traces/analysis/job/utilization.h"

namespace shardscope::traces::analysis {

struct JobSource {
    const store::Trace& trace;
    const Selection& selection;
    const UtilizationOptions& options;
    const std::map<CounterPlace, OwnedCurves>& owned;
    const std::map<std::string, std::int64_t>& unusable;  // values left out, by name
};

void add_job(const JobSource& source, UtilizationReport& report);

}  // namespace shardscope::traces::analysis
