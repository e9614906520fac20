#include "trainer/cli/dry_run.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/text_table.h"
#include "traces/schema/json_text.h"
#include "trainer/cli/json_parts.h"
#include "trainer/cli/output.h"
#include "trainer/plan/print.h"
#include "trainer/sharding/stage_costs.h"
#include "trainer/sharding/stages.h"

namespace shardscope::trainer::cli {

namespace {

constexpr std::int64_t kElementBytes = 4;  // shards are fp32 in every precision

plan::PlanLabels labels_of(const sharding::Program& program) {
    plan::PlanLabels labels;
    for (const sharding::UnitInfo& unit : program.units()) labels.units.push_back(unit.name);
    for (const model::Module* module : program.modules().modules) labels.modules.push_back(module->name);
    return labels;
}

std::string units_table(const sharding::Program& program, const plan::PlanLabels& labels) {
    if (program.units().empty()) return "";
    using traces::report::Align;
    using traces::store::grouped;
    traces::report::TextTable table(
        {Align::right, Align::left, Align::left, Align::right, Align::right, Align::right});
    const bool buckets = program.job().parallel.mode == job::ParallelMode::ddp;
    table.header({buckets ? "bucket" : "unit", "name", "module", "elements", "padding", "bytes per rank"});
    for (std::size_t u = 0; u < program.units().size(); ++u) {
        const sharding::UnitInfo& unit = program.units()[u];
        table.row({std::to_string(u), unit.name, labels.modules[static_cast<std::size_t>(unit.module)],
                   grouped(unit.elements), grouped(unit.padded_elements - unit.elements),
                   grouped(unit.shard_elements * kElementBytes)});
    }
    return table.text() + "\n";
}

// What each stage of a pipeline has, and the share of its FLOPs in the model's.
struct StageRow {
    int place = 0;
    std::string first, last;  // modules
    std::int64_t parameters = 0, flops = 0;
};
std::vector<StageRow> stage_rows(const sharding::Program& program) {
    std::vector<StageRow> rows;
    for (int s = 0; program.stages() != nullptr && s < program.stages()->count(); ++s) {
        const sharding::Program& role = program.role(program.stages()->place_of(s));
        const sharding::Stages& stages = *role.stages();
        const auto& children = stages.layers->children();
        const model::ChildRange range = stages.ranges[static_cast<std::size_t>(s)];
        const std::vector<std::int64_t> flops =
            sharding::flops_by_child(role.step(role.warm_up_steps()), role.modules(), *stages.layers);
        StageRow& row = rows.emplace_back();
        row.place = stages.place_of(s);
        row.first = sharding::unwrapped(*children[range.first]).path;
        row.last = sharding::unwrapped(*children[range.end - 1]).path;
        for (const model::Parameter* parameter : stages.parameters_of(s))
            row.parameters += parameter->whole_elements;
        for (std::size_t child = range.first; child < range.end; ++child) row.flops += flops[child];
    }
    return rows;
}

std::string stages_table(const sharding::Program& program) {
    const std::vector<StageRow> rows = stage_rows(program);
    if (rows.empty()) return "";
    using traces::report::Align;
    using traces::store::grouped;
    traces::report::TextTable table(
        {Align::right, Align::right, Align::left, Align::left, Align::right, Align::right});
    table.header({"stage", "place", "first module", "last module", "parameters", "FLOPs (%)"});
    std::int64_t all = 0;
    for (const StageRow& row : rows) all += row.flops;
    for (std::size_t s = 0; s < rows.size(); ++s) {
        const double share =
            100 * static_cast<double>(rows[s].flops) / static_cast<double>(std::max<std::int64_t>(all, 1));
        table.row({std::to_string(s), std::to_string(rows[s].place), rows[s].first, rows[s].last,
                   grouped(rows[s].parameters), grouped(share, 1)});
    }
    return table.text() + "\n";
}

std::string plans_text(const sharding::Program& role, const plan::PlanLabels& labels) {
    std::string out;
    std::int64_t live = 0;
    const auto section = [&](const std::string& title, const plan::Plan& plan) {
        out += title + "\n" + print_plan(plan, labels, live) + "\n";
    };
    section("Set-up", role.setup());
    const auto& stretches = role.stretches();
    for (std::size_t i = 0; i < stretches.size() && stretches[i].first < role.warm_up_steps(); ++i) {
        const std::size_t first = stretches[i].first, last = stretches[i + 1].first - 1;
        section(first == last ? fmt::format("Step {}", first) : fmt::format("Steps {} to {}", first, last),
                stretches[i].plan);
    }
    std::size_t at = role.warm_up_steps();
    role.for_cycle([&](const plan::Plan& plan, std::size_t steps) {
        section(role.cycle() == 1
                    ? fmt::format("Steady step (from step {})", at)
                    : fmt::format("Steady step (from step {}: {} of {})", at, steps, role.cycle()),
                plan);
        at += steps;
    });
    if (role.prefill() != nullptr) section("Prefill", *role.prefill());
    if (role.decode() != nullptr) section("Decode, one token of each text", *role.decode());
    if (role.evaluation() != nullptr)
        section(!stretches.empty() ? "Validation, one batch" : "Forward of the whole context",
                *role.evaluation());
    const plan::MemoryPeak peak = role.predict().peak;
    out += fmt::format("Predicted peak per rank: {} bytes, {} MiB\n", traces::store::grouped(peak.bytes),
                       traces::store::grouped(static_cast<double>(peak.bytes) / (1 << 20), 1));
    out += peak_table(peak);
    const job::Job& job = role.job();
    if (job.fsdp.cpu_offload || job.memory.offload != job::Offload()) {
        const auto of = [&](plan::MemorySpace space) {
            return traces::store::grouped(peak.spaces[static_cast<std::size_t>(space)]);
        };
        out += fmt::format("On the host: at most {} bytes pinned, {} bytes pageable\n",
                           of(plan::MemorySpace::pinned), of(plan::MemorySpace::host));
        if (!job.memory.nvme.empty()) out += fmt::format("In files: {} bytes\n", of(plan::MemorySpace::disk));
    }
    return out;
}

nlohmann::ordered_json steady_step(const sharding::Program& role) {
    nlohmann::ordered_json collectives = nlohmann::ordered_json::object();
    std::int64_t operations = 0, flops = 0;
    role.for_cycle([&](const plan::Plan& plan, std::size_t count) {
        const auto steps = static_cast<std::int64_t>(count);
        operations += steps * std::ssize(plan.ops);
        for (const plan::Op& op : plan.ops) {
            flops += steps * op.flops;
            if (op.kind != plan::OpKind::collective) continue;
            auto& entry = collectives[std::string(traces::schema::name(op.collective().operation))];
            if (entry.is_null()) entry = {{"count", std::int64_t{0}}, {"bytes", std::int64_t{0}}};
            entry["count"] = entry["count"].get<std::int64_t>() + steps;
            entry["bytes"] = entry["bytes"].get<std::int64_t>() + steps * op.bytes;
        }
    });
    nlohmann::ordered_json json = {
        {"operations", operations}, {"flops", flops}, {"collectives", collectives}};
    if (role.cycle() > 1) json["steps"] = role.cycle();  // that these are the sums of
    return json;
}

}  // namespace

std::string dry_run_text(const sharding::Program& program) {
    const plan::PlanLabels labels = labels_of(program);
    std::string out = describe_run(program) + "\n\n" + stages_table(program) + units_table(program, labels);
    for (int role = 0; role < program.roles(); ++role) {
        if (program.roles() > 1) {
            const int first = program.mesh().first_of_role(role);
            const int last = first + program.mesh().ranks_of_role(role) - 1;
            out += first == last ? fmt::format("Rank {}\n\n", first)
                                 : fmt::format("Ranks {} to {}\n\n", first, last);
        }
        out += plans_text(program.role(role), labels);
    }
    return out;
}

std::string dry_run_json(const sharding::Program& program) {
    nlohmann::ordered_json json;
    const sharding::MemoryPrediction prediction = program.predict_largest();
    json["predicted_peak_bytes"] = prediction.peak.bytes;
    json["at_peak"] = categories_json(prediction.peak.at_peak);
    json["where"] = prediction.peak.where;
    json["step_peaks"] = prediction.steps;
    for (const plan::MemorySpace space :
         {plan::MemorySpace::pinned, plan::MemorySpace::host, plan::MemorySpace::disk})
        json["host_peak_bytes"][std::string(traces::schema::name(space))] =
            prediction.peak.spaces[static_cast<std::size_t>(space)];
    json["parameters"] = parameter_count(program);
    json["units"] = nlohmann::ordered_json::array();
    for (const sharding::UnitInfo& unit : program.units()) {
        json["units"].push_back({{"name", unit.name},
                                 {"elements", unit.elements},
                                 {"padded_elements", unit.padded_elements},
                                 {"shard_bytes", unit.shard_elements * kElementBytes}});
    }
    if (program.roles() == 1 && !program.stretches().empty()) json["steady_step"] = steady_step(program);
    const std::vector<StageRow> rows = stage_rows(program);
    for (int r = 0; program.roles() > 1 && r < program.roles(); ++r) {
        nlohmann::ordered_json place = {{"first_rank", program.mesh().first_of_role(r)},
                                        {"predicted_peak_bytes", program.role(r).predict().peak.bytes},
                                        {"stages", nlohmann::ordered_json::array()}};
        for (std::size_t s = 0; s < rows.size(); ++s) {
            if (rows[s].place != r) continue;
            place["stages"].push_back({{"stage", s},
                                       {"first", rows[s].first},
                                       {"last", rows[s].last},
                                       {"parameters", rows[s].parameters},
                                       {"flops", rows[s].flops}});
        }
        place["steady_step"] = steady_step(program.role(r));
        json["places"].push_back(place);
    }
    return traces::schema::dump_json(json, 2) + "\n";
}

}  // namespace shardscope::trainer::cli
