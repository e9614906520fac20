// Messages of one stream to or from one peer: posted in order, a bounded number at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <utility>

#include "trainer/comm/wire.h"

namespace shardscope::trainer::comm {

class MessageLine {
  public:
    // The memory of message `index`; empty: there is no such message (a piece may be shorter than others).
    using Outgoing = std::function<std::span<const std::byte>(std::int64_t index)>;
    using Incoming = std::function<std::span<std::byte>(std::int64_t index)>;

    static MessageLine sends(Wire& wire, int to, std::uint32_t tag, std::int64_t count, Outgoing memory) {
        return {wire, count, [&wire, to, tag, memory = std::move(memory)](std::int64_t index) {
                    const auto data = memory(index);
                    return data.empty() ? 0 : wire.send(to, tag, data);
                }};
    }
    static MessageLine receives(Wire& wire, int from, std::uint32_t tag, std::int64_t count,
                                Incoming memory) {
        return {wire, count, [&wire, from, tag, memory = std::move(memory)](std::int64_t index) {
                    const auto data = memory(index);
                    return data.empty() ? 0 : wire.receive(from, tag, data);
                }};
    }

    // Notes which messages are over and posts more, up to but excluding `ready`. Whether anything changed.
    bool advance(std::int64_t ready) {
        const std::int64_t posted_before = posted_, over_before = over_;
        while (!tickets_.empty() && (tickets_.front() == 0 || wire_->done(tickets_.front()))) {
            tickets_.pop_front();
            ++over_;
        }
        for (; posted_ < std::min({ready, count_, over_ + kDepth}); ++posted_)
            tickets_.push_back(post_(posted_));
        return posted_ != posted_before || over_ != over_before;
    }

    std::int64_t over() const { return over_; }  // messages [0, over()) are over
    bool ended() const { return over_ == count_; }

    // The most messages posted at a time: enough that the wire has work while this side sums, and few enough
    // that a peer that has not posted its receives need not store much.
    static constexpr std::int64_t kDepth = 4;

  private:
    MessageLine(Wire& wire, std::int64_t count, std::function<Wire::Ticket(std::int64_t)> post)
        : wire_(&wire), count_(count), post_(std::move(post)) {}

    Wire* wire_;
    std::int64_t count_;
    std::function<Wire::Ticket(std::int64_t)> post_;
    std::deque<Wire::Ticket> tickets_;  // of messages [over_, posted_); 0: an empty message, which is over
    std::int64_t posted_ = 0, over_ = 0;
};

// A piece cut into blocks of one size; the last may be shorter.
struct Blocks {
    std::int64_t bytes = 0, block = 1;
    std::int64_t count() const { return (bytes + block - 1) / block; }
    std::int64_t begin(std::int64_t index) const { return std::min(bytes, index * block); }
    std::int64_t size(std::int64_t index) const { return begin(index + 1) - begin(index); }
    template <class Byte>
    std::span<Byte> of(Byte* data, std::int64_t index) const {
        return {data + begin(index), static_cast<std::size_t>(size(index))};
    }
};

}  // namespace shardscope::trainer::comm
