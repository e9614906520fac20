// The members of a collective tell each other what they call. For a barrier that is all; for other
// collectives it determines to whom data may be sent, and which members are missing.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/comm/call_header.h"
#include "trainer/comm/wire.h"

namespace shardscope::trainer::comm {

class HeaderExchange {
  public:
    // Starts to send to all and to receive from all. `ranks`: the members' ranks, by place. The object must
    // not move while messages are under way.
    HeaderExchange(Wire& wire, const CallHeader& own, const std::vector<int>& ranks, int place);
    HeaderExchange(const HeaderExchange&) = delete;
    HeaderExchange& operator=(const HeaderExchange&) = delete;

    bool advance();  // whether anything changed

    bool begun(int place) const { return peers_[static_cast<std::size_t>(place)].begun; }
    bool all_begun() const { return missing_ == 0; }
    bool ended() const { return missing_ == 0 && sending_ == 0; }
    // The first member that has not begun; nullopt if all have.
    std::optional<int> first_missing() const;
    // The number of members that have begun such a call, including this one.
    int agreeing(const CallHeader& call) const;

    const CallHeader& own() const { return own_; }
    const CallHeader& of(int place) const { return peers_[static_cast<std::size_t>(place)].header; }
    // A member that calls something else.
    std::optional<int> divergent() const { return divergent_; }
    // Whether this member's header has been sent to all.
    bool told() const { return sending_ == 0; }

  private:
    struct Peer {
        CallHeader header;
        Wire::Ticket sent = 0, received = 0;
        bool begun = false;
    };
    Wire& wire_;
    CallHeader own_;
    std::vector<Peer> peers_;  // by place; includes this member, which has begun
    int missing_ = 0, sending_ = 0;
    std::optional<int> divergent_;
};

}  // namespace shardscope::trainer::comm
