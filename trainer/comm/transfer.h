// The data of one collective on its way: a state machine of sends and receives that never waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/collective/delays.h"
#include "trainer/comm/header_exchange.h"
#include "trainer/comm/scratch_pool.h"
#include "trainer/comm/wire.h"
#include "trainer/device/device.h"

namespace shardscope::trainer::collectives {

// What a transfer works with; all of it outlives the transfer.
struct TransferContext {
    Wire& wire;
    ScratchPool& scratch;
    const HeaderExchange& headers;
    const CollectiveLaunch& launch;
    const std::vector<int>& ranks;  // of the members, by place
    Delays* delays;                 // may be null

    std::size_t members() const { return ranks.size(); }
    std::size_t place() const { return static_cast<std::size_t>(launch.place); }
    // The places after this member's, cyclically: not all members begin with the same peer.
    std::size_t after(std::size_t steps) const { return (place() + steps) % members(); }

    // Whether `bytes` for the member at a place may be on their way. Much data waits until its receiver has
    // begun, too, so that the wire need not store it; a little goes at once.
    bool may_send(std::size_t to, std::int64_t bytes) const {
        constexpr std::int64_t kLittle = 64 << 10;
        return bytes <= kLittle || headers.begun(static_cast<int>(to));
    }
    // Receives are posted for what was announced, so that sizes match whatever the peer calls.
    bool may_receive(std::size_t from) const { return headers.begun(static_cast<int>(from)); }
};

class Transfer {
  public:
    Transfer() = default;
    virtual ~Transfer() = default;
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;

    // Does what can be done now; whether that was anything.
    virtual bool advance() = 0;
    // The output is complete and the input may be changed.
    virtual bool ended() const = 0;
    // The place of a member that this one gets something from, or that takes something from it; none where it
    // has ended, or stands still itself.
    virtual std::optional<std::size_t> awaits() const = 0;
};

}  // namespace shardscope::trainer::collectives
