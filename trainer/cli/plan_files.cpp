#include "trainer/cli/plan_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <time.h>

#include "traces/schema/json_text.h"
#include "traces/schema/text.h"
#include "traces/store/apart.h"
#include "traces/store/plan/plan_parts.h"
#include "traces/store/write/writer.h"
#include "trainer/cli/json_parts.h"
#include "trainer/cli/sweep_grid.h"
#include "trainer/planner/anatomy.h"
#include "trainer/planner/job_file.h"
#include "trainer/planner/search.h"
#include "trainer/sim/sim_trace.h"

namespace shardscope::trainer::cli {

namespace {

using planner::Row;

constexpr double kMicroPerSecond = 1e6;

std::string comment_of(const Row& row, const std::string& plan_of) {
    std::string comment = fmt::format(
        "Row {} of: shardscope-train plan {}\nSimulated on the cluster {}. On devices of your own: "
        "--run.device=cuda, or cpu.",
        row.number, plan_of, row.job.sim.cluster);
    if (has_tokens(row.job.model.type) && row.job.data.path.empty())
        comment += "\nA real run reads text: --data.path=FILE or a folder.";
    return comment;
}

traces::schema::PlanRow stored(const std::vector<Row>& rows, const Row& row, const std::string& plan_of) {
    traces::schema::PlanRow out = row.can_be() ? plan_row(row) : traces::schema::PlanRow{};
    out.number = row.number;
    out.outcome = planner::name(row.outcome);
    out.reason = row.reason;
    out.settings = traces::schema::dump_json(settings_json(row.settings));
    if (!row.can_be()) return out;
    out.job = planner::job_file(row.job, comment_of(row, plan_of));
    out.limit_bytes = row.limit;
    out.peak_module = row.peak_module;
    if (!row.peak_module.empty()) out.peak_module_bytes = row.peak_module_bytes;
    out.beaten_by = row.beaten_by;
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
std::vector<traces::store::PlanPart> parts_of(const std::vector<Row>& rows,
                                              const planner::ClusterMaker& cluster_of) {
    std::vector<traces::store::PlanPart> parts;
    for (const Row& row : rows) {
        if (!row.can_be()) continue;
        const planner::Anatomy anatomy = planner::anatomy_of(row, cluster_of(row.job));
        for (const planner::Anatomy::Part& part : anatomy.parts) {
            traces::store::PlanPart& out = parts.emplace_back();
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
        throw job::JobError(fmt::format("{}: cannot be written ({}); give another file with --as", file,
                                        std::strerror(errno)));
}

void write_trace(const Row& row, const sim::Cluster& cluster, const std::string& file, bool overwrite) {
    const sharding::Program program(sim::placed_on(row.job, cluster));
    write_simulation(program, cluster, sim::options_of(program.job(), cluster), program.job().sim.trace_ranks,
                     {}, writer_options(file, overwrite));
}

}  // namespace

void refuse_argument(const std::string& what, const std::string& why) {
    throw job::JobError(fmt::format("command line: {}: {}", what, why));
}

std::vector<planner::Given> given_values(const std::vector<job::Override>& overrides) {
    const SweepGrid grid = make_grid(overrides);
    std::vector<planner::Given> given;
    for (const job::Override& fixed : grid.fixed) given.push_back({fixed.key, {fixed.value}});
    for (const SweepAxis& axis : grid.axes) given.push_back({axis.key, axis.values});
    return given;
}

void check_outputs(const std::string& read, const PlanOptions& options) {
    std::vector<std::string> files = options.files;
    if (!options.output.empty()) files.push_back(options.output);
    for (const std::string& file : files) {
        traces::store::check_apart({read}, file);
        traces::store::DatabaseWriter::check_output(file, options.overwrite);
    }
}

int row_to_write(const std::string& text, std::size_t all, const std::string& usable) {
    const int number = traces::schema::number_of<int>(text).value_or(0);
    if (number < 1 || static_cast<std::size_t>(number) > all)
        refuse_argument("--write", fmt::format("\"{}\" is not a row; use {}, or best", text, usable));
    return number;
}

int search_threads() {
    constexpr int kMost = 16;
    return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMost);
}

void write_simulation(const sharding::Program& program, const sim::Cluster& cluster, sim::SimOptions options,
                      int ranks, const std::vector<traces::schema::RunInfoRow>& facts,
                      const traces::store::WriterOptions& to) {
    traces::store::DatabaseWriter writer(to);
    options.every_step = true;
    sim::SimTrace trace(writer, program, cluster, ranks);
    trace.summarise(sim::simulate(program, cluster, options, &trace));
    for (const traces::schema::RunInfoRow& fact : facts) writer.add(fact);
    writer.finish(trace.duration(), 0);
}

traces::store::WriterOptions writer_options(const std::string& file, bool overwrite) {
    traces::store::WriterOptions options;
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
    traces::store::DatabaseWriter writer(writer_options(file, overwrite));
    // The first possible job stands for the configuration that all rows share.
    for (const Row& row : result.rows) {
        if (!row.can_be()) continue;
        for (const auto& [key, value] : describe(row.job)) writer.add(traces::schema::RunInfoRow{key, value});
        break;
    }
    writer.add(traces::schema::RunInfoRow{"plan.job", plan_of});
    writer.add(traces::schema::RunInfoRow{"plan.cluster", result.cluster});
    writer.add(traces::schema::RunInfoRow{"plan.device", result.device});
    writer.add(traces::schema::RunInfoRow{"plan.complete", result.complete ? "true" : "false"});
    for (const Row& row : result.rows) {
        traces::schema::PlanRow out = stored(result.rows, row, plan_of);
        if (row.number == traced) out.trace = trace;
        writer.add(out);
    }
    writer.finish(0, 0);
    traces::store::store_plan_parts(file, parts_of(result.rows, cluster_of));
}

}  // namespace shardscope::trainer::cli
