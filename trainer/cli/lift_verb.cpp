#include "trainer/cli/lift_verb.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <thread>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <time.h>

#include "traces/import/open.h"
#include "traces/schema/json_text.h"
#include "traces/store/apart.h"
#include "traces/store/write/writer.h"
#include "trainer/cli/exit_status.h"
#include "trainer/cli/lift_report.h"
#include "trainer/cli/plan_files.h"
#include "trainer/cli/search_bar.h"
#include "trainer/cli/stop.h"
#include "trainer/cli/sweep_grid.h"
#include "trainer/lift/counterfactuals.h"
#include "trainer/sim/sim_trace.h"
#include "trainer/sim/simulator.h"

namespace shardscope::trainer {

namespace {

using lift::Replay;

constexpr int kMostThreads = 16;
constexpr double kMicroseconds = 1e6;

class TracePlanning {
  public:
    TracePlanning(const std::string& file, const std::vector<Override>& overrides, const PlanOptions& options,
                  const LiftOptions& lift)
        : file_(file), options_(options) {
        const SweepGrid grid = make_grid(overrides);
        for (const Override& fixed : grid.fixed) question_.given.push_back({fixed.key, {fixed.value}});
        for (const SweepAxis& axis : grid.axes) question_.given.push_back({axis.key, axis.values});
        question_.bandwidth = lift.bandwidth * 1e9;
        question_.cluster = lift.cluster;
    }

    void check_options() const;
    int run();

  private:
    int row_to_write(std::size_t rows) const;
    void write_trace(const lift::Lifted& lifted, const sim::Cluster& cluster, const Replay& row,
                     const std::string& file) const;
    void write_database(const LiftResult& result) const;
    std::string links() const;

    const std::string file_;
    const PlanOptions& options_;
    lift::Question question_;
};

// Runs before the work, so that no work is wasted.
void TracePlanning::check_options() const {
    if (options_.time_all)
        refuse_argument("--time-all", "it is for job files; every replay of a trace has its time");
    if (options_.write.empty() && !options_.files.empty())
        refuse_argument("--as",
                        "--write ROW and --as FILE belong together: the row, and the trace that it becomes");
    for (const std::string& file : options_.files) {
        if (!file.ends_with(".sqlite")) {
            refuse_argument(
                "--as",
                fmt::format("{} is not a .sqlite: a replay can be written as its trace, and there is no "
                            "job file for a model that a trace shows",
                            file));
        }
        traces::check_apart({file_}, file);
        traces::DatabaseWriter::check_output(file, options_.overwrite);
    }
    if (options_.output.empty()) return;
    traces::check_apart({file_}, options_.output);
    traces::DatabaseWriter::check_output(options_.output, options_.overwrite);
}

// 0: the best, or none.
int TracePlanning::row_to_write(std::size_t rows) const {
    if (options_.write.empty() || options_.write == "best") return 0;
    int number = 0;
    const char* end = options_.write.data() + options_.write.size();
    const auto [read, error] = std::from_chars(options_.write.data(), end, number);
    if (error != std::errc{} || read != end || number < 1 || static_cast<std::size_t>(number) > rows)
        refuse_argument("--write",
                        fmt::format("\"{}\" is not a row; use 1 to {}, or best", options_.write, rows));
    return number;
}

std::string TracePlanning::links() const {
    if (question_.cluster.empty() && question_.bandwidth == 0) return "as recorded";
    std::string text = question_.cluster.empty() ? "" : "over the links of " + question_.cluster;
    if (question_.bandwidth > 0)
        text +=
            fmt::format("{}at {:g} GB/s on the bus", text.empty() ? "" : ", ", question_.bandwidth * 1e-9);
    return text;
}

void TracePlanning::write_trace(const lift::Lifted& lifted, const sim::Cluster& cluster, const Replay& row,
                                const std::string& file) const {
    const Program program = lift::program_of(lifted, row.job);
    traces::DatabaseWriter writer(writer_options(file, options_.overwrite));
    sim::SimOptions options;
    options.every_step = true;
    sim::SimTrace trace(writer, program, cluster, 1);
    trace.summarise(sim::simulate(program, cluster, options, &trace));
    writer.add(traces::RunInfoRow{"lift.trace", lifted.file});
    writer.add(traces::RunInfoRow{"lift.row", std::to_string(row.number)});
    writer.finish(trace.duration(), 0);
}

// The rows in the form of a job's plan; figures without a meaning for a trace are absent.
void TracePlanning::write_database(const LiftResult& result) const {
    traces::DatabaseWriter writer(writer_options(options_.output, options_.overwrite));
    for (const Override& setting : result.lifted.settings)
        writer.add(traces::RunInfoRow{setting.key, setting.value});
    writer.add(traces::RunInfoRow{"plan.trace", result.lifted.file});
    writer.add(traces::RunInfoRow{"plan.cluster", result.links});
    writer.add(traces::RunInfoRow{"plan.complete", result.complete ? "true" : "false"});
    writer.add(traces::RunInfoRow{"lift.recorded_step_us",
                                  fmt::format("{:.3f}", result.lifted.step_s * kMicroseconds)});
    writer.add(traces::RunInfoRow{"lift.unmodified_step_us",
                                  fmt::format("{:.3f}", result.unmodified.step_s * kMicroseconds)});
    if (result.lifted.peak_bytes >= 0)
        writer.add(traces::RunInfoRow{"lift.recorded_peak_bytes", std::to_string(result.lifted.peak_bytes)});
    for (const Replay& row : result.rows) {
        traces::PlanRow out;
        out.number = row.number;
        nlohmann::ordered_json settings = nlohmann::ordered_json::object();
        for (const Override& change : row.changes) settings[change.key] = change.value;
        out.settings = traces::dump_json(settings);
        out.outcome = row.can_be() ? "fits" : "impossible";
        out.reason = row.impossible;
        if (row.can_be()) {
            out.ranks = row.job.run.ranks;
            out.peak_bytes = row.peak.bytes;
            out.moment = row.peak.where;
            out.at_peak = row.peak.at_peak;
            out.peak_unit = row.peak_unit;
            if (!row.peak_unit.empty()) out.peak_unit_bytes = row.peak_unit_bytes;
            out.reserved_bytes = row.reserved_bytes;
            out.step_us = out.last_step_us = row.step_s * kMicroseconds;
            out.exposed_us = out.last_exposed_us = row.exposed_s * kMicroseconds;
            out.last_kernel_us = row.kernel_s * kMicroseconds;
            out.front = row.front;
            out.same_as = row.same_as;
            out.why = difference_of(row, result.unmodified);
        }
        const bool written = row.number == result.wanted && !options_.files.empty();
        if (written) out.trace = options_.files.front();
        writer.add(out);
    }
    writer.finish(0, 0);
}

int TracePlanning::run() {
    const auto trace = traces::open_any({file_});
    const lift::Lifted lifted = lift::lift(*trace);
    const Replay unmodified = lift::replay_unmodified(lifted);
    if (!unmodified.can_be()) throw lift::LiftError(unmodified.impossible);
    const sim::Cluster cluster = lift::asked_cluster(lifted, question_);
    const auto changes = lift::changes_to_try(lifted, question_);
    const int wanted = row_to_write(changes.size());

    std::atomic<bool> stop{false};
    const StopSignals listening(&stop);
    SearchBar bar("replays");
    const int threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostThreads);
    const std::vector<Replay> rows =
        lift::replay_all(lifted, cluster, changes, threads, stop,
                         [&](std::size_t done, std::size_t all) { bar.show(done, all); });
    bar.end();

    LiftResult result{lifted, unmodified, rows, links(), wanted, StopSignals::received() == 0};
    if (options_.write == "best") {
        if (const Replay* best = shown_row(result)) result.wanted = best->number;
    }
    if (const Replay* row = shown_row(result); row && !options_.files.empty()) {
        if (!row->can_be()) throw JobError(row->impossible);
        for (const std::string& file : options_.files) write_trace(lifted, cluster, *row, file);
    }
    if (!options_.output.empty()) write_database(result);
    fmt::print("{}", options_.json ? lift_json(result) : lift_table(result, options_.all));
    if (!options_.json) {
        for (const std::string& file : options_.files)
            fmt::print("Row {} is written: {}\n", shown_row(result)->number, file);
        if (!options_.output.empty()) fmt::print("Open it with: shardscope-view {}\n", options_.output);
    }
    if (const int signal = StopSignals::received()) return kSignalled + signal;
    const bool any = std::any_of(rows.begin(), rows.end(), [](const Replay& row) { return row.can_be(); });
    return any ? 0 : kFailed;
}

}  // namespace

// A job file is text in TOML. Traces are databases, JSON, pickles, or packed.
bool is_trace(const std::string& path) {
    if (path.ends_with(".toml")) return false;
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) return true;
    std::ifstream file(path, std::ios::binary);
    std::string head(16, '\0');
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    head.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
    if (head.empty()) {
        for (const std::string_view ending : {".sqlite", ".json", ".gz", ".db", ".pickle"})
            if (path.ends_with(ending)) return true;
        return false;
    }
    if (head.starts_with("SQLite") || head.starts_with("\x1f\x8b") || head.starts_with("\x80") ||
        head.starts_with("PK"))
        return true;
    const auto first = head.find_first_not_of(" \t\r\n");
    if (first == head.npos) return false;
    if (head[first] == '{') return true;
    if (head[first] != '[') return false;  // an array of events, not a section's name
    const auto next = head.find_first_not_of(" \t\r\n", first + 1);
    return next != head.npos && head[next] == '{';
}

int plan_trace(const std::string& file, const std::vector<Override>& overrides, const PlanOptions& options,
               const LiftOptions& lift) {
    TracePlanning planning(file, overrides, options, lift);
    planning.check_options();
    try {
        return planning.run();
    } catch (const lift::LiftError& error) {
        fmt::print(stderr, "shardscope-train: {}\n", error.what());
        return kFailed;
    } catch (const traces::StoreError& error) {
        fmt::print(stderr, "shardscope-train: {}\n", error.what());
        return kFailed;
    } catch (const sim::ClusterError& error) {
        throw JobError(fmt::format("command line: --cluster: {}", error.what()));
    }
}

}  // namespace shardscope::trainer
