#include "trainer/cli/sweep_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/report/text_table.h"
#include "traces/schema/json_text.h"
#include "trainer/cli/json_parts.h"

namespace shardscope::trainer::cli {

namespace {

using traces::report::Align;
using traces::store::grouped;

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

std::string reason(const SweepRow& row) {
    return row.error.empty() ? verdict(row.outcome) : fmt::format("{}: {}", verdict(row.outcome), row.error);
}

// Sentences are long and often equal: rows hold their numbers, and the sentences follow the table.
class Footnotes {
  public:
    // "impossible [1]"; "" for a row that is done.
    std::string cell(const SweepRow& row) {
        if (row.error.empty()) return verdict(row.outcome);
        const auto found = std::find(sentences_.begin(), sentences_.end(), row.error);
        const auto number = found - sentences_.begin() + 1;
        if (found == sentences_.end()) sentences_.push_back(row.error);
        return fmt::format("{} [{}]", verdict(row.outcome), number);
    }
    std::string text() const {
        std::string all;
        for (std::size_t i = 0; i < sentences_.size(); ++i)
            all += fmt::format("[{}] {}\n", i + 1, traces::report::printable(sentences_[i]));
        return all;
    }

  private:
    std::vector<std::string> sentences_;
};

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

std::vector<std::string> figure_cells(const SweepRow& row) {
    if (!row.figures) return {"-", "-", "-", "-", "-", "-", "-"};
    const SweepFigures& run = *row.figures;
    return {megabytes_text(static_cast<double>(run.peak_bytes)),
            megabytes_text(static_cast<double>(run.reserved_bytes)),
            grouped(run.step_us / 1e3, 2),
            loss_text(run.first_loss),
            loss_text(run.last_loss),
            megabytes_text(run.collective_bytes),
            grouped(run.exposed_us / 1e3, 2)};
}

}  // namespace

std::string sweep_table(const SweepResult& result) {
    std::vector<std::string> header = short_names(result.axes);
    std::vector<Align> columns(header.size(), Align::left);
    const std::vector<std::string> figures =
        result.dry_run
            ? std::vector<std::string>{"predicted peak bytes", "MiB", "collectives/step",
                                       "collective MiB/step"}
            : std::vector<std::string>{"peak MiB",  "reserved MiB",        "step ms",   "first loss",
                                       "last loss", "collective MiB/step", "exposed ms"};
    header.insert(header.end(), figures.begin(), figures.end());
    columns.insert(columns.end(), figures.size(), Align::right);
    const bool any_reason = std::any_of(result.rows.begin(), result.rows.end(), [](const SweepRow& row) {
        return row.outcome != SweepOutcome::done;
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
        const std::vector<std::string> numbers = result.dry_run ? forecast_cells(row) : figure_cells(row);
        cells.insert(cells.end(), numbers.begin(), numbers.end());
        cells.push_back(notes.cell(row));
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
            run["first_loss"] = row.figures->first_loss;
            run["last_loss"] = row.figures->last_loss;
            run["collective_bytes_per_step"] = row.figures->collective_bytes;
            run["exposed_communication_us"] = row.figures->exposed_us;
        }
        if (row.forecast) {
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
