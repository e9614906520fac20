// Walks from a step's end back along what delayed each node, and sums the pieces; see critical_path.h.
#include "traces/analysis/path/critical_path.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "traces/analysis/communication/matching.h"
#include "traces/analysis/path/path_names.h"
#include "traces/analysis/path/step_graph.h"
#include "traces/schema/sort_rows.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

constexpr std::int32_t kNone = StepGraph::kNone;
constexpr std::string_view kOutsideRanges = "(outside any range)", kBeforeStep = "(earlier step)";

// A piece of a path: what happened in [from, to).
struct Piece {
    PathKind kind = PathKind::host;
    std::int64_t from = 0, to = 0;
    std::int32_t node = kNone;    // the node whose time it is
    std::int32_t before = kNone;  // the node that it follows
    std::uint16_t rank = 0;       // where it ran
    std::uint16_t other = 0;      // the rank that was waited for
};

// Walks from the end of the rank's step back to the start of its window; `across`: continues on the rank that
// a collective waited for. Calls `take(piece)`, latest first; each piece begins where the next one ends.
// Returns the rank on which the path begins.
template <typename Take>
std::uint16_t walk(const GraphSources& sources, const StepGraph& graph, std::uint16_t rank, bool across,
                   const Take& take) {
    const auto at = [](std::int32_t n) { return static_cast<std::size_t>(n); };
    std::int32_t n = graph.finish[rank];
    while (true) {
        const std::uint16_t here = graph.rank[at(n)];
        const std::int64_t begin = graph.step[here]->window.start;
        const std::int32_t before = graph.before(n);
        if (graph.time[at(n)] <= begin) return here;
        const auto emit = [&](PathKind kind, std::int64_t from, std::int64_t to, std::uint16_t other) {
            from = std::max(from, begin);
            if (to > from) take(Piece{kind, from, to, n, before, here, other});
        };
        if (before == kNone) {  // no known cause of its delay
            emit(PathKind::host, begin, graph.time[at(n)], here);
            return here;
        }
        const std::int32_t joined = graph.joined[at(n)];
        if (joined == kNone) {
            emit(graph.kind[at(n)], graph.time[at(before)], graph.time[at(n)], here);
            n = before;
            continue;
        }
        const JoinedCollective& all = sources.joined[at(joined)];
        const std::int64_t together = graph.together(sources, n);
        const std::int32_t last = graph.last_start_of(sources, joined);
        if (across && last != kNone) {
            emit(PathKind::communication, together, graph.time[at(n)], here);
            n = last;
        } else {
            // The rank with the shortest part arrived last, as everywhere (stragglers.h): it waits for no
            // other rank, even if its clock is a little behind theirs.
            const std::int64_t from = all.shortest_rank == here ? graph.time[at(before)] : together;
            emit(PathKind::communication, from, graph.time[at(n)], here);
            emit(PathKind::waiting, graph.time[at(before)], from, all.shortest_rank);
            n = before;
        }
    }
}

// Sums of one path over the steps.
class PathSums {
  public:
    PathSums(const store::Trace& trace, const ThreadRanges& ranges, bool pieces)
        : trace_(trace), ranges_(ranges), keep_pieces_(pieces) {}

    // Adds the part of a piece within [from, to) to a step.
    void add(const StepGraph& graph, const Piece& piece, bool across, std::int64_t from, std::int64_t to,
             StepPath& step) {
        from = std::max(from, piece.from);
        to = std::min(to, piece.to);
        if (to <= from) return;
        step.parts[static_cast<std::size_t>(piece.kind)] += to - from;
        if (across) by_rank_[trace_.ranks[piece.rank].number] += to - from;
        if (piece.kind == PathKind::waiting) by_rank_[trace_.ranks[piece.other].number] += to - from;
        PathPiece told;
        told.step = step.number;
        told.kind = piece.kind;
        told.from = from;
        told.to = to;
        told.rank = store::RankIndex(piece.rank);
        if (piece.kind == PathKind::earlier_step) {
            told.name = kBeforeStep;
            share(told);
        } else if (piece.kind == PathKind::host) {
            add_host(graph, piece, told);
        } else {
            if (piece.kind == PathKind::waiting) told.waits = store::RankIndex(piece.other);
            add_device(graph, piece, told);
        }
    }

    void finish(RankPath& path) {
        const auto steps = static_cast<double>(path.steps.size());
        if (path.steps.empty()) return;
        std::int64_t whole = 0, all = 0;
        double predicted = 0;
        std::array<std::int64_t, kPathKinds> parts{};
        for (const StepPath& step : path.steps) {
            all += step.ns;
            whole += step.whole_ns;
            predicted += step.predicted_ns;
            for (std::size_t k = 0; k < parts.size(); ++k) parts[k] += step.parts[k];
        }
        const auto mean = [steps](auto ns) { return static_cast<double>(ns) * 1e-3 / steps; };
        path.average_step_us = mean(all);
        path.whole_step_us = mean(whole);
        path.predicted_step_us = mean(predicted);
        for (std::size_t k = 0; k < parts.size(); ++k) path.average_us[k] = mean(parts[k]);
        for (const auto& [rank, ns] : by_rank_) path.ranks.push_back({rank, mean(ns)});
        for (const auto& [key, sum] : shares_) {
            path.shares.push_back(
                {key.first, std::string(key.second), mean(sum.ns), static_cast<double>(sum.pieces) / steps});
        }
        std::map<std::string, std::int64_t> modules;  // rows with the same name are merged
        for (const auto& [range, ns] : modules_) modules[module_name(trace_, range)] += ns;
        for (const auto& [name, ns] : modules) path.modules.push_back({name, mean(ns)});
        const auto larger = [](const auto& a, const auto& b) { return a.us > b.us; };
        schema::sort_rows(path.ranks, larger);
        schema::sort_rows(path.shares, larger);
        schema::sort_rows(path.modules, larger);
        path.pieces = std::move(pieces_);
        schema::sort_rows(path.pieces,
                          [](const PathPiece& a, const PathPiece& b) { return a.from < b.from; });
    }

  private:
    struct Sum {
        std::int64_t ns = 0, pieces = 0;
    };

    void share(const PathPiece& piece) {
        Sum& sum = shares_[{piece.kind, piece.name}];
        sum.ns += piece.to - piece.from;
        ++sum.pieces;
        if (keep_pieces_) pieces_.push_back(piece);
    }
    void module(std::int32_t range, std::int64_t ns) {
        if (const std::int32_t found = module_ranges_.of(range); found >= 0) modules_[found] += ns;
    }

    // Host time in a call has the call's name; between calls, that of the range around it.
    void add_host(const StepGraph& graph, const Piece& piece, PathPiece told) {
        const GraphNode what = graph.what[static_cast<std::size_t>(piece.node)];
        const bool call = what == GraphNode::call_end || what == GraphNode::empty_call_end;
        if (call) {
            told.call = graph.owner[static_cast<std::size_t>(piece.node)];
            const auto row = static_cast<std::size_t>(told.call);
            told.name = trace_.strings[trace_.runtime.name[row]];
            share(told);
            module(trace_.runtime.range[row], told.to - told.from);
            return;
        }
        const int thread = thread_of(graph, piece);
        if (thread < 0) {
            told.name = kOutsideRanges;
            share(told);
            return;
        }
        ranges_.split(
            static_cast<std::uint16_t>(thread), told.from, told.to,
            [&](std::int32_t range, std::int64_t start, std::int64_t end) {
                const bool named = range >= 0 && trace_.ranges.kind[static_cast<std::size_t>(range)] !=
                                                     store::RangeKind::step;
                PathPiece part = told;
                part.from = start;
                part.to = end;
                part.range = named ? range : -1;
                part.name = named ? trace_.strings[trace_.ranges.name[static_cast<std::size_t>(range)]]
                                  : kOutsideRanges;
                share(part);
                module(range, end - start);
            });
    }

    // The host thread of a piece between calls: that of the call that ends or began it; -1 unknown.
    int thread_of(const StepGraph& graph, const Piece& piece) const {
        for (const std::int32_t node : {piece.node, piece.before}) {
            if (node == kNone) continue;
            const GraphNode what = graph.what[static_cast<std::size_t>(node)];
            if (what != GraphNode::call_start && what != GraphNode::call_end &&
                what != GraphNode::empty_call_end) {
                continue;
            }
            return trace_.runtime
                .thread[static_cast<std::size_t>(graph.owner[static_cast<std::size_t>(node)])];
        }
        const std::int64_t tid = trace_.ranks[piece.rank].global_tid;
        const auto known =
            std::find_if(trace_.threads.begin(), trace_.threads.end(), [&](const store::HostThread& t) {
                return t.rank == store::RankIndex(piece.rank) && (tid == 0 || t.global_tid == tid);
            });
        return known == trace_.threads.end() ? -1 : static_cast<int>(known - trace_.threads.begin());
    }

    void add_device(const StepGraph& graph, const Piece& piece, PathPiece told) {
        told.event = graph.owner[static_cast<std::size_t>(piece.node)];
        const auto event = static_cast<std::size_t>(told.event);
        told.name = trace_.strings[trace_.device.name[event]];
        share(told);
        module(launching_range(trace_, event), told.to - told.from);
    }

    const store::Trace& trace_;
    const ThreadRanges& ranges_;
    bool keep_pieces_;
    std::vector<PathPiece> pieces_;
    std::map<int, std::int64_t> by_rank_;
    std::map<std::pair<PathKind, std::string_view>, Sum> shares_;
    ModuleRanges module_ranges_{trace_};
    std::unordered_map<std::int32_t, std::int64_t> modules_;  // by range
};

// The prediction of the scaled graph for the end of each rank's step.
std::vector<double> scaled_finish(const GraphSources& sources, const StepGraph& graph,
                                  const std::optional<PathFactors>& factors) {
    std::vector<double> finish(graph.finish.size(), 0);
    std::vector<double> when;
    if (factors) when = graph.evaluate(sources, *factors);
    for (std::size_t r = 0; r < finish.size(); ++r) {
        if (graph.finish[r] == kNone) continue;
        const auto n = static_cast<std::size_t>(graph.finish[r]);
        finish[r] = factors ? when[n] : static_cast<double>(graph.time[n]);
    }
    return finish;
}

// Kept and selected steps of each rank, by number.
std::set<std::int64_t> step_numbers(const std::vector<std::vector<StepWindow>>& windows) {
    std::set<std::int64_t> numbers;
    for (const auto& rank : windows) {
        for (const StepWindow& step : rank) numbers.insert(step.number);
    }
    return numbers;
}

// One rank's step.
void add_step(const GraphSources& sources, const StepGraph& graph, std::uint16_t rank,
              const StepWindow& window, double finish, PathSums& sums, RankPath& path) {
    StepPath step;
    step.number = window.number;
    step.ns = window.window.length();
    const Interval whole = graph.step[rank]->window;
    step.whole_ns = whole.length();
    step.predicted_ns = finish - static_cast<double>(whole.start);
    walk(sources, graph, rank, false, [&](const Piece& piece) {
        sums.add(graph, piece, false, window.window.start, window.window.end, step);
    });
    path.steps.push_back(step);
}

// The job's step: from the first rank's start to the last rank's end.
void add_job_step(const GraphSources& sources, const StepGraph& graph, const Interval& time,
                  const std::vector<double>& finish, PathSums& sums, RankPath& path) {
    std::uint16_t last = 0;
    Interval whole{};
    double predicted = 0;
    bool any = false;
    for (std::size_t r = 0; r < graph.finish.size(); ++r) {
        if (graph.finish[r] == kNone) continue;
        const Interval window = graph.step[r]->window;
        if (!any || window.end > whole.end) last = static_cast<std::uint16_t>(r);
        whole = any ? Interval{std::min(whole.start, window.start), std::max(whole.end, window.end)} : window;
        predicted = any ? std::max(predicted, finish[r]) : finish[r];
        any = true;
    }
    if (!any) return;
    StepPath step;
    step.number = graph.step[last]->number;
    step.whole_ns = whole.length();
    step.predicted_ns = predicted - static_cast<double>(whole.start);
    const Interval clipped{std::max(whole.start, time.start), std::min(whole.end, time.end)};
    if (clipped.length() <= 0) return;
    step.ns = clipped.length();
    const auto add = [&](const Piece& piece) {
        sums.add(graph, piece, true, clipped.start, clipped.end, step);
    };
    const std::uint16_t first = walk(sources, graph, last, true, add);
    Piece before;
    before.kind = PathKind::earlier_step;
    before.from = whole.start;
    before.to = graph.step[first]->window.start;
    before.rank = first;
    add(before);
    path.steps.push_back(step);
}

}  // namespace

CriticalPathReport critical_path(const store::Trace& trace, const Selection& selection,
                                 const std::optional<PathFactors>& factors, bool pieces) {
    CriticalPathReport report;
    report.stepped = !trace.steps.empty();
    report.what_if = factors.has_value();
    report.factors = factors.value_or(kUnscaled);
    const TraceSteps steps = find_steps(trace);
    const GraphSources sources(trace, steps);
    const ThreadRanges ranges(trace);
    report.clocks_disagree = std::count_if(sources.joined.begin(), sources.joined.end(),
                                           [](const JoinedCollective& all) { return !all.clocks_agree(); });

    const std::vector<store::RankIndex> selected = selected_ranks(trace, selection);
    std::vector<std::vector<StepWindow>> windows;
    std::vector<PathSums> sums;
    for (const store::RankIndex r : selected) {
        windows.push_back(selected_windows(steps.ranks[r.at()], selection));
        sums.emplace_back(trace, ranges, pieces);
        report.ranks.emplace_back().rank = trace.ranks[r.at()].number;
    }
    const bool with_job = selected.size() > 1;
    PathSums job_sums(trace, ranges, pieces);
    RankPath job;
    job.rank = -1;
    for (const std::int64_t number : step_numbers(windows)) {
        const StepGraph graph = build_step_graph(sources, number);
        const std::vector<double> finish = scaled_finish(sources, graph, factors);
        for (std::size_t i = 0; i < selected.size(); ++i) {
            const StepWindow* window = find_step(windows[i], number);
            const auto rank = static_cast<std::uint16_t>(selected[i].value);
            if (window == nullptr || graph.finish[rank] == kNone) continue;
            add_step(sources, graph, rank, *window, finish[rank], sums[i], report.ranks[i]);
        }
        if (with_job) add_job_step(sources, graph, selected_time(selection), finish, job_sums, job);
    }
    for (std::size_t i = 0; i < selected.size(); ++i) sums[i].finish(report.ranks[i]);
    if (with_job) {
        job_sums.finish(job);
        report.job = std::move(job);
    }
    return report;
}

}  // namespace shardscope::traces::analysis
