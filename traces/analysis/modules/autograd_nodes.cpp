// See autograd_nodes.h.
#include "traces/analysis/modules/autograd_nodes.h"

#include <algorithm>
#include <string_view>

#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {
namespace {

// The meaning of an operator's name, by string.
struct NodeNames {
    explicit NodeNames(const store::StringTable& strings) {
        for (std::size_t i = 0; i < strings.size(); ++i) {
            const std::string_view text = strings[static_cast<schema::StringId>(i)];
            evaluates.push_back(text.starts_with("autograd::engine::evaluate_function"));
            accumulates.push_back(text.ends_with("AccumulateGrad"));
        }
    }
    bool any() const {
        const auto in = [](const std::vector<bool>& names) {
            return std::find(names.begin(), names.end(), true) != names.end();
        };
        return in(evaluates) || in(accumulates);
    }
    std::vector<bool> evaluates, accumulates;
};

}  // namespace

AutogradNodes::AutogradNodes(const store::Trace& trace) {
    const store::HostRanges& ranges = trace.ranges;
    const NodeNames names(trace.strings);
    if (ranges.forward.empty() && !names.any()) return;
    forward_.assign(ranges.size(), kNoNode);
    std::vector<std::int32_t> node(ranges.size(), -1);  // the innermost around a range, or itself
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        if (ranges.parent[i] >= 0) node[i] = node[static_cast<std::size_t>(ranges.parent[i])];
        if (ranges.kind[i] != store::RangeKind::operation) continue;
        const auto name = static_cast<std::size_t>(ranges.name[i]);
        const std::int32_t forward = ranges.forward.empty() ? kUnknown : ranges.forward[i];
        const bool old_node = node[i] < 0 && (forward >= 0 || names.accumulates[name]);
        if (names.evaluates[name] || old_node) {
            node[i] = static_cast<std::int32_t>(i);
            forward_[i] = kUnknown;
        }
        if (forward < 0) continue;
        std::int32_t& known = forward_[static_cast<std::size_t>(node[i])];
        if (known == kUnknown) known = forward;
    }

    std::vector<std::int32_t> before(trace.threads.size(), kUnknown);  // the latest node's forward, by thread
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        if (forward_[i] == kNoNode) continue;
        std::int32_t& latest = before[ranges.thread[i]];
        if (forward_[i] == kUnknown && names.accumulates[static_cast<std::size_t>(ranges.name[i])]) {
            forward_[i] = latest;
        }
        latest = forward_[i];
    }
}

}  // namespace shardscope::traces::analysis
