#include "traces/analysis/advice/advice.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include <fmt/core.h>

#include "traces/analysis/advice/advice_facts.h"
#include "traces/schema/sort_rows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

constexpr double kSeriousPercent = 20, kNotablePercent = 5;  // of a step
constexpr double kNotablePeakPercent = 50;                   // of the highest peak

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
    return rule.notable ? FindingWeight::notable : FindingWeight::minor;
}

// In a trace without steps figures are totals of the whole trace: "us" instead of "us/step".
void name_no_step(Finding& finding) {
    for (AdviceFigure& figure : finding.figures)
        figure.unit = figure.unit.substr(0, figure.unit.find("/step"));
}

}  // namespace

std::span<const AdviceRule> advice_rules() {
    static const std::vector<AdviceRule> kAll = [] {
        std::vector<AdviceRule> all;
        for (const auto rules : {wrong_rules(), communication_rules(), topology_rules(), time_rules(),
                                 sharding_rules(), memory_rules(), use_rules()}) {
            all.insert(all.end(), rules.begin(), rules.end());
        }
        return all;
    }();
    return kAll;
}

AdviceReport advice(const store::Trace& trace, const Selection& selection) {
    return advice_of(AdviceFacts(trace, selection));
}

AdviceReport advice_of(const AdviceFacts& facts) {
    AdviceReport report;
    if (facts.warm_up) report.notes.push_back(sentence(*facts.warm_up));
    for (const AdviceRule& rule : advice_rules()) {
        ++report.rules;
        const std::size_t before = report.findings.size();
        rule.look(facts, report.findings);
        for (std::size_t i = before; i < report.findings.size(); ++i) {
            Finding& finding = report.findings[i];
            finding.id = rule.id;
            finding.title = rule.title;
            finding.weight = weight_of(facts, rule, finding);
            if (facts.trace.steps.empty()) name_no_step(finding);
        }
    }
    schema::sort_rows(report.findings, [](const Finding& a, const Finding& b) {
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

std::string figures_text(const std::vector<AdviceFigure>& figures) {
    std::string text;
    for (const AdviceFigure& figure : figures) {
        text += fmt::format("{}{}={}{}{}", text.empty() ? "" : "; ", figure.name, figure.value,
                            figure.unit.empty() ? "" : " ", figure.unit);
    }
    return text;
}

Fields<Finding> finding_fields() {
    using F = Finding;
    static constexpr Field<F> kFields[] = {
        {{"id", "", Unit::text, "The rule."}, value_of<&F::id>},
        {{"title", "", Unit::text, "What is wrong, in a few words."}, value_of<&F::title>},
        {{"weight", "", Unit::text, "How much it matters."},
         [](const F& f) { return to_cell(kFindingWeightNames[static_cast<std::size_t>(f.weight)]); }},
        {{"what", "", Unit::text, "What was found, with its figures."}, value_of<&F::what>},
        {{"figures", "", Unit::text, "The figures: name, value and unit.", in_json}, nested<F>},
        {{"figures", "", Unit::text, "The figures: name, value and unit.", in_csv},
         [](const F& f) { return to_cell(figures_text(f.figures)); }},
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

}  // namespace shardscope::traces::analysis
