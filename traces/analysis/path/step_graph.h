// One step as a graph: what had to happen before what. The ground under the critical path and its what-if.
// Internal to the room. Definition: docs/definitions.md, "Critical path". Times in nanoseconds.
//
// Nodes are starts and ends of runtime calls and of device events; host ranges hold nothing up of themselves
// and only name the host's time. A node lies after
//   - on a host thread: the node before it; where another launching thread of the rank was at work in between
//     (autograd's, while the main thread waits), after that thread's last node;
//   - a device event's start: its launching call, the end of the work before it on its stream, of a
//     collective the end of the one before it in its group and, where the host told the stream to wait since
//     its last launch, the latest end on another stream of the rank (the trace does not say which event was
//     meant; the one that ended last before it is the one that held it);
//   - the end of a call that waits (event, stream, device synchronisation, a copy that blocks): the device
//     work that it waited for, if that ended inside the call;
//   - what a thread does after it has spun (asked again and again with cudaEventQuery or cudaStreamQuery
//     whether the device is done): the device work that ended last meanwhile;
//   - a device event's end: its start and, for a collective, the start of the last rank's part.
// What is left between a node and the latest of those is the node's own time: the host's, the launch delay,
// the work itself. So times can be computed again with each kind of time scaled.
//
// A host thread is busy at every instant, also where it spins in a way that the trace does not show, so the
// chain of its nodes has no gap and always reaches back to the step's begin. Where a chain over the device is
// as long to within kTie, the host waited for it in effect: the path takes the device's (StepGraph::path).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/path/critical_path.h"

namespace shardscope::traces {

struct Trace;

// A collective with all its counterparts.
struct JoinedCollective {
    std::int64_t last_start = 0;  // of its latest part
    std::int64_t transfer = 0;    // the shortest duration among the ranks
    std::int64_t first_end = 0;
    std::uint16_t last_rank = 0;      // where the latest part is, by index into Trace::ranks
    std::uint16_t shortest_rank = 0;  // where the shortest is: the last to come, whatever the clocks say
    bool clocks_agree() const { return last_start < first_end; }
};

// What all steps of a trace have in common, found once.
struct GraphSources {
    GraphSources(const Trace& trace, const TraceSteps& steps);

    const Trace& trace;
    const TraceSteps& steps;
    std::vector<JoinedCollective> joined;
    std::vector<std::int32_t> joined_of;  // device event -> joined, -1 none
    // By index into Trace::ranks, then by index of the rank's step: its device events, and the runtime calls
    // that start in its host interval on threads that launch device work (or on all, if none does).
    std::vector<std::vector<std::vector<std::uint32_t>>> events, calls;
    enum class Call : std::uint8_t { plain = 0, waits = 1, stream_waits = 2, polls = 3 };
    std::vector<Call> call;                 // by runtime call
    std::vector<std::int32_t> call_stream;  // that it waits for or makes wait; -1 not known
};

enum class GraphNode : std::uint8_t {
    begin,       // of the step on the device, and of all device work that nothing in the step holds up
    host_begin,  // of the step on the host
    device_end,  // here and below in the order of processing at one instant
    call_end,
    call_start,
    device_start,
    empty_device_end,  // of an event without duration
    empty_call_end,
    host_end,
    finish,  // of the rank's step
};

// The steps of one number, of all ranks that have it.
struct StepGraph {
    static constexpr std::int32_t kNone = -1;
    static constexpr double kTie = 0.02;  // of the host's time
    struct Edge {
        std::int32_t node = kNone;
        std::int64_t weight = 0;  // of the later node's kind
    };

    // By node, in the order of time; edges lead to lower numbers. Edge 0 is the one that held the node up:
    // its time and weight sum to the node's time.
    std::vector<std::int64_t> time;
    std::vector<std::array<Edge, 4>> after;
    std::vector<std::uint8_t> path;  // which edge the critical path takes back; 0 but where chains tie
    std::vector<GraphNode> what;
    std::vector<PathKind> kind;       // of the time between a node and what held it up
    std::vector<std::int32_t> owner;  // device event or runtime call, kNone for the step's own nodes
    std::vector<std::uint16_t> rank;  // index into Trace::ranks

    std::vector<std::int32_t> joined;                           // device end -> JoinedCollective, kNone
    std::unordered_map<std::int32_t, std::int32_t> last_start;  // JoinedCollective -> its latest part's start

    // The node of the latest part's start, kNone where that is not in this graph.
    std::int32_t last_start_of(const GraphSources& sources, std::int32_t collective) const;

    // By index into Trace::ranks; kNone where the rank has no such step.
    std::vector<std::int32_t> finish;
    std::vector<const StepWindow*> step;

    std::size_t size() const { return time.size(); }
    // The node before on the critical path, kNone where nothing is known to have held the node up.
    std::int32_t before(std::int32_t n) const {
        const auto i = static_cast<std::size_t>(n);
        return after[i][path[i]].node;
    }

    // When a collective's end node had all ranks together, on the clock of its own rank: within its event.
    std::int64_t together(const GraphSources& sources, std::int32_t end_node) const;

    // The time of every node with each kind of time scaled. What happened before the step's window began
    // stays where it was.
    std::vector<double> evaluate(const GraphSources& sources, const PathFactors& factors) const;
};

StepGraph build_step_graph(const GraphSources& sources, std::int64_t step_number);

}  // namespace shardscope::traces
