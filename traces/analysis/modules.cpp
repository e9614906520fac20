// One pass over the ranges builds the tree and its host time, one over the device events adds device time;
// totals are then summed up the tree. See modules.h.
#include "traces/analysis/modules.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "traces/analysis/intervals.h"
#include "traces/analysis/peak_index.h"
#include "traces/analysis/step_windows.h"
#include "traces/store/names.h"
#include "traces/store/trace.h"

namespace shardscope::traces {
namespace {

constexpr int kMaxDepth = 1000;  // deeper calls (broken nesting) count for their ancestor at this depth
constexpr int kNone = -1;

// Times of one part (forward or backward) of a row, its own only, in nanoseconds.
struct Part {
    std::int64_t host = 0, device = 0;
};

struct Node {
    std::string_view name;
    int parent = kNone;
    int rank = 0;  // index into Trace::ranks
    int depth = 0;
    int module = kNone;
    std::int64_t occurrences = 0, operators = 0;
    Part forward, backward;
    Part total, backward_total;                     // children included; total: both parts
    std::int64_t busy = 0, busy_until = INT64_MIN;  // union of device time, children included
    std::int64_t unshard_wait = 0, gathered = 0, reduced = 0, peak = 0;
    std::vector<int> children;
};

// What the ranges' pass knows of a range. "Owner": a range whose time is a row's.
struct RangeState {
    int owner = kNone;      // the innermost owner around it or itself: index into HostRanges
    int node = kNone;       // the owner's row
    int solid = kNone;      // the innermost range around it or itself that is no frame of the program
    int module = kNone;     // the innermost module id around it or of itself
    bool backward = false;  // the owner is a backward part
    bool limiter = false, unshard = false;  // inside the rate limiter, inside an unshard
};

std::string_view shown_name(std::string_view range) {
    if (!range.starts_with(kModulePrefix)) return range;
    range.remove_prefix(kModulePrefix.size());
    if (range.ends_with(kBackwardSuffix)) range.remove_suffix(kBackwardSuffix.size());
    return range;
}

class Builder {
  public:
    Builder(const Trace& trace, const Selection& selection)
        : trace_(trace), selection_(selection), steps_(find_steps(trace)), states_(trace.ranges.size()) {
        ranks_ = selected_ranks(trace, selection);
        roots_.resize(trace.ranks.size());
        time_.resize(trace.ranks.size());
        by_module_.resize(trace.ranks.size());
        by_name_.resize(trace.ranks.size());
        for (const int r : ranks_) {
            time_[static_cast<std::size_t>(r)] =
                selected_host_time(steps_.ranks[static_cast<std::size_t>(r)], selection);
        }
        for (const ModuleRow& row : trace.modules) rows_.emplace(row.id, &row);
        for (const ModuleRow& row : trace.modules) parents_.emplace(row.id, sound_parent(row));
        for (std::size_t i = 0; i < trace.strings.size(); ++i) {
            const std::string_view text = trace.strings[static_cast<StringId>(i)];
            limiter_.push_back(text.find("rate_limiter") != text.npos);
            unshard_.push_back(text.find("unshard") != text.npos);
            synchronizes_.push_back(text.find("Synchronize") != text.npos);
        }
    }

    ModuleView build() {
        for (std::size_t i = 0; i < trace_.ranges.size(); ++i) add_range(i);
        add_waits();
        add_device_time();
        add_units();
        add_peaks();
        add_totals();
        ModuleView view;
        const std::unordered_map<int, std::int64_t> parameters = parameters_with_children();
        for (const int r : ranks_) {
            RankModules rank;
            rank.rank = trace_.ranks[static_cast<std::size_t>(r)].number;
            for (const int root : roots_[static_cast<std::size_t>(r)])
                rank.modules.push_back(result(root, parameters));
            view.ranks.push_back(std::move(rank));
        }
        return view;
    }

  private:
    const IntervalSet& time_of(int rank) const { return time_[static_cast<std::size_t>(rank)]; }

    // How much of [start, end) is selected.
    std::int64_t clipped(int rank, std::int64_t start, std::int64_t end) const {
        std::int64_t sum = 0;
        const IntervalSet& set = time_of(rank);
        auto i = std::upper_bound(set.begin(), set.end(), start,
                                  [](std::int64_t t, const Interval& s) { return t < s.end; });
        for (; i != set.end() && i->start < end; ++i)
            sum += std::min(end, i->end) - std::max(start, i->start);
        return sum;
    }
    bool is_selected(int rank, std::int64_t t) const { return clipped(rank, t, t + 1) > 0; }

    int child(int rank, int parent, std::string_view name) {
        if (parent >= 0 && nodes_[static_cast<std::size_t>(parent)].depth >= kMaxDepth) return parent;
        std::vector<int>& siblings = parent >= 0 ? nodes_[static_cast<std::size_t>(parent)].children
                                                 : roots_[static_cast<std::size_t>(rank)];
        const auto next = static_cast<int>(nodes_.size());
        const auto [at, added] = children_.try_emplace({rank, parent, name}, next);
        if (!added) return at->second;
        siblings.push_back(next);
        by_name_[static_cast<std::size_t>(rank)].emplace(name, next);
        Node node;
        node.name = name;
        node.parent = parent;
        node.rank = rank;
        node.depth = parent >= 0 ? nodes_[static_cast<std::size_t>(parent)].depth + 1 : 0;
        nodes_.push_back(std::move(node));
        return next;
    }

    void tie(int node, int module) {
        Node& row = nodes_[static_cast<std::size_t>(node)];
        if (module < 0 || row.module >= 0) return;
        row.module = module;
        by_module_[static_cast<std::size_t>(row.rank)].emplace(module, node);
    }

    // The parent of a module in the module table; none where it is absent or where the parents never end (a
    // broken file).
    int sound_parent(const ModuleRow& row) const {
        int above = row.parent;
        for (int depth = 0; depth < kMaxDepth; ++depth) {
            const auto next = above >= 0 ? rows_.find(above) : rows_.end();
            if (next == rows_.end()) return depth == 0 ? kNone : row.parent;
            above = next->second->parent;
        }
        return kNone;
    }

    // The row of a module: where its forward stands, else where the module table says that it belongs.
    int node_of_module(int rank, int module) {
        const auto& known = by_module_[static_cast<std::size_t>(rank)];
        if (const auto at = known.find(module); at != known.end()) return at->second;
        const auto row = rows_.find(module);
        if (row == rows_.end()) return kNone;
        const int above = parents_.at(module);
        const int parent = above >= 0 ? node_of_module(rank, above) : kNone;
        const int node = child(rank, parent, row->second->name);
        tie(node, module);
        return node;
    }

    // The row of a range's module. A range without a module's id tells it by its name, which is one module's
    // alone ("Linear_0"): the first row of that name.
    int known_node(int rank, std::size_t range) {
        const int module = trace_.ranges.module[range];
        if (module >= 0) return node_of_module(rank, module);
        const std::string_view text = trace_.strings[trace_.ranges.name[range]];
        if (!text.starts_with(kModulePrefix)) return kNone;
        const auto& known = by_name_[static_cast<std::size_t>(rank)];
        const auto at = known.find(shown_name(text));
        return at != known.end() ? at->second : kNone;
    }

    void add_range(std::size_t i) {
        const HostRanges& ranges = trace_.ranges;
        RangeState& state = states_[i];
        const std::int32_t parent = ranges.parent[i];
        const bool nested = parent >= 0 && static_cast<std::size_t>(parent) < i;
        if (nested) state = states_[static_cast<std::size_t>(parent)];
        const RangeState outer = state;
        const int rank = trace_.threads[ranges.thread[i]].rank;
        if (rank < 0 || time_of(rank).empty()) return;

        const RangeKind kind = ranges.kind[i];
        const auto name = static_cast<std::size_t>(ranges.name[i]);
        const bool starts_selected = is_selected(rank, ranges.start[i]);
        if (kind != RangeKind::function) state.solid = static_cast<int>(i);
        if (ranges.module[i] >= 0) state.module = ranges.module[i];
        state.limiter = outer.limiter || limiter_[name];
        state.unshard = outer.unshard || unshard_[name];

        const std::int64_t host = clipped(rank, ranges.start[i], ranges.end[i]);
        if (host == 0 && !starts_selected) return;
        const auto [node, backward] = row_of(i, rank, outer);
        if (node >= 0) {
            state.owner = static_cast<int>(i);
            state.node = node;
            state.backward = backward;
            tie(node, ranges.module[i]);
            Node& row = nodes_[static_cast<std::size_t>(node)];
            (backward ? row.backward : row.forward).host += host;
            if (outer.node >= 0) {
                Node& around = nodes_[static_cast<std::size_t>(outer.node)];
                (outer.backward ? around.backward : around.forward).host -= host;
            }
            if (!backward && starts_selected) ++row.occurrences;
        } else if (kind == RangeKind::annotation || kind == RangeKind::operation ||
                   kind == RangeKind::communication) {
            if (outer.solid >= 0 && outer.solid == outer.owner && starts_selected) {
                ++nodes_[static_cast<std::size_t>(outer.node)].operators;
            }
        }
        if (state.limiter && !outer.limiter) add_wait(rank, state, host);
    }

    // The row whose time the range is, and whether as its backward part; no row: the range owns no time.
    std::pair<int, bool> row_of(std::size_t i, int rank, const RangeState& outer) {
        const HostRanges& ranges = trace_.ranges;
        const bool in_backward = outer.node >= 0 && outer.backward;
        switch (ranges.kind[i]) {
            case RangeKind::module: {
                const int known = in_backward ? known_node(rank, i) : kNone;
                if (known >= 0) return {known, true};
                return {child(rank, outer.node, shown_name(trace_.strings[ranges.name[i]])), in_backward};
            }
            case RangeKind::annotation:
            case RangeKind::operation:
                if (outer.node >= 0 && !outer.backward) return {kNone, false};
                [[fallthrough]];
            case RangeKind::backward:
                return {known_node(rank, i), true};
            case RangeKind::step:
            case RangeKind::data_loader:
            case RangeKind::communication:
            case RangeKind::function:
                break;
        }
        return {kNone, false};
    }

    void add_wait(int rank, const RangeState& state, std::int64_t ns) {
        const int told = state.module >= 0 ? node_of_module(rank, state.module) : kNone;
        const int node = told >= 0 ? told : state.node;
        if (node >= 0) nodes_[static_cast<std::size_t>(node)].unshard_wait += ns;
    }

    // Host synchronisation inside an unshard, where the rate limiter has not counted it.
    void add_waits() {
        const RuntimeCalls& calls = trace_.runtime;
        for (std::size_t i = 0; i < calls.size(); ++i) {
            const int rank = trace_.threads[calls.thread[i]].rank;
            if (rank < 0 || calls.range[i] < 0 || time_of(rank).empty()) continue;
            if (!synchronizes_[static_cast<std::size_t>(calls.name[i])]) continue;
            const RangeState& state = states_[static_cast<std::size_t>(calls.range[i])];
            if (state.unshard && !state.limiter)
                add_wait(rank, state, clipped(rank, calls.start[i], calls.end[i]));
        }
    }

    void add_device_time() {
        const DeviceEvents& device = trace_.device;
        for (std::size_t i = 0; i < device.size(); ++i) {
            const std::int32_t launch = device.launch[i];
            if (launch < 0) continue;
            const std::int32_t range = trace_.runtime.range[static_cast<std::size_t>(launch)];
            if (range < 0) continue;
            const RangeState& state = states_[static_cast<std::size_t>(range)];
            const int rank = device.rank[i];
            if (state.node < 0 || nodes_[static_cast<std::size_t>(state.node)].rank != rank) continue;
            if (!is_selected(rank, launched_at(trace_, i))) continue;
            Node& own = nodes_[static_cast<std::size_t>(state.node)];
            (state.backward ? own.backward : own.forward).device += device.end[i] - device.start[i];
            // Events come sorted by start, so what reaches past the latest end so far is new to the union.
            for (int n = state.node; n >= 0; n = nodes_[static_cast<std::size_t>(n)].parent) {
                Node& row = nodes_[static_cast<std::size_t>(n)];
                if (device.end[i] <= row.busy_until) continue;
                row.busy += device.end[i] - std::max(device.start[i], row.busy_until);
                row.busy_until = device.end[i];
            }
        }
    }

    // Bytes of the collectives of the unit that a module wraps.
    void add_units() {
        std::unordered_map<int, int> module_of_unit;
        for (const UnitRow& unit : trace_.units) module_of_unit.emplace(unit.id, unit.module);
        const Collectives& collectives = trace_.collectives;
        const bool everything =
            !selection_.first_step && !selection_.last_step && !selection_.from_ns && !selection_.to_ns;
        for (std::size_t i = 0; i < collectives.size(); ++i) {
            const int rank = collectives.rank[i];
            const std::int32_t event = collectives.event[i];
            if (time_of(rank).empty()) continue;
            if (event >= 0 ? !is_selected(rank, launched_at(trace_, static_cast<std::size_t>(event)))
                           : !everything) {
                continue;
            }
            const auto unit = module_of_unit.find(collectives.unit[i]);
            if (unit == module_of_unit.end()) continue;
            const auto& known = by_module_[static_cast<std::size_t>(rank)];
            const auto node = known.find(unit->second);
            if (node == known.end()) continue;
            Node& row = nodes_[static_cast<std::size_t>(node->second)];
            const Operation operation = collectives.operation[i];
            if (operation == Operation::all_gather) row.gathered += collectives.bytes[i];
            if (operation == Operation::reduce_scatter || operation == Operation::all_reduce) {
                row.reduced += collectives.bytes[i];
            }
        }
    }

    void add_peaks() {
        if (trace_.memory.size() == 0) return;
        std::unordered_map<int, PeakIndex> indexes;
        for (const int r : ranks_) indexes.emplace(r, PeakIndex(trace_, r));
        const HostRanges& ranges = trace_.ranges;
        for (std::size_t i = 0; i < ranges.size(); ++i) {
            const RangeState& state = states_[i];
            if (state.owner != static_cast<int>(i)) continue;
            Node& row = nodes_[static_cast<std::size_t>(state.node)];
            const IntervalSet& time = time_of(row.rank);
            const std::int64_t start = std::max(ranges.start[i], time.front().start);
            const std::int64_t end = std::min(ranges.end[i], time.back().end);
            row.peak = std::max(row.peak, indexes.at(row.rank).most(start, end));
        }
    }

    // Sums up the tree; parents stand before their children. A child's call is a time inside its parent, also
    // where the parent's backward has no range of its own.
    void add_totals() {
        for (Node& row : nodes_) {
            row.total = {row.forward.host + row.backward.host, row.forward.device + row.backward.device};
            row.backward_total = row.backward;
        }
        for (std::size_t n = nodes_.size(); n-- > 0;) {
            const Node& row = nodes_[n];
            if (row.parent < 0) continue;
            Node& parent = nodes_[static_cast<std::size_t>(row.parent)];
            parent.total.host += row.total.host;
            parent.total.device += row.total.device;
            parent.backward_total.host += row.backward_total.host;
            parent.backward_total.device += row.backward_total.device;
            parent.peak = std::max(parent.peak, row.peak);
        }
    }

    std::unordered_map<int, std::int64_t> parameters_with_children() const {
        std::unordered_map<int, std::int64_t> sums;
        for (const ModuleRow& row : trace_.modules) {
            for (int at = row.id; at >= 0; at = parents_.at(at)) sums[at] += row.parameters;
        }
        return sums;
    }

    ModuleNode result(int n, const std::unordered_map<int, std::int64_t>& parameters) const {
        const Node& row = nodes_[static_cast<std::size_t>(n)];
        const auto us = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-3; };
        ModuleNode node;
        node.name = row.name;
        node.module = row.module;
        node.occurrences = row.occurrences;
        node.operators = row.operators;
        node.host_self_us = us(row.forward.host + row.backward.host);
        node.device_self_us = us(row.forward.device + row.backward.device);
        node.device_busy_us = us(row.busy);
        node.unshard_wait_us = us(row.unshard_wait);
        node.gathered_bytes = row.gathered;
        node.reduced_bytes = row.reduced;
        node.peak_bytes = row.peak;
        if (const auto sum = parameters.find(row.module); sum != parameters.end())
            node.parameters = sum->second;
        node.host_us = us(row.total.host);
        node.device_us = us(row.total.device);
        node.backward_host_us = us(row.backward_total.host);
        node.backward_device_us = us(row.backward_total.device);
        for (const int c : row.children) node.children.push_back(result(c, parameters));
        return node;
    }

    struct ChildKey {
        int rank, parent;
        std::string_view name;
        bool operator==(const ChildKey&) const = default;
    };
    struct ChildHash {
        std::size_t operator()(const ChildKey& k) const {
            return std::hash<std::string_view>()(k.name) ^
                   (static_cast<std::size_t>(k.parent + 1) * 0x9E3779B97F4A7C15u) ^
                   (static_cast<std::size_t>(k.rank) << 48);
        }
    };

    const Trace& trace_;
    const Selection& selection_;
    TraceSteps steps_;
    std::vector<int> ranks_;               // selected, as indices into Trace::ranks
    std::vector<IntervalSet> time_;        // by rank: the selected host time, empty for a rank not selected
    std::vector<RangeState> states_;       // by row of HostRanges
    std::vector<Node> nodes_;              // a parent stands before its children
    std::vector<std::vector<int>> roots_;  // by rank
    std::unordered_map<ChildKey, int, ChildHash> children_;
    std::vector<std::unordered_map<int, int>> by_module_;             // by rank: ModuleRow::id -> row
    std::vector<std::unordered_map<std::string_view, int>> by_name_;  // by rank: the first row of that name
    std::unordered_map<int, const ModuleRow*> rows_;
    std::unordered_map<int, int> parents_;  // module -> its parent in the module table, without cycles
    std::vector<bool> limiter_, unshard_, synchronizes_;  // by string: what the name says
};

}  // namespace

ModuleView module_view(const Trace& trace, const Selection& selection) {
    return Builder(trace, selection).build();
}

}  // namespace shardscope::traces
