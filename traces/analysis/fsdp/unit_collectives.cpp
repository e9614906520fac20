// See unit_collectives.h.
#include "traces/analysis/fsdp/unit_collectives.h"

#include "traces/analysis/base/step_windows.h"
#include "traces/analysis/fsdp/unit_names.h"
#include "traces/analysis/fsdp/unit_ranges.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::analysis {

UnitCollectives::UnitCollectives(const store::Trace& trace, const UnitRanges& ranges)
    : trace_(trace), ranges_(ranges), operations_(trace) {}

std::optional<UnitCollective> UnitCollectives::of_event(std::size_t event) const {
    UnitCollective result;
    result.event = event;
    result.launched = launched_at(trace_, event);
    const UnitRanges::Place place = ranges_.at(trace_, launching_range(trace_, event), result.launched);
    result.unit = place.unit;
    result.phase = place.phase;
    schema::Operation operation = schema::Operation::other;
    if (const std::int32_t row = trace_.device.collective[event]; row >= 0) {
        const auto at = static_cast<std::size_t>(row);
        const store::Collectives& all = trace_.collectives;
        operation = all.operation[at];
        result.bytes = all.bytes[at];
        result.padding = all.padding[at];
        result.group_size = all.group_size[at];
        if (!trace_.units.empty()) result.unit = trace_.unit_of_id(all.unit[at]);
        if (all.phase[at] != schema::Phase::none) result.phase = all.phase[at];
    }
    if (operation == schema::Operation::other) operation = operations_.of_event(event);
    result.gather = operation == schema::Operation::all_gather;
    const bool reduction = operation == schema::Operation::reduce_scatter ||
                           operation == schema::Operation::all_reduce ||
                           operation == schema::Operation::reduce;
    if (!result.gather && !reduction) return std::nullopt;
    return result;
}

std::vector<UnitUse> unit_uses(const store::Trace& trace) {
    std::vector<std::int8_t> by_name(trace.strings.size(), -1);  // a UnitMark, -1 not evaluated
    std::vector<UnitUse> result(trace.ranges.size(), UnitUse::computes);
    for (std::size_t i = 0; i < result.size(); ++i) {
        std::int8_t& known = by_name[static_cast<std::size_t>(trace.ranges.name[i])];
        if (known < 0) known = static_cast<std::int8_t>(unit_name(trace.strings[trace.ranges.name[i]]).mark);
        const auto mark = static_cast<UnitMark>(known);
        if (mark == UnitMark::copy_out) {
            result[i] = UnitUse::copies_out;
        } else if (mark == UnitMark::other || mark == UnitMark::post_backward || mark == UnitMark::unshard) {
            result[i] = UnitUse::nothing;
        } else if (const std::int32_t parent = trace.ranges.parent[i]; parent >= 0) {  // parents come first
            result[i] = result[static_cast<std::size_t>(parent)];
        }
    }
    return result;
}

}  // namespace shardscope::traces::analysis
