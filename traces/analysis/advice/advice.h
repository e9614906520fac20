// Advice: rules over what the other analyses found, each with the figures that made it fire, what to change
// and what that would gain. Definition: docs/definitions.md, "Advice". A rule whose evidence is not in the
// trace does not fire; what a change gains in time is the difference to a replay of the run with that change.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/base/selection.h"

namespace shardscope::traces {

struct Trace;

struct AdviceFigure {
    std::string name;
    double value = 0;
    // "us/step", "%", "bytes", "bytes/step", "times/step", "x", "" for a count; without "/step" where the
    // trace names no steps.
    std::string_view unit;
};

// What a finding is worth. Serious: what makes the run compute something else than its configuration says or
// ends it, memory near the device's limit, and what gains at least 20 % of the step. Notable: what gains at
// least 5 % of the step, costs as much where its gain cannot be said, or holds half of the highest peak.
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
    // What the change gains: of a step, by the replay (none: it cannot be said), and of the highest peak, at
    // most (0: nothing, or it cannot be said). `expected` says it in a sentence, or why it cannot be said.
    std::optional<double> gain_us;
    std::int64_t gain_bytes = 0;
    std::string expected;
};

struct AdviceReport {
    std::size_t rules = 0;           // that were tried
    std::vector<Finding> findings;   // the weightiest first; of one weight, what gains most time, then memory
    std::vector<std::string> notes;  // sentences: what was left out, and what cannot be said because of what
};

AdviceReport advice(const Trace& trace, const Selection& selection = {});

struct AdviceFacts;

struct AdviceRule {
    std::string_view id, title;
    // Appends to `found` where the rule fires; id and title are filled in by the caller.
    void (*look)(const AdviceFacts& facts, std::vector<Finding>& found);
    bool serious = false;  // whatever it gains: the run ends, or computes something else than it should
};

// All rules: what is wrong first, then time, then memory.
std::span<const AdviceRule> advice_rules();

}  // namespace shardscope::traces
