#include "trainer/planner/figures.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "trainer/model/models.h"

namespace shardscope::trainer::planner {

namespace {

constexpr double kSecondsPerHour = 3600;
constexpr double kMillion = 1e6;

// The id with the most bytes, -1 if all have none; see MemoryPeak::units.
int largest(const std::vector<std::int64_t>& by_id) {
    if (by_id.size() < 2) return -1;
    const auto most = std::max_element(by_id.begin() + 1, by_id.end());
    return *most > 0 ? static_cast<int>(most - by_id.begin()) - 1 : -1;
}

MostExposed most_exposed(const sharding::Program& program, const std::vector<sim::UnitExposure>& exposures) {
    std::map<std::pair<plan::Operation, plan::Phase>, MostExposed> kinds;
    for (const sim::UnitExposure& own : exposures) {
        MostExposed& kind = kinds[{own.operation, own.phase}];
        kind.operation = std::string(traces::schema::name(own.operation));
        kind.phase = std::string(traces::schema::name(own.phase));
        kind.seconds += own.exposed_s;
        if (own.exposed_s <= kind.unit_s) continue;
        kind.unit_s = own.exposed_s;
        kind.unit = own.unit < 0 ? "" : program.units()[static_cast<std::size_t>(own.unit)].name;
    }
    MostExposed most;
    for (const auto& entry : kinds)
        if (entry.second.seconds > most.seconds) most = entry.second;
    return most;
}

// Adds to the axis that the group lies along; collectives of other groups (all experts' data) are of "data".
void add_exposed(plan::Group group, double seconds, std::vector<MeshAxis>& axes) {
    const std::string_view name = group == plan::Group::tensor    ? "tensor"
                                  : group == plan::Group::context ? "context"
                                  : group == plan::Group::expert  ? "expert"
                                  : group == plan::Group::shard || group == plan::Group::expert_shard
                                      ? "shard"
                                  : group == plan::Group::pipeline ? "pipeline"
                                                                   : "data";
    const auto found =
        std::find_if(axes.begin(), axes.end(), [&](const MeshAxis& axis) { return axis.name == name; });
    if (found != axes.end()) found->exposed_s += seconds;
}

}  // namespace

double model_flops(const sharding::Program& program) {
    double flops = 0;
    for (int role = 0; role < program.roles(); ++role) {
        for (const plan::Op& op : program.role(role).step(program.role(role).warm_up_steps()).ops) {
            // Matmuls beside the model's own compress gradients.
            if (op.kind != plan::OpKind::kernel || op.stream != plan::Stream::compute ||
                (op.phase != plan::Phase::forward && op.phase != plan::Phase::backward))
                continue;
            const plan::KernelClass c = kernel_info(op.kernel().kernel).kernel_class;
            if (c == plan::KernelClass::matmul || c == plan::KernelClass::attention)
                flops += static_cast<double>(op.flops);
        }
    }
    return flops / program.roles();
}

double peak_rate(const job::Job& job, const sim::Cluster& cluster) {
    sim::Arithmetic arithmetic = sim::Arithmetic::fp32;
    if (job.precision.param == job::Precision::bf16) {
        arithmetic = sim::Arithmetic::bf16;
    } else if (job.precision.param == job::Precision::fp16) {
        arithmetic = sim::Arithmetic::fp16;
    } else if (job.precision.tf32) {
        arithmetic = sim::Arithmetic::tf32;
    }
    const double rate =
        cluster.device.rates(plan::KernelClass::matmul).flops[static_cast<std::size_t>(arithmetic)];
    if (cluster.device.cores == 0) return rate / cluster.ranks_per_device;
    const int nodes = cluster.node_of(job.run.ranks - 1) + 1;
    return rate * std::min(1.0, static_cast<double>(cluster.device.cores) * nodes / job.run.ranks);
}

void add_memory(const sharding::Program& program, Row& row) {
    row.peak = program.predict_largest().peak;
    if (const int unit = largest(row.peak.units); unit >= 0) {
        row.peak_unit = program.units()[static_cast<std::size_t>(unit)].name;
        row.peak_unit_bytes = row.peak.units[static_cast<std::size_t>(unit) + 1];
    }
    if (const int module = largest(row.peak.modules); module >= 0) {
        const model::Module& most = *program.modules().modules[static_cast<std::size_t>(module)];
        row.peak_module = most.path.empty() ? most.name : most.path;
        row.peak_module_bytes = row.peak.modules[static_cast<std::size_t>(module) + 1];
    }
}

void add_times(const sharding::Program& program, const sim::Cluster& cluster, const sim::SimResult& result,
               Row& row) {
    const job::Job& job = program.job();
    row.timed = true;
    row.nodes = cluster.node_of(job.run.ranks - 1) + 1;
    row.reserved = 0;
    for (const sim::SimRanks& ranks : result.classes) row.reserved = std::max(row.reserved, ranks.reserved);
    const sim::SimRanks& first = result.classes.front();
    const sim::SimStep& last = first.steady;
    row.times = {result.average_step_s, result.exposed_communication_s, last.seconds, last.kernel_s,
                 last.copy_s,           last.exposed_communication_s};
    row.exposed = most_exposed(program, first.exposures);
    for (const sim::SimRanks& ranks : result.classes) {
        const double share = static_cast<double>(ranks.ranks) / job.run.ranks;
        row.mean_step_s += share * ranks.steady.seconds;
        row.mean_kernel_s += share * ranks.steady.kernel_s;
        for (std::size_t group = 0; group < ranks.exposed_by_group.size(); ++group)
            add_exposed(static_cast<plan::Group>(group), share * ranks.exposed_by_group[group], row.axes);
    }
    const double step = result.average_step_s;
    if (step <= 0) return;
    const model::BatchShape shape = model::batch_shape(job);
    const double global = static_cast<double>(job.data_ranks()) * job.train.accumulation;
    row.samples_per_s = global * static_cast<double>(shape.samples) / step;
    row.tokens_per_s = global * static_cast<double>(shape.tokens) / step;
    row.mfu = model_flops(program) / (step * peak_rate(job, cluster));
    const double items = row.tokens_per_s > 0 ? row.tokens_per_s : row.samples_per_s;
    const int devices = job.run.ranks / cluster.ranks_per_device;
    row.cost = cluster.device.price_per_hour * devices / kSecondsPerHour / items * kMillion;
}

}  // namespace shardscope::trainer::planner
