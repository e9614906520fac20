// shardscope-train: reads the command line, loads the job, reports errors with the right exit status.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <shardscope/version.h>

#include "traces/schema/schema.h"
#include "traces/store/error.h"
#include "trainer/cli/train.h"
#include "trainer/data/dataset.h"
#include "trainer/job/job.h"

namespace {

constexpr int kFailed = 1;
constexpr int kWrongUse = 2;

int complain(const std::exception& error, int status) {
    fmt::print(stderr, "shardscope-train: {}\n", error.what());
    return status;
}

int run(int argc, char** argv) {
    using namespace shardscope::trainer;
    std::vector<std::string> arguments(argv + 1, argv + argc);
    std::vector<Override> overrides;
    CLI::App app{"Trains a model under FSDP or DDP and records what it does.", "shardscope-train"};
    app.set_version_flag("--version", fmt::format("shardscope-train {} (trace schema {})",
                                                  shardscope::kVersion, shardscope::traces::kSchemaVersion));
    app.footer("Every key of the job file can be given as --section.key=value:\n\n" + job_help());
    std::string file, trace, format = "table";
    bool overwrite = false;
    TrainOptions options;
    app.add_option("JOB.toml", file, "The job file")->required();
    app.add_option("--trace", trace, "Record a trace into this SQLite file (run.trace)");
    app.add_flag("--overwrite", overwrite, "Replace an existing trace (run.overwrite)");
    app.add_option("--format", format, "Of the result on standard output")
        ->check(CLI::IsMember({"table", "json"}))
        ->capture_default_str();
    app.add_flag("--dry-run", options.dry_run,
                 "Print the Plan with its predicted peak memory; train nothing");
    try {
        overrides = take_overrides(arguments);
        std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants them
        app.parse(reversed);
    } catch (const CLI::Success& success) {
        return app.exit(success);
    } catch (const CLI::ParseError& error) {
        fmt::print(stderr, "shardscope-train: {}; --help shows the usage\n", error.what());
        return kWrongUse;
    } catch (const JobError& error) {
        return complain(error, kWrongUse);
    }
    options.json = format == "json";
    try {
        Job job = load_job(file, overrides);
        if (!trace.empty()) job.run.trace = trace;
        if (overwrite) job.run.overwrite = true;
        return train(job, options);
    } catch (const JobError& error) {
        return complain(error, kWrongUse);
    } catch (const DataError& error) {
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
