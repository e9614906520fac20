// Advice: rules over the results of the other analyses. Each finding has the figures that made its rule fire,
// what to change and what that would gain. Definition: docs/definitions.md, "Advice". A rule without evidence
// in the trace does not fire. The gain in time is the difference to a replay of the run with the change.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct AdviceFigure {
    std::string name;
    double value = 0;
    // "us/step", "%", "bytes", "bytes/step", "bytes/s", "times/step", "MHz", "x", "" for a count; without
    // "/step" if the trace has no steps.
    std::string_view unit;
};

std::string figures_text(const std::vector<AdviceFigure>& figures);  // "peak=5 bytes; share=3 %"

// The weight of a finding. Serious: the run ends, or computes something other than its configuration says;
// memory is near the device's limit; or the change gains at least 20 % of the step. Notable: the change
// gains at least 5 % of the step, the gain is unknown and the problem costs as much, it accounts for half of
// the highest peak, or devices, cores, memory or adapters are wasted or do not suffice.
enum class FindingWeight { serious, notable, minor };
inline constexpr std::array<std::string_view, 3> kFindingWeightNames = {"serious", "notable", "minor"};

struct Finding {
    std::string_view id, title;  // of the rule
    FindingWeight weight = FindingWeight::minor;
    std::string what;  // a sentence that states what was found, with its figures
    std::vector<AdviceFigure> figures;
    std::string change;       // a sentence that states what to do
    std::string job_setting;  // for our job file: "fsdp.backward_prefetch = \"BACKWARD_PRE\""; empty: none
    std::string pytorch;      // a line of PyTorch; empty: none
    // The gain of the change: time of a step by the replay (none: unknown), and bytes of the highest peak, at
    // most (0: nothing or unknown). `expected` states the gain in a sentence, or why it is unknown.
    std::optional<double> gain_us;
    std::int64_t gain_bytes = 0;
    std::string expected;
};

Fields<Finding> finding_fields();

struct AdviceReport {
    std::size_t rules = 0;           // number of rules tried
    std::vector<Finding> findings;   // by weight; within a weight by the time gained, then by memory
    std::vector<std::string> notes;  // sentences: what was excluded, and what is unknown and why
};

AdviceReport advice(const store::Trace& trace, const Selection& selection = {});

struct AdviceFacts;
AdviceReport advice_of(const AdviceFacts& facts);

struct AdviceRule {
    std::string_view id, title;
    // Appends to `found` if the rule fires; the caller fills in id and title.
    void (*look)(const AdviceFacts& facts, std::vector<Finding>& found);
    bool serious = false;  // whatever the gain: the run ends, or computes something other than it should
    bool notable = false;  // whatever the gain: what the job was given is wasted, or is not enough
};

// All rules: faults first, then time, then memory, then what the job was given.
std::span<const AdviceRule> advice_rules();

}  // namespace shardscope::traces::analysis
