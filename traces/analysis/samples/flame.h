// What a profiler's samples of threads say: the stacks as one tree, whose widths are what a flame graph
// draws, and the functions. Source: B. Gregg, "The Flame Graph", CACM 59(6), 2016. Definition:
// docs/definitions.md, "Samples". Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/base/result_table.h"
#include "traces/analysis/base/selection.h"

namespace shardscope::traces::store {
struct HostThread;
struct Trace;
}  // namespace shardscope::traces::store

namespace shardscope::traces::analysis {

struct FlameNode {
    std::string_view
        frame;        // the root's is empty, its children's are threads' names; lives as the trace does
    int depth = 0;    // of the root 0
    int parent = -1;  // of the root -1
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

struct ThreadSamples {
    std::size_t thread = 0;  // index into Trace::threads
    std::int64_t samples = 0, weight = 0;
};

// Which of the selected samples count.
struct SampleFilter {
    std::string_view event = {};               // empty: the one with most samples
    std::optional<std::int64_t> process = {};  // of this process: schema::global_pid
    std::optional<std::int64_t> thread = {};   // of this thread: HostThread::global_tid
    bool keeps(const store::HostThread& of) const;
};

struct SamplesReport {
    std::string event;                    // what was counted
    bool is_time = false;                 // weights are ns of processor time
    std::int64_t samples = 0;             // of that event, in the selection, of the filter's threads
    std::int64_t total = 0;               // their weights
    std::vector<FlameNode> tree;          // the first is the root; empty without samples
    std::vector<FunctionTime> functions;  // largest self first; then by name
    std::int64_t distinct = 0;            // functions, of which the first are kept
    std::vector<std::string> other_events;
    // With samples of that event in the selection, whatever the filter; largest weight first, then by index.
    std::vector<ThreadSamples> threads;
};

// `most`: functions to keep, 0 for all.
SamplesReport samples_report(const store::Trace& trace, const Selection& selection = {},
                             const SampleFilter& filter = {}, std::size_t most = 0);

// The boxes of a flame graph that shows the part of the tree below `top`, which takes all of the width, each
// row from left to right, callers before what they called. A function's callees that are narrower than
// `narrowest` are one box together, without what they called.
struct FlameBox {
    int node = 0;
    double x = 0, width = 0;
};
struct NarrowBoxes {
    int caller = 0;
    double x = 0, width = 0;
    std::int64_t callees = 0, weight = 0;
};
struct FlameBoxes {
    std::vector<FlameBox> boxes;
    std::vector<NarrowBoxes> narrow;
    int deepest = 0;          // depth of the lowest of `boxes` below `top`, whose own is 0
    std::int64_t hidden = 0;  // callees in `narrow`
};
FlameBoxes flame_boxes(const std::vector<FlameNode>& tree, int top, double width, double narrowest);

// "thread;outermost;...;innermost 12" a line, as flamegraph.pl and speedscope read it.
std::string folded_stacks(const SamplesReport& report);

}  // namespace shardscope::traces::analysis
