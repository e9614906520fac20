// compare, scaling and report: several runs, each a trace or the folder of its ranks' traces.
#include <memory>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "traces/analysis/answers/answers.h"
#include "traces/analysis/compare/compare.h"
#include "traces/analysis/compare/compare_parts.h"
#include "traces/analysis/compare/scaling.h"
#include "traces/cli/analyse.h"
#include "traces/cli/arguments.h"
#include "traces/cli/verb.h"
#include "traces/export/text_output.h"
#include "traces/report/fail_if.h"
#include "traces/report/html_report.h"
#include "traces/report/html_use.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::cli {
namespace {

struct Runs {
    std::vector<std::unique_ptr<store::Trace>> traces;
    std::vector<const store::Trace*> pointers;
};

Runs load_runs(const Inputs& inputs, const analysis::Selection& selection) {
    Runs runs;
    for (const std::string& file : inputs.files) {
        Inputs one = inputs;
        one.files = {file};
        runs.traces.push_back(load(one));
        check_selection(selection, *runs.traces.back());
        runs.pointers.push_back(runs.traces.back().get());
    }
    return runs;
}

}  // namespace

Work scaling_verb(Options& options) {
    options.describe_files("The runs, each a trace of any kind or the folder of its ranks", 2);
    return [](const Inputs& inputs) {
        const analysis::Selection selection = parse_selection(inputs.selection);
        const Runs runs = load_runs(inputs, selection);
        print(render(scaling_report(runs.pointers, selection), inputs.format, table_width()));
        return kDone;
    };
}

Work answers_verb(Options& options) {
    options.describe_files("The runs, each a trace of any kind or the folder of its ranks", 1);
    return [](const Inputs& inputs) {
        const analysis::Selection selection = parse_selection(inputs.selection);
        const Runs runs = load_runs(inputs, selection);
        analysis::AnswersReport report = answers_report(runs.pointers, inputs.files, selection);
        report.options = options_text(inputs.selection);
        print(render(report, inputs.format, table_width()));
        return kDone;
    };
}

Work compare_verb(Options& options) {
    options.describe_files("The runs, two or more: a trace or a folder each", 2);
    const std::string& by = options.text("--by", "module|kernel|collective|unit|operator",
                                         "Part by part, joined by path or name, largest difference first");
    const auto& fail_if = options.repeated_text(
        "--fail-if", "CONDITION",
        "Exit with 1 if the condition holds for a run after the first: a key of a run in the JSON "
        "result, > >= < or <=, and a number; with a sign it is relative to the first run ("
        "'median_step_us>+5%', 'average_step_us>+5%'; with --by kernel also 'kernels.NAME.us>+5%'). "
        "May be repeated");
    const std::string& loss =
        options.text("--to-loss", "LOSS", "Also the time until the training loss was first so low");
    return [&](const Inputs& inputs) {
        const analysis::Selection selection = parse_selection(inputs.selection);
        const std::optional<double> asked = parse_loss(loss);
        if (asked && !by.empty()) throw UsageError("--to-loss is of whole runs; omit --by");
        const std::optional<analysis::CompareBy> parts = analysis::compare_by(by);
        if (!by.empty() && !parts) {
            throw UsageError(
                fmt::format("--by {} is unknown; use module, kernel, collective, unit or operator", by));
        }
        try {
            const std::vector<report::FailIf> conditions = report::parse_fail_if(fail_if);
            const Runs runs = load_runs(inputs, selection);
            const auto failed_of = [&](const auto& comparison) {
                print(report::render(comparison, inputs.format, table_width()));
                return report::failures(conditions, report::render(comparison, report::Format::json));
            };
            const auto whole = [&] {
                analysis::Comparison comparison = compare(runs.pointers, selection);
                if (asked) add_times_to_loss(comparison, runs.pointers, *asked);
                return comparison;
            };
            const auto failed =
                parts ? failed_of(compare_parts(runs.pointers, *parts, selection)) : failed_of(whole());
            for (const std::string& sentence : failed) fmt::print(stderr, "shardscope-trace: {}\n", sentence);
            return failed.empty() ? kDone : kFailed;
        } catch (const report::BadCondition& error) {
            throw UsageError(error.what());
        }
    };
}

// Writes one HTML file.
Work report_verb(Options& options) {
    options.describe_files("The traces, of any kind; each file or folder is a run", 1);
    const std::string& path = options.required_text("-o,--output", "OUT.html", "The file to write");
    const std::string& title = options.text("--title", "TEXT", "Its title; without: the names of the files");
    const bool& redact =
        options.flag("--redact", "Omit names of machines, paths, command lines and stack frames");
    const bool& job =
        options.flag("--job",
                     "The page of a job, all files together: what ran, when and on what, what its "
                     "devices did, the three findings that matter, energy and cost");
    const double& price = price_option(options);
    const bool& overwrite = options.flag("--overwrite", "Replace OUT.html if it exists");
    return [&](const Inputs& inputs) {
        const analysis::Selection selection = parse_selection(inputs.selection);
        check_price(price);
        check_page(inputs, path, overwrite);
        if (job) {
            const auto trace = load(inputs);
            check_selection(selection, *trace);
            const std::string page =
                job_page(report::reported_run(*trace, inputs.files.front(), selection, price),
                         {.title = title, .redact = redact});
            exports::TextOutput output(path, overwrite, false);
            output.buffer() = page;
            output.finish();
            fmt::print(stderr, "shardscope-trace: {} written\n", path);
            return kDone;
        }
        const Runs runs = load_runs(inputs, selection);
        std::vector<report::ReportedRun> reported;
        for (std::size_t i = 0; i < runs.pointers.size(); ++i)
            reported.push_back(report::reported_run(*runs.pointers[i], inputs.files[i], selection, price));
        const auto comparison = report::reported_comparison(
            runs.pointers, std::vector<analysis::Selection>(runs.pointers.size(), selection));
        exports::TextOutput output(path, overwrite, false);
        output.buffer() = html_report(reported, comparison, {.title = title, .redact = redact});
        output.finish();
        fmt::print(stderr, "shardscope-trace: {} written\n", path);
        return kDone;
    };
}

}  // namespace shardscope::traces::cli
