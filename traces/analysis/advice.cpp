#include "traces/analysis/advice.h"

#include "traces/analysis/advice_facts.h"
#include "traces/store/trace.h"

namespace shardscope::traces {

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
        }
    }
    return report;
}

}  // namespace shardscope::traces
