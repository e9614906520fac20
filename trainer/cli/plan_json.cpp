// `plan --format json`.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "traces/schema/json_text.h"
#include "trainer/cli/json_parts.h"
#include "trainer/cli/plan_report.h"
#include "trainer/planner/meshes.h"
#include "trainer/planner/reason.h"
#include "trainer/planner/search.h"

namespace shardscope::trainer::cli {

namespace {

using planner::Outcome;
using planner::Row;

nlohmann::ordered_json row_json(const std::vector<Row>& rows, const Row& row) {
    nlohmann::ordered_json json;
    json["row"] = row.number;
    json["outcome"] = planner::name(row.outcome);
    json["settings"] = settings_json(row.settings);
    if (!row.reason.empty()) json["reason"] = row.reason;
    if (row.least_bytes > 0) json["least_bytes"] = row.least_bytes;
    if (row.least_step > 0) json["least_step_us"] = row.least_step * 1e6;
    if (!row.can_be()) return json;
    json["limit_bytes"] = row.limit;
    json["peak_bytes"] = row.peak.bytes;
    json["at_peak"] = categories_json(row.peak.at_peak);
    json["where"] = row.peak.where;
    if (!row.peak_unit.empty()) json["peak_unit"] = {{"name", row.peak_unit}, {"bytes", row.peak_unit_bytes}};
    if (!row.peak_module.empty())
        json["peak_module"] = {{"name", row.peak_module}, {"bytes", row.peak_module_bytes}};
    if (!row.axes.empty()) json["placement"] = placement_text(row.axes);
    if (row.timed) {
        json["reserved_bytes"] = row.reserved;
        json["nodes"] = row.nodes;
        json["average_step_us"] = row.times.step * 1e6;
        json["exposed_communication_us"] = row.times.exposed * 1e6;
        json["last_step"] = {{"us", row.times.last_step * 1e6},
                             {"kernel_us", row.times.kernel * 1e6},
                             {"copy_us", row.times.copy * 1e6},
                             {"exposed_communication_us", row.times.last_exposed * 1e6}};
        for (const planner::MeshAxis& axis : row.axes)
            json["exposed_by_axis_us"][std::string(axis.name)] = axis.exposed_s * 1e6;
        json["samples_per_second"] = row.samples_per_s;
        if (row.tokens_per_s > 0) json["tokens_per_second"] = row.tokens_per_s;
        json["mfu"] = row.mfu;
        if (row.cost > 0)
            json[row.tokens_per_s > 0 ? "usd_per_million_tokens" : "usd_per_million_samples"] = row.cost;
        if (!row.exposed.operation.empty()) {
            json["most_exposed"] = {{"operation", row.exposed.operation},
                                    {"phase", row.exposed.phase},
                                    {"us", row.exposed.seconds * 1e6},
                                    {"unit", row.exposed.unit},
                                    {"unit_us", row.exposed.unit_s * 1e6}};
        }
    }
    json["front"] = row.front;
    json["tied"] = row.tied;
    json["changes"] = row.changes;
    if (row.beaten_by != 0) json["beaten_by"] = row.beaten_by;
    if (row.same_as != 0) json["same_as"] = row.same_as;
    json["why"] = planner::why(row, rows);
    return json;
}

}  // namespace

std::string plan_json(const PlanResult& result, const planner::Anatomy* anatomy) {
    nlohmann::ordered_json json;
    json["cluster"] = result.cluster;
    json["device"] = result.device;
    json["limit_of"] = result.limit_of;
    json["configurations"] = result.rows.size();
    for (const Outcome outcome :
         {Outcome::fits, Outcome::too_large, Outcome::impossible, Outcome::not_run, Outcome::excluded})
        json[std::string(planner::name(outcome))] = planner::count(result.rows, outcome);
    json["complete"] = result.complete;
    json["seconds"] = result.seconds;
    const Row* best = planner::best(result.rows);
    const Row* fastest = planner::fastest(result.rows);
    json["best"] = best ? nlohmann::ordered_json(best->number) : nlohmann::ordered_json(nullptr);
    json["fastest"] = fastest ? nlohmann::ordered_json(fastest->number) : nlohmann::ordered_json(nullptr);
    json["ties"] = nlohmann::ordered_json::array();
    for (const Row* row : planner::ties(result.rows)) json["ties"].push_back(row->number);
    json["front"] = nlohmann::ordered_json::array();
    std::vector<const Row*> front;
    for (const Row& row : result.rows)
        if (row.front) front.push_back(&row);
    std::sort(front.begin(), front.end(), planner::before);
    for (const Row* row : front) json["front"].push_back(row->number);
    if (best) {
        for (const planner::Rival& rival : planner::rivals_of(*best, result.rows))
            json["reasons"].push_back(
                {{"mesh", rival.mesh}, {"row", rival.row->number}, {"loses", rival.loses}});
    }
    json["rows"] = nlohmann::ordered_json::array();
    for (const Row& row : result.rows) json["rows"].push_back(row_json(result.rows, row));
    if (!anatomy) return traces::schema::dump_json(json) + "\n";
    nlohmann::ordered_json& formula = json["anatomy"];
    formula = {{"row", planner::best_or_smallest(result.rows)->number},
               {"stage", anatomy->stage},
               {"devices", anatomy->devices},
               {"offloaded", anatomy->offloaded},
               {"parameters", anatomy->parameters}};
    for (const auto& part : anatomy->parts) {
        nlohmann::ordered_json& own = formula["parts"][part.name];
        if (part.known) own = {{"by_stage", part.bytes}, {"formula", part.here}};
        own["simulated"] = part.simulated;
    }
    return traces::schema::dump_json(json) + "\n";
}

}  // namespace shardscope::trainer::cli
