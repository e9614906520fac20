#include "trainer/cli/plan_files.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <time.h>

#include "traces/schema/json_text.h"
#include "traces/store/plan/plan_parts.h"
#include "traces/store/write/writer.h"
#include "trainer/planner/anatomy.h"
#include "trainer/planner/job_file.h"
#include "trainer/planner/search.h"
#include "trainer/sim/sim_trace.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer {

namespace {

using planner::Row;

constexpr double kMicroPerSecond = 1e6;

std::string comment_of(const Row& row, const std::string& plan_of) {
    std::string comment = fmt::format(
        "Row {} of: shardscope-train plan {}\nSimulated on the cluster {}. On devices of your own: "
        "--run.device=cuda, or cpu.",
        row.number, plan_of, row.job.sim.cluster);
    if (row.job.model.type != ModelType::mlp && row.job.data.path.empty())
        comment += "\nA real run reads text: --data.path=FILE or a folder.";
    return comment;
}

std::string settings_json(const Row& row) {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (const Override& setting : row.settings) json[setting.key] = setting.value;
    return traces::dump_json(json);
}

traces::PlanRow stored(const std::vector<Row>& rows, const Row& row, const std::string& plan_of) {
    traces::PlanRow out;
    out.number = row.number;
    out.outcome = planner::name(row.outcome);
    out.reason = row.reason;
    out.settings = settings_json(row);
    if (!row.can_be()) return out;
    out.job = planner::job_file(row.job, comment_of(row, plan_of));
    out.ranks = row.job.run.ranks;
    out.limit_bytes = row.limit;
    out.peak_bytes = row.peak.bytes;
    out.moment = row.peak.where;
    out.at_peak = row.peak.at_peak;
    out.peak_unit = row.peak_unit;
    out.peak_module = row.peak_module;
    if (!row.peak_unit.empty()) out.peak_unit_bytes = row.peak_unit_bytes;
    if (!row.peak_module.empty()) out.peak_module_bytes = row.peak_module_bytes;
    out.front = row.front;
    out.beaten_by = row.beaten_by;
    out.same_as = row.same_as;
    out.why = planner::why(row, rows);
    if (!row.timed) return out;
    out.nodes = row.nodes;
    out.reserved_bytes = row.reserved;
    out.step_us = row.times.step * kMicroPerSecond;
    out.exposed_us = row.times.exposed * kMicroPerSecond;
    out.last_step_us = row.times.last_step * kMicroPerSecond;
    out.last_kernel_us = row.times.kernel * kMicroPerSecond;
    out.last_copy_us = row.times.copy * kMicroPerSecond;
    out.last_exposed_us = row.times.last_exposed * kMicroPerSecond;
    out.samples_per_second = row.samples_per_s;
    out.tokens_per_second = row.tokens_per_s;
    out.mfu = row.mfu;
    out.cost_per_million = row.cost;
    out.exposed_operation = row.exposed.operation;
    out.exposed_phase = row.exposed.phase;
    out.exposed_unit = row.exposed.unit;
    out.most_exposed_us = row.exposed.seconds * kMicroPerSecond;
    return out;
}

// The anatomy of every possible row.
std::vector<traces::PlanPart> parts_of(const std::vector<Row>& rows,
                                       const planner::ClusterMaker& cluster_of) {
    std::vector<traces::PlanPart> parts;
    for (const Row& row : rows) {
        if (!row.can_be()) continue;
        const planner::Anatomy anatomy = planner::anatomy_of(row, cluster_of(row.job));
        for (const planner::Anatomy::Part& part : anatomy.parts) {
            traces::PlanPart& out = parts.emplace_back();
            out.number = row.number;
            out.part = part.name;
            out.stage = anatomy.stage;
            out.devices = anatomy.devices;
            out.offloaded = anatomy.offloaded;
            out.parameters = anatomy.parameters;
            out.known = part.known;
            out.by_stage = part.bytes;
            out.formula = part.here;
            out.simulated = part.simulated;
            out.categories = part.categories;
        }
    }
    return parts;
}

void write_job(const Row& row, const std::string& plan_of, const std::string& file) {
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out << planner::job_file(row.job, comment_of(row, plan_of));
    out.flush();
    if (!out)
        throw JobError(fmt::format("{}: cannot be written ({}); give another file with --as", file,
                                   std::strerror(errno)));
}

void write_trace(const Row& row, const sim::Cluster& cluster, const std::string& file, bool overwrite) {
    const Program program(sim::placed_on(row.job, cluster));
    traces::DatabaseWriter writer(writer_options(file, overwrite));
    sim::SimOptions options = sim::options_of(program.job(), cluster);
    options.every_step = true;
    sim::SimTrace trace(writer, program, cluster, program.job().sim.trace_ranks);
    trace.summarise(sim::simulate(program, cluster, options, &trace));
    writer.finish(trace.duration(), 0);
}

}  // namespace

void refuse_argument(const std::string& what, const std::string& why) {
    throw JobError(fmt::format("command line: {}: {}", what, why));
}

traces::WriterOptions writer_options(const std::string& file, bool overwrite) {
    traces::WriterOptions options;
    options.path = file;
    options.overwrite = overwrite;
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    options.start_utc_ns = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
    options.on_this_machine = false;
    return options;
}

void write_row(const Row& row, const sim::Cluster& cluster, const std::string& plan_of,
               const std::string& file, bool overwrite) {
    if (file.ends_with(".toml")) {
        write_job(row, plan_of, file);
    } else {
        write_trace(row, cluster, file, overwrite);
    }
}

void write_database(const PlanResult& result, const planner::ClusterMaker& cluster_of,
                    const std::string& plan_of, const std::string& file, bool overwrite, int traced,
                    const std::string& trace) {
    traces::DatabaseWriter writer(writer_options(file, overwrite));
    // What all rows share is the run's configuration: the first possible job represents it.
    for (const Row& row : result.rows) {
        if (!row.can_be()) continue;
        for (const auto& [key, value] : describe(row.job)) writer.add(traces::RunInfoRow{key, value});
        break;
    }
    writer.add(traces::RunInfoRow{"plan.job", plan_of});
    writer.add(traces::RunInfoRow{"plan.cluster", result.cluster});
    writer.add(traces::RunInfoRow{"plan.device", result.device});
    writer.add(traces::RunInfoRow{"plan.complete", result.complete ? "true" : "false"});
    for (const Row& row : result.rows) {
        traces::PlanRow out = stored(result.rows, row, plan_of);
        if (row.number == traced) out.trace = trace;
        writer.add(out);
    }
    writer.finish(0, 0);
    traces::store_plan_parts(file, parts_of(result.rows, cluster_of));
}

}  // namespace shardscope::trainer
