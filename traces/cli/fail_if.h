// `compare --fail-if 'average_step_us>+5%'`: a condition on the runs after the first, for continuous
// integration.
//
//   KEY OP VALUE      KEY: a number in the JSON result of a run; a dot descends into objects
//                     ("at_peak.activations")
//                     OP: > >= < <=
//                     VALUE: "5" is that number; "+5" or "-5" is relative to the first run's number;
//                     "+5%" is relative to it in percent
#pragma once

#include <string>
#include <vector>

namespace shardscope::traces {

struct FailIf {
    std::string text, key, comparator;
    double value = 0;
    bool relative = false, percent = false;
};

// Throws UsageError if the text is not a condition.
FailIf parse_fail_if(const std::string& text);

// The sentences of the conditions that hold for some run after the first; `comparison_json` is what `compare
// --format json` prints. Throws UsageError if a key is not a number there.
std::vector<std::string> failures(const std::vector<FailIf>& conditions, const std::string& comparison_json);

}  // namespace shardscope::traces
