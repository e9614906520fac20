// Requirements of every Wire, as collective functions: each rank calls them with its own wire. They throw an
// error that says what is wrong.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

#include <fmt/core.h>

#include "trainer/comm/wire.h"

namespace shardscope::trainer::testing {

using Bytes = std::vector<std::byte>;

// The content of the `index`-th message between two ranks with a tag: unique to it.
inline Bytes content(int from, int to, std::uint32_t tag, std::size_t index, std::size_t size) {
    Bytes bytes(size);
    std::uint64_t x = 0x9e3779b97f4a7c15U ^ (static_cast<std::uint64_t>(from) << 40) ^
                      (static_cast<std::uint64_t>(to) << 20) ^ tag ^ (index * 0x94d049bb133111ebU);
    for (std::size_t i = 0; i < size; i += sizeof x) {
        x = x * 6364136223846793005U + 1442695040888963407U;
        std::memcpy(bytes.data() + i, &x, std::min(sizeof x, size - i));
    }
    return bytes;
}

// Messages in flight, with their memory.
class Traffic {
  public:
    explicit Traffic(comm::Wire& wire) : wire_(wire) {}

    void send(int to, std::uint32_t tag, std::size_t index, std::size_t size) {
        sent_.push_back({content(wire_.rank(), to, tag, index, size), 0});
        sent_.back().ticket = wire_.send(to, tag, sent_.back().bytes);
    }
    void receive(int from, std::uint32_t tag, std::size_t index, std::size_t size) {
        received_.push_back({Bytes(size), 0, from, tag, index});
        received_.back().ticket = wire_.receive(from, tag, received_.back().bytes);
    }

    // Waits until all are complete, and checks that what arrived is what was sent.
    void finish(std::chrono::seconds patience = std::chrono::seconds(60)) {
        const auto deadline = std::chrono::steady_clock::now() + patience;
        for (;;) {
            std::size_t left = 0;
            for (Message& each : sent_) left += take(each) ? 0 : 1;
            for (Message& each : received_) left += take(each) ? 0 : 1;
            if (left == 0) break;
            if (std::chrono::steady_clock::now() > deadline) {
                throw std::runtime_error(
                    fmt::format("rank {}: {} messages are not over", wire_.rank(), left));
            }
            wire_.progress(1000);
        }
        for (const Message& each : received_) {
            const Bytes expected = content(each.from, wire_.rank(), each.tag, each.index, each.bytes.size());
            if (each.bytes != expected) {
                throw std::runtime_error(
                    fmt::format("rank {}: message {} of tag {} from rank {} is another one", wire_.rank(),
                                each.index, each.tag, each.from));
            }
        }
        sent_.clear();
        received_.clear();
    }

  private:
    struct Message {
        Bytes bytes;
        comm::Wire::Ticket ticket = 0;
        int from = -1;
        std::uint32_t tag = 0;
        std::size_t index = 0;
    };
    bool take(Message& message) {
        if (message.ticket != 0 && wire_.done(message.ticket)) message.ticket = 0;
        return message.ticket == 0;
    }

    comm::Wire& wire_;
    std::vector<Message> sent_, received_;
};

template <class Visit>
void for_others(const comm::Wire& wire, const Visit& visit) {
    for (int other = 0; other < wire.ranks(); other++) {
        if (other != wire.rank()) visit(other);
    }
}

// No rank leaves before all have arrived.
inline void meet(comm::Wire& wire) {
    Traffic traffic(wire);
    for_others(wire, [&](int other) { traffic.send(other, 0xeeee0000U, 0, 1); });
    for_others(wire, [&](int other) { traffic.receive(other, 0xeeee0000U, 0, 1); });
    traffic.finish();
}

inline constexpr std::size_t kSizes[] = {0, 1, 65536, 32768, 32769, 7, 3'145'745, 100'000, 65537, 2};

// Messages with the same tag arrive in order, small and large ones mixed, whichever side is first.
inline void check_order(comm::Wire& wire, bool receives_first) {
    Traffic traffic(wire);
    const auto send = [&](int other) {
        for (std::size_t i = 0; i < std::size(kSizes); i++) traffic.send(other, 5, i, kSizes[i]);
    };
    const auto receive = [&](int other) {
        for (std::size_t i = 0; i < std::size(kSizes); i++) traffic.receive(other, 5, i, kSizes[i]);
    };
    if (receives_first) for_others(wire, receive);
    for_others(wire, send);
    if (!receives_first) {
        for (int i = 0; i < 20; i++) wire.progress(500);  // all messages arrive before their receives
        for_others(wire, receive);
    }
    traffic.finish();
    meet(wire);
}

// Tags, of all 32 bits, are independent: received in another order than sent.
inline void check_tags(comm::Wire& wire) {
    const std::uint32_t tags[] = {0,     1,        2,           63,          64,         32767,
                                  32768, 1U << 20, 0x7fffffffU, 0x80000000U, 0xffffffffU};
    Traffic traffic(wire);
    for_others(wire, [&](int other) {
        for (const std::uint32_t tag : tags) {
            for (std::size_t i = 0; i < 3; i++) traffic.send(other, tag, i, 40'000 * i + tag % 1000);
        }
    });
    for_others(wire, [&](int other) {
        for (std::size_t t = std::size(tags); t-- > 0;) {
            for (std::size_t i = 0; i < 3; i++)
                traffic.receive(other, tags[t], i, 40'000 * i + tags[t] % 1000);
        }
    });
    traffic.finish();
    meet(wire);
}

// A large message without a receive does not block others.
inline void check_overtaking(comm::Wire& wire) {
    constexpr std::size_t kLarge = 5'000'000;
    Traffic large(wire), small(wire);
    for_others(wire, [&](int other) { large.send(other, 1, 0, kLarge); });
    for_others(wire, [&](int other) {
        for (std::size_t i = 0; i < 100; i++) small.send(other, 2, i, 3 * i);
        for (std::size_t i = 0; i < 100; i++) small.receive(other, 2, i, 3 * i);
    });
    small.finish();
    for_others(wire, [&](int other) { large.receive(other, 1, 0, kLarge); });
    large.finish();
    meet(wire);
}

// Many messages in random order.
inline void check_soak(comm::Wire& wire, std::uint32_t seed, int rounds) {
    std::mt19937 random(seed);  // the same on all ranks
    for (int round = 0; round < rounds; round++) {
        Traffic traffic(wire);
        std::mt19937 own(seed + static_cast<std::uint32_t>(wire.rank() + 100 * round));
        struct Message {
            std::uint32_t tag;
            std::size_t index, size;
        };
        std::vector<Message> messages;
        for (std::size_t i = 0; i < 60; i++) {
            const std::size_t size = std::size_t{1} << (random() % 19);
            messages.push_back({static_cast<std::uint32_t>(random() % 7), i, random() % size});
        }
        for_others(wire, [&](int other) {
            std::size_t sends = 0, receives = 0;
            while (sends < messages.size() || receives < messages.size()) {
                const bool send = receives == messages.size() || (sends < messages.size() && own() % 2 == 0);
                const Message& next = messages[send ? sends++ : receives++];
                if (send) traffic.send(other, next.tag, next.index, next.size);
                if (!send) traffic.receive(other, next.tag, next.index, next.size);
                if (own() % 5 == 0) wire.progress(0);
            }
        });
        traffic.finish();
    }
    meet(wire);
}

// Rank 1 sends a size that rank 0 does not expect; rank 0 gets an error.
inline void check_wrong_size(comm::Wire& wire, std::size_t sent, std::size_t expected) {
    Bytes bytes(std::max(sent, expected));
    if (wire.rank() == 1) {
        try {
            const comm::Wire::Ticket ticket = wire.send(0, 9, std::span(bytes).first(sent));
            for (int i = 0; i < 200 && !wire.done(ticket); i++) wire.progress(1000);
        } catch (const comm::WireError&) {  // rank 0 has left
        }
    }
    if (wire.rank() != 0) return;
    try {
        wire.receive(1, 9, std::span(bytes).first(expected));
        for (int i = 0; i < 5000; i++) wire.progress(1000);
    } catch (const comm::WireError& error) {
        if (error.peer() == 1) return;
        throw std::runtime_error(fmt::format("the peer is {}: {}", error.peer(), error.what()));
    }
    throw std::runtime_error("nobody said that the sizes differ");
}

}  // namespace shardscope::trainer::testing
