#include "trainer/comm/membership.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include <fmt/core.h>

#include "trainer/collective/pieces.h"
#include "trainer/comm/block_sums.h"

namespace shardscope::trainer::comm {

std::vector<int> members_of(const plan::Mesh& mesh, int rank, plan::CommunicatorId communicator) {
    for (std::size_t g = 0; g < plan::kGroupNames.size(); ++g) {
        const auto group = static_cast<plan::Group>(g);
        if (mesh.id(group, rank) != communicator) continue;
        std::vector<int> ranks;
        ranks.reserve(static_cast<std::size_t>(mesh.size(group)));
        for (int place = 0; place < mesh.size(group); ++place)
            ranks.push_back(mesh.member(group, rank, place));
        return ranks;
    }
    std::vector<int> ends = mesh.ends(communicator);
    if (std::find(ends.begin(), ends.end(), rank) == ends.end()) return {};
    return ends;
}

void check_call(const plan::Mesh& mesh, int rank, const device::CollectiveLaunch& collective) {
    const std::vector<int> ranks = members_of(mesh, rank, collective.communicator);
    const auto place = static_cast<std::size_t>(collective.place);
    if (collective.members != static_cast<int>(ranks.size()) || place >= ranks.size() ||
        ranks[place] != rank) {
        throw std::logic_error(fmt::format("rank {} is not at place {} of {} of communicator {}", rank,
                                           collective.place, collective.members, collective.communicator));
    }
    switch (collective.call.operation) {
        case plan::Operation::reduce_scatter:
        case plan::Operation::all_reduce:
            if (!can_sum(collective.call.dtype)) throw std::logic_error("collectives do not sum integers");
            break;
        case plan::Operation::all_to_all:
            (void)collective::sent_piece(collective.call, ranks.size(), 0);
            break;
        case plan::Operation::all_gather:
        case plan::Operation::broadcast:
        case plan::Operation::barrier:
        case plan::Operation::send:
        case plan::Operation::recv:
            break;
        default:
            throw std::logic_error(fmt::format("processes cannot run this collective: {}",
                                               traces::schema::name(collective.call.operation)));
    }
}

}  // namespace shardscope::trainer::comm
