// shardscope-trace: asks a trace questions. Results on standard output, errors (one sentence) on standard
// error. Exit status: 0 done, 1 a failure of the work, 2 a wrong command line.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "shardscope/version.h"
#include "traces/cli/export_verb.h"
#include "traces/cli/long_work.h"
#include "traces/cli/merge_verbs.h"
#include "traces/cli/query_verb.h"
#include "traces/cli/report_verb.h"
#include "traces/cli/verbs.h"
#include "traces/report/result_page.h"
#include "traces/report/text_table.h"
#include "traces/schema/schema.h"
#include "traces/store/sqlite/query.h"

namespace {

using namespace shardscope::traces;

int complain(const std::string& what, int status) {
    fmt::print(stderr, "shardscope-trace: {}\n", printable(what));
    return status;
}

class CommandLine {
  public:
    CommandLine()
        : app_(
              "Asks a trace questions. A trace is a file of Shardscope, an SQLite export of Nsight Systems, "
              "Kineto or\nChrome JSON of PyTorch's profiler, a memory snapshot or a flight recorder's dump "
              "of "
              "PyTorch;\nplain or packed with gzip.",
              "shardscope-trace") {
        app_.set_version_flag(
            "--version", fmt::format("shardscope-trace {} (schema {})", shardscope::kVersion, kSchemaVersion),
            "Print the version of the tool and of the schema, and exit");
        app_.require_subcommand(1);
        app_.footer(
            "Exit status: 0 done, 1 a failure of the work, 2 a wrong command line.\n"
            "COMMAND --help tells more about each.");

        add_reader("info", "What a trace holds: ranks, steps, counts, configuration",
                   [this] { return run_info(inputs_); });
        CLI::App* summary = add_analysis("summary", "Execution Summary: where the time of a step went",
                                         [this] { return run_summary(inputs_, fold_communication_); });
        summary->add_flag("--fold-communication", fold_communication_,
                          "Communication counts as Kernel and has no row of its own");
        add_analysis("modules", "Module View: the module tree with host and device time",
                     [this] { return run_modules(inputs_); });
        CLI::App* memory =
            add_analysis("memory", "Peak memory of each rank and what lived at the peak", [this] {
                memory_.top = top_;
                return run_memory(inputs_, memory_);
            });
        add_memory_options(memory);
        add_analysis("collectives", "Collectives by operation: counts, bytes, time, bandwidth",
                     [this] { return run_collectives(inputs_); });
        add_analysis("units", "FSDP units: gathers, reductions, waits, and what hid them",
                     [this] { return run_units(inputs_); });
        add_analysis("distributed",
                     "Ranks together: overlap, traffic by group and size, transfer and waiting",
                     [this] { return run_distributed(inputs_); });
        add_analysis("stragglers", "Which rank comes last to collectives, how often and how long others wait",
                     [this] { return run_stragglers(inputs_); });
        CLI::App* scaling =
            add_analysis("scaling", "Runs at several sizes: throughput, speed-up, efficiency, what grew",
                         [this] { return run_scaling(inputs_); });
        scaling->get_option("FILE")
            ->description("The runs, each a trace of any kind or the folder of its ranks")
            ->expected(2, -1);
        add_time_verbs();

        CLI::App* path =
            add_analysis("critical-path", "What each step waited for, from its end back to its start",
                         [this] { return run_critical_path(inputs_, what_if_); });
        path->add_option("--what-if", what_if_,
                         "What a step would take if kinds of time were scaled, for example "
                         "communication=0.5,waiting=0")
            ->type_name("KIND=FACTOR,...");

        add_analysis("advice", "What could be better, with the figures that say so and what to change",
                     [this] { return run_advice(inputs_); });

        CLI::App* compare = add_analysis("compare", "Several runs side by side, against the first",
                                         [this] { return run_compare(inputs_, by_, fail_if_); });
        compare->get_option("FILE")
            ->description("The runs, two or more: a trace or a folder each")
            ->expected(2, -1);
        compare->add_option("--by", by_, "Part by part, joined by path or name, largest difference first")
            ->type_name("module|kernel|collective|unit|operator");
        compare
            ->add_option(
                "--fail-if", fail_if_,
                "Exit with 1 where the condition holds for a run after the first: a key of a run in the JSON "
                "result, > >= < or <=, and a number; with a sign it counts from the first run "
                "('median_step_us>+5%', 'average_step_us>+5%'; with --by kernel also 'kernels.NAME.us>+5%'). "
                "May be repeated")
            ->type_name("CONDITION")
            ->expected(1)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);

        CLI::App* query = add_verb("query", "The result of SQL on a trace", [this] {
            query_.inputs.format = format_;
            return run_sql(query_);
        });
        add_query_options(query);

        CLI::App* report =
            add_analysis("report", "One HTML file that tells of a run, or of several side by side", [this] {
                report_.inputs = inputs_;
                report_.output = output_;
                report_.overwrite = overwrite_;
                return run_report(report_);
            });
        report->get_option("FILE")->description("The traces, of any kind; each file or folder is a run");
        report->add_option("-o,--output", output_, "The file to write")->required()->type_name("OUT.html");
        report->add_option("--title", report_.title, "Its title; without: the names of the files");
        report->add_flag("--redact", report_.redact,
                         "Leave out names of machines, paths, command lines and stack frames");
        report->add_flag("--overwrite", overwrite_, "Replace OUT.html if it exists");

        CLI::App* exported = add_reader("export", "A trace for other tools: Chrome JSON or CSV", [this] {
            return run_export(inputs_, export_to_, output_, overwrite_);
        });
        exported
            ->add_option(
                "--to", export_to_,
                "chrome: JSON as PyTorch's profiler writes it, for Perfetto and others; csv: a folder of "
                "tables; sqlite: our own database")
            ->required()
            ->type_name("chrome|csv|sqlite");
        exported
            ->add_option("-o,--output", output_,
                         "The file to write (packed where it ends in .gz), or for csv the folder")
            ->required()
            ->type_name("OUT");
        exported->add_flag("--overwrite", overwrite_, "Replace what exists of that name");

        CLI::App* check = add_file_verb("check", "Whether a trace is whole; exit status 0 whole, 1 not",
                                        [this] { return run_check(file_, finalize_, format_); });
        check->add_flag(
            "--finalize", finalize_,
            "First make a finished file of one whose run did not end: sorted, indexed and in one piece. "
            "Until that is done the file stays as it is, also when Ctrl-C stops it");

        CLI::App* import = add_reader("import", "Traces of other tools into a trace of ours",
                                      [this] { return run_import(inputs_, output_, overwrite_); });
        add_output(import);
        import->footer(
            "Reads Kineto and Chrome traces (JSON), memory snapshots and flight recorder dumps of PyTorch, "
            "SQLite\n"
            "exports of Nsight Systems; each plain or packed with gzip. Several files, or a folder, are the "
            "ranks\n"
            "of one job: their clocks are brought together as merge does. What is not JSON, but can be\n"
            "understood, is read and counted (info tells it).");

        CLI::App* merge = add_writing("merge", "Parts of one job, from processes or hosts, into one trace",
                                      [this] { return run_merge(files_, output_, overwrite_, format_); });
        merge->add_option("IN", files_, "The parts; the first one's clock counts")
            ->required()
            ->expected(1, -1);
        merge->footer(
            "Ranks keep their numbers; ids that clash are renumbered. Clocks are brought together by the "
            "wall\n"
            "clock and then by the ends of the collectives that parts have in common; what is left is "
            "printed.\n"
            "docs/merging.md says it exactly.");

        CLI::App* slice = add_writing(
            "slice", "Ranks, steps or a range of time of a trace, as a trace of its own",
            [this] { return run_slice(file_, output_, overwrite_, ranks_, inputs_.selection, format_); });
        slice->add_option("IN", file_, "The trace")->required();
        slice->add_option("--rank,--ranks", ranks_, "These ranks only, for example 0,8 or 0-3")
            ->type_name("LIST");
        add_time_options(slice);
        slice->footer(
            "Times stay what they are. Device work belongs to the step in which it was launched; memory "
            "that\n"
            "is live at the start is allocated there. docs/merging.md says it exactly.");
    }

    void add_memory_options(CLI::App* command) {
        CLI::Option* explain = command->add_flag(
            "--explain", memory_.explain,
            "With the stored prediction and the difference beside each category, FSDP unit, module "
            "and buffer, the peak of each step, and reserved against allocated memory");
        CLI::Option* allocations =
            command->add_flag("--allocations", memory_.allocations,
                              "Each allocation that lived in the selected time, largest first: size, time, "
                              "how long it lived, what it was for");
        CLI::Option* space = command
                                 ->add_option("--space", memory_.space,
                                              "The memory of this space only (device; of allocations all)")
                                 ->type_name("device|pinned|host");
        explain->excludes(allocations)->excludes(space);
        add_top(command)->needs(allocations);
    }

    CLI::Option* add_top(CLI::App* command) {
        return command
            ->add_option("--top", top_, "Rows a rank at most, 0 for all (a table 20, JSON and CSV all)")
            ->type_name("N");
    }

    void add_time_verbs() {
        add_analysis("steps", "Step by step: how long, where the time went, which was slowest",
                     [this] { return run_steps(inputs_); });
        add_analysis("overlap", "Communication beside compute: computation, overlapped, exposed, other",
                     [this] { return run_overlap(inputs_); });
        add_analysis("temporal", "Device time: idle, compute, exposed communication, exposed memory",
                     [this] { return run_temporal(inputs_); });
        CLI::App* idle = add_analysis("idle", "Why streams stood still; launch delays and queue lengths",
                                      [this] { return run_idle(inputs_, kernel_wait_us_); });
        idle->add_option("--kernel-wait-us", kernel_wait_us_,
                         "The longest gap that the device itself needs between two kernels (30)")
            ->type_name("US");
        CLI::App* kernels = add_analysis("kernels", "Kernels by name: count, times, share, occupancy",
                                         [this] { return run_kernels(inputs_, top_); });
        CLI::App* operators = add_analysis("operators", "Operators by name: calls, host and device time",
                                           [this] { return run_operators(inputs_, by_shape_, top_); });
        operators->add_flag("--by-shape", by_shape_, "By name and the shapes of the inputs");
        for (CLI::App* command : {kernels, operators}) add_top(command);
    }

    // A verb that writes another trace.
    CLI::App* add_writing(const std::string& name, const std::string& help, std::function<int()> verb) {
        CLI::App* command = add_verb(name, help, std::move(verb));
        add_output(command);
        return command;
    }

    void add_output(CLI::App* command) {
        command->add_option("-o,--output", output_, "The trace to write")
            ->required()
            ->type_name("OUT.sqlite");
        command->add_flag("--overwrite", overwrite_, "Replace OUT.sqlite if it exists");
    }

    int run(int argc, char** argv) {
        check_verb(argc, argv);
        try {
            app_.parse(argc, argv);
        } catch (const CLI::ParseError& error) {
            if (error.get_exit_code() == 0) return app_.exit(error);  // --help, --version
            throw UsageError(fmt::format("{}; run shardscope-trace --help", error.what()));
        }
        format_ = inputs_.format = parse_format(format_text_);
        return verbs_.at(app_.get_subcommands().front())();
    }

  private:
    bool is_verb(const std::string& name) const {
        return std::any_of(verbs_.begin(), verbs_.end(),
                           [&](const auto& v) { return v.first->get_name() == name; });
    }

    // CLI11 would only say that a subcommand is missing.
    void check_verb(int argc, char** argv) const {
        if (argc > 1 && (argv[1][0] == '-' || is_verb(argv[1]))) return;
        std::string names;
        for (const CLI::App* verb : app_.get_subcommands({}))
            names += (names.empty() ? "" : ", ") + verb->get_name();
        throw UsageError(argc > 1 ? fmt::format("{} is no command; use one of {}", argv[1], names)
                                  : fmt::format("there is no command; use one of {}", names));
    }

    CLI::App* add_verb(const std::string& name, const std::string& help, std::function<int()> verb) {
        CLI::App* command = app_.add_subcommand(name, help);
        command->footer("");
        command->add_option("--format", format_text_, "How to print it (table)")->type_name("table|json|csv");
        verbs_[command] = std::move(verb);
        return command;
    }

    CLI::App* add_file_verb(const std::string& name, const std::string& help, std::function<int()> verb) {
        CLI::App* command = add_verb(name, help, std::move(verb));
        command->add_option("FILE", file_, "The trace")->required();
        return command;
    }

    // A verb that reads traces of any kind; several files are opened together.
    CLI::App* add_reader(const std::string& name, const std::string& help, std::function<int()> verb) {
        CLI::App* command = add_verb(name, help, std::move(verb));
        command
            ->add_option("FILE", inputs_.files,
                         "The trace, of any kind; several files, or a folder, are the ranks of one job")
            ->required()
            ->expected(1, -1);
        command->add_flag("--partial", inputs_.partial, "Keep what can be read of a damaged file");
        command
            ->add_option("--max-size", inputs_.max_size, "Most bytes that a packed file may unpack to (256G)")
            ->type_name("BYTES");
        return command;
    }

    void add_time_options(CLI::App* command) {
        command->add_option("--step", inputs_.selection.step, "These steps only, the last included")
            ->type_name("A:B");
        command
            ->add_option("--range", inputs_.selection.range,
                         "This part of the time only, since the start of the capture; ns, or with us, ms, s "
                         "(10ms:20ms)")
            ->type_name("A:B");
    }

    void add_query_options(CLI::App* command) {
        command
            ->add_option(
                "FILE_AND_SQL", query_.file_and_sql,
                "The trace, of any kind (an export of Nsight Systems is imported to a temporary file where "
                "the SQL names our tables or views); then SQL, a file that ends in .sql, or the name of a "
                "query "
                "that comes with the tool")
            ->type_name("FILE SQL")
            ->expected(0, -1);
        command
            ->add_option("--param", query_.parameters,
                         "The value of :NAME in the SQL. May be repeated; values that the head of the SQL "
                         "states (-- :top = 10) need none")
            ->type_name("NAME=VALUE")
            ->expected(1)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        command->add_flag("--list", query_.list, "List the queries that come with the tool, and exit");
        command->add_flag(
            "--schema", query_.schema,
            "Print what the tables and views hold, of all or of those that are named, and exit");
        command->add_flag("--write", query_.write, "Statements may change the file: all of them do, or none");
        command
            ->add_option("--time-limit", query_.time_limit,
                         "Stop the query after this time, such as 10s or 500ms; else it runs until it ends")
            ->type_name("TIME");
        command->add_flag("--partial", query_.inputs.partial, "Keep what can be read of a damaged file");
        command
            ->add_option("--max-size", query_.inputs.max_size,
                         "Most bytes that a packed file may unpack to (256G)")
            ->type_name("BYTES");
        command->footer(
            "Functions: demangle(text), pretty_time(ns), pretty_bytes(n), overlap(start, end, a, b) and the\n"
            "aggregate percentile(value, p). docs/schema.md is what --schema prints.");
    }

    CLI::App* add_analysis(const std::string& name, const std::string& help, std::function<int()> verb) {
        CLI::App* command = add_reader(name, help, std::move(verb));
        command->add_option("--rank", inputs_.selection.rank, "This rank only")->type_name("R");
        add_time_options(command);
        command->footer(result_keys(name));
        return command;
    }

    CLI::App app_;
    std::map<const CLI::App*, std::function<int()>> verbs_;
    std::string file_, output_, ranks_, format_text_ = "table";
    std::vector<std::string> files_, fail_if_;
    Inputs inputs_;
    QueryArguments query_;
    ReportArguments report_;
    MemoryArguments memory_;
    std::string export_to_;
    std::string what_if_, by_;
    bool overwrite_ = false, finalize_ = false;
    double kernel_wait_us_ = 30;
    std::optional<std::size_t> top_;
    bool by_shape_ = false, fold_communication_ = false;
    Format format_ = Format::table;
};

}  // namespace

int main(int argc, char** argv) {
    try {
        const int status = CommandLine().run(argc, argv);
        if (std::fflush(stdout) != 0)
            return complain("standard output cannot be written; check where it goes", kFailed);
        return status;
    } catch (const UsageError& error) {
        return complain(error.what(), kWrongUse);
    } catch (const QueryError& error) {
        return complain(error.what(), kWrongUse);
    } catch (const Cancelled& stopped) {
        const int status = LongWork::stopped_status();
        return complain(stopped.what(), status != 0 ? status : kFailed);
    } catch (const std::exception& error) {
        return complain(error.what(), kFailed);
    }
}
