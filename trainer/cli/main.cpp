// shardscope-train: reads the command line, loads the job, reports errors with the right exit status.
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <shardscope/version.h>

#include "traces/schema/schema.h"
#include "traces/store/error.h"
#include "trainer/checkpoint/error.h"
#include "trainer/cli/generate.h"
#include "trainer/cli/sweep.h"
#include "trainer/cli/train.h"
#include "trainer/data/dataset.h"
#include "trainer/job/job.h"

namespace {

using namespace shardscope::trainer;

constexpr int kFailed = 1;
constexpr int kWrongUse = 2;

constexpr const char* kStatus =
    R"(Exit status: 0 done, 1 a failure of the work, 2 a wrong command line or job, 130 or 143 stopped by Ctrl-C
or SIGTERM: the first ends the run after its step, saves where checkpoint.save is set, and finishes the trace;
the second ends it at once.

)";

constexpr const char* kSweepHelp =
    R"(Commas separate the values of a key: --fsdp.wrap=root,module:Linear. Where a value holds commas itself, ';'
does, also behind a single one: --fsdp.wrap='root;module:Block,Embedding'. Or the key is given once for each
value, as it stands: --fsdp.wrap=root --fsdp.wrap=module:Block,Embedding. Lists of numbers stand in brackets:
--optimizer.betas=[0.9,0.95],[0.9,0.999].

Each combination is trained in a process of its own, one after the other. Its trace is called by what differs:
FOLDER/wrap=module-Linear,cpu_offload=true.sqlite. One that cannot be, or that fails, is a row with its reason.

Exit status: 0 at least one combination ran (--dry-run: can be), 1 none did or a process crashed, 2 a wrong
command line or job, 130 or 143 stopped by Ctrl-C or SIGTERM, which end the run that is going on as they end a
run without sweep.
)";

int complain(const std::exception& error, int status) {
    fmt::print(stderr, "shardscope-train: {}\n", error.what());
    return status;
}

// What both command lines share: the job file, --format, --overwrite, --dry-run.
struct Common {
    std::string file, format = "table";
    bool dry_run = false, overwrite = false;

    bool json() const { return format == "json"; }
    void add_to(CLI::App& app, const char* dry_run_help) {
        app.set_version_flag("--version",
                             fmt::format("shardscope-train {} (trace schema {})", shardscope::kVersion,
                                         shardscope::traces::kSchemaVersion));
        app.add_option("JOB.toml", file, "The job file")->required();
        app.add_flag("--overwrite", overwrite, "Replace an existing trace (run.overwrite)");
        app.add_option("--format", format, "Of the result on standard output")
            ->check(CLI::IsMember({"table", "json"}))
            ->capture_default_str();
        app.add_flag("--dry-run", dry_run, dry_run_help);
    }
};

// Fills what `app` was given and takes the job's keys out of it. A status: the help was printed, or the
// command line is wrong; nothing: go on. Throws JobError.
std::optional<int> parse(CLI::App& app, std::vector<std::string> arguments,
                         std::vector<Override>& overrides) {
    try {
        overrides = take_overrides(arguments);
        std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants them
        app.parse(reversed);
    } catch (const CLI::Success& success) {
        return app.exit(success);
    } catch (const CLI::ParseError& error) {
        fmt::print(stderr, "shardscope-train: {}; --help shows the usage\n", error.what());
        return kWrongUse;
    }
    return std::nullopt;
}

int run_sweep(const std::vector<std::string>& arguments) {
    CLI::App app{"Trains every combination of the values given and compares memory, time and communication.",
                 "shardscope-train sweep"};
    app.footer(std::string(kSweepHelp) + "\n" + job_help());
    Common common;
    SweepOptions options;
    common.add_to(app, "Predict the peak memory of every combination; train nothing");
    app.add_option("-o,--output", options.folder, "Folder of the traces; sweep-JOB, here, if none is given");
    std::vector<Override> overrides;
    if (const auto status = parse(app, arguments, overrides)) return *status;
    options.json = common.json();
    options.dry_run = common.dry_run;
    options.overwrite = common.overwrite;
    return sweep(common.file, make_grid(overrides), options);
}

int run_train(const std::vector<std::string>& arguments) {
    CLI::App app{
        "Trains a model under FSDP or DDP and records what it does.\n"
        "shardscope-train sweep --help: the same for every combination of some values.",
        "shardscope-train"};
    app.footer(std::string(kStatus) + "Every key of the job file can be given as --section.key=value:\n\n" +
               job_help());
    Common common;
    std::string trace, prompt;
    common.add_to(app, "Print the Plan with its predicted peak memory; train nothing");
    CLI::Option* record =
        app.add_option("--trace", trace, "Record a trace into this SQLite file (run.trace)");
    [[maybe_unused]] CLI::Option* continuation =
        app.add_option("--generate", prompt,
                       "Print this text as the model of checkpoint.load continues it; train nothing")
            ->excludes("--dry-run")
            ->excludes("--format")
            ->excludes(record);
    std::vector<Override> overrides;
    if (const auto status = parse(app, arguments, overrides)) return *status;
    Job job = load_job(common.file, overrides);
    if (!trace.empty()) job.run.trace = trace;
    if (common.overwrite) job.run.overwrite = true;
    if (continuation->count() > 0) return generate(job, prompt);
    return train(job, {.json = common.json(), .dry_run = common.dry_run});
}

int run(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    try {
        if (!arguments.empty() && arguments.front() == "sweep")
            return run_sweep({arguments.begin() + 1, arguments.end()});
        return run_train(arguments);
    } catch (const JobError& error) {
        return complain(error, kWrongUse);
    } catch (const DataError& error) {
        return complain(error, kWrongUse);
    } catch (const CheckpointError& error) {
        return complain(error, kWrongUse);
    } catch (const shardscope::traces::StoreError& error) {
        return complain(error, kWrongUse);
    }
}

}  // namespace

int main(int argc, char** argv) {
    constexpr const char* kFullOutput =
        "shardscope-train: standard output cannot be written; check where it goes\n";
    try {
        const int status = run(argc, argv);
        if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
        fmt::print(stderr, "{}", kFullOutput);
        return kFailed;
    } catch (const std::bad_alloc&) {
        fmt::print(stderr,
                   "shardscope-train: not enough memory for this job; make the model, the batch or run.ranks "
                   "smaller\n");
        return kFailed;
    } catch (const std::exception& error) {
        if (std::ferror(stdout) == 0) return complain(error, kFailed);
        fmt::print(stderr, "{}", kFullOutput);
        return kFailed;
    }
}
