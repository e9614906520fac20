#include "trainer/cli/calibrate_verb.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string_view>

#include <fmt/core.h>

#include "traces/store/load/loader.h"
#include "traces/store/write/writer.h"
#include "trainer/calibrate/calibration.h"
#include "trainer/cli/calibrate_report.h"
#include "trainer/job/job.h"

namespace shardscope::trainer::cli {

namespace {

constexpr std::string_view kSuffix = ".toml";

void check_output(const CalibrateOptions& options) {
    if (!options.output.ends_with(kSuffix)) {
        throw job::JobError(fmt::format(
            "command line: -o {}: a cost model is a .toml file; give the path of one", options.output));
    }
    traces::store::DatabaseWriter::check_output(options.output, options.overwrite);
}

sim::Cluster base_model(const CalibrateOptions& options, const calibrate::Machine& first) {
    try {
        return sim::load_cluster(options.base.empty() ? calibrate::base_for(first) : options.base);
    } catch (const sim::ClusterError& error) {
        std::string_view why = error.what();
        constexpr std::string_view kKey = "sim.cluster: ";  // --base takes the values of this key
        if (why.starts_with(kKey)) why.remove_prefix(kKey.size());
        throw job::JobError(fmt::format("command line: --base: {}", why));
    }
}

void write_file(const std::string& path, const std::string& text) {
    std::ofstream stream(path, std::ios::binary | std::ios::trunc);
    stream << text;
    stream.close();
    if (!stream)
        throw std::runtime_error(fmt::format("{}: cannot be written ({}); check the folder and its space",
                                             path, std::strerror(errno)));
}

}  // namespace

int calibrate_traces(const std::vector<std::string>& traces, const CalibrateOptions& options) {
    check_output(options);
    try {
        std::vector<calibrate::MeasuredRun> runs;
        runs.reserve(traces.size());
        std::vector<calibrate::MeasuredBench> benches;
        for (const std::string& file : traces) {
            const auto trace = traces::store::load_trace(file);
            if (calibrate::is_bench(*trace)) {
                benches.push_back(calibrate::measure_bench(*trace));
            } else {
                runs.push_back(calibrate::measure(*trace));
            }
        }
        const sim::Cluster base =
            runs.empty() ? base_model(options, benches.front()) : base_model(options, runs.front());
        const std::string name = std::filesystem::path(options.output).stem().string();
        const calibrate::Calibration fitted = calibrate::calibrate(runs, benches, base, name);
        write_file(options.output, calibrate::model_file(fitted));
        fmt::print("{}", options.json ? calibration_json(fitted, options.output)
                                      : calibration_table(fitted, options.output));
    } catch (const calibrate::CalibrationError& error) {
        throw job::JobError(error.what());
    }
    return 0;
}

}  // namespace shardscope::trainer::cli
