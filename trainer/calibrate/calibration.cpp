#include "trainer/calibrate/calibration.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "traces/schema/sort_rows.h"
#include "trainer/calibrate/fit.h"
#include "trainer/calibrate/fit_curve.h"
#include "trainer/sim/collective_cost.h"
#include "trainer/sim/costs.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer::calibrate {

namespace {

void check_machine(const Machine& first, const Machine& run) {
    const auto device = [](const Machine& own) {
        return own.on_gpu() ? own.device_name + " (cuda)" : own.device_name;
    };
    if (run.device_name == first.device_name && run.on_gpu() == first.on_gpu()) return;
    throw CalibrationError(fmt::format(
        "{} was recorded on {}, {} on {}; a model is of one machine: calibrate with the traces of "
        "one",
        first.file, device(first), run.file, device(run)));
}

// Reads the facts about the machine that the traces record.
void read_machine(const std::vector<const Machine*>& machines, Calibration& into) {
    sim::Cluster& cluster = into.cluster;
    sim::DeviceModel& device = cluster.device;
    const Machine& first = *machines.front();
    if (!first.device_name.empty()) device.name = first.device_name;
    into.note("device.name", !first.device_name.empty(), "as the traces say");
    std::int64_t memory = 0;
    int cores = 0, nodes = 1, devices = 1;
    for (const Machine* machine : machines) {
        memory = std::max(memory, machine->device_memory);
        cores = std::max(cores, machine->cores);
        nodes = std::max(nodes, machine->nodes);
        devices = std::max(devices, machine->devices_of_a_node);
    }
    if (memory > 0) device.memory = static_cast<double>(memory);
    // The reserve is an estimate for devices of 16 GB and more; on a small one it would leave nothing.
    device.reserve = std::min(device.reserve, device.memory / 8);
    into.note("device.memory", memory > 0, "as the traces say");
    if (device.type == sim::DeviceType::cpu) {
        if (cores > 0) device.cores = cores;
        into.note("device.cores", cores > 0, "that the ranks were allowed to run on");
    }
    cluster.devices = nodes > 1 ? devices : std::max(cluster.devices, devices);
    cluster.links = {};                     // the base model's are another cluster's
    if (nodes > 1 && cluster.nodes == 1) {  // the base model has no link between nodes
        cluster.nodes = nodes;
        cluster.inter = cluster.intra;
        cluster.collectives.across = sim::Algorithm::ring;
    }
    into.notes["cluster.devices"] = "of a node: from " + into.base;
}

// The errors of one kind of kernels, copies or collectives.
struct Errors {
    std::vector<double> errors;
    double seconds = 0;
};

std::string kind_of(const plan::Op& op) {
    switch (op.kind) {
        case plan::OpKind::kernel:
            return std::string(plan::kKernelClassNames[static_cast<std::size_t>(
                kernel_info(op.kernel().kernel).kernel_class)]);
        case plan::OpKind::collective:
            return std::string(traces::schema::name(op.collective().operation));
        case plan::OpKind::memset:
            return "memset";
        default:
            return op.copy_kind() == traces::schema::kCopyHostToDevice   ? "copy to device"
                   : op.copy_kind() == traces::schema::kCopyDeviceToHost ? "copy to host"
                   : op.copy_kind() == traces::schema::kCopyDiskToHost   ? "read of a file"
                   : op.copy_kind() == traces::schema::kCopyHostToDisk   ? "write of a file"
                                                                         : "copy on device";
    }
}

void add_residuals(const Runs& runs, const Benches& benches, Calibration& into) {
    std::map<std::tuple<int, std::string, std::string>, Errors> kinds;  // kernels first
    const sim::Cluster& cluster = into.cluster;
    const auto add_to = [&](plan::OpKind kind, const std::string& name, const std::string& type, double model,
                            double measured) {
        if (!(measured > 0)) return;
        Errors& own = kinds[{static_cast<int>(kind), name, type}];
        own.errors.push_back(std::abs(model - measured) / measured);
        own.seconds += measured;
    };
    for (const MeasuredRun& run : runs) {
        const bool tf32 = run.job.precision.tf32;
        const sim::Costs costs(cluster, tf32, run.ranks_of_node());
        const auto add = [&](const plan::Op& op, const std::string& type, double model, double measured) {
            add_to(op.kind, kind_of(op), type, model, measured);
        };
        for (const MeasuredOp& work : run.work) {
            const plan::Op& op = *work.op;
            if (op.kind == plan::OpKind::collective) continue;
            std::string type;
            if (op.kind == plan::OpKind::kernel)
                type = sim::kArithmeticNames[static_cast<std::size_t>(sim::arithmetic_of(op, tf32))];
            add(op, type, costs.on_device(*work.plan, op) - costs.latency(op), alone(work, into));
        }
        const bool at_once = cluster.collectives.inside == sim::Algorithm::shared_memory;
        for (const CollectiveTime& time : collective_times(run, into)) {
            const sim::Spread spread =
                sim::spread_of(run.program->mesh(), time.op->collective().group, time.rank, cluster, {});
            const double model =
                sim::collective_seconds(cluster, spread, time.op->collective().operation, time.op->bytes);
            add(*time.op, "", at_once ? model - cluster.collectives.latency : model, time.transfer);
        }
    }
    for (const MeasuredBench& bench : benches) {
        for (const std::vector<BenchedTime>* times : {&bench.collectives, &bench.messages}) {
            for (const BenchedTime& own : *times) {
                const sim::Spread spread = spread_of(bench, own.operation, cluster);
                add_to(plan::OpKind::collective, std::string(name(own.operation)), "",
                       sim::collective_seconds(cluster, spread, own.operation, own.bytes), own.seconds);
            }
        }
    }
    double all = 0;
    for (const auto& [key, own] : kinds) all += own.seconds;
    for (const auto& [key, own] : kinds) {
        into.residuals.push_back({std::get<1>(key), std::get<2>(key), std::ssize(own.errors),
                                  all > 0 ? own.seconds / all : 0, median(own.errors),
                                  percentile(own.errors, 0.9)});
    }
    traces::schema::sort_rows(into.residuals,
                              [](const Residual& a, const Residual& b) { return a.share > b.share; });
}

// A few steps suffice, as they repeat once a run is warm.
constexpr std::int64_t kSimulatedSteps = 12, kWarmSteps = 6;

void add_steps(const Runs& runs, Calibration& into) {
    for (const MeasuredRun& run : runs) {
        sim::SimOptions options = sim::options_of(run.job, into.cluster);
        options.memory_limit = 0;
        options.every_step = true;
        sim::Script script = sim::script_of(*run.program);
        const auto warm_up = static_cast<std::int64_t>(run.program->warm_up_steps());
        script.count = std::min(script.count, std::max(kSimulatedSteps, 2 * (warm_up + kWarmSteps)));
        std::vector<double> seconds;
        try {
            const auto steps = sim::simulate(script, into.cluster, options).of(0).steps;
            for (std::size_t s = steps.size() / 2; s < steps.size(); ++s) seconds.push_back(steps[s].seconds);
        } catch (const sim::ClusterError& error) {
            throw CalibrationError(fmt::format("{}: {}", run.file, error.what()));
        }
        into.steps.push_back({run.file, run.steps, run.median_step_s, median(seconds)});
    }
}

}  // namespace

std::string base_for(const Machine& machine) {
    if (!machine.on_gpu()) return "laptop";
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kModels = {
        {{"H200", "h200_nvlink"}, {"H100", "h100_ib"}, {"A100", "a100"}, {"V100", "v100_pcie"}}};
    for (const auto& [device, model] : kModels) {
        if (machine.device_name.find(device) != std::string::npos) return std::string(model);
    }
    return "h100_ib";
}

Calibration calibrate(const Runs& runs, const Benches& benches, const sim::Cluster& base,
                      const std::string& name) {
    std::vector<const Machine*> machines;
    for (const MeasuredRun& run : runs) machines.push_back(&run);
    for (const MeasuredBench& bench : benches) machines.push_back(&bench);
    for (const Machine* machine : machines) check_machine(*machines.front(), *machine);
    const bool gpu = base.device.type == sim::DeviceType::gpu;
    if (gpu != machines.front()->on_gpu()) {
        throw CalibrationError(
            fmt::format("--base: {} is a model of a {}, the traces are of run.device = \"{}\"; choose a base "
                        "of the same kind, or omit it",
                        base.name, gpu ? "GPU" : "processor", gpu ? "cpu" : "cuda"));
    }
    Calibration fitted;
    fitted.cluster = base;
    fitted.cluster.name = name;
    fitted.base = base.name;
    for (const Machine* machine : machines) fitted.files.push_back(machine->file);
    read_machine(machines, fitted);
    fit_busy_share(runs, fitted);
    fit_kernels(runs, fitted);
    fit_copies(runs, fitted);
    fit_disk(runs, fitted);
    fit_collectives(runs, benches, fitted);
    fit_host(runs, fitted);
    if (fitted.cluster.nodes == 1) {  // the file has no [inter] section
        fitted.notes.erase("inter.latency");
        fitted.notes.erase("inter.bandwidth");
    }
    // Judges the model in the form that is read back from its file.
    fitted.cluster = sim::parse_cluster(model_file(fitted), name);
    add_residuals(runs, benches, fitted);
    add_steps(runs, fitted);
    return fitted;
}

}  // namespace shardscope::trainer::calibrate
