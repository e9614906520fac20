// Advice: rules over what the other analyses found, each with the figures that made it fire and what to
// change. Definition: docs/definitions.md, "Advice". A rule whose evidence is not in the trace does not fire;
// an expected effect is given only from the critical path's what-if.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/selection.h"

namespace shardscope::traces {

struct Trace;

struct AdviceFigure {
    std::string name;
    double value = 0;
    std::string_view unit;  // "us/step", "%", "bytes", "bytes/step", "x", "" for a count
};

// What a finding is worth. Of time: at least 20 % of the step is serious, at least 5 % notable. Of memory:
// near the device's limit is serious, at least half of the peak notable. What makes the run compute something
// else than its configuration says is serious.
enum class FindingWeight { serious, notable, minor };
inline constexpr std::array<std::string_view, 3> kFindingWeightNames = {"serious", "notable", "minor"};

struct Finding {
    std::string_view id, title;  // the rule's
    FindingWeight weight = FindingWeight::minor;
    std::string what;  // what was found, in a sentence with its figures
    std::vector<AdviceFigure> figures;
    std::string change;       // what to do, in a sentence
    std::string job_setting;  // of our job file: "fsdp.backward_prefetch = \"BACKWARD_PRE\""; empty: none
    std::string pytorch;      // a line of PyTorch; empty: none
    std::string expected;     // the effect; empty: nothing foretells it
};

struct AdviceReport {
    std::size_t rules = 0;  // that were looked at
    std::vector<Finding> findings;
};

AdviceReport advice(const Trace& trace, const Selection& selection = {});

struct AdviceFacts;

struct AdviceRule {
    std::string_view id, title;
    // Appends to `found` where the rule fires; id and title are filled in by the caller.
    void (*look)(const AdviceFacts& facts, std::vector<Finding>& found);
};

// All rules, in the order in which findings are told: time first, then memory, then what is wrong.
std::span<const AdviceRule> advice_rules();

}  // namespace shardscope::traces
