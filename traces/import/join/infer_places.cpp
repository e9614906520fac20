// See infer_places.h.
#include "traces/import/join/infer_places.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "traces/analysis/communication/messages.h"
#include "traces/analysis/pipeline/actions.h"
#include "traces/schema/enums.h"
#include "traces/schema/rows.h"
#include "traces/store/columns/trace.h"

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

}  // namespace

void infer_places(store::Trace& trace) {
    const auto has_place = [](const store::Rank& rank) {
        return std::any_of(rank.place.begin(), rank.place.end(), [](int place) { return place != 0; });
    };
    if (trace.groups.empty() || std::any_of(trace.ranks.begin(), trace.ranks.end(), has_place)) return;
    name_pipeline(trace);
    for (std::size_t axis = 0; axis < schema::kMeshAxes.size(); ++axis) {
        std::map<int, int> places;  // by the rank's number
        bool agree = true;
        for (const schema::GroupRow& group : trace.groups) {
            if (group.axis != schema::kMeshAxes[axis].name) continue;
            const std::vector<int> ranks = analysis::ranks_of_text(group.ranks);
            for (std::size_t i = 0; i < ranks.size(); ++i) {
                const auto [at, is_new] = places.try_emplace(ranks[i], static_cast<int>(i));
                agree = agree && at->second == static_cast<int>(i);
            }
        }
        agree = agree && std::all_of(trace.ranks.begin(), trace.ranks.end(),
                                     [&](const store::Rank& rank) { return places.contains(rank.number); });
        for (std::size_t r = 0; r < trace.ranks.size() && agree; ++r)
            trace.ranks[r].place[axis] = places.at(trace.ranks[r].number);
    }
}

}  // namespace shardscope::traces::importer
