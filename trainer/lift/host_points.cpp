#include "trainer/lift/host_points.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "traces/analysis/modules/autograd_nodes.h"
#include "traces/schema/sort_rows.h"
#include "traces/store/columns/names.h"
#include "traces/store/columns/trace.h"

namespace shardscope::trainer::lift {

namespace {

using traces::schema::StringId;
using traces::store::RangeKind;
using traces::store::Trace;

bool is_engine_name(std::string_view text) {
    if (text == "FSDP::cast_forward_inputs") return false;  // once, whatever is wrapped
    if (text.starts_with("FullyShardedDataParallel.")) return text != "FullyShardedDataParallel.forward";
    for (const std::string_view prefix :
         {"FSDP::", "_unshard", "_pre_forward_unshard", "_sync_module_states",
          "torch.distributed.ddp.reducer", "nccl:", "c10d::", "record_param_comms", "Reducer.cpp"}) {
        if (text.starts_with(prefix)) return true;
    }
    return false;
}

bool is_wait(std::string_view call) {
    return call.find("Synchronize") != call.npos && call.find("Event") == call.npos
               ? true
               : call == "cudaEventSynchronize" || call == "hipEventSynchronize";
}

bool is_event(std::string_view call) {
    return call.ends_with("EventRecord") || call.ends_with("StreamWaitEvent") ||
           call.ends_with("EventRecordWithFlags");
}

}  // namespace

bool is_optimizer_name(std::string_view range) {
    return range.starts_with("Optimizer.") || range.starts_with("ZeroRedundancyOptimizer") ||
           range.starts_with("clip_grad_norm_");
}

bool is_wrapper(std::string_view class_name) {
    return class_name == "FullyShardedDataParallel" || class_name == "DistributedDataParallel";
}

HostRangeRoles::HostRangeRoles(const Trace& trace, bool hosts)
    : roles_(trace.ranges.size(), 0), node_(trace.ranges.size(), -1), forward_(trace.ranges.size(), -1) {
    const traces::store::HostRanges& ranges = trace.ranges;
    const traces::analysis::AutogradNodes nodes(trace);
    std::vector<bool> wrappers;  // by ModuleRow::id
    for (const traces::schema::ModuleRow& row : trace.modules) {
        if (row.id < 0) continue;
        const auto id = static_cast<std::size_t>(row.id);
        if (wrappers.size() <= id) wrappers.resize(id + 1, false);
        wrappers[id] = is_wrapper(row.class_name);
    }
    std::vector<std::uint8_t> by_name(trace.strings.size(), 0);
    std::vector<bool> evaluates(trace.strings.size(), false);
    for (std::size_t s = 0; s < by_name.size(); ++s) {
        const std::string_view text = trace.strings[static_cast<StringId>(s)];
        const bool adds = hosts && text == "torch::autograd::AccumulateGrad";  // into DDP's bucket
        by_name[s] = adds || is_engine_name(text) ? kEngine : is_optimizer_name(text) ? kOptimizer : 0;
        // A range of autograd, or of a module's backward (samples/pytorch).
        evaluates[s] = text.starts_with("autograd::engine::evaluate_function") ||
                       (text.starts_with(traces::store::kModulePrefix) &&
                        text.ends_with(traces::store::kBackwardSuffix));
    }
    for (std::size_t r = 0; r < ranges.size(); ++r) {
        const std::int32_t parent = ranges.parent[r];
        const auto name = static_cast<std::size_t>(ranges.name[r]);
        std::uint8_t role = by_name[name];
        if (ranges.kind[r] == RangeKind::communication) role |= kEngine;
        const auto module = static_cast<std::size_t>(ranges.module[r]);
        if (ranges.module[r] >= 0 && module < wrappers.size() && wrappers[module] &&
            ranges.kind[r] != RangeKind::module)
            role |= kEngine;  // hooks, and the backward of the views of a flat parameter
        if (parent >= 0) {
            role |= roles_[static_cast<std::size_t>(parent)];
            node_[r] = node_[static_cast<std::size_t>(parent)];
        }
        const bool is_node = evaluates[name] || nodes.is_node(r);
        if (is_node) {
            if (node_[r] < 0) node_[r] = static_cast<std::int32_t>(r);
            role |= kBackward;
            if (nodes.is_node(r)) {
                const std::int32_t forward = nodes.forward_of(r);
                forward_[r] = forward;
                // The backward of a hook's work (the views of a flat parameter) belongs to the hook, too.
                if (forward >= 0 && has(forward, kEngine)) role |= kEngine;
            }
        }
        roles_[r] = role;
    }
}

HostPoints::HostPoints(const Trace& trace, const HostRangeRoles& roles, traces::store::RankIndex rank,
                       bool hosts)
    : trace_(trace),
      roles_(roles),
      rank_(rank),
      hosts_(hosts),
      ranges_(trace.threads.size()),
      event_of_call_(trace.runtime.size(), -1),
      waits_(trace.runtime.size(), false) {
    for (std::size_t r = 0; r < trace.ranges.size(); ++r) {
        if (trace.threads[trace.ranges.thread[r]].rank == rank_)
            ranges_[trace.ranges.thread[r]].push_back(static_cast<std::int32_t>(r));
    }
    for (std::size_t e = 0; e < trace.device.size(); ++e) {
        if (const std::int32_t call = trace.device.launch[e]; call >= 0)
            event_of_call_[static_cast<std::size_t>(call)] = static_cast<std::int32_t>(e);
    }
    for (std::size_t e = 0; e < trace.device.size(); ++e) {
        if (trace.device.rank[e] == rank_.column() &&
            trace.device.kind[e] == traces::store::DeviceKind::communication)
            communication_ends_.push_back(trace.device.end[e]);
    }
    std::sort(communication_ends_.begin(), communication_ends_.end());
    for (const std::int32_t call : trace.synchronizations.call)
        if (call >= 0) waits_[static_cast<std::size_t>(call)] = true;
    std::vector<bool> waiting_name(trace.strings.size(), false);
    for (std::size_t s = 0; s < waiting_name.size(); ++s)
        waiting_name[s] = is_wait(trace.strings[static_cast<StringId>(s)]);
    for (std::size_t c = 0; c < waits_.size(); ++c)
        if (waiting_name[static_cast<std::size_t>(trace.runtime.name[c])]) waits_[c] = true;
}

std::int64_t HostPoints::communication_before(std::int64_t time) const {
    const auto after = std::upper_bound(communication_ends_.begin(), communication_ends_.end(), time);
    return after == communication_ends_.begin() ? 0 : *std::prev(after);
}

std::int32_t HostPoints::innermost(std::size_t thread, std::int64_t time) const {
    const std::vector<std::int32_t>& all = ranges_[thread];
    auto after = std::upper_bound(all.begin(), all.end(), time, [&](std::int64_t t, std::int32_t r) {
        return t < trace_.ranges.start[static_cast<std::size_t>(r)];
    });
    if (after == all.begin()) return -1;
    std::int32_t range = *std::prev(after);
    while (range >= 0 && trace_.ranges.end[static_cast<std::size_t>(range)] <= time)
        range = trace_.ranges.parent[static_cast<std::size_t>(range)];
    return range;
}

std::int32_t HostPoints::innermost(std::int64_t time) const {
    std::int32_t best = -1;
    for (std::size_t t = 0; t < ranges_.size(); ++t) {
        if (ranges_[t].empty()) continue;
        const std::int32_t range = innermost(t, time);
        if (range < 0) continue;
        if (best < 0 || trace_.ranges.start[static_cast<std::size_t>(range)] >
                            trace_.ranges.start[static_cast<std::size_t>(best)])
            best = range;
    }
    return best;
}

// The module calls of a thread, properly nested: each closes before the enclosing one does and before the
// next one opens, even if they end or begin at the same instant. A call that outlasts the enclosing one ends
// with it.
void HostPoints::add_calls(std::size_t thread, traces::analysis::Interval host,
                           std::vector<Point>& points) const {
    struct OpenCall {
        std::int32_t range = -1;
        std::int64_t end = 0;
    };
    std::vector<OpenCall> open;
    const auto add = [&](Point::Kind kind, std::int32_t r, std::int64_t time) {
        points.push_back({kind, time, time, r, trace_.ranges.parent[static_cast<std::size_t>(r)]});
    };
    const auto close_until = [&](std::int64_t time) {
        for (; !open.empty() && open.back().end <= time; open.pop_back())
            add(Point::Kind::close, open.back().range, open.back().end);
    };
    for (const std::int32_t r : ranges_[thread]) {
        const auto i = static_cast<std::size_t>(r);
        const std::int64_t start = trace_.ranges.start[i];
        const bool inside = host.start <= start && start < host.end;
        if (trace_.ranges.kind[i] != RangeKind::module || !inside || roles_.backward(r)) continue;
        close_until(start);
        std::int64_t end = std::max(start, trace_.ranges.end[i]);
        if (!open.empty()) end = std::min(end, open.back().end);
        add(Point::Kind::open, r, start);
        open.push_back({r, end});
    }
    close_until(std::numeric_limits<std::int64_t>::max());
}

// The outermost ranges of FSDP, DDP and the optimizer, so that the host's time in them is not the model's.
void HostPoints::add_engine(std::size_t thread, traces::analysis::Interval host,
                            std::vector<Point>& points) const {
    const auto around = [&](std::int32_t r) { return roles_.engine(r) || roles_.optimizer(r); };
    for (const std::int32_t r : ranges_[thread]) {
        const auto i = static_cast<std::size_t>(r);
        const std::int64_t start = trace_.ranges.start[i], end = trace_.ranges.end[i];
        if (start < host.start || start >= host.end || !around(r) || around(trace_.ranges.parent[i]))
            continue;
        points.push_back({Point::Kind::enter, start, start, r, r});
        points.push_back({Point::Kind::leave, end, end, r, r});
    }
}

std::vector<Point> HostPoints::of(traces::analysis::Interval host) const {
    std::vector<Point> points;
    const auto inside = [&](std::int64_t time) { return host.start <= time && time < host.end; };
    for (std::size_t t = 0; t < ranges_.size(); ++t) {
        add_calls(t, host, points);
        if (hosts_) add_engine(t, host, points);
    }
    const traces::store::RuntimeCalls& calls = trace_.runtime;
    for (std::size_t c = 0; c < calls.size(); ++c) {
        if (!inside(calls.start[c]) || trace_.threads[calls.thread[c]].rank != rank_) continue;
        Point point{Point::Kind::other, calls.start[c], calls.end[c], static_cast<std::int32_t>(c),
                    calls.range[c]};
        if (const std::int32_t event = event_of_call_[c]; event >= 0) {
            point.kind = Point::Kind::work;
            point.index = event;
        } else if (waits_[c]) {
            point.kind = Point::Kind::wait;
        } else if (is_event(trace_.strings[calls.name[c]])) {
            point.kind = Point::Kind::event;
        }
        points.push_back(point);
    }
    for (std::size_t m = 0; m < trace_.memory.size(); ++m) {
        if (!inside(trace_.memory.time[m]) || trace_.memory.rank[m] != rank_.column()) continue;
        const std::int64_t time = trace_.memory.time[m];
        points.push_back({trace_.memory.bytes[m] > 0 ? Point::Kind::allocate : Point::Kind::free, time, time,
                          static_cast<std::int32_t>(m), innermost(time)});
    }
    // Module calls are in nesting order, which the stable sort keeps among those at one instant.
    const auto key = [](const Point& p) {
        const bool call = p.kind == Point::Kind::close || p.kind == Point::Kind::open;
        return std::pair(p.time, call ? Point::Kind::close : p.kind);
    };
    traces::schema::sort_rows(points, [&](const Point& a, const Point& b) { return key(a) < key(b); });
    return points;
}

}  // namespace shardscope::trainer::lift
