#include "trainer/cli/sweep.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/analysis/communication/collectives.h"
#include "traces/analysis/compare/compare.h"
#include "traces/analysis/training/metrics.h"
#include "traces/schema/joined.h"
#include "traces/schema/json_text.h"
#include "traces/store/columns/trace.h"
#include "traces/store/load/loader.h"
#include "traces/store/write/writer.h"
#include "trainer/cli/child.h"
#include "trainer/cli/exit_status.h"
#include "trainer/cli/stop.h"
#include "trainer/cli/sweep_report.h"
#include "trainer/executor/step_metrics.h"
#include "trainer/job/learning_rate.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::cli {

namespace {

namespace fs = std::filesystem;

SweepForecast forecast(const sharding::Program& program) {
    SweepForecast result;
    const job::Job& job = program.job();
    result.learning_rate = scaled_learning_rate(job.optimizer, batch_factor(job));
    const executor::StepItems items(job);
    result.items = items.count;
    result.item_name = items.name;
    result.peak_bytes = program.predict_largest().peak.bytes;
    for (int place = 0; place < program.roles(); ++place) {
        const sharding::Program& role = program.role(place);
        const std::int64_t ranks = program.mesh().ranks_of_role(place);
        role.for_cycle([&](const plan::Plan& step, std::size_t steps) {
            for (const plan::Op& op : step.ops) {
                if (op.kind != plan::OpKind::collective) continue;
                result.collectives += ranks * static_cast<std::int64_t>(steps);
                result.collective_bytes += ranks * static_cast<std::int64_t>(steps) * op.bytes;
            }
        });
    }
    // Means of the ranks and steps, as those of a recorded run.
    const auto all = job.run.ranks * static_cast<std::int64_t>(program.cycle());
    result.collectives /= all;
    result.collective_bytes /= all;
    return result;
}

// Reads what only a run's trace has, not its output.
void read_trace(std::optional<double> to_loss, SweepRow& row) {
    const auto trace = traces::store::load_trace(row.trace);
    row.diverged_at = traces::analysis::diverged_step(*trace);
    if (!row.figures) return;
    SweepFigures& figures = *row.figures;
    traces::analysis::Comparison run = traces::analysis::compare({trace.get()});
    if (to_loss) add_times_to_loss(run, {trace.get()}, *to_loss);
    figures.to_loss_us = run.runs.front().to_loss_us;
    figures.step_us = run.runs.front().average_step_us;
    figures.exposed_us = run.runs.front().exposed_communication_us;
    const traces::analysis::CollectivesReport report = traces::analysis::collectives_report(*trace);
    for (const traces::analysis::RankCollectives& rank : report.ranks)
        for (const traces::analysis::OperationStats& operation : rank.operations)
            figures.collective_bytes += operation.bytes_per_step / static_cast<double>(report.ranks.size());
}

double loss_of(const nlohmann::json& value) {
    return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

// Reads a run's output; nothing if the run did not print its result.
std::optional<SweepFigures> read_result(const std::string& text) {
    const nlohmann::json json = traces::schema::parse_json(text);
    if (!json.is_object()) return std::nullopt;
    const nlohmann::json losses = json.value("losses", nlohmann::json::array());
    if (losses.empty() && !json.contains("simulation")) return std::nullopt;
    SweepFigures figures;
    if (json.contains("simulation"))
        figures.utilization_percent = json["simulation"].at("utilization_percent").get<double>();
    figures.first_loss = loss_of(losses.empty() ? nlohmann::json() : losses.front());
    figures.last_loss = loss_of(losses.empty() ? nlohmann::json() : losses.back());
    for (const nlohmann::json& rank : json.at("ranks")) {
        figures.peak_bytes = std::max(figures.peak_bytes, rank.at("peak_bytes").get<std::int64_t>());
        figures.reserved_bytes =
            std::max(figures.reserved_bytes, rank.at("reserved_bytes").get<std::int64_t>());
    }
    return figures;
}

class Sweep {
  public:
    Sweep(const std::string& file, const SweepGrid& grid, const SweepOptions& options);
    int run();

  private:
    void plan(const SweepPoint& point, SweepRow& row);
    void check_folder() const;
    void train_row(SweepRow& row, const std::string& position);
    int status() const;
    void print() const;

    const std::string& file_;
    const SweepGrid& grid_;
    const SweepOptions& options_;
    std::string folder_;
    SweepResult result_;
    bool crashed_ = false;
    int stopped_by_ = 0;
};

Sweep::Sweep(const std::string& file, const SweepGrid& grid, const SweepOptions& options)
    : file_(file), grid_(grid), options_(options) {
    const std::string job_name = fs::path(file).stem().string();
    folder_ = options.folder.empty() ? "sweep-" + job_name : options.folder;
    result_.axes = grid.axes;
    result_.dry_run = options.dry_run;
    result_.to_loss = options.to_loss;
    for (const SweepPoint& point : combinations(grid, job_name)) {
        SweepRow row;
        row.settings = point.settings;
        plan(point, row);
        result_.rows.push_back(std::move(row));
    }
}

// Finds whether the combination is possible and what its Plan predicts; trains nothing.
void Sweep::plan(const SweepPoint& point, SweepRow& row) {
    std::vector<job::Override> overrides = grid_.fixed;
    overrides.insert(overrides.end(), point.settings.begin(), point.settings.end());
    if (!options_.dry_run) row.trace = (fs::path(folder_) / (point.name + ".sqlite")).string();
    try {
        const job::Job job = load_job(file_, overrides);
        const bool saves_apart =
            std::any_of(point.settings.begin(), point.settings.end(),
                        [](const job::Override& s) { return s.key == "checkpoint.save"; });
        if (!job.checkpoint.save.empty() && !grid_.axes.empty() && !saves_apart) {
            throw job::JobError(
                where(job, "checkpoint.save") +
                "checkpoint.save: every run of the sweep would save into this folder; give each its own "
                "with --checkpoint.save=A,B, or omit the key");
        }
        row.forecast = forecast(sharding::Program(job));
    } catch (const job::JobError& error) {
        row.outcome = SweepOutcome::impossible;
        row.error = error.what();
        row.trace.clear();
    }
}

void Sweep::check_folder() const {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (!fs::is_directory(folder_)) {
        throw job::JobError(
            fmt::format("{}: this folder for the traces cannot be made{}; give another with -o FOLDER",
                        folder_, error ? fmt::format(" ({})", error.message()) : ""));
    }
    for (const SweepRow& row : result_.rows) {
        if (!row.trace.empty()) traces::store::DatabaseWriter::check_output(row.trace, options_.overwrite);
    }
}

void Sweep::train_row(SweepRow& row, const std::string& position) {
    std::vector<std::string> words, arguments = {file_};
    for (const job::Override& setting : grid_.fixed)
        arguments.push_back(fmt::format("--{}={}", setting.key, setting.value));
    for (const job::Override& setting : row.settings) {
        words.push_back(fmt::format("{}={}", setting.key, setting.value));
        arguments.push_back("--" + words.back());
    }
    arguments.insert(arguments.end(), {"--trace", row.trace, "--format", "json"});
    if (options_.overwrite) arguments.emplace_back("--overwrite");
    std::error_code ignored;
    fs::remove(row.trace, ignored);  // an earlier sweep's, which check_folder() lets it replace
    fmt::print(stderr, "{} {}\n", position, traces::schema::joined(words, " "));
    const ChildResult child = run_again(arguments);
    row.figures = read_result(child.out);
    row.error = child.last_error;
    const int interrupt = StopSignals::received();
    if (interrupt != 0) {
        stopped_by_ = interrupt;
        row.outcome = SweepOutcome::stopped;
        row.error = fmt::format("by {}", StopSignals::name(interrupt));
    } else if (child.signal != 0) {
        row.outcome = SweepOutcome::failed;
        row.error = fmt::format("its process ended by signal {}", child.signal);
        crashed_ = true;
    } else if (child.status == kWrongUse) {
        row.outcome = SweepOutcome::impossible;
    } else if (child.status != 0 || !row.figures) {
        row.outcome = SweepOutcome::failed;
    } else {
        row.outcome = SweepOutcome::done;
        row.error.clear();
    }
    if (!fs::exists(row.trace)) {
        row.trace.clear();
        row.figures.reset();
    }
    if (row.trace.empty()) return;
    try {
        read_trace(options_.to_loss, row);
    } catch (const traces::store::StoreError& error) {
        row.figures.reset();
        if (row.outcome != SweepOutcome::done) return;  // what ended the run explains the trace
        row.outcome = SweepOutcome::failed;
        row.error = error.what();
    }
}

int Sweep::status() const {
    if (stopped_by_ != 0) return kSignalled + stopped_by_;
    const auto any = [&](SweepOutcome outcome) {
        return std::any_of(result_.rows.begin(), result_.rows.end(),
                           [&](const SweepRow& row) { return row.outcome == outcome; });
    };
    if (crashed_) return kFailed;
    if (any(SweepOutcome::done)) return 0;
    return any(SweepOutcome::failed) ? kFailed : kWrongUse;
}

void Sweep::print() const {
    if (options_.json) {
        fmt::print("{}", sweep_json(result_));
        return;
    }
    fmt::print("{}", sweep_table(result_));
    const bool any_trace = std::any_of(result_.rows.begin(), result_.rows.end(),
                                       [](const SweepRow& row) { return !row.trace.empty() && row.figures; });
    if (options_.dry_run) {
        fmt::print(
            "Nothing was trained: each peak is what the memory account predicts for one "
            "rank.\n");
    } else if (any_trace) {
        fmt::print(
            "Peak: allocated, largest of the ranks; exposed: communication outside compute, "
            "per step.\nCompare them with: shardscope-view {}/*.sqlite --panel compare\n",
            folder_);
    }
}

int Sweep::run() {
    const bool none_can_be = std::all_of(result_.rows.begin(), result_.rows.end(), [](const SweepRow& row) {
        return row.outcome == SweepOutcome::impossible;
    });
    if (none_can_be && result_.rows.front().error == result_.rows.back().error)
        throw job::JobError(result_.rows.front().error);  // no single combination is at fault
    if (options_.dry_run) {
        for (SweepRow& row : result_.rows)
            if (row.outcome == SweepOutcome::not_run) row.outcome = SweepOutcome::done;
    } else if (!none_can_be) {
        check_folder();
        const StopSignals listening;
        std::size_t n = 0;
        const auto count = std::count_if(result_.rows.begin(), result_.rows.end(), [](const SweepRow& row) {
            return row.outcome == SweepOutcome::not_run;
        });
        for (SweepRow& row : result_.rows) {
            if (row.outcome != SweepOutcome::not_run) continue;
            if (stopped_by_ == 0) {
                train_row(row, fmt::format("[{}/{}]", ++n, count));
            } else {
                row.trace.clear();
            }
        }
    }
    print();
    return status();
}

}  // namespace

int sweep(const std::string& file, const SweepGrid& grid, const SweepOptions& options) {
    return Sweep(file, grid, options).run();
}

}  // namespace shardscope::trainer::cli
