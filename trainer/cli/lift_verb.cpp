#include "trainer/cli/lift_verb.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/import/open.h"
#include "traces/schema/json_text.h"
#include "trainer/calibrate/measured.h"
#include "trainer/cli/exit_status.h"
#include "trainer/cli/json_parts.h"
#include "trainer/cli/lift_report.h"
#include "trainer/cli/plan_files.h"
#include "trainer/cli/search_bar.h"
#include "trainer/cli/stop.h"
#include "trainer/lift/counterfactuals.h"
#include "trainer/lift/host_replay.h"
#include "trainer/lift/settings.h"
#include "trainer/planner/job_file.h"

namespace shardscope::trainer::cli {

namespace {

using lift::Replay;

constexpr double kMicroseconds = 1e6;
// The recorded job with a row's changes; none if the trace does not store all of it.
std::optional<job::Job> changed_job(const traces::store::Trace& trace, const Replay& row) {
    if (!lift::is_ours(trace)) return std::nullopt;
    try {
        return job::parse_job(planner::job_file(calibrate::job_of(trace)), trace.path, row.changes);
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

// What the replay's own job does not know, as it has no model: the recorded one, its data and optimizer.
void add_job(const job::Job& job, std::vector<traces::schema::RunInfoRow>& facts) {
    for (const auto& [key, value] : describe(job))
        if (!key.starts_with("run.") && !key.starts_with("sim.")) facts.push_back({key, value});
}

const traces::schema::RunInfoRow kNoTimes{"times", "none"};  // as in the recording (shardscope_fake.py)

class TracePlanning {
  public:
    TracePlanning(const std::string& file, const std::vector<job::Override>& overrides,
                  const PlanOptions& options, const LiftOptions& lift)
        : file_(file), options_(options) {
        question_.given = given_values(overrides);
        question_.bandwidth = lift.bandwidth * 1e9;
        question_.cluster = lift.cluster;
        question_.only = lift.only;
    }

    void check_options() const;
    int run();

  private:
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
    }
    check_outputs(file_, options_);
}

std::string TracePlanning::links() const {
    if (question_.cluster.empty() && question_.bandwidth == 0) return "as recorded";
    std::string text = question_.cluster.empty() ? "" : "over the links of " + question_.cluster;
    if (question_.bandwidth > 0)
        text +=
            fmt::format("{}at {:g} GB/s on the bus", text.empty() ? "" : ", ", question_.bandwidth * 1e-9);
    return text;
}

// Writes the rows as in a job's plan; figures that have no meaning for a trace are absent.
void TracePlanning::write_database(const LiftResult& result) const {
    traces::store::DatabaseWriter writer(writer_options(options_.output, options_.overwrite));
    for (const job::Override& setting : result.lifted.settings)
        writer.add(traces::schema::RunInfoRow{setting.key, setting.value});
    writer.add(traces::schema::RunInfoRow{"plan.trace", result.lifted.file});
    writer.add(traces::schema::RunInfoRow{"plan.cluster", result.links});
    writer.add(traces::schema::RunInfoRow{"plan.complete", result.complete ? "true" : "false"});
    if (result.lifted.times) {
        writer.add(traces::schema::RunInfoRow{"lift.recorded_step_us",
                                              fmt::format("{:.3f}", result.lifted.step_s * kMicroseconds)});
        writer.add(traces::schema::RunInfoRow{
            "lift.unmodified_step_us", fmt::format("{:.3f}", result.unmodified.step_s * kMicroseconds)});
    } else {
        writer.add(kNoTimes);
    }
    if (result.lifted.peak_bytes >= 0)
        writer.add(
            traces::schema::RunInfoRow{"lift.recorded_peak_bytes", std::to_string(result.lifted.peak_bytes)});
    for (const Replay& row : result.rows) {
        traces::schema::PlanRow out = row.can_be() ? plan_row(row) : traces::schema::PlanRow{};
        out.number = row.number;
        out.settings = traces::schema::dump_json(settings_json(row.changes));
        out.outcome = row.can_be() ? "fits" : "impossible";
        out.reason = row.impossible;
        if (row.can_be()) {
            out.reserved_bytes = row.reserved_bytes;
            out.step_us = out.last_step_us = row.step_s * kMicroseconds;
            out.exposed_us = out.last_exposed_us = row.exposed_s * kMicroseconds;
            out.last_kernel_us = row.kernel_s * kMicroseconds;
            out.why = difference_of(row, result);
        }
        const bool written = row.number == result.wanted && !options_.files.empty();
        if (written) out.trace = options_.files.front();
        writer.add(out);
    }
    writer.finish(0, 0);
}

int TracePlanning::run() {
    const auto trace = traces::importer::open_any({file_});
    const lift::Lifted lifted = lift::lift(*trace);
    if (!lifted.times && (question_.bandwidth > 0 || !question_.cluster.empty())) {
        refuse_argument(question_.cluster.empty() ? "--bandwidth" : "--cluster",
                        fmt::format("{} has no times, only the order of events; omit the option", file_));
    }
    const Replay unmodified = lift::replay_unmodified(lifted);
    if (!unmodified.can_be()) throw lift::LiftError(unmodified.impossible);
    const sim::Cluster cluster = lift::asked_cluster(lifted, question_);
    const auto changes = lift::changes_to_try(lifted, question_);
    const std::size_t count = changes.size();
    if (question_.only && count == 1 && !question_.given.empty())
        throw job::JobError(
            "command line: the run was recorded with these settings, so nothing would change");
    const bool names_none = options_.write.empty() || options_.write == "best";
    const int wanted = names_none ? 0 : row_to_write(options_.write, count, fmt::format("1 to {}", count));

    std::atomic<bool> stop{false};
    const StopSignals listening(&stop);
    SearchBar bar("replays");
    const std::vector<Replay> rows =
        lift::replay_all(lifted, cluster, changes, search_threads(), stop,
                         [&](std::size_t done, std::size_t all) { bar.show(done, all); });
    bar.end();

    LiftResult result{lifted, unmodified, rows, links(), wanted, StopSignals::received() == 0, {}};
    result.job_of = [&](const Replay& row) {
        const std::optional<job::Job> job = changed_job(*trace, row);
        return job ? planner::job_file(*job) : std::string();
    };
    if (options_.write == "best") {
        if (const Replay* best = shown_row(result)) result.wanted = best->number;
    }
    if (const Replay* row = shown_row(result); row && !options_.files.empty()) {
        if (!row->can_be()) throw job::JobError(row->impossible);
        std::vector<traces::schema::RunInfoRow> facts = {{"lift.trace", lifted.file},
                                                         {"lift.row", std::to_string(row->number)}};
        if (!lifted.times) facts.push_back(kNoTimes);
        if (const std::optional<job::Job> job = changed_job(*trace, *row)) add_job(*job, facts);
        for (const std::string& file : options_.files) {
            write_simulation(lift::program_of(lifted, row->job), lift::cluster_for(lifted, cluster, row->job),
                             {}, 1, facts, writer_options(file, options_.overwrite));
        }
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

int plan_trace(const std::string& file, const std::vector<job::Override>& overrides,
               const PlanOptions& options, const LiftOptions& lift) {
    TracePlanning planning(file, overrides, options, lift);
    planning.check_options();
    try {
        return planning.run();
    } catch (const lift::LiftError& error) {
        fmt::print(stderr, "shardscope-train: {}\n", error.what());
        return kFailed;
    } catch (const traces::store::StoreError& error) {
        fmt::print(stderr, "shardscope-train: {}\n", error.what());
        return kFailed;
    } catch (const sim::ClusterError& error) {
        throw job::JobError(fmt::format("command line: --cluster: {}", error.what()));
    }
}

}  // namespace shardscope::trainer::cli
