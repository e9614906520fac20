// shardscope-record: the command line.
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "profiler/record/record_command.h"
#include "shardscope/version.h"
#include "traces/schema/schema.h"

namespace {

constexpr int kOwnFailure = 125;

constexpr const char* kFooter =
    "Runs COMMAND and writes its NVTX ranges and marks, with its processes and threads, to a trace. Works "
    "with\n"
    "any program that calls NVTX (PyTorch, NCCL, CUDA libraries, your own), with or without a GPU, and with "
    "the\n"
    "processes that it forks or executes. When launched by mpirun, srun or torchrun, ranks are recorded.\n\n"
    "The exit status is the command's; 128+n when signal n ended it, 127 when it was not found, 126 when it "
    "could\n"
    "not be executed, and 125 for a failure of shardscope-record itself.\n\n"
    "Example:  shardscope-record -o run.sqlite -- python3 train.py --epochs 1\n";

// CLI11 does not know of the part behind "--".
class UsageWithCommand final : public CLI::Formatter {
  public:
    std::string make_usage(const CLI::App*, std::string) const override {
        return "Usage: shardscope-record [OPTIONS] -- COMMAND [ARG ...]\n";
    }
};

}  // namespace

int main(int argc, char** argv) try {
    using namespace shardscope;
    // All behind the first "--" is the command's, whatever it looks like.
    int own = 1;
    while (own < argc && std::strcmp(argv[own], "--") != 0) ++own;

    profiler::RecordOptions options;
    for (int i = own + 1; i < argc; ++i) options.command.emplace_back(argv[i]);

    CLI::App app{"Records what a program does while it runs, into a trace database."};
    app.formatter(std::make_shared<UsageWithCommand>());
    app.footer(kFooter);
    app.set_version_flag(
        "--version", fmt::format("shardscope-record {} (trace schema {})", kVersion, traces::kSchemaVersion));
    app.add_option("-o,--output", options.output, "The trace to write [shardscope-COMMAND-PID.sqlite]")
        ->type_name("FILE");
    app.add_flag("--overwrite", options.overwrite, "Replace the file if it exists");
    app.add_flag("--nvtx,!--no-nvtx", options.nvtx, "Record NVTX ranges and marks [on]");
    app.add_option("--delay", options.delay_s, "Start recording S seconds after the command [0]")
        ->type_name("S")
        ->check(CLI::Range(0.0, 1e9));
    app.add_option("--duration", options.duration_s, "Stop recording S seconds later; the command goes on")
        ->type_name("S")
        ->check(CLI::Range(0.0, 1e9));
    try {
        app.parse(own, argv);
    } catch (const CLI::CallForHelp&) {
        fmt::print("{}", app.help());
        return 0;
    } catch (const CLI::CallForVersion& version) {
        fmt::print("{}\n", version.what());
        return 0;
    } catch (const CLI::ParseError& error) {
        fmt::print(stderr, "shardscope-record: {}; see --help (a command goes behind --)\n", error.what());
        return kOwnFailure;
    }
    if (options.command.empty()) {
        fmt::print(
            stderr,
            "shardscope-record: no command to record; write it behind --, as in: shardscope-record -- ls\n");
        return kOwnFailure;
    }
    return profiler::record(options);
} catch (const std::exception& error) {
    fmt::print(stderr, "shardscope-record: {}\n", error.what());
    return kOwnFailure;
}
