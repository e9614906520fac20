#include "trainer/cli/bench_verb.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/schema/json_text.h"
#include "trainer/cli/bench_engines.h"
#include "trainer/cli/child.h"
#include "trainer/cli/exit_status.h"
#include "trainer/cli/output.h"
#include "trainer/cli/stop.h"
#include "trainer/executor/step_metrics.h"
#include "trainer/sharding/program.h"

namespace shardscope::trainer::cli {

namespace {

class Bench {
  public:
    Bench(const std::string& file, const std::vector<job::Override>& overrides, const BenchOptions& options);
    int run();

  private:
    void add(const std::string& engine, int ranks);
    void measure(BenchRun& run);

    const std::string& file_;
    const std::vector<job::Override>& overrides_;
    const BenchOptions& options_;
    job::Job job_;
    BenchResult result_;
};

Bench::Bench(const std::string& file, const std::vector<job::Override>& overrides,
             const BenchOptions& options)
    : file_(file), overrides_(overrides), options_(options), job_(load_job(file, overrides)) {
    for (const job::Override& given : overrides) {
        if (given.key == "run.steps" || given.key == "train.epochs")
            throw job::JobError("command line: " + given.key +
                                ": bench counts its own steps; give --warm-up, --iterations and "
                                "--steps");
    }
    if (job_.run.device == job::DeviceKind::sim) {
        throw job::JobError(
            where(job_, "run.device") +
            "run.device: bench measures real devices; set it to \"cpu\" or \"cuda\", or run the job "
            "without bench, which prints what the simulation predicts");
    }
    if (options.length.all() > job::kMostSteps) {
        throw job::JobError(fmt::format(
            "command line: --iterations: {} times {} steps after {} of warm-up are more than the {} "
            "that a job may have; lower it, or --steps",
            options.length.iterations, options.length.steps, options.length.warm_up, job::kMostSteps));
    }
    const executor::StepItems items(job_);
    result_.items = items.name;
    result_.batch = job_.data.batch;
    result_.length = options.length;
    const std::vector<int> ranks = options.ranks.empty() ? std::vector{job_.run.ranks} : options.ranks;
    const std::vector<std::string> engines =
        options.engines.empty() ? std::vector{engine_of(job_)} : options.engines;
    for (const std::string& engine : engines)
        for (const int number : ranks) add(engine, number);
}

void Bench::add(const std::string& engine, int ranks) {
    const std::string own = ranks == 1 && engine != "nccl" ? "local" : engine;
    const auto same = [&](const BenchRun& run) { return run.engine == own && run.ranks == ranks; };
    if (std::any_of(result_.runs.begin(), result_.runs.end(), same)) return;
    BenchRun run;
    run.engine = own;
    run.ranks = ranks;
    result_.runs.push_back(std::move(run));
}

void Bench::measure(BenchRun& run) {
    std::vector<job::Override> overrides =
        with_keys(overrides_, engine_keys(run.engine, run.ranks, job_.run.sums));
    // Nothing but the steps is measured, and all of them run.
    for (const auto& [key, value] : {std::pair{"run.trace", ""},
                                     {"run.trace_parts", ""},
                                     {"checkpoint.load", ""},
                                     {"checkpoint.initial_load", ""},
                                     {"checkpoint.save", ""},
                                     {"checkpoint.every", "0"},
                                     {"checkpoint.keep", "all"},
                                     {"train.validate_every", "0"},
                                     {"data.validation", "0"},
                                     {"data.validation_path", ""},
                                     {"data.test", "0"},
                                     {"data.test_path", ""}})
        overrides.push_back({key, value});
    // It then concerns validation and test only.
    if (job_.data.crop == job::ImageCrop::resized) overrides.push_back({"data.resize", "0"});
    // Steps that are compressed are what is measured.
    const job::DdpSection defaults;
    if (job_.ddp.comm_hook_start != defaults.comm_hook_start)
        overrides.push_back({"ddp.comm_hook_start", std::to_string(defaults.comm_hook_start)});
    overrides.push_back({"run.steps", std::to_string(options_.length.all())});
    double items = 0;
    try {
        const sharding::Program program(load_job(file_, overrides));
        run.description = describe_run(program);
        items = static_cast<double>(executor::StepItems(program.job()).count) / run.ranks;
    } catch (const job::JobError& error) {
        run.error = error.what();
        return;
    }
    std::vector<std::string> arguments = {file_, "--format", "json"};
    for (const job::Override& key : overrides)
        arguments.push_back(fmt::format("--{}={}", key.key, key.value));
    const ChildResult child = run_again(arguments);
    const nlohmann::json json = traces::schema::parse_json(child.out);
    if (child.status == 0 && child.signal == 0 && json.is_object()) {
        const auto done = json.value("seconds", std::vector<double>());
        if (static_cast<std::int64_t>(done.size()) == options_.length.all()) {
            run.rates = rates_of(done, options_.length, items);
            return;
        }
    }
    run.error = child.signal != 0 ? fmt::format("its process ended by signal {}", child.signal)
                : child.status == 0 || child.last_error.empty() ? "it did not print its result"
                                                                : child.last_error;
}

int Bench::run() {
    const StopSignals listening;
    bool any = false;
    for (BenchRun& run : result_.runs) {
        fmt::print(stderr, "Running {} steps on {} rank(s) over {} ...\n", options_.length.all(), run.ranks,
                   run.engine);
        measure(run);
        if (StopSignals::received() != 0) return kSignalled + StopSignals::received();
        any = any || run.error.empty();
        if (!options_.json) fmt::print("{}\n", bench_text(result_, run));
        std::fflush(stdout);
    }
    compare_with_one_rank(result_);
    if (options_.json) {
        fmt::print("{}", bench_json(result_));
    } else if (result_.runs.size() > 1) {
        fmt::print("{}", bench_table(result_));
    }
    return any ? 0 : kFailed;
}

}  // namespace

int bench(const std::string& file, const std::vector<job::Override>& overrides, const BenchOptions& options) {
    return Bench(file, overrides, options).run();
}

}  // namespace shardscope::trainer::cli
