// One connection of a TcpWire: what is sent to a rank and what comes from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "trainer/comm/tcp_connect.h"
#include "trainer/comm/tcp_frame.h"
#include "trainer/comm/wire_messages.h"

namespace shardscope::trainer {

class TcpPeer {
  public:
    TcpPeer(int rank, TcpConnection connection, WireMessages& messages);

    int descriptor() const { return connection_.socket.get(); }

    // `message`: a number in the messages.
    void send(std::size_t message, std::uint32_t tag);
    void receive(std::size_t message, std::uint32_t tag);

    // Move what can be moved; whether anything did. Throw WireError.
    bool read();
    bool write();
    bool copy();  // from the rank's memory, a part

    bool has_to_write() const { return !broken_ && (!frames_.empty() || !cleared_.empty()); }
    // What waits to be written is no message of this side.
    bool owes_answers() const;
    bool has_to_copy() const { return !copies_.empty(); }
    bool closed() const { return closed_; }
    // Messages to and from the rank that are not over.
    bool under_way() const { return under_way_ != 0; }

  private:
    // A frame on its way out, with the part of a message behind it.
    struct Outgoing {
        TcpFrame frame;
        const std::byte* data = nullptr;
        std::size_t bytes = 0;        // of the data
        std::size_t sent = 0;         // of frame and data
        std::size_t message = kNone;  // over when this has left
    };
    // A message that came, or was announced, before its receive.
    struct Arrival {
        TcpFrame frame;
        std::vector<std::byte> data;   // of a small one
        std::size_t receiver = kNone;  // a receive that came while the data were still coming
    };
    struct Tag {
        std::deque<std::size_t> receives;               // messages, in order
        std::deque<std::unique_ptr<Arrival>> arrivals;  // one of the two is empty
    };
    struct Cleared {
        std::size_t message;
        std::uint64_t receiver;
    };
    struct Copy {
        std::size_t message;
        std::uint64_t sender;  // its number of the message
        std::uint64_t address;
    };
    static constexpr std::size_t kNone = ~std::size_t{0};

    void queue(const TcpFrame& frame, const std::byte* data, std::size_t bytes, std::size_t message);
    void queue_data();
    void sent(std::size_t bytes);
    void finish(std::size_t message);

    void take(std::size_t bytes);  // of data
    void take_staged();
    void handle(const TcpFrame& frame);
    void handle_message(const TcpFrame& frame);
    void handle_data(const TcpFrame& frame);
    void accept(std::size_t message, const TcpFrame& frame);  // an announced one
    void arrived();                                           // all data of a frame are there
    void check_size(std::size_t message, const TcpFrame& frame) const;
    std::size_t known(std::uint64_t message) const;
    void forget(std::uint32_t tag);
    [[noreturn]] void fail(const std::string& clause) const;

    int rank_;
    TcpConnection connection_;
    WireMessages& messages_;
    bool broken_ = false;  // nothing can be written; what has come can still be read
    bool closed_ = false;
    std::size_t under_way_ = 0;

    std::deque<Outgoing> frames_;
    std::deque<Cleared> cleared_;  // large messages that go, in turns

    std::vector<std::byte> staging_;
    std::size_t staged_ = 0;
    std::byte* target_ = nullptr;  // of the data that follow the last frame
    std::size_t expected_ = 0;     // bytes of them that have not come
    std::size_t receiving_ = kNone;
    Arrival* arriving_ = nullptr;       // they came before their receive
    std::unique_ptr<Arrival> claimed_;  // which has come since
    std::unordered_map<std::uint32_t, Tag> tags_;
    std::size_t kept_ = 0;  // bytes of arrivals
    std::deque<Copy> copies_;
};

}  // namespace shardscope::trainer
