// The members of a collective tell each other what they call. That is the whole of a barrier; of other
// collectives it says to whom data may be sent, and who is missing.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/comm/call_header.h"
#include "trainer/comm/wire.h"

namespace shardscope::trainer::collectives {

class HeaderExchange {
  public:
    // Sends to all and receives from all at once. `ranks`: of the members, by place. The object stays where
    // it is while messages are on their way.
    HeaderExchange(Wire& wire, const CallHeader& own, const std::vector<int>& ranks, int place);
    HeaderExchange(const HeaderExchange&) = delete;
    HeaderExchange& operator=(const HeaderExchange&) = delete;

    bool advance();  // whether anything changed

    bool begun(int place) const { return peers_[static_cast<std::size_t>(place)].begun; }
    bool all_begun() const { return missing_ == 0; }
    bool ended() const { return missing_ == 0 && sending_ == 0; }
    // The first member that has not begun; none where all have.
    std::optional<int> first_missing() const;
    // Members that have begun such a call, this one included.
    int agreeing(const CallHeader& call) const;

    const CallHeader& own() const { return own_; }
    const CallHeader& of(int place) const { return peers_[static_cast<std::size_t>(place)].header; }
    // A member that calls something else.
    std::optional<int> divergent() const { return divergent_; }
    // Whether this member's own header is with everybody.
    bool told() const { return sending_ == 0; }

  private:
    struct Peer {
        CallHeader header;
        Wire::Ticket sent = 0, received = 0;
        bool begun = false;
    };
    Wire& wire_;
    CallHeader own_;
    std::vector<Peer> peers_;  // by place; this member's own has begun
    int missing_ = 0, sending_ = 0;
    std::optional<int> divergent_;
};

}  // namespace shardscope::trainer::collectives
