// shardscope-train: reads the command line, loads the job, reports errors with the right exit status.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <shardscope/version.h>
#include <sys/stat.h>

#include "profiler/sampler/patient_thread.h"
#include "traces/report/text_table.h"
#include "traces/schema/schema.h"
#include "traces/store/apart.h"
#include "trainer/cli/bench_collectives.h"
#include "trainer/cli/bench_engines.h"
#include "trainer/cli/bench_verb.h"
#include "trainer/cli/calibrate_verb.h"
#include "trainer/cli/generate.h"
#include "trainer/cli/join.h"
#include "trainer/cli/launch.h"
#include "trainer/cli/lift_verb.h"
#include "trainer/cli/plan_verb.h"
#include "trainer/cli/rank_errors.h"
#include "trainer/cli/schedule_report.h"
#include "trainer/cli/schedule_verb.h"
#include "trainer/cli/sweep.h"
#include "trainer/cli/train.h"
#include "trainer/job/agreed.h"
#include "trainer/job/job.h"
#include "trainer/pipeline/schedule_table.h"

namespace {

using namespace shardscope::trainer;
using namespace shardscope::trainer::cli;

constexpr const char* kStatus =
    R"(Exit status: 0 done, 1 a failure of the work, 2 a wrong command line or job, 130 or 143 stopped by Ctrl-C
or SIGTERM: the first ends the run after its step, saves where checkpoint.save is set, and finishes the trace;
the second ends it immediately.

)";

constexpr const char* kSweepHelp =
    R"(Commas separate the values of a key: --fsdp.wrap=root,module:Linear. If a value contains commas itself, ';'
separates values, also after a single one: --fsdp.wrap='root;module:Block,Embedding'. Or the key is repeated, once
for each value: --fsdp.wrap=root --fsdp.wrap=module:Block,Embedding. Lists of numbers are in brackets:
--optimizer.betas=[0.9,0.95],[0.9,0.999].

Each combination is trained in a process of its own, one after the other. Its trace is called by what differs:
FOLDER/wrap=module-Linear,cpu_offload=true.sqlite. One that is impossible, or that fails, is a row with its reason.

Exit status: 0 at least one combination ran (--dry-run: can be), 1 none did or a process crashed, 2 a wrong
command line or job, 130 or 143 stopped by Ctrl-C or SIGTERM, which end the run that is going on as they end a
run without sweep.
)";

constexpr const char* kPlanHelp =
    R"(The search tries: fsdp.wrap x parallel.mode and fsdp.sharding_strategy x fsdp.cpu_offload x
memory.offload x memory.nvme (of a job that has it) x memory.activation_checkpointing x fsdp.backward_prefetch x
fsdp.limit_all_gathers x fsdp.layout x precision.param x train.accumulation, the values that suit the model and the
cluster (sim.cluster), and the job's own.
--section.key=value keeps a key as it is; any key may have several values, written as for sweep, which are tried in
turn: --data.batch=1,2,4 --run.ranks=8,64.
With --meshes it tries parallel.tensor x parallel.context x parallel.pipeline and its schedules x parallel.expert x
shard groups and copies x sizes of micro-batches x memory.activation_checkpointing instead, for the job's samples per
step, and prints the best of each with its place on the nodes.
The limit is run.memory_limit, otherwise the memory of the cluster's devices.

Exit status: 0 something fits, 1 nothing does, 2 a wrong command line or job, 130 or 143 stopped by Ctrl-C or
SIGTERM, which print what is known by then; the second ends the search immediately.

For a trace (a database of shardscope-trace or PyTorch's own JSON, of FSDP or DDP; a folder of all ranks' files):
the recorded step is replayed as it was, its error is in the first line, and then under other keys of
[parallel], [fsdp] and [ddp], with --bandwidth or --cluster. --write takes the row whose lines of PyTorch are
printed, --as FILE.sqlite its trace. docs/counterfactuals.md says what a trace must have.
)";

constexpr const char* kCalibrateHelp =
    R"(The model has every section of a file of samples/clusters: rates and efficiency curves of each class of kernels
and of each kernel, latencies, the host's operations, copies, collectives, the cores that ranks share. Each figure
says where it comes from; what no trace shows is the base model's. Give traces of several jobs that together do what
the jobs to be simulated do: some of one rank (rates of a core that is alone), some of several (collectives, cores
that are shared), with twenty steps or more, of a machine that does nothing else. A trace of --bench-collectives
gives collectives by size and, with --pairs, the links between ranks.

The output lists the model's error by class and type of kernel, and for each trace the median step next to the
simulated one.

Exit status: 0 done, 1 the model cannot be written, 2 a wrong command line, or a trace that nothing can be learned
from.
)";

constexpr const char* kScheduleHelp =
    R"(A rank does its actions in their order, each as soon as its inputs are there; idle time is divided by its cause.
Training with a pipeline is not there yet: this shows the schedules alone (docs/pipeline.md).

FILE.csv is a table of actions as PyTorch's schedules write it (_dump_csv): a line per rank, a cell per action
(3F2, 7I0, (0F7;7B3)OVERLAP_F_B), blank cells ignored. It is checked: missing and doubled actions, their order,
transfers, deadlocks. --format csv prints such a table; for all, the comparison.

JSON: the keys of the two lists. Times are in the units of --costs.

{}
Exit status: 0 done, 1 the file cannot be written, 2 a wrong command line or a schedule that cannot run.
)";

constexpr const char* kBenchHelp =
    R"(Trains the job for --warm-up steps, then times --iterations of --steps each, and prints images, tokens or samples
per second of a rank, their mean +- 1.96 standard deviations of the iterations, and the total, in the form of
Horovod's synthetic benchmarks. Nothing is recorded, validated or saved. data.batch is that of a rank.

--engines runs it over each: local (ranks are threads), tcp, gloo and mpi (ranks are processes of this machine), nccl
(GPUs). One that is not there is a row that says why. With 1 among --ranks, the efficiency of the others is their
total over that of one rank times their number; one rank needs no engine and is measured once.

Exit status: 0 at least one was measured, 1 none, 2 a wrong command line or job, 130 or 143 stopped by Ctrl-C or
SIGTERM.
)";

// If ranks are processes, only rank 0 reports errors in the command line or the job.
bool g_silent = false;

int complain(const std::exception& error) {
    const int status = status_of(error);
    if (g_silent && status == kWrongUse) return status;
    fmt::print(stderr, "shardscope-train: {}\n", shardscope::traces::report::printable(sentence_of(error)));
    return status;
}

std::string version_text() {
    return fmt::format("shardscope-train {} (trace schema {})", shardscope::kVersion,
                       shardscope::traces::schema::kSchemaVersion);
}

// Arguments that both command lines share: the job file, --format, --overwrite, --dry-run.
struct Common {
    std::string file, format = "table";
    bool dry_run = false, overwrite = false;

    bool json() const { return format == "json"; }
    // If `dry_run_help` is null, there is no --dry-run.
    void add_to(CLI::App& app, const char* dry_run_help, const char* file_name = "JOB.toml",
                const char* file_help = "The job file",
                const std::vector<std::string>& formats = {"table", "json"}) {
        app.set_version_flag("--version", version_text());
        app.add_option(file_name, file, file_help)->required();
        app.add_flag("--overwrite", overwrite, "Replace an existing trace (run.overwrite)");
        app.add_option("--format", format, "Format of the result on standard output")
            ->check(CLI::IsMember(formats))
            ->capture_default_str();
        if (dry_run_help) app.add_flag("--dry-run", dry_run, dry_run_help);
    }
};

// Parses the arguments into `app` and takes the job's keys out of them. Returns a status if the help was
// printed or the command line is wrong; nothing if the caller should continue. Throws JobError.
std::optional<int> parse(CLI::App& app, std::vector<std::string> arguments,
                         std::vector<job::Override>& overrides) {
    try {
        overrides = job::take_overrides(arguments);
        std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 expects them
        app.parse(reversed);
    } catch (const CLI::Success& success) {
        return g_silent ? 0 : app.exit(success);
    } catch (const CLI::ParseError& error) {
        if (!g_silent) fmt::print(stderr, "shardscope-train: {}; --help shows the usage\n", error.what());
        return kWrongUse;
    }
    return std::nullopt;
}

// A job whose processes have joined.
struct JoinedJob {
    JoinedJob(const world::Place& place, std::optional<job::Job> read)
        : joined(place, read ? &*read : nullptr) {
        if (read) job = std::move(*read);
    }
    Joined joined;
    job::Job job;
};

// Joins the other processes, even if the job could not be read, to report that.
template <class Load>
std::unique_ptr<JoinedJob> join(const world::Place& place, const Load& load) {
    std::optional<job::Job> job;
    std::exception_ptr problem;
    try {
        job = load();
    } catch (const job::JobError&) {
        problem = std::current_exception();
    }
    auto joined = std::make_unique<JoinedJob>(place, std::move(job));
    together(&joined->joined, [&] {
        if (problem) std::rethrow_exception(problem);
    });
    // Ranks with different jobs would otherwise train together, each by its own job.
    const std::string first = joined->joined.world().broadcast(agreed_values(joined->job));
    together(&joined->joined, [&] { check_agreed(joined->job, first); });
    return joined;
}

int run_sweep(const std::vector<std::string>& arguments) {
    CLI::App app{"Trains every combination of the values given and compares memory, time and communication.",
                 "shardscope-train sweep"};
    app.footer(std::string(kSweepHelp) + "\n" + job::job_help());
    Common common;
    SweepOptions options;
    common.add_to(app, "Predict the peak memory of every combination; train nothing");
    app.add_option("-o,--output", options.folder, "Folder of the traces; sweep-JOB, here, if none is given");
    app.add_option("--to-loss", options.to_loss,
                   "Also the time until each run's training loss was first so low")
        ->excludes("--dry-run");
    std::vector<job::Override> overrides;
    if (const auto status = parse(app, arguments, overrides)) return *status;
    options.json = common.json();
    options.dry_run = common.dry_run;
    options.overwrite = common.overwrite;
    return sweep(common.file, make_grid(overrides), options);
}

int run_plan(const std::vector<std::string>& arguments) {
    CLI::App app{
        "Predicts which configurations of a job fit a cluster, how fast they are, and which to choose.",
        "shardscope-train plan"};
    app.footer(std::string(kPlanHelp) + "\n" + job::job_help());
    Common common;
    PlanOptions options;
    LiftOptions lift;
    common.add_to(app, nullptr, "FILE", "The job file, or a trace of FSDP or DDP");
    app.add_option("-o,--output", options.output, "Database of all rows (SHARD_PLAN)");
    app.add_flag("--all", options.all, "Print every row, not only the Pareto front and the best of the rest");
    CLI::Option* bandwidth = app.add_option(
        "--bandwidth", lift.bandwidth, "For a trace: every collective at this bus bandwidth, GB/s (10^9)");
    CLI::Option* cluster = app.add_option("--cluster", lift.cluster,
                                          "For a trace: collectives over the links of this cost model");
    CLI::Option* only = app.add_flag("--only", lift.only, "For a trace: vary only the keys that are given");
    app.add_flag("--time-all", options.time_all,
                 "Also simulate configurations that do not fit, as if the devices had more memory");
    CLI::Option* meshes = app.add_flag(
        "--meshes", options.meshes,
        "For a job: divide its ranks into tensor groups, pipelines, shard groups and copies in every way");
    app.add_option("--write", options.write,
                   "Write this row (a number, or best); alone, without -o, only this row is tried");
    app.add_option(
        "--as", options.files,
        "Output: FILE.toml, a job file that can be run; FILE.sqlite, its simulated trace; or both");
    std::vector<job::Override> overrides;
    if (const auto status = parse(app, arguments, overrides)) return *status;
    options.json = common.json();
    options.overwrite = common.overwrite;
    if (bandwidth->count() > 0 && !(lift.bandwidth > 0))
        throw job::JobError("command line: --bandwidth: give GB/s, a number above 0");
    if (meshes->count() > 0 && is_trace(common.file)) {
        throw job::JobError(
            "command line: --meshes: it is for job files; a trace is replayed under the keys that are given");
    }
    if (is_trace(common.file)) return plan_trace(common.file, overrides, options, lift);
    if (only->count() > 0)
        throw job::JobError("command line: --only: it is for traces; --write ROW tries one row of a job");
    for (const CLI::Option* own : {bandwidth, cluster}) {
        if (own->count() > 0) {
            throw job::JobError(
                fmt::format("command line: {}: it is for traces; a job names its cluster with --sim.cluster",
                            own->get_name()));
        }
    }
    return cli::plan(common.file, overrides, options);
}

int run_calibrate(const std::vector<std::string>& arguments) {
    CLI::App app{"Fits a cost model (sim.cluster) to traces of runs of this trainer.",
                 "shardscope-train calibrate"};
    app.footer(kCalibrateHelp);
    app.set_version_flag("--version", version_text());
    std::vector<std::string> traces;
    std::string format = "table";
    CalibrateOptions options;
    app.add_option("TRACE", traces,
                   "Traces of runs, or of --bench-collectives, on the cpu or the cuda device")
        ->required();
    app.add_option("-o,--output", options.output, "The model: a .toml file")->required();
    app.add_option("--base", options.base,
                   "Model for figures that no trace shows: a shipped name or a file; default: laptop for the "
                   "cpu device, else a model of such GPUs");
    app.add_flag("--overwrite", options.overwrite, "Replace an existing model");
    app.add_option("--format", format, "Format of the result on standard output")
        ->check(CLI::IsMember({"table", "json"}))
        ->capture_default_str();
    std::vector<job::Override> none;
    if (const auto status = parse(app, arguments, none)) return *status;
    if (!none.empty()) {
        throw job::JobError(
            fmt::format("command line: --{}: a trace stores its job, so calibrate takes no keys; omit it",
                        none.front().key));
    }
    options.json = format == "json";
    return calibrate_traces(traces, options);
}

int run_schedule(const std::vector<std::string>& arguments) {
    CLI::App app{
        "Shows a pipeline schedule: what each rank does at which time, idle time and its causes, activations "
        "in flight.",
        "shardscope-train schedule"};
    app.footer(fmt::format(kScheduleHelp, schedule_keys()));
    app.set_version_flag("--version", version_text());
    ScheduleOptions options;
    app.add_option("SCHEDULE", options.what,
                   fmt::format("{}, all, or FILE.csv", shardscope::trainer::pipeline::schedule_names()))
        ->capture_default_str();
    app.add_option("-p,--pipeline", options.pipeline, "Ranks");
    app.add_option("-m,--micro-batches", options.micro_batches, "Micro-batches per step");
    app.add_option("-c,--chunks", options.chunks, "Stages per rank, of schedules that have a choice (2)");
    app.add_option("--costs", options.costs,
                   "Times of forward, backward input and backward weight of a chunk, such as 1,1,1 or "
                   "1.5,4/3,1; with "
                   "all, of the stages of a rank together")
        ->capture_default_str();
    app.add_option("--transfer", options.transfer, "Time until a result is on another rank")
        ->capture_default_str();
    app.add_flag("--comms", options.transfers,
                 "The actions with what PyTorch's runtime adds: SEND, RECV, UNSHARD, RESHARD, REDUCE_GRAD");
    app.add_option("-o,--output", options.output, "Write the actions into this .csv file");
    app.add_option(
        "--trace", options.trace,
        "Write the replay as a trace of one step, a unit as 1 ms, for shardscope-trace and the viewer");
    app.add_flag("--overwrite", options.overwrite, "Replace an existing file");
    app.add_option("--format", options.format, "Format of the result on standard output")
        ->check(CLI::IsMember({"table", "json", "csv"}))
        ->capture_default_str();
    std::vector<job::Override> none;
    if (const auto status = parse(app, arguments, none)) return *status;
    if (!none.empty())
        throw job::JobError(
            fmt::format("command line: --{}: schedule takes no keys of a job; omit it", none.front().key));
    return show_schedule(options);
}

int run_bench(const std::vector<std::string>& arguments) {
    CLI::App app{"Measures how many images, tokens or samples a second a job trains on.",
                 "shardscope-train bench"};
    app.footer(std::string(kBenchHelp) + "\n" + job::job_help());
    app.set_version_flag("--version", version_text());
    std::string file, format = "table";
    BenchOptions options;
    app.add_option("JOB.toml", file, "The job file")->required();
    const auto add_count = [&](const char* name, int& value, const char* help) {
        app.add_option(name, value, help)->check(CLI::Range(1, 100000))->capture_default_str();
    };
    add_count("--warm-up", options.length.warm_up, "Steps before the first that is timed");
    add_count("--iterations", options.length.iterations, "Times that are measured");
    add_count("--steps", options.length.steps, "Steps of each");
    app.add_option("--ranks", options.ranks,
                   "Numbers of ranks, such as 1,2,4; the job's own if none is given")
        ->delimiter(',')
        ->check(CLI::Range(1, 256));
    std::vector<std::string> engines = bench_engines();
    engines.emplace_back("all");
    app.add_option("--engines", options.engines,
                   "Engines of collectives, with commas; the job's own if none is given")
        ->delimiter(',')
        ->check(CLI::IsMember(engines));
    app.add_option("--format", format, "Format of the result on standard output")
        ->check(CLI::IsMember({"table", "json"}))
        ->capture_default_str();
    std::vector<job::Override> overrides;
    if (const auto status = parse(app, arguments, overrides)) return *status;
    if (std::find(options.engines.begin(), options.engines.end(), "all") != options.engines.end())
        options.engines = bench_engines();
    options.json = format == "json";
    return bench(file, overrides, options);
}

// A command of the tool besides training.
struct Verb {
    const char* name;
    const char* help;
    int (*run)(const std::vector<std::string>& arguments);
};
constexpr Verb kVerbs[] = {
    {"sweep", "the same for every combination of some values", run_sweep},
    {"bench", "images, tokens or samples a second, over engines and numbers of ranks", run_bench},
    {"plan", "which configuration of a job fits a cluster, and which is the fastest", run_plan},
    {"calibrate", "a cost model for simulations from traces of runs", run_calibrate},
    {"schedule", "pipeline schedules: a picture, idle time, memory in flight, a comparison", run_schedule},
};

int run_train(const std::vector<std::string>& arguments) {
    std::string description = "Trains a model under FSDP or DDP and records what it does.";
    for (const Verb& verb : kVerbs)
        description += fmt::format("\nshardscope-train {} --help: {}.", verb.name, verb.help);
    CLI::App app{description, "shardscope-train"};
    app.footer(std::string(kStatus) + "Every key of the job file can be given as --section.key=value:\n\n" +
               job::job_help());
    Common common;
    std::string trace;
    GenerateOptions generation;
    CollectivesBenchOptions bench;
    common.add_to(app, "Print the Plan with its predicted peak memory; train nothing", "JOB.toml",
                  "The job file", {"table", "json", "csv"});
    app.add_option("--trace", trace, "Record a trace into this SQLite file (run.trace)");
    CLI::Option* continuation =
        app.add_option("--generate", generation.texts,
                       "Print this text as the model of checkpoint.load continues it; train nothing. Several "
                       "are continued together (docs/generation.md)")
            ->expected(1)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    app.add_option("--tokens", generation.tokens, "With --generate: how many tokens follow each text (400)")
        ->needs(continuation)
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}));
    app.add_flag("!--no-cache", generation.cache,
                 "With --generate: compute the whole context again for each token, without a key/value cache")
        ->needs(continuation);
    app.add_option(
           "--weights", generation.weights,
           "With --generate: what the weights of linear layers are held in, fp32 or int8 with a scale "
           "for each row (fp32)")
        ->needs(continuation)
        ->check(CLI::IsMember({"fp32", "int8"}));
    std::optional<std::string> watched;
    app.add_option_function<std::string>(
           "--status", [&](const std::string& address) { watched = address; },
           "Serve progress, speed, memory and every rank's state while it runs, for shardscope-trace watch "
           "(docs/status.md): at HOST:PORT or a socket's path; without ADDRESS at a socket beside the trace")
        ->type_name("[ADDRESS]")
        ->expected(0, 1)
        ->default_str("")
        ->excludes("--dry-run")
        ->excludes(continuation);
    CLI::Option* benches =
        app.add_flag("--bench-collectives", bench.wanted,
                     "Measure the job's collectives and messages by operation and size, or predict them on "
                     "run.device=sim; train nothing (docs/processes.md)")
            ->excludes("--dry-run")
            ->excludes("--status")
            ->excludes(continuation);
    app.add_option(
           "--sizes", bench.sizes,
           "FROM:TO in bytes, with K, M or G of 1024: the sizes of --bench-collectives, these two and "
           "the powers of four between them (8:64M)")
        ->needs(benches);
    app.add_flag("--messages", bench.messages,
                 "With --bench-collectives: messages between ranks alone, without the collectives")
        ->needs(benches);
    app.add_flag("--pairs", bench.pairs,
                 "With --bench-collectives: also the messages between every two ranks, as matrices")
        ->needs(benches);
    std::vector<std::string> engines = bench_engines();
    engines.emplace_back("all");
    app.add_option(
           "--engines", bench.engines,
           "With --bench-collectives: engines of collectives side by side, with commas, or all; each is "
           "measured in a run of its own, and one that is not there is a line that says why")
        ->delimiter(',')
        ->needs(benches)
        ->check(CLI::IsMember(engines));
    std::vector<job::Override> overrides;
    const std::optional<world::Place> place =
        world::place_from_environment([](const char* name) { return std::getenv(name); });
    g_silent = place && place->rank > 0;
    if (const auto status = parse(app, arguments, overrides)) return *status;
    if (std::find(bench.engines.begin(), bench.engines.end(), "all") != bench.engines.end())
        bench.engines = bench_engines();
    bench.format = common.format;
    if (!bench.wanted && common.format == "csv") {
        if (!g_silent)
            fmt::print(stderr,
                       "shardscope-train: --format csv is of --bench-collectives; use table or json\n");
        return kWrongUse;
    }
    job::Launched launched;
    if (place) launched = {place->ranks, place->local_ranks, name(place->launcher)};
    const auto load = [&] {
        if (bench.wanted) check(bench);
        if (place && !bench.engines.empty())
            throw job::JobError(
                "command line: --engines starts the ranks itself, and a launcher has started this one; omit "
                "--engines, or the launcher");
        job::Job job = load_job(common.file, overrides, launched);
        // The file's trace is that of its training.
        if (!trace.empty() || continuation->count() > 0) job.run.trace = trace;
        if (common.overwrite) job.run.overwrite = true;
        if (shardscope::traces::store::same_file(common.file, job.run.trace)) {
            throw job::JobError(
                fmt::format("{} is both read and written; choose another path for the trace", common.file));
        }
        return job;
    };
    const bool generates = continuation->count() > 0;
    const auto carry_out = [&](const job::Job& job, Joined* joined) {
        if (bench.wanted) return bench_collectives(job, bench, joined);
        TrainOptions options;
        options.json = common.json();
        options.dry_run = common.dry_run;
        options.joined = joined;
        if (watched) options.status = {*watched, common.file};
        return train(job, options);
    };
    if (place && !generates) {
        const auto joined = join(*place, load);
        return carry_out(joined->job, &joined->joined);
    }
    const job::Job job = load();
    generation.json = common.json();
    generation.dry_run = common.dry_run;
    if (generates) return g_silent ? 0 : generate(job, generation);
    if (!bench.engines.empty()) return bench_collectives_of_engines(common.file, overrides, job, bench);
    if (job.run.processes > 1 && !common.dry_run) return launch(arguments, job);
    return carry_out(job, nullptr);
}

int run(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    for (const Verb& verb : kVerbs) {
        if (!arguments.empty() && arguments.front() == verb.name)
            return verb.run({arguments.begin() + 1, arguments.end()});
    }
    return run_train(arguments);
}

int run_and_complain(int argc, char** argv) {
    constexpr const char* kFullOutput =
        "shardscope-train: standard output cannot be written; check where it goes\n";
    ::umask(::umask(S_IWOTH) | S_IWOTH);  // checkpoints and reports are never world-writable
    try {
        const int status = run(argc, argv);
        if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
        fmt::print(stderr, "{}", kFullOutput);
        return kFailed;
    } catch (const FailureReported&) {
        return kFailed;
    } catch (const ReportedTogether& all) {
        return all.status();
    } catch (const std::exception& error) {
        if (std::ferror(stdout) == 0 || status_of(error) == kWrongUse) return complain(error);
        fmt::print(stderr, "{}", kFullOutput);
        return kFailed;
    }
}

}  // namespace

int main(int argc, char** argv) {
    const int status = run_and_complain(argc, argv);
    if (shardscope::profiler::PatientThread::any_left_behind()) {  // it may still use what exit() destroys
        std::fflush(nullptr);
        std::_Exit(status);
    }
    return status;
}
