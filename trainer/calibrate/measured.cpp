#include "trainer/calibrate/measured.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include <fmt/core.h>

#include "traces/analysis/time/summary.h"
#include "trainer/calibrate/fit_curve.h"
#include "trainer/calibrate/walk.h"
#include "trainer/job/keys.h"

namespace shardscope::trainer::calibrate {

namespace {

[[noreturn]] void refuse(const traces::store::Trace& trace, const std::string& why) {
    throw CalibrationError(fmt::format("{}: {}", trace.path.empty() ? "the trace" : trace.path, why));
}

// "0-3,8": 0 to 3 and 8; what is not such a list adds none.
void add_processors(const std::string& list, std::set<int>& into) {
    constexpr int kMost = 1 << 16;
    std::istringstream parts(list);
    for (std::string part; std::getline(parts, part, ',');) {
        int first = 0, last = 0;
        char dash = 0;
        std::istringstream range(part);
        if (!(range >> first)) return;
        last = range >> dash >> last && dash == '-' ? last : first;
        for (int processor = std::max(first, 0); processor <= std::min(last, kMost); ++processor)
            into.insert(processor);
    }
}

// The name without the cpu device's suffix, which traces of earlier versions do not have.
std::string processor_of(std::string name) {
    constexpr std::string_view kCpuDevice = " (cpu device)";
    if (name.ends_with(kCpuDevice)) name.resize(name.size() - kCpuDevice.size());
    return name;
}

void read_machine(const traces::store::Trace& trace, Machine& run) {
    std::map<std::string, int> nodes;
    std::map<int, std::set<int>> devices, processors;  // by node
    for (const traces::store::Rank& rank : trace.ranks) {
        const int node = nodes.try_emplace(rank.host, static_cast<int>(nodes.size())).first->second;
        run.node_of.push_back(node);
        devices[node].insert(rank.device);
        const std::string name = processor_of(rank.device_name);
        if (run.device_name.empty()) run.device_name = name;
        if (name != run.device_name) {
            refuse(trace, fmt::format("its ranks ran on different devices ({}, {}); calibrate with runs on "
                                      "equal ones",
                                      run.device_name, name));
        }
        run.device_memory = std::max(run.device_memory, rank.device_memory);
        add_processors(rank.cpus, processors[node]);  // a launcher may have bound each rank to its own
    }
    run.nodes = static_cast<int>(nodes.size());
    for (const auto& [node, own] : processors) run.cores = std::max(run.cores, static_cast<int>(own.size()));
    for (const auto& [node, own] : devices)
        run.devices_of_a_node = std::max(run.devices_of_a_node, static_cast<int>(own.size()));
}

// The median step of rank 0 over the steps that the figures use.
double median_step(const traces::store::Trace& trace, const MeasuredRun& run) {
    const traces::analysis::ExecutionSummary summary = traces::analysis::summarize(trace);
    if (summary.ranks.empty()) return 0;
    std::vector<double> windows;
    const std::vector<traces::analysis::StepSummary>& steps = summary.ranks.front().steps;
    const auto used = std::min(steps.size(), static_cast<std::size_t>(run.steps));
    for (std::size_t s = steps.size() - used; s < steps.size(); ++s)
        windows.push_back(static_cast<double>(steps[s].window_end - steps[s].window_start) * 1e-9);
    return windows.empty() ? 0 : median(windows);
}

}  // namespace

job::Job job_of(const traces::store::Trace& trace) {
    if (trace.config_value("run.device").empty() || trace.config_value("model.type").empty()) {
        refuse(trace,
               "it stores no job, so it is not a trace of the trainer; record one with shardscope-train "
               "JOB.toml "
               "--trace FILE");
    }
    job::Job job;
    for (const auto& [name, text] : trace.config) {
        const auto dot = name.find('.');
        if (dot == std::string::npos) continue;
        const job::Key* key =
            job::find_key(std::string_view(name).substr(0, dot), std::string_view(name).substr(dot + 1));
        if (!key || is_of_the_trace(*key)) continue;  // a fact about the run, not a setting
        const std::optional<job::Value> value = parse_value(key->type, text);
        if (!value || !problem(*key, *value).empty()) {
            refuse(trace, fmt::format("its job has {} = {}, which this version of shardscope-train does not "
                                      "know; record the trace again",
                                      name, text));
        }
        try {
            key->set(job, *value);
        } catch (const job::JobError& error) {
            refuse(trace, fmt::format("its job cannot be read ({}: {}); record the trace again", name,
                                      error.what()));
        }
    }
    return job;
}

Machine machine_of(const traces::store::Trace& trace) {
    Machine machine;
    machine.file = trace.path.empty() ? "the trace" : trace.path;
    machine.job = job_of(trace);
    if (machine.job.run.device == job::DeviceKind::sim) {
        refuse(trace,
               "it is simulated, so there is nothing measured in it; give a trace of run.device = \"cpu\" or "
               "\"cuda\"");
    }
    if (trace.steps.empty()) refuse(trace, "it has no steps; give a trace of a run that completed a step");
    if (static_cast<int>(trace.ranks.size()) != machine.job.run.ranks) {
        refuse(trace,
               fmt::format("it has {} of the job's {} ranks; merge the parts first with shardscope-trace "
                           "merge PART ... -o FILE",
                           trace.ranks.size(), machine.job.run.ranks));
    }
    read_machine(trace, machine);
    return machine;
}

std::string engine_of(const traces::store::Trace& trace, std::size_t collective) {
    const std::int32_t event = trace.collectives.event[collective];
    if (event < 0) return "";
    const std::string_view kernel = trace.strings[trace.device.name[static_cast<std::size_t>(event)]];
    return std::string(kernel.substr(std::min(kernel.size(), kernel.rfind('_') + 1)));
}

MeasuredRun measure(const traces::store::Trace& trace) {
    MeasuredRun run;
    static_cast<Machine&>(run) = machine_of(trace);
    try {
        run.program = std::make_unique<sharding::Program>(run.job);
    } catch (const job::JobError& error) {
        refuse(trace,
               fmt::format("the Plan of its job cannot be made ({}); record the trace again", error.what()));
    }
    Walk(trace, run).run();
    if (run.steps == 0)
        refuse(trace, "no step of it is complete; give a trace of a run that completed a step");
    run.median_step_s = median_step(trace, run);
    return run;
}

}  // namespace shardscope::trainer::calibrate
