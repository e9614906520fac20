// One step as a graph of dependencies, the basis of the critical path and its what-if. Internal to the
// library. Definition: docs/definitions.md, "Critical path". Times in nanoseconds.
//
// Nodes are the starts and ends of runtime calls and device events. Host ranges do not delay anything; they
// only name the host's time. A node follows
//   - on a host thread: the previous node of the thread or, if another launching thread of the rank worked in
//     between (autograd's, while the main thread waits), that thread's last node;
//   - for a device event's start: its launching call; the end of the previous work on its stream; for a
//     collective the end of the previous one in its group; and, if the host told the stream to wait since its
//     last launch, the latest end on another stream of the rank (the trace does not record which event was
//     meant; the one that ended last before it is the one that delayed it);
//   - for the end of a call that waits (event, stream, device synchronisation, a blocking copy): the device
//     work that it waited for, if that ended inside the call;
//   - for what a thread does after it has spun (polled the device repeatedly with cudaEventQuery or
//     cudaStreamQuery): the device work that ended last meanwhile;
//   - for a device event's end: its start and, for a collective, the start of the last rank's part.
// The time between a node and the latest of those is the node's own time: the host's, the launch delay, or
// the work itself. So all times can be recomputed with each kind of time scaled.
//
// A host thread is busy at every instant, even where it spins in a way that the trace does not show, so the
// chain of its nodes has no gap and always reaches back to the step's start. If a chain over the device is as
// long to within kTie, the host effectively waited for it, and the path takes the device's chain
// (StepGraph::path).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "traces/analysis/base/call_roles.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/path/critical_path.h"

namespace shardscope::traces::store {
struct Trace;
}

namespace shardscope::traces::analysis {

// A collective with all its counterparts.
struct JoinedCollective {
    std::int64_t last_start = 0;  // start of its latest part
    std::int64_t transfer = 0;    // the shortest duration among the ranks
    std::int64_t first_end = 0;
    // The rank of the shortest part, as index into Trace::ranks: the last to arrive, whatever the clocks say.
    std::uint16_t shortest_rank = 0;
    bool clocks_agree() const { return last_start < first_end; }
};

// Data common to all steps of a trace, computed once.
struct GraphSources {
    GraphSources(const store::Trace& trace, const TraceSteps& steps);

    const store::Trace& trace;
    const TraceSteps& steps;
    std::vector<JoinedCollective> joined;
    std::vector<std::int32_t> joined_of;  // device event -> joined, -1 none
    // By index into Trace::ranks, then by index of the rank's step: its device events, and the runtime calls
    // that start in its host interval on threads that launch device work (or on all, if none does).
    std::vector<std::vector<std::vector<std::uint32_t>>> events, calls;
    CallRoles roles;
};

enum class GraphNode : std::uint8_t {
    begin,       // of the step on the device, and of all device work that nothing in the step delays
    host_begin,  // of the step on the host
    device_end,  // from here on in the order of processing at one instant
    call_end,
    call_start,
    device_start,
    empty_device_end,  // of an event without duration
    empty_call_end,
    host_end,
    finish,  // of the rank's step
};

// The steps of all ranks that have the same number.
struct StepGraph {
    static constexpr std::int32_t kNone = -1;
    static constexpr double kTie = 0.02;  // fraction of the host's time
    struct Edge {
        std::int32_t node = kNone;
        std::int64_t weight = 0;  // time, of the later node's kind
    };

    // By node, in time order; edges point to lower numbers. Edge 0 is the one that delayed the node: its
    // node's time plus its weight is the node's time.
    std::vector<std::int64_t> time;
    std::vector<std::array<Edge, 4>> after;
    std::vector<std::uint8_t> path;  // the edge that the critical path takes back; 0 unless chains tie
    std::vector<GraphNode> what;
    std::vector<PathKind> kind;       // of the time between a node and what delayed it
    std::vector<std::int32_t> owner;  // device event or runtime call, kNone for the step's own nodes
    std::vector<std::uint16_t> rank;  // index into Trace::ranks

    std::vector<std::int32_t> joined;                           // device end -> JoinedCollective, kNone
    std::unordered_map<std::int32_t, std::int32_t> last_start;  // JoinedCollective -> its latest part's start

    // The node of the latest part's start, kNone if it is not in this graph.
    std::int32_t last_start_of(const GraphSources& sources, std::int32_t collective) const;

    // By index into Trace::ranks; kNone if the rank does not have the step.
    std::vector<std::int32_t> finish;
    std::vector<const StepWindow*> step;

    std::size_t size() const { return time.size(); }
    // The previous node on the critical path, kNone if nothing is known to have delayed the node.
    std::int32_t before(std::int32_t n) const {
        const auto i = static_cast<std::size_t>(n);
        return after[i][path[i]].node;
    }

    // When all ranks had joined the collective of an end node, on its own rank's clock: within its event.
    std::int64_t together(const GraphSources& sources, std::int32_t end_node) const;

    // The time of every node with each kind of time scaled. What happened before the step's window
    // keeps its time.
    std::vector<double> evaluate(const GraphSources& sources, const PathFactors& factors) const;
};

StepGraph build_step_graph(const GraphSources& sources, std::int64_t step_number);

}  // namespace shardscope::traces::analysis
