// One pass over the ranges builds the tree and its host time, one over the device events adds device time;
// then totals are summed up the tree. See modules.h.
#include "traces/analysis/modules/modules.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "traces/analysis/base/intervals.h"
#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/memory/memory_curves.h"
#include "traces/analysis/modules/autograd_nodes.h"
#include "traces/analysis/modules/module_tree.h"
#include "traces/store/columns/names.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

// State of a range in the pass over the ranges. "Owner": a range whose time belongs to a row.
struct RangeState {
    int owner = -1;          // the innermost owner around it or itself: index into HostRanges
    ModuleNodeIndex node;    // the owner's row
    int solid = -1;          // the innermost around it or itself that can be directly above an operator
    int module = -1;         // the innermost module id, of a range around it or its own
    bool backward = false;   // the owner is a backward part
    bool recompute = false;  // inside a forward call that the backward repeats
    bool autograd = false;   // inside one of autograd's backward nodes
    bool limiter = false, unshard = false;  // inside the rate limiter, inside an unshard
};

// Properties of the text of a range or call, by string.
struct TextFlags {
    explicit TextFlags(const store::StringTable& strings) {
        for (std::size_t i = 0; i < strings.size(); ++i) {
            const std::string_view text = strings[static_cast<schema::StringId>(i)];
            limiter.push_back(text.find("rate_limiter") != text.npos);
            unshard.push_back(text.find("unshard") != text.npos);
            synchronizes.push_back(text.find("Synchronize") != text.npos);
            compiled.push_back(text.starts_with("Torch-Compiled Region"));
            module.push_back(text.starts_with(store::kModulePrefix));
        }
    }
    std::vector<bool> limiter, unshard, synchronizes;
    std::vector<bool> compiled;  // a region compiled by torch.compile, which is a row like a module
    std::vector<bool> module;
};

class Builder {
  public:
    Builder(const store::Trace& trace, const Selection& selection)
        : trace_(trace),
          selection_(selection),
          steps_(find_steps(trace)),
          ranks_(selected_ranks(trace, selection)),
          time_(selected_host_times(trace, steps_, selection)),
          states_(trace.ranges.size()),
          covered_until_(trace.ranges.start.begin(), trace.ranges.start.end()),
          tree_(trace),
          autograd_(trace),
          texts_(trace.strings) {
        const auto& kinds = trace.ranges.kind;
        knows_operators_ = std::find(kinds.begin(), kinds.end(), store::RangeKind::operation) != kinds.end();
    }

    ModuleView build() {
        for (std::size_t i = 0; i < trace_.ranges.size(); ++i) add_range(i);
        add_waits();
        add_device_time();
        add_units();
        add_peaks();
        tree_.add_totals();
        ModuleView view;
        for (const store::RankIndex r : ranks_) {
            view.ranks.push_back({.rank = trace_.ranks[r.at()].number, .modules = tree_.result(r)});
        }
        return view;
    }

    std::vector<RankModuleCalls> calls() {
        for (std::size_t i = 0; i < trace_.ranges.size(); ++i) add_range(i);
        std::vector<CallsOfModule> rows(tree_.nodes().size());
        for (std::size_t n = 0; n < rows.size(); ++n) {
            const ModuleTreeNode& node = tree_.nodes()[n];  // parents come first
            if (node.parent.known()) rows[n].path = rows[node.parent.at()].path + '/';
            rows[n].path += node.name;
            rows[n].module = node.module;
        }
        for (std::size_t i = 0; i < states_.size(); ++i) {
            const RangeState& state = states_[i];
            if (state.owner != static_cast<int>(i)) continue;
            if (!is_selected(tree_[state.node].rank, trace_.ranges.start[i])) continue;
            rows[state.node.at()].calls.push_back({static_cast<std::int32_t>(i), state.backward});
        }
        std::vector<RankModuleCalls> ranks;
        for (const store::RankIndex r : ranks_) {
            RankModuleCalls& rank = ranks.emplace_back();
            rank.rank = trace_.ranks[r.at()].number;
            for (std::size_t n = 0; n < rows.size(); ++n) {
                if (tree_.nodes()[n].rank == r && !rows[n].calls.empty())
                    rank.modules.push_back(std::move(rows[n]));
            }
        }
        return ranks;
    }

  private:
    const IntervalSet& time_of(store::RankIndex rank) const { return time_[rank.at()]; }

    // How much of [start, end) is selected.
    std::int64_t clipped(store::RankIndex rank, std::int64_t start, std::int64_t end) const {
        if (end <= start) return 0;
        std::int64_t sum = 0;
        const IntervalSet& set = time_of(rank);
        auto i = std::upper_bound(set.begin(), set.end(), start,
                                  [](std::int64_t t, const Interval& s) { return t < s.end; });
        for (; i != set.end() && i->start < end; ++i)
            sum += std::min(end, i->end) - std::max(start, i->start);
        return sum;
    }
    bool is_selected(store::RankIndex rank, std::int64_t t) const { return clipped(rank, t, t + 1) > 0; }

    // The row of a range's module. Without a module id, the range's name identifies the module ("Linear_0"):
    // the first row with that name.
    ModuleNodeIndex known_node(store::RankIndex rank, std::size_t range) {
        const int module = trace_.ranges.module[range];
        if (module >= 0) return tree_.of_module(rank, module);
        const schema::StringId name = trace_.ranges.name[range];
        return texts_.module[static_cast<std::size_t>(name)] ? tree_.of_name(rank, name) : ModuleNodeIndex();
    }

    void add_range(std::size_t i) {
        const store::HostRanges& ranges = trace_.ranges;
        RangeState& state = states_[i];
        const std::int32_t parent = ranges.parent[i];
        const bool nested = parent >= 0 && static_cast<std::size_t>(parent) < i;
        if (nested) state = states_[static_cast<std::size_t>(parent)];
        const RangeState outer = state;
        const store::RankIndex rank = trace_.threads[ranges.thread[i]].rank;
        if (!rank.known() || time_of(rank).empty()) return;

        const store::RangeKind kind = ranges.kind[i];
        const auto name = static_cast<std::size_t>(ranges.name[i]);
        if (kind != store::RangeKind::function &&
            !(knows_operators_ && kind == store::RangeKind::annotation)) {
            state.solid = static_cast<int>(i);
        }
        if (ranges.module[i] >= 0) state.module = ranges.module[i];
        state.limiter = outer.limiter || texts_.limiter[name];
        state.unshard = outer.unshard || texts_.unshard[name];
        state.autograd = outer.autograd || autograd_.is_node(i);

        const auto [node, backward] = row_of(i, rank, outer);
        if (node.known()) {
            own(i, node, backward, outer);
        } else if (is_operator(kind) && outer.solid >= 0 && outer.solid == outer.owner &&
                   !(knows_operators_ && outer.backward) && is_selected(rank, ranges.start[i])) {
            ++tree_[outer.node].operators;
        }
        if (state.limiter && !outer.limiter) {
            add_wait(rank, state, clipped(rank, ranges.start[i], ranges.end[i]));
        }
    }

    // Assigns the range's time to the row, and subtracts it from the row around it.
    void own(std::size_t i, ModuleNodeIndex node, bool backward, const RangeState& outer) {
        const store::HostRanges& ranges = trace_.ranges;
        RangeState& state = states_[i];
        state.owner = state.solid = static_cast<int>(i);
        state.node = node;
        state.backward = backward;
        const bool repeated = backward && ranges.kind[i] == store::RangeKind::module;
        state.recompute = backward && (repeated || outer.recompute);
        tree_.tie(node, ranges.module[i]);
        ModuleTreeNode& row = tree_[node];
        const std::int64_t host = clipped(row.rank, ranges.start[i], ranges.end[i]);
        (backward ? row.backward : row.forward).host += host;
        if (state.recompute) row.recompute.host += host;
        if (is_selected(row.rank, ranges.start[i])) {
            if (!backward) ++row.occurrences;
            if (repeated) ++row.recomputations;
        }
        if (!outer.node.known()) return;
        // If ranges overlap without nesting, each instant is subtracted once.
        std::int64_t& covered = covered_until_[static_cast<std::size_t>(outer.owner)];
        ModuleTreeNode& around = tree_[outer.node];
        const std::int64_t taken = clipped(row.rank, std::max(covered, ranges.start[i]), ranges.end[i]);
        (outer.backward ? around.backward : around.forward).host -= taken;
        if (outer.recompute) around.recompute.host -= taken;
        covered = std::max(covered, ranges.end[i]);
    }

    // Whether the kind counts as an operator directly under a module: in a trace without operators, every
    // range that is not one of ours.
    bool is_operator(store::RangeKind kind) const {
        if (knows_operators_) return kind == store::RangeKind::operation;
        return kind == store::RangeKind::annotation || kind == store::RangeKind::communication;
    }

    // The row that gets the range's time, and whether as backward time; without a row the range owns no time.
    std::pair<ModuleNodeIndex, bool> row_of(std::size_t i, store::RankIndex rank, const RangeState& outer) {
        const store::HostRanges& ranges = trace_.ranges;
        const bool in_backward = outer.autograd || (outer.node.known() && outer.backward);
        const schema::StringId name = ranges.name[i];
        switch (ranges.kind[i]) {
            case store::RangeKind::module: {
                const ModuleNodeIndex known = in_backward ? known_node(rank, i) : ModuleNodeIndex();
                if (known.known()) return {known, true};
                return {tree_.child(rank, outer.node, name), in_backward};
            }
            case store::RangeKind::annotation:
            case store::RangeKind::operation:
                if (texts_.compiled[static_cast<std::size_t>(name)] && !in_backward)
                    return {tree_.child(rank, outer.node, name), false};
                if (autograd_.is_node(i)) return {forward_node(rank, i), true};
                if (outer.node.known() && !outer.backward) return {};
                [[fallthrough]];
            case store::RangeKind::backward:
                return {known_node(rank, i), true};
            case store::RangeKind::step:
            case store::RangeKind::data_loader:
            case store::RangeKind::communication:
            case store::RangeKind::function:
                break;
        }
        return {};
    }

    // The row of the module call in which a backward node's forward operator ran.
    ModuleNodeIndex forward_node(store::RankIndex rank, std::size_t i) const {
        const std::int32_t forward = autograd_.forward_of(i);
        if (forward < 0 || static_cast<std::size_t>(forward) >= i) return {};
        const auto at = static_cast<std::size_t>(forward);
        return trace_.threads[trace_.ranges.thread[at]].rank == rank ? states_[at].node : ModuleNodeIndex();
    }

    void add_wait(store::RankIndex rank, const RangeState& state, std::int64_t ns) {
        const ModuleNodeIndex told =
            state.module >= 0 ? tree_.of_module(rank, state.module) : ModuleNodeIndex();
        // A hook of FSDP runs under the last operator inside its unit.
        const ModuleNodeIndex node = told.known() ? told : tree_.wrapper_of(state.node);
        if (node.known()) tree_[node].unshard_wait += ns;
    }

    // Host synchronisation inside an unshard, unless the rate limiter has counted it.
    void add_waits() {
        const store::RuntimeCalls& calls = trace_.runtime;
        for (std::size_t i = 0; i < calls.size(); ++i) {
            const store::RankIndex rank = trace_.threads[calls.thread[i]].rank;
            if (!rank.known() || calls.range[i] < 0 || time_of(rank).empty()) continue;
            if (!texts_.synchronizes[static_cast<std::size_t>(calls.name[i])]) continue;
            const RangeState& state = states_[static_cast<std::size_t>(calls.range[i])];
            if (state.unshard && !state.limiter)
                add_wait(rank, state, clipped(rank, calls.start[i], calls.end[i]));
        }
    }

    void add_device_time() {
        const store::DeviceEvents& device = trace_.device;
        for (std::size_t i = 0; i < device.size(); ++i) {
            const std::int32_t range = device.range[i];
            if (range < 0) continue;
            const RangeState& state = states_[static_cast<std::size_t>(range)];
            const store::RankIndex rank(device.rank[i]);
            if (!state.node.known() || tree_[state.node].rank != rank) continue;
            if (!is_selected(rank, launched_at(trace_, i))) continue;
            ModuleTreeNode& own_row = tree_[state.node];
            const std::int64_t took = device.end[i] - device.start[i];
            (state.backward ? own_row.backward : own_row.forward).device += took;
            if (state.recompute) own_row.recompute.device += took;
            // Events are sorted by start, so only time after the latest end so far is new to the union.
            for (ModuleNodeIndex n = state.node; n.known(); n = tree_[n].parent) {
                ModuleTreeNode& row = tree_[n];
                if (device.end[i] <= row.busy_until) continue;
                row.busy += device.end[i] - std::max(device.start[i], row.busy_until);
                row.busy_until = device.end[i];
            }
        }
    }

    // Adds the bytes of the collectives of the unit that a module wraps.
    void add_units() {
        const store::Collectives& collectives = trace_.collectives;
        const bool everything =
            !selection_.first_step && !selection_.last_step && !selection_.from_ns && !selection_.to_ns;
        for (std::size_t i = 0; i < collectives.size(); ++i) {
            const store::RankIndex rank(collectives.rank[i]);
            const std::int32_t event = collectives.event[i];
            if (time_of(rank).empty()) continue;
            if (event >= 0 ? !is_selected(rank, launched_at(trace_, static_cast<std::size_t>(event)))
                           : !everything) {
                continue;
            }
            const store::UnitIndex unit = trace_.unit_of_id(collectives.unit[i]);
            if (!unit.known()) continue;
            const ModuleNodeIndex node = tree_.known_module(rank, trace_.units[unit.at()].module);
            if (!node.known()) continue;
            ModuleTreeNode& row = tree_[node];
            const schema::Operation operation = collectives.operation[i];
            if (operation == schema::Operation::all_gather) row.gathered += collectives.bytes[i];
            if (operation == schema::Operation::reduce_scatter ||
                operation == schema::Operation::all_reduce) {
                row.reduced += collectives.bytes[i];
            }
        }
    }

    void add_peaks() {
        if (trace_.memory.size() == 0) return;
        std::unordered_map<store::RankIndex, PeakIndex> indexes;
        for (const store::RankIndex r : ranks_) indexes.emplace(r, PeakIndex(trace_, r));
        const store::HostRanges& ranges = trace_.ranges;
        for (std::size_t i = 0; i < ranges.size(); ++i) {
            const RangeState& state = states_[i];
            if (state.owner != static_cast<int>(i)) continue;
            ModuleTreeNode& row = tree_[state.node];
            if (clipped(row.rank, ranges.start[i], std::max(ranges.start[i] + 1, ranges.end[i])) == 0)
                continue;
            const IntervalSet& time = time_of(row.rank);
            const std::int64_t start = std::max(ranges.start[i], time.front().start);
            const std::int64_t end = std::min(ranges.end[i], time.back().end);
            row.peak = std::max(row.peak, indexes.at(row.rank).most(start, end));
        }
    }

    const store::Trace& trace_;
    const Selection& selection_;
    TraceSteps steps_;
    std::vector<store::RankIndex> ranks_;  // selected
    std::vector<IntervalSet> time_;        // by rank: the selected host time, empty for a rank not selected
    std::vector<RangeState> states_;       // by row of HostRanges
    std::vector<std::int64_t> covered_until_;  // by owner: up to where ranges inside have taken its time
    ModuleTree tree_;
    AutogradNodes autograd_;
    TextFlags texts_;
    bool knows_operators_ = false;  // the trace distinguishes operators from other ranges
};

}  // namespace

ModuleView module_view(const store::Trace& trace, const Selection& selection) {
    return Builder(trace, selection).build();
}

std::vector<RankModuleCalls> module_calls(const store::Trace& trace, const Selection& selection) {
    return Builder(trace, selection).calls();
}

Fields<ModuleNode> module_fields() {
    using N = ModuleNode;
    static constexpr Field<N> kFields[] = {
        {{"name", "Module", Unit::text, "The module's name within its parent."}, value_of<&N::name>},
        {{"occurrences", "Calls", Unit::count, "Its forward calls."}, value_of<&N::occurrences>},
        {{"operators", "Operators", Unit::count, "Operators inside."}, value_of<&N::operators>},
        {{"host_us", "Host", Unit::us, "Host time inside, forward and backward."}, value_of<&N::host_us>},
        {{"host_self_us", "Host self", Unit::us, "The same without modules inside."},
         value_of<&N::host_self_us>},
        {{"device_us", "Device", Unit::us, "Sum of the device work that was launched inside."},
         value_of<&N::device_us>},
        {{"device_self_us", "Device self", Unit::us, "The same without modules inside."},
         value_of<&N::device_self_us>},
        {{"device_busy_us", "", Unit::us, "Union of the device work that was launched inside.", in_programs},
         value_of<&N::device_busy_us>},
        {{"backward_host_us", "", Unit::us, "Host time of the backward.", in_programs},
         value_of<&N::backward_host_us>},
        {{"backward_device_us", "Backward device", Unit::us, "Device work of the backward.", everywhere, -1,
          true},
         value_of<&N::backward_device_us>},
        {{"recomputations", "Recomputed calls", Unit::count, "Forward calls that checkpointing repeats.",
          in_table | in_json, -1, true},
         value_of<&N::recomputations>},
        {{"recompute_host_us", "Recompute host", Unit::us, "Host time of these.", in_table | in_json, -1,
          true},
         value_of<&N::recompute_host_us>},
        {{"recompute_device_us", "Recompute device", Unit::us, "Device work of these.", in_table | in_json,
          -1, true},
         value_of<&N::recompute_device_us>},
        {{"parameters", "Parameters", Unit::count, "Elements of the parameters, with modules inside.",
          everywhere, -1, true},
         value_of<&N::parameters>},
        {{"gathered_bytes", "Gathered", Unit::bytes, "What its unit gathered.", everywhere, -1, true},
         value_of<&N::gathered_bytes>},
        {{"reduced_bytes", "Reduced", Unit::bytes, "What its unit reduced.", everywhere, -1, true},
         value_of<&N::reduced_bytes>},
        {{"unshard_wait_us", "Unshard wait", Unit::us, "Host time in its unit's limiter and waits.",
          everywhere, -1, true},
         value_of<&N::unshard_wait_us>},
        {{"peak_bytes", "Peak", Unit::bytes, "Most memory allocated while a call was open.", everywhere, -1,
          true},
         value_of<&N::peak_bytes>},
        {{"fqn", "Path in the model", Unit::text,
          "PyTorch's fully qualified name, where known; empty for the model itself.", everywhere, -1, true},
         value_of<&N::fqn>},
        {{"recomputations", "", Unit::count, "Forward calls that checkpointing repeats.", in_csv},
         value_of<&N::recomputations>},
        {{"recompute_host_us", "", Unit::us, "Host time of these.", in_csv}, value_of<&N::recompute_host_us>},
        {{"recompute_device_us", "", Unit::us, "Device work of these.", in_csv},
         value_of<&N::recompute_device_us>},
    };
    return kFields;
}

}  // namespace shardscope::traces::analysis
