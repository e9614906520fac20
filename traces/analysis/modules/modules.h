// Module View: the tree of modules with their host and device time. Definition: docs/definitions.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct ModuleNode {
    std::string name;  // "Linear_0"
    std::string fqn;   // PyTorch's fully qualified name, "layers.0.q_proj"; empty: unknown, or the root
    int module = -1;   // ModuleRow::id where known
    std::int64_t occurrences = 0, operators = 0;
    double host_us = 0, host_self_us = 0;                 // forward and backward together
    double device_us = 0, device_self_us = 0;             // of the device work launched inside
    double device_busy_us = 0;                            // union of that work
    double backward_host_us = 0, backward_device_us = 0;  // the backward's share of the above
    // Part of the backward's share: forward calls that activation checkpointing repeats; they are not
    // occurrences.
    std::int64_t recomputations = 0;
    double recompute_host_us = 0, recompute_device_us = 0;
    std::int64_t parameters = 0;                         // elements, children included; 0 unknown
    std::int64_t gathered_bytes = 0, reduced_bytes = 0;  // of the unit that it wraps, in the selection
    double unshard_wait_us = 0;   // host time inside its unit's rate limiter and unshard waits
    std::int64_t peak_bytes = 0;  // largest allocated device total while a call is open
    std::vector<ModuleNode> children;
};

// Values of a row without its children.
Fields<ModuleNode> module_fields();

struct RankModules {
    int rank = 0;
    std::vector<ModuleNode> modules;
};

struct ModuleView {
    std::vector<RankModules> ranks;
};

// The tree is the nesting of the ranges of kind `module` by thread; rows with the same path are merged.
// Ranges of kind `backward`, and annotations with a module id outside every forward call (FSDP's backward
// hooks), are the backward part of their module's row; so is a module's range inside one of those
// (recomputation). An instant of a thread belongs to the innermost of these ranges, a device event to the one
// in which its launching call ran; a row's totals are its own and its children's. With steps or a range
// selected, host time is clipped to the selection, and calls and launches count if they start in it.
ModuleView module_view(const store::Trace& trace, const Selection& selection = {});

// A range whose time belongs to a row: a call of the module, or (a part of) the backward of one.
struct ModuleCall {
    std::int32_t range = -1;  // row of HostRanges
    bool backward = false;
};

// The calls of a row in order of start.
struct CallsOfModule {
    std::string path;  // names from the root with '/': "GPT_0/Block_3/Linear_1"
    int module = -1;   // ModuleRow::id where known
    std::vector<ModuleCall> calls;
};

struct RankModuleCalls {
    int rank = 0;
    std::vector<CallsOfModule> modules;  // those with any call; parents before their children
};

// The ranges that make up the rows of module_view(): those that start in the selection.
std::vector<RankModuleCalls> module_calls(const store::Trace& trace, const Selection& selection = {});

}  // namespace shardscope::traces::analysis
