#include "traces/analysis/advice.h"

#include <algorithm>
#include <array>

#include "traces/analysis/advice_facts.h"
#include "traces/store/trace.h"

namespace shardscope::traces {
namespace {

constexpr double kSeriousPercent = 20, kNotablePercent = 5;  // of a step
constexpr double kNotablePeakPercent = 50;                   // of the highest peak

constexpr std::array<std::string_view, 4> kSeriousRules = {"policy-matched-nothing", "clip-mismatch",
                                                           "double-average", "memory-near-limit"};

FindingWeight weight_of(const AdviceFacts& facts, const Finding& finding) {
    if (std::find(kSeriousRules.begin(), kSeriousRules.end(), finding.id) != kSeriousRules.end())
        return FindingWeight::serious;
    const RankMemory* rank = facts.highest_peak();
    double step_percent = 0, peak_percent = 0;
    for (const AdviceFigure& figure : finding.figures) {
        if (figure.unit == "us/step")
            step_percent = std::max(step_percent, facts.percent_of_step(figure.value));
        if (figure.unit == "bytes" && figure.name != "peak" && rank != nullptr && rank->peak_bytes > 0) {
            peak_percent = std::max(peak_percent, 100 * figure.value / static_cast<double>(rank->peak_bytes));
        }
    }
    if (step_percent >= kSeriousPercent) return FindingWeight::serious;
    return step_percent >= kNotablePercent || peak_percent >= kNotablePeakPercent ? FindingWeight::notable
                                                                                  : FindingWeight::minor;
}

}  // namespace

std::span<const AdviceRule> advice_rules() {
    static const std::vector<AdviceRule> kAll = [] {
        std::vector<AdviceRule> all;
        for (const auto rules : {time_rules(), memory_rules(), sharding_rules()}) {
            all.insert(all.end(), rules.begin(), rules.end());
        }
        return all;
    }();
    return kAll;
}

AdviceReport advice(const Trace& trace, const Selection& selection) {
    const AdviceFacts facts(trace, selection);
    AdviceReport report;
    for (const AdviceRule& rule : advice_rules()) {
        ++report.rules;
        const std::size_t before = report.findings.size();
        rule.look(facts, report.findings);
        for (std::size_t i = before; i < report.findings.size(); ++i) {
            report.findings[i].id = rule.id;
            report.findings[i].title = rule.title;
            report.findings[i].weight = weight_of(facts, report.findings[i]);
        }
    }
    return report;
}

}  // namespace shardscope::traces
