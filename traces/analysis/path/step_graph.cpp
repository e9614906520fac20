// Builds a step's graph: sorts its nodes once, then makes one pass in time order; see step_graph.h.
#include "traces/analysis/path/step_graph.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

constexpr std::int32_t kNoNode = StepGraph::kNone;

PathKind kind_of(store::DeviceKind kind) {
    switch (kind) {
        case store::DeviceKind::kernel:
            return PathKind::compute;
        case store::DeviceKind::communication:
            return PathKind::communication;
        case store::DeviceKind::memcpy:
        case store::DeviceKind::memset:
            break;
    }
    return PathKind::memcpy;
}

// The two latest nodes with different keys (streams or threads), to find the latest one of another key.
struct LatestTwo {
    std::int32_t node[2] = {kNoNode, kNoNode};
    int key[2] = {-1, -1};

    void add(std::int32_t n, int k) {
        if (key[0] != k) {
            node[1] = node[0];
            key[1] = key[0];
            key[0] = k;
        }
        node[0] = n;
    }
    std::int32_t besides(int k) const { return key[0] == k ? node[1] : node[0]; }
};

struct Unsorted {
    std::int64_t time;
    GraphNode what;
    std::uint16_t rank;
    std::int32_t owner;
};

class Builder {
  public:
    Builder(const GraphSources& sources, std::int64_t number)
        : sources_(sources), trace_(sources.trace), number_(number) {}

    StepGraph build() {
        add_nodes();
        sort_nodes();
        for (std::int32_t n = 0; n < static_cast<std::int32_t>(graph_.size()); ++n) link(n);
        weigh_launches();
        choose_path();
        return std::move(graph_);
    }

  private:
    // State of one call of the step.
    struct CallState {
        std::int32_t start = kNoNode, end = kNoNode;  // nodes
        std::int32_t own_end = kNoNode;               // the latest end so far of what it launched
        int stream = -1;                              // on which it launches
        std::int64_t waits = 0;                       // number of waits on its stream by then
    };
    struct RankState {
        std::int32_t begin = kNoNode, host_begin = kNoNode, last_host = kNoNode;
        LatestTwo threads, streams;  // the latest host nodes, the latest device ends
        std::int64_t stream_waits = 0;
    };
    // A thread that polls the device repeatedly with no other call in between. The caching allocator polls,
    // too, but only a few times within some microseconds.
    struct Spin {
        std::int64_t since = 0, until = 0, polls = 0;
        bool waits() const { return polls >= 3 && until - since >= 100'000; }
    };
    struct StreamState {
        std::int32_t last_end = kNoNode;
        std::int64_t waits = 0;       // of this stream, if recorded
        std::int64_t seen_waits = 0;  // at its last launch
    };

    void add_nodes() {
        const std::size_t ranks = trace_.ranks.size();
        graph_.finish.assign(ranks, kNoNode);
        graph_.step.assign(ranks, nullptr);
        ranks_.resize(ranks);
        streams_.resize(trace_.streams.size());
        threads_.assign(trace_.threads.size(), kNoNode);
        spins_.resize(trace_.threads.size());
        for (std::size_t r = 0; r < ranks; ++r) {
            const std::vector<StepWindow>& steps = sources_.steps.ranks[r].steps;
            const StepWindow* step = find_step(steps, number_);
            if (step == nullptr) continue;
            add_rank(static_cast<std::uint16_t>(r), *step, static_cast<std::size_t>(step - steps.data()));
        }
    }

    void add_rank(std::uint16_t rank, const StepWindow& step, std::size_t index) {
        graph_.step[rank] = &step;
        const auto add = [&](std::int64_t time, GraphNode what, std::int32_t owner = kNoNode) {
            nodes_.push_back({time, what, rank, owner});
        };
        add(step.window.start, GraphNode::begin);
        add(step.host.start, GraphNode::host_begin);
        const store::RuntimeCalls& runtime = trace_.runtime;
        for (const std::uint32_t call : sources_.calls[rank][index]) {
            const auto owner = static_cast<std::int32_t>(call);
            calls_.try_emplace(owner);
            const bool empty = runtime.start[call] >= runtime.end[call];
            add(runtime.start[call], GraphNode::call_start, owner);
            add(runtime.end[call], empty ? GraphNode::empty_call_end : GraphNode::call_end, owner);
        }
        const store::DeviceEvents& device = trace_.device;
        for (const std::uint32_t event : sources_.events[rank][index]) {
            const auto owner = static_cast<std::int32_t>(event);
            const bool empty = device.start[event] >= device.end[event];
            add(device.start[event], GraphNode::device_start, owner);
            add(device.end[event], empty ? GraphNode::empty_device_end : GraphNode::device_end, owner);
            if (device.launch[event] < 0) continue;
            if (const auto call = calls_.find(device.launch[event]); call != calls_.end()) {
                call->second.stream = device.stream[event];
            }
        }
        add(step.host.end, GraphNode::host_end);
        add(step.window.end, GraphNode::finish);
    }

    void sort_nodes() {
        std::stable_sort(nodes_.begin(), nodes_.end(), [](const Unsorted& a, const Unsorted& b) {
            return a.time != b.time ? a.time < b.time : a.what < b.what;
        });
        const std::size_t size = nodes_.size();
        graph_.time.reserve(size);
        graph_.what.reserve(size);
        graph_.owner.reserve(size);
        graph_.rank.reserve(size);
        for (const Unsorted& node : nodes_) {
            graph_.time.push_back(node.time);
            graph_.what.push_back(node.what);
            graph_.owner.push_back(node.owner);
            graph_.rank.push_back(node.rank);
        }
        nodes_ = {};
        graph_.after.resize(size);
        graph_.kind.assign(size, PathKind::host);
        graph_.joined.assign(size, kNoNode);
        start_of_.reserve(size / 2);
    }

    void link(std::int32_t n) {
        RankState& rank = ranks_[graph_.rank[at(n)]];
        switch (graph_.what[at(n)]) {
            case GraphNode::begin:
                rank.begin = n;
                break;
            case GraphNode::host_begin:
                rank.host_begin = rank.last_host = n;
                break;
            case GraphNode::call_start:
                link_call_start(n, rank);
                break;
            case GraphNode::call_end:
            case GraphNode::empty_call_end:
                link_call_end(n, rank);
                break;
            case GraphNode::device_start:
                link_device_start(n, rank);
                break;
            case GraphNode::device_end:
            case GraphNode::empty_device_end:
                link_device_end(n, rank);
                break;
            case GraphNode::host_end:
                hold(n, rank.last_host);
                if (rank.threads.key[0] >= 0)
                    hold_by_spin(n, rank, static_cast<std::uint16_t>(rank.threads.key[0]));
                settle(n);
                rank.last_host = n;
                break;
            case GraphNode::finish:
                hold(n, rank.last_host);
                hold(n, rank.streams.node[0]);
                settle(n);
                prefer_device(n);
                graph_.finish[graph_.rank[at(n)]] = n;
                break;
        }
    }

    // The thread's own previous node, or another thread's that worked since.
    void hold_by_host(std::int32_t n, RankState& rank) {
        const std::uint16_t thread = trace_.runtime.thread[at(graph_.owner[at(n)])];
        const std::int32_t own = threads_[thread] == kNoNode ? rank.host_begin : threads_[thread];
        hold(n, own);
        if (graph_.what[at(n)] == GraphNode::call_start) {
            const std::int32_t other = rank.threads.besides(thread);
            if (other != kNoNode && (own == kNoNode || other > own)) hold(n, other);
        }
        threads_[thread] = n;
        rank.threads.add(n, thread);
        rank.last_host = n;
    }

    // What follows a spin waited for the device work that ended meanwhile.
    void hold_by_spin(std::int32_t n, const RankState& rank, std::uint16_t thread) {
        const Spin& spin = spins_[thread];
        const std::int32_t device = rank.streams.node[0];
        if (spin.waits() && device != kNoNode && graph_.time[at(device)] > spin.since) hold(n, device);
    }

    void count_poll(std::size_t call) {
        Spin& spin = spins_[trace_.runtime.thread[call]];
        if (spin.polls == 0) spin.since = trace_.runtime.start[call];
        spin.until = trace_.runtime.end[call];
        ++spin.polls;
    }

    void link_call_start(std::int32_t n, RankState& rank) {
        const std::int32_t call = graph_.owner[at(n)];
        CallState& state = calls_[call];
        state.start = n;
        if (sources_.roles.role[at(call)] == CallRole::stream_waits) {
            const std::int32_t stream = sources_.roles.stream[at(call)];
            ++(stream >= 0 ? streams_[at(stream)].waits : rank.stream_waits);
        }
        if (state.stream >= 0) state.waits = rank.stream_waits + streams_[at(state.stream)].waits;
        hold_by_host(n, rank);
        const std::uint16_t thread = trace_.runtime.thread[at(call)];
        hold_by_spin(n, rank, thread);
        if (sources_.roles.role[at(call)] == CallRole::polls) {
            count_poll(at(call));
        } else {
            spins_[thread] = {};
        }
        settle(n);
    }

    void link_call_end(std::int32_t n, RankState& rank) {
        const std::int32_t call = graph_.owner[at(n)];
        CallState& state = calls_[call];
        hold_by_host(n, rank);
        std::int32_t device = state.own_end;  // of a blocking copy, or of a launch that was made to block
        if (device == kNoNode && sources_.roles.role[at(call)] == CallRole::waits) {
            const std::int32_t stream = sources_.roles.stream[at(call)];
            device = stream >= 0 ? streams_[at(stream)].last_end : rank.streams.node[0];
        }
        if (device != kNoNode && graph_.time[at(device)] > trace_.runtime.start[at(call)]) hold(n, device);
        settle(n);
        state.end = n;
    }

    void link_device_start(std::int32_t n, RankState& rank) {
        const std::int32_t event = graph_.owner[at(n)];
        const std::uint16_t s = trace_.device.stream[at(event)];
        StreamState& stream = streams_[s];
        graph_.kind[at(n)] = PathKind::launch_delay;
        start_of_.emplace(event, n);
        if (const std::int32_t joined = sources_.joined_of[at(event)]; joined >= 0) {
            graph_.last_start[joined] = n;  // the latest so far
        }
        hold(n, stream.last_end);
        if (const auto group = group_of(event)) {  // a communicator runs one operation at a time
            const auto last = last_of_group_.find({graph_.rank[at(n)], *group});
            if (last != last_of_group_.end()) hold(n, last->second);
        }
        const auto call = calls_.find(trace_.device.launch[at(event)]);
        if (call != calls_.end()) {
            const CallState& state = call->second;
            if (state.waits > stream.seen_waits) hold(n, rank.streams.besides(s));
            stream.seen_waits = std::max(stream.seen_waits, state.waits);
            // Work may start before the call that launched it returns.
            hold(n, state.end != kNoNode ? state.end : state.start);
        } else {
            hold(n, rank.last_host);  // no launch is known: the host is the cause
        }
        hold_by_begin(n, rank);
        settle(n);
    }

    // Work of earlier steps is not in the graph; all of it has ended when the window begins.
    void hold_by_begin(std::int32_t n, const RankState& rank) {
        if (rank.begin == kNoNode) return;
        const auto& edges = graph_.after[at(n)];
        const bool later = std::any_of(edges.begin(), edges.end(), [&](const StepGraph::Edge& e) {
            return e.node != kNoNode && graph_.time[at(e.node)] >= graph_.time[at(rank.begin)];
        });
        if (!later) hold(n, rank.begin);
    }

    void link_device_end(std::int32_t n, RankState& rank) {
        const std::int32_t event = graph_.owner[at(n)];
        graph_.kind[at(n)] = kind_of(trace_.device.kind[at(event)]);
        graph_.joined[at(n)] = sources_.joined_of[at(event)];
        hold(n, start_of_.at(event));
        settle(n);
        const std::uint16_t stream = trace_.device.stream[at(event)];
        streams_[stream].last_end = n;
        rank.streams.add(n, stream);
        if (const auto group = group_of(event)) last_of_group_[{graph_.rank[at(n)], *group}] = n;
        if (const auto call = calls_.find(trace_.device.launch[at(event)]); call != calls_.end()) {
            call->second.own_end = n;
        }
    }

    // The communicator of a collective's device event; none if its ranks are not recorded.
    std::optional<std::int64_t> group_of(std::int32_t event) const {
        const std::int32_t row = trace_.device.collective[at(event)];
        if (row < 0 || trace_.collectives.group_size[at(row)] <= 0) return std::nullopt;
        return trace_.collectives.group[at(row)];
    }

    void hold(std::int32_t n, std::int32_t before) {
        if (before == kNoNode) return;
        auto& edges = graph_.after[at(n)];
        auto free = std::find_if(edges.begin(), edges.end(), [](const auto& e) { return e.node == kNoNode; });
        if (free == edges.end()) {  // drops the earliest, which matters least
            free = std::min_element(edges.begin(), edges.end(),
                                    [](const auto& a, const auto& b) { return a.node < b.node; });
            if (free->node > before) return;
        }
        free->node = before;
    }

    // Puts the latest node that delays this one first; its edge gets the remaining time. Nodes are numbered
    // in time order.
    void settle(std::int32_t n) {
        auto& edges = graph_.after[at(n)];
        std::sort(edges.begin(), edges.end(), [](const auto& a, const auto& b) { return a.node > b.node; });
        if (edges[0].node != kNoNode) edges[0].weight = graph_.time[at(n)] - graph_.time[at(edges[0].node)];
    }

    // A step that ends with its device work ends because of it, even if the host's end is set to the same
    // instant (a trace without steps).
    void prefer_device(std::int32_t n) {
        auto& edges = graph_.after[at(n)];
        if (edges[1].node == kNoNode || graph_.time[at(edges[0].node)] != graph_.time[at(edges[1].node)])
            return;
        if (graph_.what[at(edges[0].node)] == GraphNode::host_end) std::swap(edges[0].node, edges[1].node);
    }

    // A launch whose event was delayed longer by something else would still have taken its usual time.
    void weigh_launches() {
        std::vector<std::int64_t> delays;
        const auto is_call = [&](std::int32_t node) {
            const GraphNode what = graph_.what[at(node)];
            return what == GraphNode::call_start || what == GraphNode::call_end ||
                   what == GraphNode::empty_call_end;
        };
        for (std::size_t n = 0; n < graph_.size(); ++n) {
            const StepGraph::Edge& edge = graph_.after[n][0];
            if (graph_.what[n] == GraphNode::device_start && edge.node != kNoNode && is_call(edge.node)) {
                delays.push_back(edge.weight);
            }
        }
        if (delays.empty()) return;
        const auto middle = delays.begin() + static_cast<std::ptrdiff_t>((delays.size() - 1) / 2);
        std::nth_element(delays.begin(), middle, delays.end());
        for (std::size_t n = 0; n < graph_.size(); ++n) {
            if (graph_.what[n] != GraphNode::device_start) continue;
            for (std::size_t e = 1; e < graph_.after[n].size(); ++e) {
                StepGraph::Edge& edge = graph_.after[n][e];
                if (edge.node == kNoNode || !is_call(edge.node)) continue;
                edge.weight = std::min(*middle, graph_.time[n] - graph_.time[at(edge.node)]);
            }
        }
    }

    // Takes the longest of the chains that end in a node; host time counts as shorter by kTie.
    void choose_path() {
        graph_.path.assign(graph_.size(), 0);
        PathFactors factors = kUnscaled;
        factors[static_cast<std::size_t>(PathKind::host)] = 1 - StepGraph::kTie;
        const std::vector<double> when = graph_.evaluate(sources_, factors);
        for (std::size_t n = 0; n < graph_.size(); ++n) {
            if (graph_.joined[n] != kNoNode) continue;
            const double factor = factors[static_cast<std::size_t>(graph_.kind[n])];
            double longest = -std::numeric_limits<double>::infinity();
            for (std::size_t e = 0; e < graph_.after[n].size(); ++e) {
                const StepGraph::Edge& edge = graph_.after[n][e];
                if (edge.node == kNoNode) break;
                const double length = when[at(edge.node)] + factor * static_cast<double>(edge.weight);
                if (length <= longest) continue;
                longest = length;
                graph_.path[n] = static_cast<std::uint8_t>(e);
            }
        }
    }

    static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

    const GraphSources& sources_;
    const store::Trace& trace_;
    std::int64_t number_;
    StepGraph graph_;
    std::vector<Unsorted> nodes_;
    std::vector<RankState> ranks_;
    std::vector<StreamState> streams_;
    std::vector<std::int32_t> threads_;  // the latest node of each
    std::vector<Spin> spins_;            // by thread
    std::unordered_map<std::int32_t, CallState> calls_;
    std::unordered_map<std::int32_t, std::int32_t> start_of_;  // device event -> node
    // By rank and group: the end of the latest collective.
    std::map<std::pair<std::uint16_t, std::int64_t>, std::int32_t> last_of_group_;
};

}  // namespace

StepGraph build_step_graph(const GraphSources& sources, std::int64_t step_number) {
    return Builder(sources, step_number).build();
}

std::int64_t StepGraph::together(const GraphSources& sources, std::int32_t end_node) const {
    const auto n = static_cast<std::size_t>(end_node);
    const JoinedCollective& all = sources.joined[static_cast<std::size_t>(joined[n])];
    const std::int64_t start = time[static_cast<std::size_t>(after[n][0].node)];
    return std::clamp(all.clocks_agree() ? all.last_start : time[n] - all.transfer, start, time[n]);
}

std::int32_t StepGraph::last_start_of(const GraphSources& sources, std::int32_t collective) const {
    const JoinedCollective& all = sources.joined[static_cast<std::size_t>(collective)];
    const auto at = last_start.find(collective);
    if (at == last_start.end() || !all.clocks_agree()) return kNoNode;
    return time[static_cast<std::size_t>(at->second)] == all.last_start ? at->second : kNoNode;
}

}  // namespace shardscope::traces::analysis
