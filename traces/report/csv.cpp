// Results as CSV (RFC 4180, but lines end with one newline): one header line, full precision.
#include <cctype>
#include <cmath>

#include <fmt/core.h>

#include "traces/report/formats.h"

namespace shardscope::traces {
namespace {

using Cells = std::vector<Cell>;
using Rows = std::vector<Cells>;

std::string quoted(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"') result += '"';
        result += c;
    }
    return result + '"';
}

std::string csv_cell(const Cell& cell) {
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) return fmt::format("{}", *whole);
    // What is not known is not a number.
    if (const auto* real = std::get_if<double>(&cell))
        return std::isnan(*real) ? "" : fmt::format("{}", *real);
    if (const auto* text = std::get_if<std::string>(&cell)) return quoted(*text);
    return {};
}

Cell whole(std::int64_t value) {
    return value;
}
Cell text(std::string_view value) {
    return std::string(value);
}

void add_modules(int rank, const std::string& above, const std::vector<ModuleNode>& nodes, Rows& rows) {
    for (const ModuleNode& n : nodes) {
        const std::string path = above.empty() ? n.name : above + '/' + n.name;
        rows.push_back({whole(rank),
                        path,
                        n.name,
                        n.occurrences,
                        n.operators,
                        n.host_us,
                        n.host_self_us,
                        n.device_us,
                        n.device_self_us,
                        n.device_busy_us,
                        n.backward_host_us,
                        n.backward_device_us,
                        n.parameters,
                        n.gathered_bytes,
                        n.reduced_bytes,
                        n.unshard_wait_us,
                        n.peak_bytes,
                        n.recomputations,
                        n.recompute_host_us,
                        n.recompute_device_us});
        add_modules(rank, path, n.children, rows);
    }
}

// "CPU Exec" -> "cpu_exec".
std::string snake_case(std::string_view name) {
    std::string result;
    for (const char c : name)
        result += c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return result;
}

std::vector<Column> columns(std::initializer_list<const char*> names) {
    std::vector<Column> all;
    for (const char* name : names) all.push_back({name});
    return all;
}

}  // namespace

std::string csv_text(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows) {
    std::string result;
    const auto add_line = [&](const auto& cells, const auto& text_of) {
        for (std::size_t i = 0; i < cells.size(); ++i) {
            if (i > 0) result += ',';
            result += text_of(cells[i]);
        }
        result += '\n';
    };
    add_line(columns, [](const Column& column) { return quoted(column.name); });
    for (const std::vector<Cell>& row : rows) add_line(row, csv_cell);
    return result;
}

std::string csv_text(const ExecutionSummary& summary) {
    Rows rows;
    for (const RankSummary& rank : summary.ranks) {
        const auto steps = static_cast<std::int64_t>(rank.steps.size());
        rows.push_back({whole(rank.rank), steps, text("Average Step Time"), rank.average_step_us,
                        rank.average_step_us > 0 ? 100.0 : 0.0});
        for (int c = 0; c < kTimeCategories; ++c) {
            if (!summary.has(static_cast<TimeCategory>(c))) continue;
            const auto at = static_cast<std::size_t>(c);
            const bool known = rank.knows(static_cast<TimeCategory>(c));
            rows.push_back({whole(rank.rank), steps, text(kTimeCategoryNames[at]),
                            known ? Cell(rank.average_us[at]) : Cell(),
                            known ? Cell(rank.percent(static_cast<TimeCategory>(c))) : Cell()});
        }
    }
    return csv_text(columns({"rank", "steps", "category", "us", "percent"}), rows);
}

std::string csv_text(const ModuleView& view) {
    Rows rows;
    for (const RankModules& rank : view.ranks) add_modules(rank.rank, "", rank.modules, rows);
    return csv_text(columns({"rank",
                             "path",
                             "name",
                             "occurrences",
                             "operators",
                             "host_us",
                             "host_self_us",
                             "device_us",
                             "device_self_us",
                             "device_busy_us",
                             "backward_host_us",
                             "backward_device_us",
                             "parameters",
                             "gathered_bytes",
                             "reduced_bytes",
                             "unshard_wait_us",
                             "peak_bytes",
                             "recomputations",
                             "recompute_host_us",
                             "recompute_device_us"}),
                    rows);
}

std::string csv_text(const MemoryReport& report) {
    Rows rows;
    for (const RankMemory& rank : report.ranks) {
        const auto add = [&](const char* by, std::string_view name, std::int64_t bytes, Cell predicted) {
            rows.push_back({whole(rank.rank), text(by), text(name), bytes, std::move(predicted)});
        };
        const bool predicted = rank.predicted_peak_bytes >= 0;
        add("peak", "total", rank.peak_bytes, predicted ? whole(rank.predicted_peak_bytes) : Cell());
        for (std::size_t c = 0; c < rank.at_peak.size(); ++c) {
            add("category", kMemoryCategoryNames[c], rank.at_peak[c],
                predicted ? whole(rank.predicted_at_peak[c]) : Cell());
        }
        for (const MemoryHolder& holder : rank.units) add("unit", holder.name, holder.bytes, {});
        for (const MemoryHolder& holder : rank.modules) add("module", holder.name, holder.bytes, {});
        for (const MemoryHolder& holder : rank.buffers) add("buffer", holder.name, holder.bytes, {});
        for (const MemoryHolder& holder : rank.annotations) add("annotation", holder.name, holder.bytes, {});
        for (const MemoryHolder& holder : rank.stacks) add("stack", holder.name, holder.bytes, {});
        for (const SpacePeak& space : rank.other_spaces)
            add("space", name(space.space), space.peak_bytes, {});
    }
    return csv_text(columns({"rank", "by", "name", "bytes", "predicted_bytes"}), rows);
}

std::string csv_text(const MemoryExplanation& explanation) {
    Rows rows;
    for (const RankExplanation& explained : explanation.ranks) {
        const RankMemory& rank = explained.memory;
        const auto add = [&](const char* by, std::string_view name, std::int64_t bytes,
                             std::optional<std::int64_t> predicted, Cells more = {}) {
            Cells row = {whole(rank.rank), text(by), text(name), bytes};
            row.resize(7);
            if (predicted) {
                row[4] = *predicted;
                row[5] = bytes - *predicted;
                if (*predicted != 0) row[6] = difference_percent(bytes, *predicted);
            }
            row.insert(row.end(), more.begin(), more.end());
            row.resize(11);
            rows.push_back(std::move(row));
        };
        const auto cell = [](std::optional<std::int64_t> bytes) { return bytes ? Cell(*bytes) : Cell(); };
        const PoolMemory& pool = explained.pool;
        const bool predicted = rank.predicted_peak_bytes >= 0 && rank.prediction_applies;
        const auto where_predicted = [&](std::int64_t bytes) {
            return predicted ? std::optional(bytes) : std::nullopt;
        };
        add("peak", "total", rank.peak_bytes, where_predicted(rank.predicted_peak_bytes),
            {cell(pool.active_peak_bytes), cell(pool.reserved_peak_bytes), pool.growths,
             pool.reserved_peak_bytes ? Cell(pool.fragmentation_percent) : Cell()});
        for (std::size_t c = 0; c < rank.at_peak.size(); ++c) {
            add("category", kMemoryCategoryNames[c], rank.at_peak[c],
                where_predicted(rank.predicted_at_peak[c]));
        }
        for (const auto& [by, holders] : {std::pair("unit", &rank.units),
                                          {"module", &rank.modules},
                                          {"buffer", &rank.buffers},
                                          {"annotation", &rank.annotations},
                                          {"stack", &rank.stacks}}) {
            for (const MemoryHolder& holder : *holders) add(by, holder.name, holder.bytes, holder.predicted);
        }
        for (const StepMemory& step : explained.steps) {
            add("step", std::to_string(step.step), step.peak_bytes, step.predicted,
                {cell(step.active_bytes), cell(step.reserved_bytes), step.growths});
        }
        if (!pool.reserved_peak_bytes) continue;
        add("pool", "reserved_at_peak", pool.reserved_at_peak, {});
        add("pool", "cached_at_peak", pool.cached_at_peak, {});
        add("pool", "allocated_at_reserved_peak", pool.allocated_at_reserved_peak, {});
        if (pool.active_at_reserved_peak) {
            add("pool", "active_at_reserved_peak", *pool.active_at_reserved_peak, {});
        }
    }
    return csv_text(
        columns({"rank", "by", "name", "bytes", "predicted_bytes", "difference_bytes", "difference_percent",
                 "active_bytes", "reserved_bytes", "growths", "fragmentation_percent"}),
        rows);
}

std::string csv_text(const CollectivesReport& report) {
    Rows rows;
    for (const RankCollectives& rank : report.ranks) {
        for (const OperationStats& o : rank.operations) {
            rows.push_back({whole(rank.rank), text(name(o.operation)), o.count, known(o.bytes), o.us,
                            o.transfer_us, o.waiting_us, o.on_host ? Cell() : Cell(o.exposed_us),
                            known(o.algbw_gbps), known(o.busbw_gbps), o.count_per_step,
                            o.bytes > 0 ? Cell(o.bytes_per_step) : Cell(), o.us_per_step});
        }
    }
    return csv_text(
        columns({"rank", "name", "count", "bytes", "us", "transfer_us", "waiting_us", "exposed_us",
                 "algbw_gbps", "busbw_gbps", "count_per_step", "bytes_per_step", "us_per_step"}),
        rows);
}

std::string csv_text(const Comparison& comparison) {
    std::vector<Column> names = columns({"file", "ranks", "steps", "average_step_us", "median_step_us",
                                         "spread_step_us", "peak_bytes", "communication_us",
                                         "exposed_communication_us", "memcpy_us", "device_busy_percent"});
    // "communication" and "memcpy" alone are the whole, those of the split only what nothing before them
    // covers.
    for (const auto category : kTimeCategoryNames) names.push_back({"split_" + snake_case(category) + "_us"});
    for (const auto category : kMemoryCategoryNames)
        names.push_back({fmt::format("at_peak_{}_bytes", category)});
    if (!comparison.runs.empty()) {
        for (const auto& [key, value] : comparison.runs.front().config) names.push_back({key});
    }
    Rows rows;
    for (const RunColumn& run : comparison.runs) {
        Cells row = {text(run.file),
                     whole(run.ranks),
                     run.steps,
                     run.average_step_us,
                     run.median_step_us,
                     run.spread_step_us,
                     Cell(),  // the peak
                     run.communication_us,
                     run.exposed_communication_us,
                     run.memcpy_us,
                     run.device_busy_percent};
        if (run.peak_bytes > 0) row[6] = run.peak_bytes;
        row.insert(row.end(), run.categories_us.begin(), run.categories_us.end());
        row.insert(row.end(), run.at_peak.begin(), run.at_peak.end());
        for (const auto& [key, value] : run.config) row.emplace_back(value);
        rows.push_back(std::move(row));
    }
    return csv_text(names, rows);
}

std::string csv_text(const TraceInfo& info) {
    Rows rows = {{text("file"), info.file},
                 {text("schema_version"), whole(info.schema_version)},
                 {text("ended"), text(info.ended ? "true" : "false")},
                 {text("dropped"), info.dropped},
                 {text("started_utc"), info.started_utc},
                 {text("duration_ms"), info.duration_ms},
                 {text("ranks"), whole(info.ranks)},
                 {text("steps"), info.steps},
                 {text("device"), info.device},
                 {text("device_note"), info.device_note}};
    for (const auto& [what, count] : info.counts) rows.push_back({what, count});
    for (const auto& [key, value] : info.config) rows.push_back({key, value});
    for (const TraceInfo::Noted& note : info.noted) {
        rows.push_back({fmt::format("noted at {:.3f} ms", note.time_ms), note.text});
    }
    return csv_text(columns({"key", "value"}), rows);
}

}  // namespace shardscope::traces
