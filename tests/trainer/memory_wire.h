// Wires between the threads of one process, for tests. A message is copied from the sender's memory when it
// is delivered, which the seed may delay: a sender that changes it too early, or a receive that is posted
// into memory that is still read, gives wrong bits (and the thread sanitizer detects it). Messages with
// different tags overtake each other at random; those with the same tag do not.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "trainer/comm/wire.h"

namespace shardscope::trainer::testing {

class MemoryWires {
  public:
    // Seed 0: everything is delivered immediately, in the order of the tags.
    explicit MemoryWires(int ranks, std::uint64_t seed = 0) : ranks_(ranks), random_(seed) {}

    std::unique_ptr<comm::Wire> wire(int rank);  // must not outlive this object

    // The rank's process is gone: the others' wires break.
    void kill(int rank) {
        const std::lock_guard lock(mutex_);
        dead_ = rank;
        moved_.notify_all();
    }
    // Messages of the rank with the tag are not delivered, as if the rank had been stopped before it sent
    // them.
    void hold_back(int rank, std::uint32_t tag) {
        const std::lock_guard lock(mutex_);
        held_ = {rank, tag};
    }
    std::int64_t bytes_sent(int rank) const {
        const std::lock_guard lock(mutex_);
        const auto found = sent_.find(rank);
        return found == sent_.end() ? 0 : found->second;
    }

  private:
    class End;
    struct Message {
        comm::Wire::Ticket ticket;
        std::span<const std::byte> data;
    };
    struct Slot {
        comm::Wire::Ticket ticket;
        std::span<std::byte> data;
    };
    struct Channel {
        std::deque<Message> sent;
        std::deque<Slot> wanted;
    };
    using Key = std::tuple<int, int, std::uint32_t>;  // from, to, tag

    std::uint64_t next_random() {
        random_ ^= random_ << 13;
        random_ ^= random_ >> 7;
        random_ ^= random_ << 17;
        return random_;
    }
    // Delivers what the rank sends and receives; called under the lock.
    bool deliver(int rank) {
        bool any = false;
        for (auto& [key, channel] : channels_) {
            const auto [from, to, tag] = key;
            if ((from != rank && to != rank) || held_ == std::pair(from, tag)) continue;
            while (!channel.sent.empty() && !channel.wanted.empty()) {
                if (random_ != 0 && next_random() % 3 != 0) break;  // delivered by a later call
                const Message message = channel.sent.front();
                const Slot slot = channel.wanted.front();
                if (message.data.size() != slot.data.size()) {
                    throw std::logic_error("a message of " + std::to_string(message.data.size()) +
                                           " bytes where " + std::to_string(slot.data.size()) +
                                           " were expected");
                }
                std::memcpy(slot.data.data(), message.data.data(), slot.data.size());
                over_.insert(message.ticket);
                over_.insert(slot.ticket);
                channel.sent.pop_front();
                channel.wanted.pop_front();
                any = true;
            }
        }
        if (any) {
            ++deliveries_;
            moved_.notify_all();
        }
        return any;
    }

    const int ranks_;
    mutable std::mutex mutex_;
    std::condition_variable moved_;
    std::map<Key, Channel> channels_;
    std::set<comm::Wire::Ticket> over_;
    std::map<int, std::int64_t> sent_;
    comm::Wire::Ticket tickets_ = 0;
    std::uint64_t deliveries_ = 0;
    std::uint64_t random_;
    int dead_ = -1;
    std::pair<int, std::uint32_t> held_ = {-1, 0};
};

class MemoryWires::End final : public comm::Wire {
  public:
    End(MemoryWires& wires, int rank) : wires_(wires), rank_(rank) {}

    int rank() const override { return rank_; }
    int ranks() const override { return wires_.ranks_; }
    const char* name() const override { return "memory"; }

    Ticket send(int to, std::uint32_t tag, std::span<const std::byte> data) override {
        const std::lock_guard lock(wires_.mutex_);
        wires_.sent_[rank_] += static_cast<std::int64_t>(data.size());
        wires_.channels_[{rank_, to, tag}].sent.push_back({++wires_.tickets_, data});
        wires_.moved_.notify_all();
        return wires_.tickets_;
    }
    Ticket receive(int from, std::uint32_t tag, std::span<std::byte> data) override {
        const std::lock_guard lock(wires_.mutex_);
        wires_.channels_[{from, rank_, tag}].wanted.push_back({++wires_.tickets_, data});
        wires_.moved_.notify_all();
        return wires_.tickets_;
    }
    bool progress(int wait_us) override {
        std::unique_lock lock(wires_.mutex_);
        const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(wait_us);
        while (true) {
            if (wires_.dead_ >= 0 && wires_.dead_ != rank_)
                throw comm::WireError("its process has ended", wires_.dead_);
            const bool moved = wires_.deliver(rank_) || seen_ != wires_.deliveries_;
            seen_ = wires_.deliveries_;
            if (moved || std::exchange(woken_, false) || wait_us == 0) return moved;
            // A message that the seed has delayed is delivered only by a later poll.
            const auto look = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
            wires_.moved_.wait_until(lock, wires_.random_ == 0 ? until : std::min(until, look));
            if (std::chrono::steady_clock::now() >= until) wait_us = 0;
        }
    }
    bool done(Ticket ticket) override {
        const std::lock_guard lock(wires_.mutex_);
        return wires_.over_.erase(ticket) > 0;
    }
    void wake() override {
        const std::lock_guard lock(wires_.mutex_);
        woken_ = true;
        wires_.moved_.notify_all();
    }

  private:
    MemoryWires& wires_;
    int rank_;
    std::uint64_t seen_ = 0;
    bool woken_ = false;
};

inline std::unique_ptr<comm::Wire> MemoryWires::wire(int rank) {
    return std::make_unique<End>(*this, rank);
}

}  // namespace shardscope::trainer::testing
