#include "trainer/cli/sweep_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/text_table.h"
#include "traces/schema/json_text.h"
#include "trainer/cli/footnotes.h"
#include "trainer/cli/json_parts.h"

namespace shardscope::trainer::cli {

namespace {

using traces::report::Align;
using traces::store::grouped;

constexpr std::ptrdiff_t kBesideRate = 4;  // the place after "tokens/s"

std::string megabytes_text(double bytes) {
    return grouped(bytes / (1 << 20), 1);
}

const char* verdict(SweepOutcome outcome) {
    switch (outcome) {
        case SweepOutcome::done:
            return "";
        case SweepOutcome::impossible:
            return "impossible";
        case SweepOutcome::failed:
            return "failed";
        case SweepOutcome::stopped:
            return "stopped";
        case SweepOutcome::not_run:
            return "not run";
    }
    return "";
}

std::string verdict(const SweepRow& row) {
    if (row.diverged_at) return fmt::format("diverged at step {}", *row.diverged_at);
    return verdict(row.outcome);
}

std::string reason(const SweepRow& row) {
    return row.error.empty() ? verdict(row.outcome) : fmt::format("{}: {}", verdict(row.outcome), row.error);
}

std::vector<std::string> forecast_cells(const SweepRow& row) {
    if (!row.forecast) return {"-", "-", "-", "-"};
    return {grouped(row.forecast->peak_bytes), megabytes_text(static_cast<double>(row.forecast->peak_bytes)),
            grouped(row.forecast->collectives),
            megabytes_text(static_cast<double>(row.forecast->collective_bytes))};
}

// A simulation has no loss.
std::string loss_text(double loss) {
    return std::isnan(loss) ? "-" : fmt::format("{:.6f}", loss);
}

double items_per_second(const SweepRow& row) {
    return row.figures->step_us > 0 ? static_cast<double>(row.forecast->items) / row.figures->step_us * 1e6
                                    : 0;
}

// The figures of a run that the table has only if some run has them.
struct Columns {
    bool utilization = false, to_loss = false;
};

std::vector<std::string> figure_cells(const SweepRow& row, const Columns& columns) {
    if (!row.figures) return std::vector<std::string>(8U + columns.utilization + columns.to_loss, "-");
    const SweepFigures& run = *row.figures;
    std::vector<std::string> cells = {megabytes_text(static_cast<double>(run.peak_bytes)),
                                      megabytes_text(static_cast<double>(run.reserved_bytes)),
                                      grouped(run.step_us / 1e3, 2),
                                      grouped(items_per_second(row), 0),
                                      loss_text(run.first_loss),
                                      loss_text(run.last_loss),
                                      megabytes_text(run.collective_bytes),
                                      grouped(run.exposed_us / 1e3, 2)};
    if (columns.utilization) {
        cells.insert(cells.begin() + kBesideRate,
                     run.utilization_percent ? grouped(*run.utilization_percent, 1) : "-");
    }
    if (columns.to_loss) cells.push_back(std::isnan(run.to_loss_us) ? "-" : grouped(run.to_loss_us / 1e6, 3));
    return cells;
}

// Of every row that can be: what it shares with the first of them.
struct Shared {
    explicit Shared(const std::vector<SweepRow>& rows) {
        const SweepForecast* first = nullptr;
        for (const SweepRow& row : rows) {
            if (!row.forecast) continue;
            if (!first) first = &*row.forecast;
            if (row.forecast->item_name != first->item_name) items = "items";
            one_rate = one_rate && row.forecast->learning_rate == first->learning_rate;
        }
        if (items.empty()) items = first ? first->item_name : "items";
    }
    std::string items;     // "tokens"
    bool one_rate = true;  // the learning rate
};

}  // namespace

std::string sweep_table(const SweepResult& result) {
    const Shared shared(result.rows);
    std::vector<std::string> header = short_names(result.axes);
    std::vector<Align> columns(header.size(), Align::left);
    std::vector<std::string> figures =
        result.dry_run
            ? std::vector<std::string>{"predicted peak bytes", "MiB", "collectives/step",
                                       "collective MiB/step"}
            : std::vector<std::string>{
                  "peak MiB",  "reserved MiB",        "step ms",   shared.items + "/s", "first loss",
                  "last loss", "collective MiB/step", "exposed ms"};
    const Columns optional = {
        !result.dry_run &&
            std::any_of(result.rows.begin(), result.rows.end(),
                        [](const SweepRow& row) { return row.figures && row.figures->utilization_percent; }),
        result.to_loss.has_value()};
    if (optional.utilization) figures.insert(figures.begin() + kBesideRate, "utilization %");
    if (result.to_loss) figures.push_back(fmt::format("s to loss {}", *result.to_loss));
    if (!shared.one_rate) {
        header.emplace_back("learning rate");
        columns.push_back(Align::right);
    }
    header.insert(header.end(), figures.begin(), figures.end());
    columns.insert(columns.end(), figures.size(), Align::right);
    const bool any_reason = std::any_of(result.rows.begin(), result.rows.end(), [](const SweepRow& row) {
        return row.outcome != SweepOutcome::done || row.diverged_at;
    });
    if (any_reason) {
        header.emplace_back("note");
        columns.push_back(Align::left);
    }
    traces::report::TextTable table(columns);
    Footnotes notes;
    table.header(header);
    for (const SweepRow& row : result.rows) {
        std::vector<std::string> cells;
        for (const job::Override& setting : row.settings) cells.push_back(setting.value);
        if (!shared.one_rate)
            cells.push_back(row.forecast ? fmt::format("{:.4g}", row.forecast->learning_rate) : "-");
        const std::vector<std::string> numbers =
            result.dry_run ? forecast_cells(row) : figure_cells(row, optional);
        cells.insert(cells.end(), numbers.begin(), numbers.end());
        cells.push_back(row.error.empty() ? verdict(row) : notes.cell(verdict(row), row.error));
        if (!any_reason) cells.pop_back();
        table.row(std::move(cells));
    }
    return table.text() + notes.text();
}

std::string sweep_json(const SweepResult& result) {
    nlohmann::ordered_json json;
    json["runs"] = nlohmann::ordered_json::array();
    for (const SweepRow& row : result.rows) {
        nlohmann::ordered_json run;
        run["settings"] = settings_json(row.settings);
        run["trace"] = row.trace;
        if (row.figures) {
            run["peak_bytes"] = row.figures->peak_bytes;
            run["reserved_bytes"] = row.figures->reserved_bytes;
            run["average_step_us"] = row.figures->step_us;
            run["items_per_second"] = items_per_second(row);
            if (row.figures->utilization_percent)
                run["utilization_percent"] = *row.figures->utilization_percent;
            run["first_loss"] = row.figures->first_loss;
            run["last_loss"] = row.figures->last_loss;
            run["collective_bytes_per_step"] = row.figures->collective_bytes;
            run["exposed_communication_us"] = row.figures->exposed_us;
            if (result.to_loss) run["to_loss_us"] = row.figures->to_loss_us;  // null: never so low
        }
        if (row.diverged_at) run["diverged_at"] = *row.diverged_at;
        if (row.forecast) {
            run["items_per_step"] = row.forecast->items;
            run["items"] = row.forecast->item_name;
            run["learning_rate"] = row.forecast->learning_rate;
            run["predicted_peak_bytes"] = row.forecast->peak_bytes;
            run["planned_collectives_per_step"] = row.forecast->collectives;
            run["planned_collective_bytes_per_step"] = row.forecast->collective_bytes;
        }
        if (row.outcome == SweepOutcome::done) {
            run["error"] = nullptr;
        } else {
            run["error"] = reason(row);
        }
        json["runs"].push_back(std::move(run));
    }
    return traces::schema::dump_json(json, 2) + "\n";
}

}  // namespace shardscope::trainer::cli
