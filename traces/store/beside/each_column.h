// The columns of a trace by name, with the bounds of those that are indexes. What a trace keeps in columns is
// listed here once, for all that treats every column alike.
#pragma once

#include "traces/store/columns/column_bound.h"
#include "traces/store/columns/names.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::store {

// The numbers of things that columns point to; of a trace that is being read, as its file says.
struct ColumnLimits {
    std::size_t strings = 0, ranks = 0, threads = 0, streams = 0;
    std::size_t device = 0, ranges = 0, runtime = 0, collectives = 0;
};

// Calls visit(name, column, bound) for each column; `of` is a Trace, const or not.
template <typename TraceOrConst, typename Visit>
void visit_columns(TraceOrConst& of, const ColumnLimits& limits, Visit visit) {
    constexpr ColumnBound any;
    const auto index = [](std::size_t limit) { return ColumnBound::index(limit); };
    const auto or_none = [](std::size_t limit) { return ColumnBound::index_or_none(limit); };
    // A column that few traces fill and others leave empty.
    const auto rare = [](ColumnBound bound) {
        bound.may_be_empty = true;
        return bound;
    };
    const ColumnBound text = index(limits.strings), rank = index(limits.ranks),
                      rank_or_none = or_none(limits.ranks);

    auto& d = of.device;
    visit("device.start", d.start, any);
    visit("device.end", d.end, any);
    visit("device.correlation", d.correlation, any);
    visit("device.bytes", d.bytes, any);
    visit("device.name", d.name, text);
    visit("device.launch", d.launch, rare(or_none(limits.runtime)));
    visit("device.collective", d.collective, rare(or_none(limits.collectives)));
    visit("device.rank", d.rank, rank);
    visit("device.stream", d.stream, index(limits.streams));
    visit("device.kind", d.kind, index(kDeviceKinds));
    visit("device.copy_kind", d.copy_kind, any);
    visit("device.range", d.range, rare(or_none(limits.ranges)));
    visit("device.blocks_per_sm", d.blocks_per_sm, rare(any));
    visit("device.occupancy", d.occupancy, rare(any));

    auto& r = of.ranges;
    visit("ranges.start", r.start, any);
    visit("ranges.end", r.end, any);
    visit("ranges.name", r.name, text);
    visit("ranges.module", r.module, any);
    visit("ranges.parent", r.parent, ColumnBound{.kind = ColumnBound::Kind::earlier});
    visit("ranges.thread", r.thread, index(limits.threads));
    visit("ranges.depth", r.depth, any);
    visit("ranges.kind", r.kind, index(kRangeKinds));
    visit("ranges.detail", r.detail, rare(text));
    visit("ranges.forward", r.forward, rare(or_none(limits.ranges)));

    auto& m = of.marks;
    visit("marks.time", m.time, any);
    visit("marks.name", m.name, text);
    visit("marks.thread", m.thread, index(limits.threads));

    auto& p = of.samples;
    visit("samples.time", p.time, any);
    visit("samples.weight", p.weight, any);
    visit("samples.event", p.event, text);
    visit("samples.stack", p.stack, text);
    visit("samples.cpu", p.cpu, any);
    visit("samples.thread", p.thread, index(limits.threads));

    auto& c = of.runtime;
    visit("runtime.start", c.start, any);
    visit("runtime.end", c.end, any);
    visit("runtime.correlation", c.correlation, any);
    visit("runtime.name", c.name, text);
    visit("runtime.thread", c.thread, index(limits.threads));
    visit("runtime.range", c.range, or_none(limits.ranges));

    auto& w = of.synchronizations;
    visit("waits.start", w.start, any);
    visit("waits.end", w.end, any);
    visit("waits.call", w.call, or_none(limits.runtime));
    visit("waits.stream", w.stream, or_none(limits.streams));
    visit("waits.rank", w.rank, rank_or_none);
    visit("waits.type", w.type, any);

    auto& o = of.collectives;
    visit("collectives.correlation", o.correlation, any);
    visit("collectives.bytes", o.bytes, any);
    visit("collectives.padding", o.padding, any);
    visit("collectives.group", o.group, any);
    visit("collectives.sequence", o.sequence, any);
    visit("collectives.group_size", o.group_size, any);
    visit("collectives.unit", o.unit, any);
    visit("collectives.event", o.event, or_none(limits.device));
    visit("collectives.rank", o.rank, rank);
    visit("collectives.operation", o.operation, index(schema::kOperations));
    visit("collectives.phase", o.phase, index(schema::kPhases));

    auto& a = of.memory;
    visit("memory.time", a.time, any);
    visit("memory.bytes", a.bytes, any);
    visit("memory.address", a.address, any);
    visit("memory.unit", a.unit, any);
    visit("memory.module", a.module, any);
    visit("memory.name", a.name, text);
    visit("memory.rank", a.rank, rank);
    visit("memory.category", a.category, index(schema::kMemoryCategories));
    visit("memory.space", a.space, index(schema::kMemorySpaces));
    visit("memory.phase", a.phase, index(schema::kPhases));
    visit("memory.annotation", a.annotation, rare(text));
    visit("memory.stack", a.stack, rare(text));
    visit("memory.device", a.device, rare(any));
    visit("memory.stream", a.stream, rare(any));

    auto& s = of.segments;
    visit("segments.time", s.time, any);
    visit("segments.bytes", s.bytes, any);
    visit("segments.address", s.address, any);
    visit("segments.stream", s.stream, any);
    visit("segments.rank", s.rank, rank);

    auto& n = of.counters;
    visit("counters.time", n.time, any);
    visit("counters.value", n.value, any);
    visit("counters.name", n.name, text);
    visit("counters.rank", n.rank, rank_or_none);
    visit("counters.host", n.host, text);
    visit("counters.device", n.device, any);
}

}  // namespace shardscope::traces::store
