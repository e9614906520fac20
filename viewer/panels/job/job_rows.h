// What the Job panel shows: for each measure that the trace sampled, one lane for each device, adapter, rank
// or host, grouped by host; the tables and sentences of traces/analysis/job. No drawing; any thread. Times in
// nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/advice/advice.h"
#include "traces/analysis/job/samples.h"
#include "traces/analysis/job/utilization.h"
#include "traces/store/columns/trace.h"

namespace shardscope::viewer::panels {

struct JobLane {
    std::string label, note;        // "GPU 0", "rank 2"; of two directions "GPU 0 sent"
    int device = -1;                // the GPU's or adapter's number on its host
    traces::store::RankIndex rank;  // none: of no rank, or of several
    traces::analysis::SampledCurve curve;
};

struct JobHost {
    std::string name;  // empty: unknown
    std::vector<JobLane> lanes;
};

struct JobMeasure {
    std::string_view id, title, unit;  // "utilization", "Utilization", "%" (lanes/counter_words.h)
    double full = 0;                   // the value of a lane's whole height
    std::vector<JobHost> hosts;        // by name; none empty
};

// In a fixed order, those of devices first; only measures with samples in the time. Devices' memory and
// limits of power are from Trace::devices, where it has them.
std::vector<JobMeasure> job_measures(const traces::store::Trace& trace,
                                     const traces::analysis::Selection& selection);

// The figure at an instant, on the line between two samples; nothing where it is unknown.
std::optional<double> value_at(const traces::analysis::SampledCurve& curve, std::int64_t time);

// "4 devices on 1 host, used 46.20 % over 12.30 s. 1 device is unused. Energy 1.24 kJ." Unknown figures are
// omitted.
std::string job_headline(const traces::analysis::JobUse& job);

// "812.00 J", "1.24 kJ", "3.60 MJ".
std::string energy_text(double joules);

// The findings about devices, hosts and wires, in the report's order; indices into AdviceReport::findings.
std::vector<std::size_t> job_findings(const traces::analysis::AdviceReport& report);

}  // namespace shardscope::viewer::panels
