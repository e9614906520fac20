// What a profiler's samples of threads say: the stacks as one tree, whose widths are what a flame graph
// draws, and the functions. Source: B. Gregg, "The Flame Graph", CACM 59(6), 2016. Definition:
// docs/definitions.md, "Samples". Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

struct FlameNode {
    std::string_view
        frame;      // the root's is empty, its children's are threads' names; lives as the trace does
    int depth = 0;  // of the root 0
    std::int64_t self = 0, total = 0;  // weight of the samples that end here, and of all that pass through
    std::int64_t samples = 0;          // that pass through
    std::vector<int> children;         // largest total first; then by name
};

// Of one function, over all stacks.
struct FunctionTime {
    std::string_view name;             // "at::native::add (libtorch_cpu.so)"
    std::int64_t self = 0, total = 0;  // a stack that has the function several times counts once in `total`
    std::int64_t samples = 0;          // in which it is innermost
    double self_percent = 0, total_percent = 0;
    bool is_time = false;
};

Fields<FunctionTime> function_fields();

struct SamplesReport {
    std::string event;                    // what was counted
    bool is_time = false;                 // weights are ns of processor time
    std::int64_t samples = 0;             // of that event, in the selection
    std::int64_t total = 0;               // their weights
    std::vector<FlameNode> tree;          // the first is the root; empty without samples
    std::vector<FunctionTime> functions;  // largest self first; then by name
    std::int64_t distinct = 0;            // functions, of which the first are kept
    std::vector<std::string> other_events;
};

// The samples of one event: `event`, or, if it is empty, the one with most samples. `most`: functions to
// keep, 0 for all.
SamplesReport samples_report(const store::Trace& trace, const Selection& selection = {},
                             std::string_view event = {}, std::size_t most = 0);

// "thread;outermost;...;innermost 12" a line, as flamegraph.pl and speedscope read it.
std::string folded_stacks(const SamplesReport& report);

}  // namespace shardscope::traces::analysis
