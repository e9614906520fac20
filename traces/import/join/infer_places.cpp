// See infer_places.h.
#include "traces/import/join/infer_places.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

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
