// Conditions on compared runs, for continuous integration: `compare --fail-if 'average_step_us>+5%'`.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace shardscope::traces {

// A text that is not a condition, or that names no number of the runs; its text says what to write.
class BadCondition : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

// A condition on the runs after the first.
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

std::vector<FailIf> parse_fail_if(const std::vector<std::string>& texts);

// The sentences of the conditions that hold for some run after the first; `comparison_json` is what
// `compare --format json` prints.
std::vector<std::string> failures(const std::vector<FailIf>& conditions, const std::string& comparison_json);

}  // namespace shardscope::traces
