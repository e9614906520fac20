// Results as JSON; keys that programs rely on are never renamed. Times in us unless the key says otherwise.
#include <nlohmann/json.hpp>

#include "traces/report/formats.h"
#include "traces/report/hosts.h"
#include "traces/report/json_parts.h"
#include "traces/schema/json_text.h"

namespace shardscope::traces {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) {
    return dump_json(json) + "\n";
}

template <typename Ranks, typename ToJson>
std::string ranks_text(const Ranks& ranks, ToJson to_json) {
    Json all = Json::array();
    for (const auto& rank : ranks) all.push_back(to_json(rank));
    return text_of({{"ranks", std::move(all)}});
}

Json bytes_by_category(const CategoryBytes& bytes) {
    Json json = Json::object();
    for (std::size_t c = 0; c < bytes.size(); ++c) json[std::string(kMemoryCategoryNames[c])] = bytes[c];
    return json;
}

Json holders(const std::vector<MemoryHolder>& all) {
    Json json = Json::array();
    for (const MemoryHolder& holder : all) {
        json.push_back({{"name", holder.name}, {"bytes", holder.bytes}});
        if (!holder.stack.empty()) json.back()["stack"] = holder.stack;
    }
    return json;
}

Json memory_json(const RankMemory& rank) {
    Json json = {{"rank", rank.rank},
                 {"peak_bytes", rank.peak_bytes},
                 {"peak_time_ns", rank.peak_time_ns},
                 {"at_peak", bytes_by_category(rank.at_peak)},
                 {"reserved_bytes", rank.reserved_bytes},
                 {"predicted_peak_bytes", nullptr},
                 {"predicted_of_steps_bytes", nullptr},
                 {"units", holders(rank.units)},
                 {"modules", holders(rank.modules)},
                 {"buffers", holders(rank.buffers)},
                 {"annotations", holders(rank.annotations)},
                 {"stacks", holders(rank.stacks)},
                 {"devices", rank.devices},
                 {"growth", nullptr},
                 {"counted", rank.until_last_use ? "active" : "allocated"},
                 {"fragmentation", nullptr},
                 {"other_spaces", Json::array()},
                 {"failures", Json::array()}};
    if (rank.fragmentation) {
        const Fragmentation& f = *rank.fragmentation;
        json["fragmentation"] = {{"held_bytes", f.held_bytes},           {"segments", f.segments},
                                 {"free_bytes", f.free_bytes},           {"free_blocks", f.free_blocks},
                                 {"largest_free_bytes", f.largest_free}, {"percent", f.percent()}};
    }
    if (rank.growth) {
        const MemoryGrowth& g = *rank.growth;
        json["growth"] = {{"category", name(MemoryCategory::communication)},
                          {"steps", g.steps},
                          {"first_bytes", g.first_bytes},
                          {"last_bytes", g.last_bytes},
                          {"host_library", g.host_library.empty() ? Json(nullptr) : Json(g.host_library)}};
    }
    for (const SpacePeak& space : rank.other_spaces) {
        json["other_spaces"].push_back({{"space", std::string(name(space.space))},
                                        {"peak_bytes", space.peak_bytes},
                                        {"peak_time_ns", space.peak_time_ns}});
    }
    for (const MemoryFailure& failure : rank.failures)
        json["failures"].push_back({{"time_ns", failure.time_ns}, {"text", failure.text}});
    if (rank.predicted_peak_bytes >= 0) {
        json["predicted_peak_bytes"] = rank.predicted_peak_bytes;
        json["predicted_at_peak"] = bytes_by_category(rank.predicted_at_peak);
        json["predicted_where"] = rank.predicted_where;
        if (rank.predicted_of_steps >= 0) json["predicted_of_steps_bytes"] = rank.predicted_of_steps;
        json["predicted_step"] = rank.predicted_step ? Json(*rank.predicted_step) : Json(nullptr);
    }
    return json;
}

Json optional_json(const std::optional<std::int64_t>& value) {
    return value ? Json(*value) : Json(nullptr);
}

// Measured beside predicted; null where nothing is predicted, the percent also where that is 0.
Json explained(Json row, std::int64_t bytes, const std::optional<std::int64_t>& predicted) {
    row["bytes"] = bytes;
    row["predicted_bytes"] = optional_json(predicted);
    row["difference_bytes"] = predicted ? Json(bytes - *predicted) : Json(nullptr);
    row["difference_percent"] =
        predicted.value_or(0) != 0 ? Json(difference_percent(bytes, *predicted)) : Json(nullptr);
    return row;
}

Json explained_holders(const std::vector<MemoryHolder>& all) {
    Json json = Json::array();
    for (const MemoryHolder& h : all) json.push_back(explained({{"name", h.name}}, h.bytes, h.predicted));
    return json;
}

Json explained_categories(const RankMemory& rank) {
    const bool predicted = rank.predicted_peak_bytes >= 0 && rank.prediction_applies;
    Json json = Json::array();
    for (std::size_t c = 0; c < rank.at_peak.size(); ++c) {
        json.push_back(explained({{"name", std::string(kMemoryCategoryNames[c])}}, rank.at_peak[c],
                                 predicted ? std::optional(rank.predicted_at_peak[c]) : std::nullopt));
    }
    return json;
}

Json moment_json(const PeakMoment& moment) {
    return {{"step", optional_json(moment.step)},
            {"phase", std::string(name(moment.phase))},
            {"buffer", moment.buffer},
            {"unit", moment.unit},
            {"module", moment.module},
            {"annotation", moment.annotation},
            {"stack", moment.stack},
            {"bytes", moment.bytes}};
}

Json pool_json(const RankMemory& rank, const PoolMemory& pool) {
    const bool known = pool.reserved_peak_bytes.has_value();
    const auto where_known = [&](auto value) { return known ? Json(value) : Json(nullptr); };
    return {{"allocated_peak_bytes",
             rank.until_last_use ? optional_json(pool.allocated_peak_bytes) : Json(rank.peak_bytes)},
            {"active_peak_bytes",
             rank.until_last_use ? Json(rank.peak_bytes) : optional_json(pool.active_peak_bytes)},
            {"reserved_peak_bytes", optional_json(pool.reserved_peak_bytes)},
            {"reserved_at_peak_bytes", where_known(pool.reserved_at_peak)},
            {"cached_at_peak_bytes", where_known(pool.cached_at_peak)},
            {"allocated_at_reserved_peak_bytes", where_known(pool.allocated_at_reserved_peak)},
            {"active_at_reserved_peak_bytes", optional_json(pool.active_at_reserved_peak)},
            {"fragmentation_percent", where_known(pool.fragmentation_percent)},
            {"growths", pool.growths},
            {"growths_in_steps", pool.growths_in_steps}};
}

Json module_json(const ModuleNode& node) {
    Json children = Json::array();
    for (const ModuleNode& child : node.children) children.push_back(module_json(child));
    return {{"name", node.name},
            {"occurrences", node.occurrences},
            {"operators", node.operators},
            {"host_us", node.host_us},
            {"host_self_us", node.host_self_us},
            {"device_us", node.device_us},
            {"device_self_us", node.device_self_us},
            {"device_busy_us", node.device_busy_us},
            {"backward_host_us", node.backward_host_us},
            {"backward_device_us", node.backward_device_us},
            {"recomputations", node.recomputations},
            {"recompute_host_us", node.recompute_host_us},
            {"recompute_device_us", node.recompute_device_us},
            {"parameters", node.parameters},
            {"gathered_bytes", node.gathered_bytes},
            {"reduced_bytes", node.reduced_bytes},
            {"unshard_wait_us", node.unshard_wait_us},
            {"peak_bytes", node.peak_bytes},
            {"children", std::move(children)}};
}

Json operation_json(const OperationStats& o) {
    return {{"name", std::string(name(o.operation))},
            {"count", o.count},
            {"bytes", known_or_null(o.bytes)},
            {"us", o.us},
            {"transfer_us", o.transfer_us},
            {"waiting_us", o.waiting_us},
            {"exposed_us", o.on_host ? Json(nullptr) : Json(o.exposed_us)},
            {"on", o.on_host ? "host" : "device"},
            {"algbw_gbps", known_or_null(o.algbw_gbps)},
            {"busbw_gbps", known_or_null(o.busbw_gbps)},
            {"count_per_step", o.count_per_step},
            {"bytes_per_step", o.bytes > 0 ? Json(o.bytes_per_step) : Json(nullptr)},
            {"us_per_step", o.us_per_step}};
}

Json operations_json(const std::vector<OperationStats>& operations) {
    Json json = Json::array();
    for (const OperationStats& o : operations) json.push_back(operation_json(o));
    return json;
}

Json cell_json(const Cell& cell) {
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) return *whole;
    if (const auto* real = std::get_if<double>(&cell)) return *real;
    if (const auto* text = std::get_if<std::string>(&cell)) return *text;
    return nullptr;
}

Json pairs(const std::vector<std::pair<std::string, std::string>>& all) {
    Json json = Json::object();
    for (const auto& [key, value] : all) json[key] = value;
    return json;
}

}  // namespace

std::string json_text(const ExecutionSummary& summary) {
    return ranks_text(summary.ranks, [&](const RankSummary& rank) {
        Json categories = Json::object();
        for (int c = 0; c < kTimeCategories; ++c) {
            if (!summary.has(static_cast<TimeCategory>(c))) continue;
            const auto at = static_cast<std::size_t>(c);
            const bool known = rank.knows(static_cast<TimeCategory>(c));
            categories[std::string(kTimeCategoryNames[at])] = {
                {"us", known ? Json(rank.average_us[at]) : Json(nullptr)},
                {"percent", known ? Json(rank.percent(static_cast<TimeCategory>(c))) : Json(nullptr)}};
        }
        Json json = {{"rank", rank.rank},
                     {"steps", rank.steps.size()},
                     {"cut_steps", rank.cut_steps},
                     {"communication_folded", !summary.has(TimeCategory::communication)},
                     {"stepped", summary.stepped},
                     {"average_step_us", rank.average_step_us},
                     {"median_step_us", rank.median_step_us},
                     {"average_host_step_us", rank.average_host_step_us},
                     {"categories", std::move(categories)}};
        Json per_step = Json::array();
        for (const StepSummary& step : rank.steps) {
            Json ns = Json::object();
            for (std::size_t c = 0; c < step.ns.size(); ++c)
                if (summary.has(static_cast<TimeCategory>(c)))
                    ns[std::string(kTimeCategoryNames[c])] =
                        rank.knows(static_cast<TimeCategory>(c)) ? Json(step.ns[c]) : Json(nullptr);
            per_step.push_back({{"step", step.number},
                                {"start_ns", step.window_start},
                                {"end_ns", step.window_end},
                                {"host_ns", step.host_ns},
                                {"categories_ns", std::move(ns)}});
        }
        json["per_step"] = std::move(per_step);
        return json;
    });
}

std::string json_text(const ModuleView& view) {
    return ranks_text(view.ranks, [](const RankModules& rank) {
        Json modules = Json::array();
        for (const ModuleNode& node : rank.modules) modules.push_back(module_json(node));
        return Json{{"rank", rank.rank}, {"modules", std::move(modules)}};
    });
}

std::string json_text(const MemoryReport& report) {
    return ranks_text(report.ranks, [&](const RankMemory& rank) {
        Json json = memory_json(rank);
        json["space"] = name(report.space);
        return json;
    });
}

std::string json_text(const MemoryExplanation& explanation) {
    return ranks_text(explanation.ranks, [](const RankExplanation& rank) {
        Json json = memory_json(rank.memory);
        json["space"] = name(MemorySpace::device);
        json["prediction_applies"] = rank.memory.predicted_peak_bytes >= 0 && rank.memory.prediction_applies;
        json["moment"] = moment_json(rank.moment);
        json["categories"] = explained_categories(rank.memory);
        json["units"] = explained_holders(rank.memory.units);
        json["modules"] = explained_holders(rank.memory.modules);
        json["buffers"] = explained_holders(rank.memory.buffers);
        Json steps = Json::array();
        for (const StepMemory& step : rank.steps) {
            Json row = explained({{"step", step.step}}, step.peak_bytes, step.predicted);
            row["active_bytes"] = optional_json(step.active_bytes);
            row["reserved_bytes"] = optional_json(step.reserved_bytes);
            row["growths"] = step.growths;
            steps.push_back(std::move(row));
        }
        json["steps"] = std::move(steps);
        json["pool"] = pool_json(rank.memory, rank.pool);
        return json;
    });
}

std::string json_text(const CollectivesReport& report) {
    return ranks_text(report.ranks, [](const RankCollectives& rank) {
        return Json{{"rank", rank.rank},
                    {"operations", operations_json(rank.operations)},
                    {"unmatched", rank.unmatched}};
    });
}

std::string json_text(const Comparison& comparison) {
    Json runs = Json::array();
    for (const RunColumn& run : comparison.runs) {
        Json categories = Json::object();
        for (std::size_t c = 0; c < run.categories_us.size(); ++c) {
            categories[std::string(kTimeCategoryNames[c])] = {{"us", run.categories_us[c]},
                                                              {"median_us", run.categories_spread[c].median},
                                                              {"spread_us", run.categories_spread[c].spread}};
        }
        Json json = {{"file", run.file},
                     {"config", pairs(run.config)},
                     {"ranks", run.ranks},
                     {"stepped", run.stepped},
                     {"steps", run.steps},
                     {"average_step_us", run.average_step_us},
                     {"median_step_us", run.median_step_us},
                     {"spread_step_us", run.spread_step_us},
                     {"categories", std::move(categories)},
                     {"space", name(run.space)},
                     {"peak_bytes", known_or_null(run.peak_bytes)},
                     {"at_peak", bytes_by_category(run.at_peak)},
                     {"predicted_peak_bytes", nullptr},
                     {"communication_us", run.communication_us},
                     {"communication_spread_us", run.communication_spread.spread},
                     {"exposed_communication_us", run.exposed_communication_us},
                     {"exposed_communication_spread_us", run.exposed_communication_spread.spread},
                     {"memcpy_us", run.memcpy_us},
                     {"memcpy_spread_us", run.memcpy_spread.spread},
                     {"device_busy_percent", run.device_busy_percent},
                     {"device_busy_spread_percent", run.device_busy_spread.spread},
                     {"collectives", operations_json(run.collectives)}};
        if (run.predicted_peak_bytes >= 0) json["predicted_peak_bytes"] = run.predicted_peak_bytes;
        if (&run != &comparison.runs.front()) {
            json["step_inside_spread_of_first"] = inside_spread(comparison.runs.front(), run);
        }
        runs.push_back(std::move(json));
    }
    return text_of({{"runs", std::move(runs)}});
}

std::string json_text(const TraceInfo& info) {
    Json counts = Json::object();
    for (const auto& [what, count] : info.counts) counts[what] = count;
    Json noted = Json::array();
    for (const TraceInfo::Noted& note : info.noted) {
        noted.push_back({{"time_ms", note.time_ms}, {"text", note.text}});
    }
    return text_of({{"file", info.file},
                    {"schema_version", info.schema_version},
                    {"ended", info.ended},
                    {"dropped", info.dropped},
                    {"started_utc", info.started_utc},
                    {"duration_ms", info.duration_ms},
                    {"ranks", info.ranks},
                    {"steps", info.steps},
                    {"device", info.device.empty() ? Json() : Json(info.device)},
                    {"device_note", info.device_note},
                    {"hosts", places_json(info.hosts)},
                    {"stopped", stopped_json(info.stopped)},
                    {"counts", std::move(counts)},
                    {"config", pairs(info.config)},
                    {"noted", std::move(noted)}});
}

std::string json_text(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows) {
    Json names = Json::array();
    for (const Column& column : columns) names.push_back(column.name);
    Json all = Json::array();
    for (const std::vector<Cell>& row : rows) {
        Json cells = Json::array();
        for (const Cell& cell : row) cells.push_back(cell_json(cell));
        all.push_back(std::move(cells));
    }
    return text_of({{"columns", std::move(names)}, {"rows", std::move(all)}});
}

std::string check_json(const std::string& file, const std::vector<std::string>& faults,
                       const std::vector<std::string>& notes) {
    return text_of({{"file", file}, {"whole", faults.empty()}, {"faults", faults}, {"notes", notes}});
}

}  // namespace shardscope::traces
