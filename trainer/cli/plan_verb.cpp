#include "trainer/cli/plan_verb.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>

#include <fmt/core.h>

#include "trainer/cli/exit_status.h"
#include "trainer/cli/plan_files.h"
#include "trainer/cli/plan_report.h"
#include "trainer/cli/search_bar.h"
#include "trainer/cli/stop.h"
#include "trainer/planner/mesh_search.h"
#include "trainer/planner/meshes.h"
#include "trainer/planner/search.h"

namespace shardscope::trainer::cli {

namespace {

using planner::Row;

// Cost models by name and ranks per device, each read once.
class Clusters {
  public:
    const sim::Cluster& of(const job::Job& job) {
        const std::lock_guard lock(mutex_);
        const std::pair key(job.sim.cluster, job.run.ranks_per_device);
        const auto known = clusters_.find(key);
        if (known != clusters_.end()) return known->second;
        try {
            return clusters_.emplace(key, sim::load_cluster(job)).first->second;
        } catch (const sim::ClusterError& error) {
            const std::string message = error.what();
            throw job::JobError(where(job, message.substr(0, message.find(':'))) + message);
        }
    }

  private:
    std::mutex mutex_;
    std::map<std::pair<std::string, int>, sim::Cluster> clusters_;  // references into it stay valid
};

// Refuses the keys that the search sets itself.
std::vector<planner::Given> given_by(const std::vector<job::Override>& overrides) {
    for (const job::Override& override : overrides) {
        if (override.key == "run.trace")
            refuse_argument("--run.trace", "plan writes a row's trace with --write ROW --as FILE.sqlite");
        if (override.key == "run.device" && override.value != "sim")
            refuse_argument("--run.device", "plan simulates every configuration; omit the key");
    }
    return given_values(overrides);
}

// The optimizer's state and DDP's buckets exist only from the second or third step on: a plan is for the
// steps that follow.
constexpr std::int64_t kSteadySteps = 3;

// Turns a job for real devices into one for a simulation.
job::Job simulated_job(const std::string& file, std::vector<job::Override> settings) {
    const std::vector<job::Override> of_devices = {
        {"run.comm", "auto"}, {"run.processes", "0"}, {"run.sums", "ordered"}, {"run.device", "sim"}};
    settings.insert(settings.end(), of_devices.begin(), of_devices.end());
    job::Job job = load_job(file, settings);
    for (const job::Override& own : of_devices) job.origins.erase(own.key);  // not given by the user
    job.run.trace.clear();
    return job;
}

// A job with too few steps for a steady one is tried with more; the settings of each row say so.
std::vector<planner::Given> with_steady_steps(const std::string& file, std::vector<planner::Given> given,
                                              bool& raised) {
    const auto few = [](const std::string& steps) {
        std::int64_t value = kSteadySteps;  // a text that is not a number is refused later
        std::from_chars(steps.data(), steps.data() + steps.size(), value);
        return value > 0 && value < kSteadySteps;
    };
    const auto own = std::find_if(given.begin(), given.end(),
                                  [](const planner::Given& key) { return key.key == "run.steps"; });
    if (own != given.end()) {
        std::vector<std::string> values;
        for (const std::string& steps : own->values) {
            raised = raised || few(steps);
            const std::string value = few(steps) ? std::to_string(kSteadySteps) : steps;
            if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
        }
        own->values = std::move(values);
        return given;
    }
    std::vector<job::Override> first;
    first.reserve(given.size());
    for (const planner::Given& key : given) first.push_back({key.key, key.values.front()});
    try {
        raised = few(std::to_string(simulated_job(file, first).run.steps));
    } catch (const job::JobError&) {  // the search reports what is impossible
    }
    if (raised) given.push_back({"run.steps", {std::to_string(kSteadySteps)}});
    return given;
}

class Planning {
  public:
    Planning(const std::string& file, const std::vector<job::Override>& overrides, const PlanOptions& options)
        : file_(file),
          options_(options),
          given_(with_steady_steps(file, given_by(overrides), result_.raised_steps)) {}

    int run();

  private:
    void check_files() const;
    std::vector<planner::Candidate> last_resorts() const;
    void search(const std::vector<planner::Candidate>& candidates);
    void search_last_resorts(const planner::SearchOptions& options);
    void refuse_what_nothing_can_be() const;
    void name_what_is_one();
    void write_files();
    void print();

    job::Job job(const std::vector<job::Override>& settings) const { return simulated_job(file_, settings); }
    const planner::JobMaker make_job_ = [this](const std::vector<job::Override>& settings) {
        return job(settings);
    };
    const planner::ClusterMaker cluster_of_ = [this](const job::Job& job) -> const sim::Cluster& {
        return clusters_.of(job);
    };

    const std::string file_;
    const PlanOptions& options_;
    PlanResult result_;
    const std::vector<planner::Given> given_;
    Clusters clusters_;
    int written_ = 0;  // number of the row
};

// Runs before the search, so that no search is wasted.
void Planning::check_files() const {
    if (options_.write.empty() != options_.files.empty()) {
        refuse_argument(
            options_.write.empty() ? "--as" : "--write",
            "--write ROW and --as FILE belong together: the row, and the .toml or .sqlite that it becomes");
    }
    for (const std::string& file : options_.files) {
        if (!file.ends_with(".toml") && !file.ends_with(".sqlite"))
            refuse_argument("--as",
                            fmt::format("{} is neither a .toml (a job file) nor a .sqlite (a trace)", file));
    }
    check_outputs(file_, options_);
}

// The configurations to try if no candidate fits; empty if they cannot be determined.
std::vector<planner::Candidate> Planning::last_resorts() const {
    try {
        return planner::last_resorts(given_, make_job_, cluster_of_);
    } catch (const job::JobError&) {  // too many to try, or none
        return {};
    }
}

void Planning::search(const std::vector<planner::Candidate>& candidates) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<planner::Candidate> behind;  // last resorts, numbered after `candidates`; if a row is named
    if (!options_.write.empty() && options_.write != "best") {
        behind = last_resorts();
        const std::size_t rows = candidates.size(), all = rows + behind.size();
        std::string usable = fmt::format("1 to {}", rows);
        if (!behind.empty())
            usable += fmt::format(", {} to {} of those tried only if none of these fits", rows + 1, all);
        written_ = row_to_write(options_.write, all, usable);
    }
    const std::size_t place = written_ > 0 ? static_cast<std::size_t>(written_) - 1 : 0;
    const bool is_behind = place >= candidates.size();
    if (written_ > 0 && options_.output.empty()) {  // evaluates that row alone
        const auto& candidate = is_behind ? behind[place - candidates.size()] : candidates[place];
        result_.rows = {planner::evaluate(candidate, written_, make_job_, cluster_of_, options_.time_all)};
        planner::mark_front(result_.rows);
        result_.complete = false;
    } else {
        std::atomic<bool> stop{false};
        const StopSignals listening(&stop);
        SearchBar bar("configurations");
        planner::SearchOptions search;
        search.threads = search_threads();
        search.time_all = options_.time_all;
        search.stop = &stop;
        search.progress = [&](std::size_t done, std::size_t all) { bar.show(done, all); };
        result_.rows = options_.meshes ? planner::search_meshes(candidates, make_job_, cluster_of_, search)
                                       : planner::search(candidates, make_job_, cluster_of_, search);
        if ((is_behind || !planner::best(result_.rows)) && StopSignals::received() == 0)
            search_last_resorts(search);
        bar.end();
        result_.complete = StopSignals::received() == 0;
    }
    result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// If nothing fits, or one of these was requested, searches the last resorts, numbered after the rows that
// were tried.
void Planning::search_last_resorts(const planner::SearchOptions& options) {
    const std::vector<planner::Candidate> more = last_resorts();
    if (more.empty()) return;
    std::vector<Row> rows = planner::search(more, make_job_, cluster_of_, options);
    for (Row& row : rows) {
        row.number += static_cast<int>(result_.rows.size());
    }
    result_.rows.insert(result_.rows.end(), std::make_move_iterator(rows.begin()),
                        std::make_move_iterator(rows.end()));
    planner::mark_front(result_.rows);
}

// Throws if no configuration is possible: the fault is then in the job, not in one of them.
void Planning::refuse_what_nothing_can_be() const {
    const bool none = std::all_of(result_.rows.begin(), result_.rows.end(),
                                  [](const Row& row) { return row.outcome == planner::Outcome::impossible; });
    if (none) throw job::JobError(result_.rows.front().reason);
}

void Planning::write_files() {
    if (!options_.write.empty()) {
        const Row* row = options_.write == "best" ? planner::best(result_.rows) : nullptr;
        for (const Row& own : result_.rows)
            if (own.number == written_ && own.outcome != planner::Outcome::not_run) row = &own;
        if (row && row->outcome == planner::Outcome::impossible) throw job::JobError(row->reason);
        if (!row) {
            throw job::JobError(fmt::format("--write {}: there is no such row, as {}; nothing is written",
                                            options_.write,
                                            result_.complete ? "nothing fits" : "the search was stopped"));
        }
        written_ = row->number;
        for (const std::string& file : options_.files)
            write_row(*row, clusters_.of(row->job), file_, file, options_.overwrite);
    }
    if (!options_.output.empty()) {
        const auto trace = std::find_if(options_.files.begin(), options_.files.end(),
                                        [](const std::string& file) { return file.ends_with(".sqlite"); });
        write_database(result_, cluster_of_, file_, options_.output, options_.overwrite, written_,
                       trace == options_.files.end() ? "" : *trace);
    }
}

void Planning::print() {
    const Row* best = planner::best_or_smallest(result_.rows);
    std::optional<planner::Anatomy> anatomy;
    if (best && best->outcome != planner::Outcome::impossible)
        anatomy = planner::anatomy_of(*best, clusters_.of(best->job));
    if (options_.json) {
        fmt::print("{}", plan_json(result_, anatomy ? &*anatomy : nullptr));
        return;
    }
    fmt::print("{}", plan_table(result_, {options_.all}));
    if (anatomy) fmt::print("{}", anatomy_table(*best, *anatomy));
    for (const std::string& file : options_.files) fmt::print("Row {} is written: {}\n", written_, file);
    if (!options_.output.empty())
        fmt::print(
            "Open it with: shardscope-view {0}    query it with: shardscope-trace query {0} 'SELECT * FROM "
            "SHARD_PLAN'\n",
            options_.output);
}

// Fills in the names that all rows have in common, or says that they differ.
void Planning::name_what_is_one() {
    const auto name = [](std::string& of_all, const std::string& own, const char* several) {
        of_all = of_all.empty() || of_all == own ? own : several;
    };
    for (const Row& row : result_.rows) {
        if (!row.can_be()) continue;
        const sim::Cluster& cluster = clusters_.of(row.job);
        name(result_.cluster, cluster.name, "several clusters");
        name(result_.device, cluster.device.name, "several devices");
        name(result_.limit_of, row.limit_of, "into the memory of each row's own limit");
    }
}

int Planning::run() {
    check_files();
    search(options_.meshes ? planner::mesh_candidates(given_, make_job_)
                           : planner::candidates(given_, make_job_, cluster_of_));
    refuse_what_nothing_can_be();
    name_what_is_one();
    write_files();
    print();
    if (const int signal = StopSignals::received()) return kSignalled + signal;
    const std::string nothing = nothing_fits(result_);
    if (nothing.empty()) return 0;
    fmt::print(stderr, "shardscope-train: {}\n", nothing);
    return kFailed;
}

}  // namespace

int plan(const std::string& file, const std::vector<job::Override>& overrides, const PlanOptions& options) {
    return Planning(file, overrides, options).run();
}

}  // namespace shardscope::trainer::cli
