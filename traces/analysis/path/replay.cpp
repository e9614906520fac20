#include "traces/analysis/path/replay.h"

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_map>

#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

std::size_t at(std::int32_t i) {
    return static_cast<std::size_t>(i);
}

class Replayed {
  public:
    Replayed(const GraphSources& sources, const StepGraph& graph, const PathChange& change)
        : sources_(sources),
          device_(sources.trace.device),
          graph_(graph),
          change_(change),
          when_(graph.size()),
          computed_(change.early.empty() ? 0 : sources.trace.ranks.size(), kNever),
          streams_(change.early.empty() ? 0 : sources.trace.streams.size()) {}

    std::vector<double> run() {
        for (std::size_t n = 0; n < graph_.size(); ++n) {
            when_[n] = time_of(n);
            keep(n);
        }
        return std::move(when_);
    }

  private:
    static constexpr double kNever = -std::numeric_limits<double>::infinity();
    struct StreamState {
        double ended = kNever;     // end of its latest collective
        double computed = kNever;  // compute of the rank that had ended by then
    };

    double factor(std::size_t n, PathKind kind) const {
        const auto k = static_cast<std::size_t>(kind);
        return change_.factors[k] * (change_.ranks.empty() ? 1 : change_.ranks[graph_.rank[n]][k]);
    }
    double own_factor(std::size_t n) const {
        return change_.events.empty() ? 1 : change_.events[at(graph_.owner[n])];
    }
    bool is_device_end(std::size_t n) const {
        return graph_.what[n] == GraphNode::device_end || graph_.what[n] == GraphNode::empty_device_end;
    }

    bool is_other_compute(std::size_t n, std::size_t before) const {
        if (!is_device_end(before)) return false;
        const std::size_t event = at(graph_.owner[before]);
        return device_.kind[event] != store::DeviceKind::communication &&
               device_.stream[event] != device_.stream[at(graph_.owner[n])];
    }

    double time_of(std::size_t n) const {
        const auto observed = static_cast<double>(graph_.time[n]);
        const std::int64_t begin = graph_.step[graph_.rank[n]]->window.start;
        if (graph_.time[n] <= begin || graph_.after[n][0].node == StepGraph::kNone) return observed;
        if (graph_.joined[n] != StepGraph::kNone) return end_of_collective(n);
        if (graph_.what[n] == GraphNode::device_start && !change_.early.empty() &&
            change_.early[at(graph_.owner[n])]) {
            const StreamState& stream = streams_[device_.stream[at(graph_.owner[n])]];
            return std::max({static_cast<double>(begin), stream.ended, stream.computed});
        }
        const bool call_end =
            graph_.what[n] == GraphNode::call_end || graph_.what[n] == GraphNode::empty_call_end;
        const bool unheld = call_end && !change_.unheld.empty() && change_.unheld[at(graph_.owner[n])];
        const bool alone = graph_.what[n] == GraphNode::device_start && !change_.alone.empty() &&
                           change_.alone[at(graph_.owner[n])];
        double latest = kNever;
        for (const StepGraph::Edge& edge : graph_.after[n]) {
            if (edge.node == StepGraph::kNone) break;
            if (unheld && is_device_end(at(edge.node))) continue;
            if (alone && is_other_compute(n, at(edge.node))) continue;
            if (latest > kNever && ends_with_trace(n, at(edge.node))) continue;
            latest = std::max(latest, when_[at(edge.node)] + scaled(n, edge.weight));
        }
        return latest > kNever ? latest : std::max(observed, static_cast<double>(begin));
    }

    // In a trace without steps the host's end is set to the end of the trace.
    bool ends_with_trace(std::size_t n, std::size_t before) const {
        return sources_.trace.steps.empty() && graph_.what[n] == GraphNode::finish &&
               graph_.what[before] == GraphNode::host_end && graph_.time[before] == graph_.time[n];
    }

    double end_of_collective(std::size_t n) const {
        const std::size_t start_node = at(graph_.after[n][0].node);
        const double start = when_[start_node];
        const std::int64_t meet = graph_.together(sources_, static_cast<std::int32_t>(n));
        double waited = static_cast<double>(meet - graph_.time[start_node]);
        if (graph_.last_start_of(sources_, graph_.joined[n]) !=
            StepGraph::kNone) {  // all parts are in this graph
            waited = std::max(0.0, arrival_.at(graph_.joined[n]) - start);
        }
        return start + factor(n, PathKind::waiting) * waited +
               factor(n, PathKind::communication) * own_factor(n) *
                   static_cast<double>(graph_.time[n] - meet);
    }

    // An edge's own time, scaled; it ends with the node's time.
    double scaled(std::size_t n, std::int64_t weight) const {
        const PathKind kind = graph_.kind[n];
        if (is_device_end(n)) return factor(n, kind) * own_factor(n) * static_cast<double>(weight);
        if (kind != PathKind::host || change_.apart.empty() || weight <= 0)
            return factor(n, kind) * static_cast<double>(weight);
        const Interval time{graph_.time[n] - weight, graph_.time[n]};
        const std::int64_t apart = length_within(change_.apart[graph_.rank[n]], time);
        return factor(n, kind) * static_cast<double>(weight - apart) +
               change_.apart_factor * static_cast<double>(apart);
    }

    void keep(std::size_t n) {
        if (graph_.what[n] == GraphNode::device_start) {
            const std::int32_t all = sources_.joined_of[at(graph_.owner[n])];
            if (all < 0) return;
            // The start of the latest part so far of a collective.
            const auto [known, first] = arrival_.try_emplace(all, when_[n]);
            if (!first) known->second = std::max(known->second, when_[n]);
        } else if (is_device_end(n) && !streams_.empty()) {
            const std::size_t event = at(graph_.owner[n]);
            double& computed = computed_[graph_.rank[n]];
            if (device_.kind[event] == store::DeviceKind::kernel) computed = std::max(computed, when_[n]);
            if (device_.kind[event] == store::DeviceKind::communication)
                streams_[device_.stream[event]] = {when_[n], computed};
        }
    }

    const GraphSources& sources_;
    const store::DeviceEvents& device_;
    const StepGraph& graph_;
    const PathChange& change_;
    std::vector<double> when_;
    std::unordered_map<std::int32_t, double> arrival_;
    std::vector<double> computed_;      // by rank: the end of its latest kernel
    std::vector<StreamState> streams_;  // computed_ and streams_ are used only if gathers come early
};

// The mean over graphs of the longest time from a rank's start to its end by `finish`: each rank by its own
// clock, since the ranks' hosts may have different clocks.
template <typename Finish>
double mean_step_us(const std::vector<StepGraph>& graphs, const std::vector<store::RankIndex>& ranks,
                    const Finish& finish) {
    double sum = 0;
    for (const StepGraph& graph : graphs) {
        const auto ends = finish(graph);
        double longest = 0;
        for (const store::RankIndex rank : ranks) {
            if (graph.finish[rank.at()] == StepGraph::kNone) continue;
            const auto begin = static_cast<double>(graph.step[rank.at()]->window.start);
            longest = std::max(longest, static_cast<double>(ends[at(graph.finish[rank.at()])]) - begin);
        }
        sum += longest;
    }
    return graphs.empty() ? 0 : sum * 1e-3 / static_cast<double>(graphs.size());
}

}  // namespace

std::vector<double> replay(const GraphSources& sources, const StepGraph& graph, const PathChange& change) {
    return Replayed(sources, graph, change).run();
}

std::vector<double> StepGraph::evaluate(const GraphSources& sources, const PathFactors& factors) const {
    PathChange change;
    change.factors = factors;
    return replay(sources, *this, change);
}

Replay::Replay(const store::Trace& trace, const Selection& selection)
    : steps_(find_steps(trace)), sources_(trace, steps_), ranks_(selected_ranks(trace, selection)) {
    std::set<std::int64_t> numbers;
    for (const store::RankIndex rank : ranks_) {
        for (const StepWindow& step : selected_windows(steps_.ranks[rank.at()], selection))
            numbers.insert(step.number);
    }
    const std::vector<std::int64_t> all(numbers.begin(), numbers.end());
    const std::size_t count = std::min(all.size(), kMostSteps);
    for (std::size_t i = 0; i < count; ++i)
        graphs_.push_back(build_step_graph(sources_, all[i * all.size() / count]));
    step_us_ = mean_step_us(graphs_, ranks_, [](const StepGraph& graph) { return graph.time; });
}

double Replay::step_us(const PathChange& change) const {
    return mean_step_us(graphs_, ranks_,
                        [&](const StepGraph& graph) { return replay(sources_, graph, change); });
}

}  // namespace shardscope::traces::analysis
