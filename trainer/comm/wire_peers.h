// What connecting a wire needs of the World.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "trainer/world/world.h"

namespace shardscope::trainer::comm {

struct WirePeers {
    int rank = 0, ranks = 1;
    std::string token;
    std::function<std::vector<std::string>(const std::string& mine)> gather;
    std::function<std::string(const std::string& from_rank_0)> broadcast;
    std::function<bool()> failed = [] { return false; };  // true ends the waiting
    // For messages: "rank 2 on host b".
    std::function<std::string(int)> where = [](int each) { return fmt::format("rank {}", each); };

    void check_failed() const {
        if (failed()) throw world::WorldError("another process of the job has failed");
    }
};

inline WirePeers peers_of(world::World& world) {
    return {.rank = world.rank(),
            .ranks = world.ranks(),
            .token = world.place().token,
            .gather = [&](const std::string& mine) { return world.gather(mine); },
            .broadcast = [&](const std::string& from_rank_0) { return world.broadcast(from_rank_0); },
            .failed = [&] { return world.failed(); },
            .where =
                [&](int rank) {
                    const world::Member& member = world.members()[static_cast<std::size_t>(rank)];
                    return fmt::format("rank {} on host {}", rank, member.host);
                }};
}

}  // namespace shardscope::trainer::comm
