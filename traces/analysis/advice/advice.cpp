#include "traces/analysis/advice/advice.h"

#include <algorithm>
#include <tuple>

#include <fmt/core.h>

#include "traces/analysis/advice/advice_facts.h"
#include "traces/schema/sort_rows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces {
namespace {

constexpr double kSeriousPercent = 20, kNotablePercent = 5;  // of a step
constexpr double kNotablePeakPercent = 50;                   // of the highest peak
constexpr double kWarmUpFactor = 1.5;  // a warm-up step takes this many times the others' median
constexpr std::size_t kFewSteps = 3;   // with fewer steps the first one is not judged

FindingWeight weight_of(const AdviceFacts& facts, const AdviceRule& rule, const Finding& finding) {
    if (rule.serious) return FindingWeight::serious;
    if (finding.gain_us) {
        const double percent = facts.percent_of_step(*finding.gain_us);
        if (percent >= kSeriousPercent) return FindingWeight::serious;
        if (percent >= kNotablePercent) return FindingWeight::notable;
    }
    const RankMemory* rank = facts.highest_peak();
    for (const AdviceFigure& figure : finding.figures) {
        if (!finding.gain_us && figure.unit == "us/step" &&
            facts.percent_of_any_step(figure.value) >= kNotablePercent) {
            return FindingWeight::notable;
        }
        if (figure.unit == "bytes" && figure.name != "peak" && rank != nullptr &&
            100 * figure.value >= kNotablePeakPercent * static_cast<double>(rank->peak_bytes)) {
            return FindingWeight::notable;
        }
    }
    return FindingWeight::minor;
}

// In a trace without steps figures are totals of the whole trace: "us" instead of "us/step".
void name_no_step(Finding& finding) {
    for (AdviceFigure& figure : finding.figures) figure.unit = figure.unit.substr(0, figure.unit.find('/'));
}

// Excludes the first step if it is a warm-up: much longer than the other steps of its rank.
Selection without_warm_up(const Trace& trace, Selection selection, std::vector<std::string>& notes) {
    if (trace.steps.empty() || selection.first_step || selection.last_step || selection.from_ns ||
        selection.to_ns) {
        return selection;
    }
    const TraceSteps steps = find_steps(trace);
    for (const RankPlace r : selected_ranks(trace, selection)) {
        const std::vector<StepWindow> windows = selected_windows(steps.ranks[r.at()], selection);
        if (windows.size() < kFewSteps) continue;
        std::vector<std::int64_t> others;
        for (std::size_t i = 1; i < windows.size(); ++i) others.push_back(windows[i].window.length());
        const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
        std::nth_element(others.begin(), middle, others.end());
        const double times = static_cast<double>(windows.front().window.length()) /
                             static_cast<double>(std::max<std::int64_t>(*middle, 1));
        if (times < kWarmUpFactor || windows[1].number <= windows[0].number) continue;
        selection.first_step = windows[1].number;
        notes.push_back(
            fmt::format("Step {} is excluded as warm-up: it takes {:.1f} times as long as the others' "
                        "median.",
                        windows[0].number, times));
        return selection;
    }
    return selection;
}

}  // namespace

std::span<const AdviceRule> advice_rules() {
    static const std::vector<AdviceRule> kAll = [] {
        std::vector<AdviceRule> all;
        for (const auto rules :
             {wrong_rules(), communication_rules(), time_rules(), sharding_rules(), memory_rules()}) {
            all.insert(all.end(), rules.begin(), rules.end());
        }
        return all;
    }();
    return kAll;
}

AdviceReport advice(const Trace& trace, const Selection& selection) {
    AdviceReport report;
    const AdviceFacts facts(trace, without_warm_up(trace, selection, report.notes));
    for (const AdviceRule& rule : advice_rules()) {
        ++report.rules;
        const std::size_t before = report.findings.size();
        rule.look(facts, report.findings);
        for (std::size_t i = before; i < report.findings.size(); ++i) {
            Finding& finding = report.findings[i];
            finding.id = rule.id;
            finding.title = rule.title;
            finding.weight = weight_of(facts, rule, finding);
            if (trace.steps.empty()) name_no_step(finding);
        }
    }
    sort_rows(report.findings, [](const Finding& a, const Finding& b) {
        // Findings that are serious whatever they gain come first.
        const auto key = [](const Finding& f) {
            const bool gains = f.weight != FindingWeight::serious || f.gain_us.has_value();
            return std::tuple(f.weight, gains, -f.gain_us.value_or(0), -f.gain_bytes);
        };
        return key(a) < key(b);
    });
    const std::vector<std::string> unknown = what_cannot_be_said(facts);
    report.notes.insert(report.notes.end(), unknown.begin(), unknown.end());
    return report;
}

namespace {

Cell figures_text(const Finding& finding) {
    std::string text;
    for (const AdviceFigure& figure : finding.figures) {
        text += fmt::format("{}{}={}{}{}", text.empty() ? "" : "; ", figure.name, figure.value,
                            figure.unit.empty() ? "" : " ", figure.unit);
    }
    return text;
}

}  // namespace

Fields<Finding> finding_fields() {
    using F = Finding;
    static constexpr Field<F> kFields[] = {
        {{"id", "", Unit::text, "The rule."}, value_of<&F::id>},
        {{"title", "", Unit::text, "What is wrong, in a few words."}, value_of<&F::title>},
        {{"weight", "", Unit::text, "How much it matters."},
         [](const F& f) { return to_cell(kFindingWeightNames[static_cast<std::size_t>(f.weight)]); }},
        {{"what", "", Unit::text, "What was found, with its figures."}, value_of<&F::what>},
        {{"figures", "", Unit::text, "The figures: name, value and unit.", in_json}, nested<F>},
        {{"figures", "", Unit::text, "The figures: name, value and unit.", in_csv}, figures_text},
        {{"change", "", Unit::text, "What to change."}, value_of<&F::change>},
        {{"job_setting", "", Unit::text, "The setting of a job file."}, value_of<&F::job_setting>},
        {{"pytorch", "", Unit::text, "The same in PyTorch."}, value_of<&F::pytorch>},
        {{"expected", "", Unit::text, "What the change is expected to give."}, value_of<&F::expected>},
        {{"gain_us", "", Unit::us, "How much shorter a step gets; unknown where nothing predicts it."},
         value_of<&F::gain_us>},
        {{"gain_bytes", "", Unit::bytes, "How much lower the peak gets."}, known_value_of<&F::gain_bytes>},
    };
    return kFields;
}

}  // namespace shardscope::traces
