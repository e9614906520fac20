// The options as a table of CLI11, then the rules for combining them.
#include "profiler/record/command_line.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "profiler/record/option_values.h"
#include "shardscope/version.h"
#include "traces/report/text_table.h"
#include "traces/schema/schema.h"
#include "traces/status/address.h"

namespace shardscope::profiler {
namespace {

constexpr std::int64_t kSmallestFile = 1 << 20;  // of --max-size

constexpr const char* kFooter =
    "Runs COMMAND and writes what it does to a trace: NVTX ranges and marks, CUDA's kernels, copies and "
    "calls,\n"
    "NCCL's operations, processor, memory and GPU use, with its processes and threads. Works with any "
    "program,\n"
    "with or without a GPU, and with the processes that it forks or executes.\n\n"
    "Where a launcher (torchrun, mpirun, srun) starts one shardscope-record for each rank, each writes a "
    "trace\n"
    "of its own: -o run.sqlite gives run.rank0.sqlite, run.rank1.sqlite … Patterns in the name: %r the rank, "
    "%p\n"
    "the process id, %h the host, %q{NAME} an environment variable, %% a percent sign.\n\n"
    "The exit status is the command's; 128+n when signal n ended it, 127 when it was not found, 126 when it\n"
    "could not be executed, and 125 when shardscope-record could not start it.\n\n"
    "Examples:  shardscope-record -o run.sqlite -- python3 train.py --epochs 1\n"
    "           shardscope-record -o run.sqlite --steps 100:103 --ranks 0,8 -- torchrun train.py\n"
    "           shardscope-record -o end.sqlite --keep-last 60 --hang 300 -- python3 train.py\n";

// CLI11 does not know the part after "--".
class UsageWithCommand final : public CLI::Formatter {
  public:
    std::string make_usage(const CLI::App*, std::string) const override {
        return "Usage: shardscope-record [OPTIONS] -- COMMAND [ARG ...]\n";
    }
};

// The texts of options before they are parsed.
struct Texts {
    std::string steps, ranks, range, step_name = "ProfilerStep#", toggle, max_size, sample_by;
    bool profiler_api = false, step_name_given = false;
};

void add_options(CLI::App& app, RecordOptions& options, Texts& texts) {
    const auto seconds = CLI::Range(0.0, 1e9);
    const auto some_seconds = CLI::Range(1e-3, 1e9);
    app.add_option("-o,--output", options.output, "The trace to write [shardscope-COMMAND-PID.sqlite]")
        ->type_name("FILE");
    app.add_flag("--overwrite", options.overwrite, "Replace the file if it exists");
    app.add_flag("--nvtx,!--no-nvtx", options.nvtx, "Record NVTX ranges and marks [on]");
    app.add_flag("--cuda,!--no-cuda", options.cuda, "Record CUDA's kernels, copies, calls and memory [on]");
    app.add_flag("--whole-graphs", options.whole_graphs,
                 "Record each launch of a CUDA graph as one event, without its kernels, which costs less");
    app.add_flag("--nccl,!--no-nccl", options.nccl, "Record NCCL's own account of its operations [on]");
    app.add_flag("--counters,!--no-counters", options.counters,
                 "Sample processes, the host, its GPUs and network adapters ten times per second [on]");
    app.add_option("--sample", options.sample_hertz,
                   "Sample the stacks of threads HZ times per second of their processor time, such as 997 "
                   "[0: never]")
        ->type_name("HZ")
        ->check(CLI::Range(0, 10'000));
    app.add_option("--sample-by", texts.sample_by,
                   "Sample by perf events of the kernel (perf) or by timers inside the program (timer) only "
                   "[perf, or timer where the kernel refuses it]")
        ->type_name("MEANS")
        ->check(CLI::IsMember({"perf", "timer"}));
    app.add_option("--steps", texts.steps, "Record steps A to B, both included, by their NVTX ranges")
        ->type_name("A:B");
    app.add_option("--step-name", texts.step_name,
                   "The text before the number in the names of steps' ranges [ProfilerStep#]")
        ->type_name("PREFIX")
        ->each([&texts](const std::string&) { texts.step_name_given = true; });
    app.add_option("--range", texts.range, "Record while an NVTX range of that name is open")
        ->type_name("NAME");
    app.add_flag("--profiler-api", texts.profiler_api,
                 "Record between the program's cudaProfilerStart() and cudaProfilerStop()");
    app.add_option("--ranks", texts.ranks, "Record only these ranks, as in 0,8-11 [all]")->type_name("LIST");
    app.add_option("--delay", options.delay_s, "Start recording S seconds after the command [0]")
        ->type_name("S")
        ->check(seconds);
    app.add_option("--duration", options.duration_s, "Stop recording S seconds later; the command continues")
        ->type_name("S")
        ->check(seconds);
    app.add_option("--toggle", texts.toggle,
                   "Do not record until shardscope-record gets this signal (such as USR2); each further one "
                   "stops or starts it. With --keep-last each one writes a trace")
        ->type_name("SIGNAL");
    app.add_option("--max-size", texts.max_size,
                   "Most bytes of the finished trace, such as 500M or 2G: recording stops before it has "
                   "more, and the "
                   "command continues. With --keep-last: memory for what is kept [256M]")
        ->type_name("BYTES");
    app.add_option(
           "--keep-last", options.keep_last_s,
           "Keep the last S seconds in memory; write them only if the command fails, is killed or hangs")
        ->type_name("S")
        ->check(some_seconds);
    app.add_option_function<std::string>(
           "--status", [&options](const std::string& address) { options.status = address; },
           "Serve processes, memory, steps and where each rank is while the command runs, for "
           "shardscope-trace watch (docs/status.md): at HOST:PORT or a socket's path; without ADDRESS at a "
           "socket beside the trace")
        ->type_name("[ADDRESS]")
        ->expected(0, 1)
        ->default_str("");
    app.add_option("--hang", options.hang_s,
                   "With --keep-last: no event for S seconds counts as hanging [never]")
        ->type_name("S")
        ->check(some_seconds);
}

// Prefixes a parse error with the option's name.
template <typename Parse>
auto understood(const char* option, const std::string& text, Parse parse) {
    try {
        return parse(text);
    } catch (const std::invalid_argument& wrong) {
        throw std::invalid_argument(fmt::format("{}: {}", option, wrong.what()));
    }
}

// Throws std::invalid_argument.
void understand(RecordOptions& options, const Texts& texts) {
    const int windows = int{!texts.steps.empty()} + int{!texts.range.empty()} + int{texts.profiler_api};
    if (windows > 1) {
        throw std::invalid_argument(
            "--steps, --range and --profiler-api exclude each other: only one of them may say what is "
            "recorded");
    }
    if (!texts.sample_by.empty()) {
        if (options.sample_hertz == 0)
            throw std::invalid_argument("--sample-by works only with --sample; give both");
        options.sample_by = texts.sample_by == "perf" ? SampleBy::perf : SampleBy::timer;
    }
    if (texts.step_name_given && texts.steps.empty()) {
        throw std::invalid_argument("--step-name works only with --steps; give both");
    }
    if (!texts.steps.empty()) {
        options.window = WindowKind::steps;
        std::tie(options.first_step, options.last_step) = understood("--steps", texts.steps, parse_steps);
        options.range_name = texts.step_name;
    } else if (!texts.range.empty()) {
        options.window = WindowKind::range;
        options.range_name = texts.range;
    } else if (texts.profiler_api) {
        options.window = WindowKind::cuda_profiler;
        if (!options.cuda) throw std::invalid_argument("--profiler-api needs CUDA; omit --no-cuda");
    }
    if (options.range_name.size() >= sizeof SessionHeader::range_name) {
        throw std::invalid_argument(fmt::format("{}: the name is longer than {} bytes",
                                                texts.range.empty() ? "--step-name" : "--range",
                                                sizeof SessionHeader::range_name - 1));
    }
    if (!texts.ranks.empty()) options.ranks = understood("--ranks", texts.ranks, parse_ranks);
    if (!texts.max_size.empty()) options.max_bytes = understood("--max-size", texts.max_size, parse_bytes);
    if (options.max_bytes && *options.max_bytes < kSmallestFile && !options.keep_last_s)
        throw std::invalid_argument("--max-size: an empty trace takes half a megabyte; use 1M or more");
    if (!texts.toggle.empty()) options.toggle_signal = understood("--toggle", texts.toggle, parse_signal);
    const bool timed = options.delay_s > 0 || options.duration_s;
    if (options.toggle_signal != 0 && timed) {
        throw std::invalid_argument(
            "--toggle starts and stops recording; it excludes --delay and --duration");
    }
    if (options.keep_last_s && (timed || windows > 0)) {
        throw std::invalid_argument(
            "--keep-last records all the time; it excludes --delay, --duration, --steps, --range and "
            "--profiler-api");
    }
    if (options.status && !options.status->empty()) {
        try {
            traces::status::parse_address(*options.status);
        } catch (const traces::status::StatusError& wrong) {
            throw std::invalid_argument(fmt::format("--status: {}", wrong.what()));
        }
    }
    if (options.hang_s && !options.keep_last_s) {
        throw std::invalid_argument("--hang works only with --keep-last; give both");
    }
}

}  // namespace

CommandLine parse_command_line(int argc, char** argv) {
    // Everything after the first "--" belongs to the command, whatever it looks like.
    int own = 1;
    while (own < argc && std::strcmp(argv[own], "--") != 0) ++own;

    CommandLine line;
    for (int i = own + 1; i < argc; ++i) line.options.command.emplace_back(argv[i]);

    CLI::App app{"Records what a program does while it runs, into a trace database."};
    app.formatter(std::make_shared<UsageWithCommand>());
    app.footer(kFooter);
    app.set_version_flag("--version", fmt::format("shardscope-record {} (trace schema {})", kVersion,
                                                  traces::schema::kSchemaVersion));
    Texts texts;
    add_options(app, line.options, texts);
    try {
        app.parse(own, argv);
        understand(line.options, texts);
    } catch (const CLI::CallForHelp&) {
        fmt::print("{}", app.help());
        line.status = 0;
        return line;
    } catch (const CLI::CallForVersion& version) {
        fmt::print("{}\n", version.what());
        line.status = 0;
        return line;
    } catch (const CLI::ParseError& error) {
        fmt::print(stderr, "shardscope-record: {}; see --help (a command follows --)\n",
                   traces::report::printable(error.what()));
        line.status = kOwnFailure;
        return line;
    } catch (const std::invalid_argument& error) {
        fmt::print(stderr, "shardscope-record: {}\n", traces::report::printable(error.what()));
        line.status = kOwnFailure;
        return line;
    }
    if (line.options.command.empty()) {
        fmt::print(
            stderr,
            "shardscope-record: no command to record; write it after --, as in: shardscope-record -- ls\n");
        line.status = kOwnFailure;
    }
    return line;
}

}  // namespace shardscope::profiler
