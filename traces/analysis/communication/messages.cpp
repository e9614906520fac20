// See messages.h.
#include "traces/analysis/communication/messages.h"

#include <algorithm>
#include <set>

#include "traces/analysis/communication/matching.h"
#include "traces/schema/enums.h"
#include "traces/schema/text.h"
#include "traces/store/columns/trace.h"
#include "traces/store/number_list.h"

namespace shardscope::traces::analysis {
namespace {

// The two places of "nccl:send 0->1" or "nccl:recv 1<-0", the sender's first; none of another name.
std::optional<std::pair<std::size_t, std::size_t>> places_of_name(std::string_view name) {
    const bool sends = name.starts_with("nccl:send ");
    if (!sends && !name.starts_with("nccl:recv ")) return {};
    name.remove_prefix(std::string_view("nccl:send ").size());
    const std::string_view arrow = sends ? "->" : "<-";
    const std::size_t at = name.find(arrow);
    if (at == std::string_view::npos) return {};
    const auto own = schema::number_of<std::size_t>(name.substr(0, at));
    const auto other = schema::number_of<std::size_t>(name.substr(at + arrow.size()));
    if (!own || !other) return {};
    return sends ? std::pair(*own, *other) : std::pair(*other, *own);
}

}  // namespace

Messages::Messages(const store::Trace& trace) : trace_(trace) {
    const store::Collectives& collectives = trace.collectives;
    std::map<std::int64_t, std::set<int>> seen;  // of groups with messages
    for (std::size_t i = 0; i < collectives.size(); ++i) {
        if (schema::is_point_to_point(collectives.operation[i]))
            seen[collectives.group[i]].insert(trace.ranks[collectives.rank[i]].number);
    }
    for (const schema::GroupRow& group : trace.groups) {
        if (!seen.contains(group.group)) continue;
        if (std::vector<int> ranks = store::numbers_of_list(group.ranks); !ranks.empty())
            members_.emplace(group.group, std::move(ranks));
    }
    // Without a list of its ranks: two that were seen are all of a group of two.
    for (std::size_t i = 0; i < collectives.size(); ++i) {
        const auto at = seen.find(collectives.group[i]);
        if (at != seen.end() && at->second.size() == 2 && collectives.group_size[i] == 2)
            members_.try_emplace(at->first, at->second.begin(), at->second.end());
    }
}

MessageEnds Messages::ends_of(std::size_t row) const {
    const auto at = members_.find(trace_.collectives.group[row]);
    if (at == members_.end()) return {};
    const std::vector<int>& members = at->second;
    const int own = trace_.ranks[trace_.collectives.rank[row]].number;
    const bool sends = trace_.collectives.operation[row] == schema::Operation::send;
    if (members.size() == 2 && (own == members[0] || own == members[1])) {
        const int other = members[0] + members[1] - own;
        return sends ? MessageEnds{own, other} : MessageEnds{other, own};
    }
    const std::int32_t event = trace_.collectives.event[row];
    if (event < 0) return {};
    constexpr int kMostLevels = 8;
    std::int32_t range = launching_range(trace_, static_cast<std::size_t>(event));
    for (int level = 0; range >= 0 && level < kMostLevels; ++level) {
        const auto r = static_cast<std::size_t>(range);
        if (const auto places = places_of_name(trace_.strings[trace_.ranges.name[r]])) {
            const auto [source, destination] = *places;
            if (source >= members.size() || destination >= members.size() || source == destination) return {};
            const MessageEnds ends = {members[source], members[destination]};
            return (sends ? ends.source : ends.destination) == own ? ends : MessageEnds();
        }
        range = trace_.ranges.parent[r];
    }
    return {};
}

}  // namespace shardscope::traces::analysis
