// Conditions on compared runs, for continuous integration: `compare --fail-if 'average_step_us>+5%'`.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace shardscope::traces::report {

// Thrown if a text is not a condition or names no number of the runs; what() says what to write.
class BadCondition : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

// A condition on the runs after the first.
//
//   KEY OP VALUE      KEY: a number of the JSON result of a run; a dot reaches inside ("at_peak.activations")
//                     OP: > >= < <=
//                     VALUE: "5" is the bound itself; "+5" or "-5" is added to the first run's number; "+5%"
//                     is that number plus 5 %
struct FailIf {
    std::string text, key, comparator;
    double value = 0;
    bool relative = false, percent = false;
};

std::vector<FailIf> parse_fail_if(const std::vector<std::string>& texts);

// One sentence for each condition and each later run for which it holds; `comparison_json` is what `compare
// --format json` prints.
std::vector<std::string> failures(const std::vector<FailIf>& conditions, const std::string& comparison_json);

}  // namespace shardscope::traces::report
