// See infer_places.h.
#include "traces/import/join/infer_places.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "traces/analysis/communication/matching.h"
#include "traces/analysis/fsdp/unit_names.h"
#include "traces/analysis/pipeline/actions.h"
#include "traces/schema/enums.h"
#include "traces/schema/rows.h"
#include "traces/store/columns/trace.h"
#include "traces/store/number_list.h"

namespace shardscope::traces::importer {
namespace {

bool names_actions(const store::Trace& trace) {
    for (std::size_t id = 0; id < trace.strings.size(); ++id) {
        if (!analysis::pipeline_actions(trace.strings[static_cast<schema::StringId>(id)]).empty())
            return true;
    }
    return false;
}

// Gives the groups that carry only messages the pipeline's axis.
void name_pipeline(store::Trace& trace) {
    const auto is_pipeline = [](const schema::GroupRow& group) { return group.axis == "pipeline"; };
    if (std::any_of(trace.groups.begin(), trace.groups.end(), is_pipeline) || !names_actions(trace)) return;
    std::map<std::int64_t, bool> only_messages;
    for (std::size_t i = 0; i < trace.collectives.size(); ++i) {
        const bool message = schema::is_point_to_point(trace.collectives.operation[i]);
        const auto [at, is_new] = only_messages.try_emplace(trace.collectives.group[i], message);
        at->second = at->second && message;
    }
    for (schema::GroupRow& group : trace.groups) {
        const auto at = only_messages.find(group.group);
        if (group.axis.empty() && at != only_messages.end() && at->second) group.axis = "pipeline";
    }
}

// Whether it is a range around what FSDP alone launches. Its forward is none: that runs the model.
bool is_hook_of_fsdp(std::string_view range) {
    using Mark = analysis::UnitMark;
    switch (analysis::unit_name(range).mark) {
        case Mark::pre_forward:
        case Mark::pre_backward:
        case Mark::post_backward:
        case Mark::forward_prefetch:
        case Mark::backward_prefetch:
        case Mark::other:
            return true;
        default:
            return false;
    }
}

// Gives the groups in which FSDP's hooks gather or reduce-scatter the axis that it shards over, and those in
// which they only all-reduce that of its replicas.
void name_sharding(store::Trace& trace) {
    std::map<std::int64_t, std::string_view> axes;  // of groups that have none
    for (const schema::GroupRow& group : trace.groups)
        if (group.axis.empty()) axes[group.group];
    if (axes.empty()) return;
    std::vector<bool> is_hook(trace.strings.size());
    for (std::size_t id = 0; id < is_hook.size(); ++id)
        is_hook[id] = is_hook_of_fsdp(trace.strings[static_cast<schema::StringId>(id)]);
    const auto in_hook = [&](std::int32_t range) {
        while (range >= 0 &&
               !is_hook[static_cast<std::size_t>(trace.ranges.name[static_cast<std::size_t>(range)])])
            range = trace.ranges.parent[static_cast<std::size_t>(range)];
        return range >= 0;
    };
    for (std::size_t i = 0; i < trace.collectives.size(); ++i) {
        const auto at = axes.find(trace.collectives.group[i]);
        const schema::Operation operation = trace.collectives.operation[i];
        const bool shards =
            operation == schema::Operation::all_gather || operation == schema::Operation::reduce_scatter;
        const std::int32_t event = trace.collectives.event[i];
        if (at == axes.end() || event < 0 || (!shards && operation != schema::Operation::all_reduce))
            continue;
        if (at->second == "shard" ||
            !in_hook(analysis::launching_range(trace, static_cast<std::size_t>(event))))
            continue;
        at->second = shards ? "shard" : "data";
    }
    for (schema::GroupRow& group : trace.groups)
        if (const auto at = axes.find(group.group); at != axes.end()) group.axis = at->second;
}

// By the rank's number; empty if groups disagree.
std::map<int, int> places_along(const store::Trace& trace, std::string_view axis) {
    std::map<int, int> places;
    for (const schema::GroupRow& group : trace.groups) {
        if (group.axis != axis) continue;
        const std::vector<int> ranks = store::numbers_of_list(group.ranks);
        for (std::size_t i = 0; i < ranks.size(); ++i) {
            const auto [at, is_new] = places.try_emplace(ranks[i], static_cast<int>(i));
            if (at->second != static_cast<int>(i)) return {};
        }
    }
    return places;
}

}  // namespace

void infer_places(store::Trace& trace) {
    // Importers put every rank at a place of its own along "data", which comes first.
    const auto has_place = [](const store::Rank& rank) {
        return std::any_of(rank.place.begin() + 1, rank.place.end(), [](int place) { return place != 0; });
    };
    static_assert(schema::kMeshAxes.front().name == "data");
    if (trace.groups.empty() || std::any_of(trace.ranks.begin(), trace.ranks.end(), has_place)) return;
    name_pipeline(trace);
    name_sharding(trace);
    using Place = decltype(store::Rank::place);
    std::vector<Place> inferred(trace.ranks.size());
    bool data_known = false;
    for (std::size_t axis = 0; axis < schema::kMeshAxes.size(); ++axis) {
        const std::map<int, int> places = places_along(trace, schema::kMeshAxes[axis].name);
        const bool known = std::all_of(trace.ranks.begin(), trace.ranks.end(),
                                       [&](const store::Rank& rank) { return places.contains(rank.number); });
        for (std::size_t r = 0; r < trace.ranks.size() && known; ++r)
            inferred[r][axis] = places.at(trace.ranks[r].number);
        data_known = data_known || (axis == 0 && known);
    }
    const bool any = std::any_of(inferred.begin(), inferred.end(), [](const Place& place) {
        return std::any_of(place.begin(), place.end(), [](int p) { return p != 0; });
    });
    if (!any) return;
    // Two ranks at one place along the known axes belong to different replicas.
    std::map<Place, int> seen;
    for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
        trace.ranks[r].place = inferred[r];
        if (!data_known) trace.ranks[r].place.front() = seen[inferred[r]]++;
    }
}

}  // namespace shardscope::traces::importer
