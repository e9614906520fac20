// Runs side by side by their parts: modules, kernels, collectives or FSDP units, joined by path or name and
// normalised per step. Definition: docs/definitions.md, "Compare". Times in us, of one rank and step in the
// mean.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/compare/compare.h"

namespace shardscope::traces {

struct Trace;

// module: device time launched in the module itself, children not included ("GPT_0/Block_3/Linear_1", joined
// as module_join.h says; "... [FSDP]" what the wrapper launched). kernel: device time by kernel name.
// collective: device time by operation and unit. unit: device time of the unit's gathers and reductions, by
// unit and phase. operator: device time launched in the operator itself, operators inside it not included.
// Where no run recorded a device, the host time of modules, operators and collectives stands in its place.
enum class CompareBy { module, kernel, collective, unit, operation };
inline constexpr std::array<std::string_view, 5> kCompareByNames = {"module", "kernel", "collective", "unit",
                                                                    "operator"};

struct PartFigures {
    bool present = false;
    double us = 0;  // mean over ranks and kept steps; not a number: another run's are of a device, none here
    double times = 0;  // the same of how often
    double bytes = 0;  // of collectives and units; not a number where nothing tells them
    Spread spread;     // over the steps
};

struct ComparedPart {
    std::string name;
    std::vector<PartFigures> runs;
    // Of the run that differs most from the first.
    double largest_difference() const;
};

struct PartsComparison {
    Comparison whole;
    CompareBy by = CompareBy::kernel;
    bool on_host = false;             // no run recorded a device: times are the hosts'
    std::vector<ComparedPart> parts;  // largest difference first, then by name
};

PartsComparison compare_parts(const std::vector<const Trace*>& traces, CompareBy by,
                              const Selection& selection = {});
// The same with a selection for each run.
PartsComparison compare_parts(const std::vector<const Trace*>& traces, CompareBy by,
                              const std::vector<Selection>& selections);

std::optional<CompareBy> compare_by(std::string_view name);

}  // namespace shardscope::traces
