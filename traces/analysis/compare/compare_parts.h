// Compares runs by their parts: modules, kernels, collectives or FSDP units, joined by path or name and
// normalised per step. Definition: docs/definitions.md, "Compare". Times in us, means per rank and step.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/compare/compare.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// module: device time launched in the module itself, without children ("GPT_0/Block_3/Linear_1", joined as in
// module_join.h; "... [FSDP]": launched by the wrapper). kernel: device time by kernel name. collective:
// device time by operation and unit. unit: device time of the unit's gathers and reductions, by unit and
// phase. operator: device time launched in the operator itself, without operators inside it. If no run
// recorded a device, the host time of modules, operators and collectives is used.
enum class CompareBy { module, kernel, collective, unit, operation };
inline constexpr std::array<std::string_view, 5> kCompareByNames = {"module", "kernel", "collective", "unit",
                                                                    "operator"};

struct PartFigures {
    bool present = false;
    double us = 0;     // mean over ranks and kept steps; NaN: this run has no device, another has
    double times = 0;  // mean number of times
    double bytes = 0;  // of collectives and units; NaN if not recorded
    Spread spread;     // over the steps
    ComparedValue value() const { return {us, spread.spread}; }
};

Fields<PartFigures> part_fields();

struct ComparedPart {
    std::string name;
    std::vector<PartFigures> runs;
    // The difference of the run that differs most from the first.
    double largest_difference() const;
};

struct PartsComparison {
    Comparison whole;
    CompareBy by = CompareBy::kernel;
    bool on_host = false;             // no run recorded a device: times are of the hosts
    std::vector<ComparedPart> parts;  // largest difference first, then by name
};

PartsComparison compare_parts(const std::vector<const store::Trace*>& traces, CompareBy by,
                              const Selection& selection = {});
// The same with one selection per run.
PartsComparison compare_parts(const std::vector<const store::Trace*>& traces, CompareBy by,
                              const std::vector<Selection>& selections);

std::optional<CompareBy> compare_by(std::string_view name);

}  // namespace shardscope::traces::analysis
