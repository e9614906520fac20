// The messages of a wire that are under way, by ticket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/comm/wire.h"

namespace shardscope::trainer::comm {

struct WireMessage {
    const std::byte* source = nullptr;  // of one that is sent
    std::byte* target = nullptr;        // of one that is received
    std::size_t size = 0, moved = 0;
    bool over = false;
};

class WireMessages {
  public:
    std::size_t open(const WireMessage& message) {
        if (free_.empty()) {
            messages_.push_back(message);
            return messages_.size() - 1;
        }
        const std::size_t id = free_.back();
        free_.pop_back();
        messages_[id] = message;
        return id;
    }
    WireMessage& operator[](std::size_t id) { return messages_[id]; }
    std::size_t size() const { return messages_.size(); }

    static Wire::Ticket ticket(std::size_t id) { return id + 1; }
    // As Wire::done.
    bool take_if_over(Wire::Ticket ticket) {
        const std::size_t id = ticket - 1;
        if (!messages_[id].over) return false;
        free_.push_back(id);
        return true;
    }

  private:
    std::vector<WireMessage> messages_;
    std::vector<std::size_t> free_;  // not in use
};

}  // namespace shardscope::trainer::comm
