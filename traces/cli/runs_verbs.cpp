// compare, scaling and report: several runs, each a trace or the folder of its ranks' traces.
#include <charconv>
#include <memory>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "traces/analysis/compare/compare.h"
#include "traces/analysis/compare/compare_parts.h"
#include "traces/analysis/compare/scaling.h"
#include "traces/cli/analyse.h"
#include "traces/cli/arguments.h"
#include "traces/cli/verb.h"
#include "traces/export/text_output.h"
#include "traces/import/inputs.h"
#include "traces/report/html_report.h"
#include "traces/schema/json_text.h"
#include "traces/store/apart.h"
#include "traces/store/columns/trace.h"
#include "traces/store/error.h"

namespace shardscope::traces {
namespace {

using Json = nlohmann::ordered_json;

// `compare --fail-if 'average_step_us>+5%'`: a condition on the runs after the first, for continuous
// integration.
//
//   KEY OP VALUE      KEY: a number of the JSON result of a run; a dot reaches inside ("at_peak.activations")
//                     OP: > >= < <=
//                     VALUE: "5" that number; "+5" or "-5" the first run's plus that; "+5%" relative to the
//                     first
struct FailIf {
    std::string text, key, comparator;
    double value = 0;
    bool relative = false, percent = false;
};

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

void collect_numbers(const Json& object, const std::string& prefix, std::string& names) {
    for (const auto& [key, value] : object.items()) {
        if (value.is_number()) names += (names.empty() ? "" : ", ") + prefix + key;
        if (value.is_object()) collect_numbers(value, prefix + key + ".", names);
    }
}

// Names of parts may hold dots themselves ("units.net.0, forward.us"): every way to read the key is tried.
const Json* find_number(const Json& at, std::string_view key) {
    if (!at.is_object()) return nullptr;
    for (std::size_t dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.', dot + 1)) {
        const auto inside = at.find(std::string(key.substr(0, dot)));
        if (inside == at.end()) continue;
        if (const Json* found = find_number(*inside, key.substr(dot + 1))) return found;
    }
    const auto whole = at.find(std::string(key));
    return whole != at.end() && whole->is_number() ? &*whole : nullptr;
}

constexpr std::size_t kMostNames = 2000;  // characters of a list of names

double number_at(const Json& run, const FailIf& condition) {
    if (const Json* number = find_number(run, condition.key)) return number->get<double>();
    std::string names;
    collect_numbers(run, "", names);
    if (names.size() > kMostNames) names = names.substr(0, kMostNames) + " …";
    throw UsageError(fmt::format("--fail-if {}: the runs have no number \"{}\"; use one of {}",
                                 condition.text, condition.key, names));
}

bool holds(double value, const std::string& comparator, double bound) {
    if (comparator == ">") return value > bound;
    if (comparator == ">=") return value >= bound;
    if (comparator == "<") return value < bound;
    return value <= bound;
}

// Throws UsageError where the text is not a condition.
FailIf parse_fail_if(const std::string& text) {
    const auto wrong = [&](const char* why) {
        return UsageError(
            fmt::format("--fail-if {}: {}; write KEY, then > >= < or <=, then a number, for example "
                        "'average_step_us>+5%'",
                        text, why));
    };
    const auto at = text.find_last_of("<>");  // kernels of templates have them in their names
    if (at == std::string::npos) throw wrong("there is no comparison");
    FailIf result;
    result.text = text;
    result.key = trimmed(std::string_view(text).substr(0, at));
    result.comparator = text.substr(at, at + 1 < text.size() && text[at + 1] == '=' ? 2 : 1);
    if (result.key.empty()) throw wrong("there is no key");

    std::string_view number = trimmed(std::string_view(text).substr(at + result.comparator.size()));
    if (!number.empty() && number.back() == '%') {
        result.percent = true;
        number = trimmed(number.substr(0, number.size() - 1));
    }
    result.relative = !number.empty() && (number[0] == '+' || number[0] == '-');
    if (!number.empty() && number[0] == '+') number.remove_prefix(1);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), result.value);
    if (error != std::errc() || end != number.data() + number.size())
        throw wrong("the number cannot be read");
    if (result.percent && !result.relative) throw wrong("a percentage needs its sign, + or -");
    return result;
}

// The sentences of the conditions that hold for some run after the first; `comparison_json` is what
// `compare --format json` prints. Throws UsageError where a key is not a number there.
std::vector<std::string> failures(const std::vector<FailIf>& conditions, const std::string& comparison_json) {
    const Json runs = parse_ordered_json(comparison_json).at("runs");
    std::vector<std::string> result;
    for (const FailIf& condition : conditions) {
        const double first = number_at(runs.at(0), condition);
        double bound = condition.value;
        if (condition.percent) bound = first * (1 + condition.value / 100);
        if (condition.relative && !condition.percent) bound = first + condition.value;
        for (std::size_t i = 1; i < runs.size(); ++i) {
            const double value = number_at(runs[i], condition);
            if (!holds(value, condition.comparator, bound)) continue;
            result.push_back(fmt::format(
                "--fail-if {} holds for {}: {} is {:.10g}, the first run's is {:.10g}", condition.text,
                runs[i].at("file").get<std::string>(), condition.key, value, first));
        }
    }
    return result;
}

struct Runs {
    std::vector<std::unique_ptr<Trace>> traces;
    std::vector<const Trace*> pointers;
};

Runs load_runs(const Inputs& inputs, const Selection& selection) {
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
        const Selection selection = parse_selection(inputs.selection);
        const Runs runs = load_runs(inputs, selection);
        print(render(scaling_report(runs.pointers, selection), inputs.format, table_width()));
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
    return [&](const Inputs& inputs) {
        const Selection selection = parse_selection(inputs.selection);
        const std::optional<CompareBy> parts = compare_by(by);
        if (!by.empty() && !parts) {
            throw UsageError(
                fmt::format("--by {} is unknown; use module, kernel, collective, unit or operator", by));
        }
        std::vector<FailIf> conditions;
        conditions.reserve(fail_if.size());
        for (const std::string& text : fail_if) conditions.push_back(parse_fail_if(text));
        const Runs runs = load_runs(inputs, selection);
        const auto failed_of = [&](const auto& comparison) {
            print(render(comparison, inputs.format, table_width()));
            return failures(conditions, render(comparison, Format::json));
        };
        const auto failed = parts ? failed_of(compare_parts(runs.pointers, *parts, selection))
                                  : failed_of(compare(runs.pointers, selection));
        for (const std::string& sentence : failed) fmt::print(stderr, "shardscope-trace: {}\n", sentence);
        return failed.empty() ? kDone : kFailed;
    };
}

// Writes one HTML file.
Work report_verb(Options& options) {
    options.describe_files("The traces, of any kind; each file or folder is a run", 1);
    const std::string& path = options.required_text("-o,--output", "OUT.html", "The file to write");
    const std::string& title = options.text("--title", "TEXT", "Its title; without: the names of the files");
    const bool& redact =
        options.flag("--redact", "Omit names of machines, paths, command lines and stack frames");
    const bool& overwrite = options.flag("--overwrite", "Replace OUT.html if it exists");
    return [&](const Inputs& inputs) {
        const Selection selection = parse_selection(inputs.selection);
        for (const std::string& file : inputs.files) check_input_or_folder(file);
        try {
            check_apart(file_paths(inputs.files), path);
            TextOutput::check(path, overwrite);
        } catch (const StoreError& error) {
            throw UsageError(error.what());
        }
        const Runs runs = load_runs(inputs, selection);
        std::vector<ReportedRun> reported;
        for (std::size_t i = 0; i < runs.pointers.size(); ++i)
            reported.push_back(reported_run(*runs.pointers[i], inputs.files[i], selection));
        const auto comparison =
            reported_comparison(runs.pointers, std::vector<Selection>(runs.pointers.size(), selection));
        TextOutput output(path, overwrite, false);
        output.buffer() = html_report(reported, comparison, {.title = title, .redact = redact});
        output.finish();
        fmt::print(stderr, "shardscope-trace: {} written\n", path);
        return kDone;
    };
}

}  // namespace shardscope::traces
