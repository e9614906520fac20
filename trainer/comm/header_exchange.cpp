#include "trainer/comm/header_exchange.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "trainer/comm/message_tag.h"

namespace shardscope::trainer::comm {

HeaderExchange::HeaderExchange(Wire& wire, const CallHeader& own, const std::vector<int>& ranks, int place)
    : wire_(wire), own_(own), peers_(ranks.size()) {
    const std::uint32_t tag = message_tag(own.communicator, own.sequence, MessageStream::header);
    // From the next place on, so that not all members begin with the same peer.
    for (std::size_t i = 1; i < ranks.size(); ++i) {
        const std::size_t to = (static_cast<std::size_t>(place) + i) % ranks.size();
        Peer& peer = peers_[to];
        peer.received = wire.receive(ranks[to], tag, std::as_writable_bytes(std::span(&peer.header, 1)));
        peer.sent = wire.send(ranks[to], tag, std::as_bytes(std::span(&own_, 1)));
        ++missing_;
        if (peer.sent != 0) ++sending_;
    }
    peers_[static_cast<std::size_t>(place)].begun = true;
    peers_[static_cast<std::size_t>(place)].header = own;
}

bool HeaderExchange::advance() {
    if (ended()) return false;
    const int before = missing_ + sending_;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
        Peer& peer = peers_[i];
        if (!peer.begun && wire_.done(peer.received)) {
            peer.begun = true;
            --missing_;
            if (!agree(peer.header, own_) && !divergent_) divergent_ = static_cast<int>(i);
        }
        if (peer.sent != 0 && wire_.done(peer.sent)) {
            peer.sent = 0;
            --sending_;
        }
    }
    return missing_ + sending_ != before;
}

std::optional<int> HeaderExchange::first_missing() const {
    for (std::size_t i = 0; i < peers_.size(); ++i) {
        if (!peers_[i].begun) return static_cast<int>(i);
    }
    return std::nullopt;
}

int HeaderExchange::agreeing(const CallHeader& call) const {
    return static_cast<int>(std::count_if(
        peers_.begin(), peers_.end(), [&](const Peer& peer) { return peer.begun && peer.header == call; }));
}

}  // namespace shardscope::trainer::comm
