// The data transfer of one collective: a state machine of sends and receives that never waits.
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

namespace shardscope::trainer::comm {

// What a transfer works with; all of it outlives the transfer.
struct TransferContext {
    Wire& wire;
    ScratchPool& scratch;
    const HeaderExchange& headers;
    const device::CollectiveLaunch& launch;
    const std::vector<int>& ranks;  // the members' ranks, by place
    collective::Delays* delays;     // may be null

    std::size_t members() const { return ranks.size(); }
    std::size_t place() const { return static_cast<std::size_t>(launch.place); }
    // The place `steps` after this member's, cyclically, so that not all members begin with the same peer.
    std::size_t after(std::size_t steps) const { return (place() + steps) % members(); }

    // Whether `bytes` may be sent to the member at a place. Much data waits until the receiver has begun,
    // too, so that the wire need not store it; a little is sent immediately.
    static constexpr std::int64_t kLittle = 64 << 10;
    bool may_send(std::size_t to, std::int64_t bytes) const {
        return bytes <= kLittle || headers.begun(static_cast<int>(to));
    }
    // Receives are posted only for what was announced, so that sizes match whatever the peer calls.
    bool may_receive(std::size_t from) const { return headers.begun(static_cast<int>(from)); }
};

class Transfer {
  public:
    Transfer() = default;
    virtual ~Transfer() = default;
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;

    // Does what can be done now; returns whether that was anything.
    virtual bool advance() = 0;
    // The output is complete and the input may be changed.
    virtual bool ended() const = 0;
    // The place of a member from which this one needs something, or which has not taken something from it;
    // nullopt if the transfer has ended, or is stuck on this side.
    virtual std::optional<std::size_t> awaits() const = 0;
};

}  // namespace shardscope::trainer::comm
