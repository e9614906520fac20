// Fits a cost model to measured runs. Figures that the runs show replace those of a base model; the others
// keep the base model's value, and the file says so.
//
//   std::vector<MeasuredRun> runs = {measure(*load_trace("a.sqlite")), …};
//   const Calibration fitted = calibrate(runs, {}, sim::load_cluster("laptop"), "mine");
//   fitted.cluster, model_file(fitted), fitted.residuals, fitted.steps
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trainer/calibrate/measured_bench.h"
#include "trainer/sim/cluster.h"

namespace shardscope::trainer::calibrate {

// The errors of the fitted model for kernels of a class and type.
struct Residual {
    std::string name;        // "matmul", …; "copy to device", "all_gather", …
    std::string arithmetic;  // "fp32", …; empty: none
    std::int64_t count = 0;
    double share = 0;                        // share of the time of all rows
    double median_error = 0, p90_error = 0;  // |model - measured| / measured
};

// A run's step: measured, and simulated with the fitted model.
struct StepResidual {
    std::string file;
    std::int64_t steps = 0;  // number of measured steps
    double measured_s = 0, simulated_s = 0;
    double error() const { return measured_s > 0 ? simulated_s / measured_s - 1 : 0; }
};

struct Calibration {
    sim::Cluster cluster;
    std::string base;                          // the base model's name
    std::vector<std::string> files;            // files of the runs
    std::map<std::string, std::string> notes;  // the source of each figure, by "section.key"
    std::vector<Residual> residuals;
    std::vector<StepResidual> steps;
    std::int64_t pairs = 0;  // links of which each was measured

    // The source of a figure: what was measured, or else the base model.
    void note(const std::string& key, bool measured, std::string source) {
        notes[key] = measured ? std::move(source) : "from " + base;
    }
};

// Throws CalibrationError if the runs and benchmarks are from different machines or contradict each other;
// one of either suffices.
Calibration calibrate(const std::vector<MeasuredRun>& runs, const std::vector<MeasuredBench>& benches,
                      const sim::Cluster& base, const std::string& name);

// The name of the shipped model that is closest to the machine.
std::string base_for(const Machine& machine);

// The model as a file that load_cluster reads, with the source of each figure.
std::string model_file(const Calibration& calibration);

}  // namespace shardscope::trainer::calibrate
