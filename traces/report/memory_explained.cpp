// What `memory --explain` prints as text: measured values next to predicted ones. The totals below each table
// are the sums of its rows.
#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/analysis/memory/memory_explanation.h"
#include "traces/report/memory_parts.h"
#include "traces/report/print.h"
#include "traces/store/stack_text.h"

namespace shardscope::traces::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownParts = 16;

// Parts that sum to the peak: bytes, MiB, share and, if known, the predicted bytes.
std::string explained_table(std::string_view title, const std::vector<analysis::MemoryPart>& parts,
                            std::size_t width) {
    if (parts.empty()) return {};
    return "\n" + text_of(with_total(parts, {{"name", title},
                                             {"bytes"},
                                             {"mb"},
                                             {"share"},
                                             {"predicted_bytes", "Predicted (bytes)"},
                                             {"predicted_mb", "(MiB)"},
                                             {"difference_bytes", "Difference (bytes)"},
                                             {"difference_mb", "(MiB)"},
                                             {"difference_percent", "(%)"}}),
                          width);
}

// --- the moment ----------------------------------------------------------------------------------------

constexpr int kShownFrames = 6;

std::string moment_line(const analysis::RankMemory& rank, const analysis::PeakMoment& moment,
                        std::size_t width) {
    std::string line = fmt::format("Rank {}: peak {} MiB ({} bytes) at {} ms", rank.rank, mb(rank.peak_bytes),
                                   store::grouped(rank.peak_bytes), milliseconds(rank.peak_time_ns));
    if (moment.step) line += fmt::format(", in step {}", *moment.step);
    if (moment.phase != schema::Phase::none) line += fmt::format(", {}", name(moment.phase));
    if (moment.bytes > 0) {
        line += fmt::format("; reached by allocating {} MiB", mb(moment.bytes));
        if (!moment.buffer.empty()) line += fmt::format(" for \"{}\"", printable(moment.buffer));
        if (!moment.annotation.empty()) line += fmt::format(" under {}", printable(moment.annotation));
        std::string owner;
        if (!moment.unit.empty()) owner += "unit " + printable(moment.unit);
        if (!moment.module.empty()) {
            owner += (owner.empty() ? "module " : ", module ") + printable(moment.module);
        }
        if (!owner.empty()) line += " (" + owner + ")";
    }
    line = paragraph(line, width);
    // The innermost Python frames, enough to find the place in the program.
    std::string_view rest = moment.stack;
    for (int shown = 0; shown < kShownFrames && !rest.empty();) {
        const std::size_t end = rest.find('\n');
        const std::string_view frame = rest.substr(0, end);
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
        if (frame.find(".py:") == std::string_view::npos) continue;
        line += fmt::format("    {}\n", shortened(store::short_frame(frame), 100));
        ++shown;
    }
    return line;
}

std::string prediction_line(const analysis::RankMemory& rank, std::size_t width) {
    if (rank.predicted_peak_bytes < 0) return "No prediction of the memory account is stored.\n";
    std::string line = fmt::format("Predicted by the memory account: {} MiB ({} bytes)",
                                   mb(rank.predicted_peak_bytes), store::grouped(rank.predicted_peak_bytes));
    if (!rank.prediction_applies && rank.predicted_of_steps >= 0) {
        line =
            fmt::format(
                "Predicted by the memory account for the steps shown: {} MiB ({} bytes); {} MiB ({} bytes)",
                mb(rank.predicted_of_steps), store::grouped(rank.predicted_of_steps),
                mb(rank.predicted_peak_bytes), store::grouped(rank.predicted_peak_bytes)) +
            since_step(rank);
    }
    if (!rank.predicted_where.empty()) line += fmt::format(", in {}", printable(rank.predicted_where));
    if (!rank.prediction_applies) {
        if (rank.predicted_of_steps < 0)
            line += "; of the whole run, whose peak may be outside the current selection";
    } else if (!rank.units.empty() && !rank.units.front().predicted) {
        line += "; stored by category only";
    }
    return paragraph(line, width);
}

// --- steps ---------------------------------------------------------------------------------------------

bool alike(const analysis::StepMemory& a, const analysis::StepMemory& b) {
    return a.peak_bytes == b.peak_bytes && a.active_bytes == b.active_bytes &&
           a.reserved_bytes == b.reserved_bytes && a.predicted == b.predicted && a.growths == b.growths;
}

// One row per series of consecutive steps that are alike.
std::string step_table(const std::vector<analysis::StepMemory>& steps, std::size_t width) {
    if (steps.empty()) return {};
    std::vector<analysis::MemoryPart> parts;
    std::vector<const analysis::StepMemory*> firsts;
    for (std::size_t i = 0, next = 0; i < steps.size(); i = next) {
        for (next = i + 1; next < steps.size() && alike(steps[i], steps[next]);) ++next;
        parts.push_back(steps[i].part(next == i + 1
                                          ? fmt::format("{}", steps[i].step)
                                          : fmt::format("{} to {}", steps[i].step, steps[next - 1].step)));
        firsts.push_back(&steps[i]);
    }
    analysis::ResultTable table = parts_table(parts, {{"name", "By step"},
                                                      {"bytes", "Peak allocated (bytes)"},
                                                      {"mb", "(MiB)"},
                                                      {"predicted_bytes", "Predicted (bytes)"},
                                                      {"predicted_mb", "(MiB)"},
                                                      {"difference_bytes", "Difference (bytes)"},
                                                      {"difference_mb", "(MiB)"},
                                                      {"difference_percent", "(%)"}});
    // Inserts a column at index `at` if any step has a value for it.
    const auto add = [&](std::size_t at, const analysis::ResultColumn& column, auto member) {
        std::vector<store::Cell> cells;
        cells.reserve(firsts.size());
        for (const analysis::StepMemory* step : firsts) cells.push_back(analysis::to_cell(step->*member));
        const auto known = [](const store::Cell& cell) {
            return !std::holds_alternative<std::monostate>(cell);
        };
        if (std::none_of(cells.begin(), cells.end(), known)) return false;
        table.columns.insert(table.columns.begin() + static_cast<std::ptrdiff_t>(at), column);
        for (std::size_t r = 0; r < cells.size(); ++r)
            table.rows[r].insert(table.rows[r].begin() + static_cast<std::ptrdiff_t>(at), cells[r]);
        return true;
    };
    const std::size_t measured = 3;
    const bool active =
        add(measured, {"active", "Active", analysis::Unit::bytes}, &analysis::StepMemory::active_bytes);
    add(measured + (active ? 1 : 0), {"reserved", "Reserved", analysis::Unit::bytes},
        &analysis::StepMemory::reserved_bytes);
    add(table.columns.size(), {"growths", "Pool grew (times)", analysis::Unit::count},
        &analysis::StepMemory::growths);
    return "\n" + text_of(table, width);
}

// --- the pool ------------------------------------------------------------------------------------------

std::string pool_text(const analysis::RankMemory& rank, const analysis::PoolMemory& pool, bool has_steps,
                      std::size_t width) {
    std::vector<analysis::MemoryPart> parts;
    const auto add = [&](std::string name, std::int64_t bytes) { parts.push_back({std::move(name), bytes}); };
    if (rank.until_last_use) {
        if (pool.allocated_peak_bytes)
            add("allocated, peak (in the host's order)", *pool.allocated_peak_bytes);
        add("active, peak (until the last stream used it)", rank.peak_bytes);
    } else {
        add("allocated, peak (in the host's order)", rank.peak_bytes);
    }
    if (pool.active_peak_bytes) add("active, peak (until the last stream used it)", *pool.active_peak_bytes);
    if (pool.reserved_peak_bytes) {
        add("reserved, peak (held by the pool)", *pool.reserved_peak_bytes);
        const char* counted = rank.until_last_use ? "active" : "allocated";
        add(fmt::format("reserved when {} is at its peak", counted), pool.reserved_at_peak);
        add(fmt::format("  of which cached (not {})", counted), pool.cached_at_peak);
        add(fmt::format("most {} while reserved is at its peak", counted), pool.allocated_at_reserved_peak);
        if (pool.active_at_reserved_peak)
            add("most active while reserved is at its peak", *pool.active_at_reserved_peak);
    }
    std::string text =
        "\n" +
        text_of(parts_table(parts, {{"name", "Reserved against allocated"}, {"bytes"}, {"mb"}}), width);
    if (pool.reserved_peak_bytes) {
        text += fmt::format("Fragmentation: {} % of the reserved peak was never {} at the same time",
                            store::grouped(pool.fragmentation_percent, 2),
                            rank.until_last_use ? "active" : "allocated");
        if (pool.active_at_reserved_peak) {
            const std::int64_t never = *pool.reserved_peak_bytes - *pool.active_at_reserved_peak;
            text += fmt::format(", {} % never active", percent(never, *pool.reserved_peak_bytes));
        }
        text += ".\n";
    } else {
        text += "Reserved memory was not recorded.\n";
    }
    text += fragmentation_line(rank);
    text +=
        fmt::format("The pool grew {} (cudaMalloc){}.\n", store::counted(pool.growths, "time", "times"),
                    has_steps ? fmt::format(", {} of them in steps", store::grouped(pool.growths_in_steps))
                              : std::string());
    return text;
}

Json optional_json(const std::optional<std::int64_t>& value) {
    return value ? Json(*value) : Json(nullptr);
}

Json parts_json(const std::vector<analysis::MemoryPart>& parts) {
    return json_of(result_table(analysis::memory_part_fields(), parts));
}

// All holders, each as a part.
std::vector<analysis::MemoryPart> all_parts(const analysis::RankMemory& rank,
                                            const std::vector<analysis::MemoryHolder>& holders) {
    return holder_parts(holders, rank.peak_bytes, holders.size());
}

Json moment_json(const analysis::PeakMoment& moment) {
    return {{"step", optional_json(moment.step)},
            {"phase", std::string(name(moment.phase))},
            {"buffer", moment.buffer},
            {"unit", moment.unit},
            {"module", moment.module},
            {"annotation", moment.annotation},
            {"stack", moment.stack},
            {"bytes", moment.bytes}};
}

Json pool_json(const analysis::RankMemory& rank, const analysis::PoolMemory& pool) {
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

std::string table_text(const analysis::MemoryExplanation& explanation, std::size_t width) {
    if (explanation.ranks.empty()) return std::string(kNothingSelected);
    const bool active =
        std::any_of(explanation.ranks.begin(), explanation.ranks.end(),
                    [](const analysis::RankExplanation& r) { return r.memory.until_last_use; });
    std::string text =
        paragraph(counted_title(active) + "; difference = measured - predicted, \"=\" the same", width);
    for (const analysis::RankExplanation& explained : explanation.ranks) {
        const analysis::RankMemory& rank = explained.memory;
        if (rank.is_empty()) {
            text += fmt::format("\nRank {}: nothing allocated here, or allocations were not recorded\n",
                                rank.rank);
            continue;
        }
        text += '\n' + moment_line(rank, explained.moment, width) + prediction_line(rank, width) +
                spaces_and_failures(rank) + growth_text(rank, width);
        text += explained_table("By category", category_parts(rank), width);
        const auto add = [&](std::string_view title, const std::vector<analysis::MemoryHolder>& holders) {
            text += explained_table(title, holder_parts(holders, rank.peak_bytes, kShownParts), width);
        };
        // Annotations and stacks come from other tools' traces, which have no units: tables that would name
        // nothing are omitted.
        const bool foreign = !rank.annotations.empty() || !rank.stacks.empty();
        if (!foreign || names_somebody(rank.units)) add("By unit", rank.units);
        if (!foreign || names_somebody(rank.modules)) add("By module", rank.modules);
        if (!foreign || names_somebody(rank.buffers)) add("By buffer", rank.buffers);
        add("By annotation", rank.annotations);
        add("By frame of the program", rank.stacks);
        text += step_table(explained.steps, width);
        text += pool_text(rank, explained.pool, !explained.steps.empty(), width);
    }
    return text;
}

std::string json_text(const analysis::MemoryExplanation& explanation) {
    return ranks_line(explanation.ranks, [](const analysis::RankExplanation& rank) {
        Json json = memory_json(rank.memory);
        json["space"] = name(schema::MemorySpace::device);
        json["prediction_applies"] = rank.memory.is_predicted();
        json["moment"] = moment_json(rank.moment);
        json["categories"] = parts_json(category_parts(rank.memory));
        json["units"] = parts_json(all_parts(rank.memory, rank.memory.units));
        json["modules"] = parts_json(all_parts(rank.memory, rank.memory.modules));
        json["buffers"] = parts_json(all_parts(rank.memory, rank.memory.buffers));
        Json& steps = json["steps"] = Json::array();
        for (const analysis::StepMemory& step : rank.steps) {
            Json row = with({{"step", step.step}},
                            json_row(analysis::memory_part_fields().subspan(1), step.part({})));
            row["active_bytes"] = optional_json(step.active_bytes);
            row["reserved_bytes"] = optional_json(step.reserved_bytes);
            row["growths"] = step.growths;
            steps.push_back(std::move(row));
        }
        json["pool"] = pool_json(rank.memory, rank.pool);
        return json;
    });
}

std::string csv_text(const analysis::MemoryExplanation& explanation) {
    analysis::ResultTable table =
        empty_table(analysis::memory_part_fields(), {analysis::kRankColumn, {.key = "by"}});
    for (const std::string_view key : {"active_bytes", "reserved_bytes", "growths", "fragmentation_percent"})
        table.columns.push_back({.key = key});
    for (const analysis::RankExplanation& explained : explanation.ranks) {
        const analysis::RankMemory& rank = explained.memory;
        const auto add = [&](std::string_view by, const analysis::MemoryPart& part,
                             const std::vector<store::Cell>& more = {}) {
            std::vector<store::Cell>& row = table.rows.emplace_back();
            row = {analysis::to_cell(rank.rank), analysis::to_cell(by)};
            add_cells(row, analysis::memory_part_fields(), part);
            row.insert(row.end(), more.begin(), more.end());
            row.resize(table.columns.size());
        };
        const analysis::PoolMemory& pool = explained.pool;
        analysis::MemoryPart peak{"total", rank.peak_bytes, rank.peak_bytes};
        if (rank.is_predicted()) peak.predicted = rank.predicted_peak_bytes;
        add("peak", peak,
            {analysis::to_cell(pool.active_peak_bytes), analysis::to_cell(pool.reserved_peak_bytes),
             pool.growths,
             pool.reserved_peak_bytes ? store::Cell(pool.fragmentation_percent) : store::Cell()});
        for (const analysis::MemoryPart& part : category_parts(rank)) add("category", part);
        for (const analysis::HolderList& list : analysis::kHolderLists) {
            for (const analysis::MemoryPart& part : all_parts(rank, rank.*list.holders)) add(list.by, part);
        }
        for (const analysis::StepMemory& step : explained.steps) {
            add("step", step.part(std::to_string(step.step)),
                {analysis::to_cell(step.active_bytes), analysis::to_cell(step.reserved_bytes), step.growths});
        }
        if (!pool.reserved_peak_bytes) continue;
        add("pool", {"reserved_at_peak", pool.reserved_at_peak});
        add("pool", {"cached_at_peak", pool.cached_at_peak});
        add("pool", {"allocated_at_reserved_peak", pool.allocated_at_reserved_peak});
        if (pool.active_at_reserved_peak)
            add("pool", {"active_at_reserved_peak", *pool.active_at_reserved_peak});
    }
    return csv_of(table);
}

}  // namespace

std::string render(const analysis::MemoryExplanation& result, Format format, std::size_t width) {
    return render_as(result, format, width, table_text, json_text, csv_text);
}

}  // namespace shardscope::traces::report
