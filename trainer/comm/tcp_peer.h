// One connection of a TcpWire: messages to and from one rank.
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

namespace shardscope::trainer::comm {

class TcpPeer {
  public:
    TcpPeer(int rank, TcpConnection connection, WireMessages& messages);

    int descriptor() const { return connection_.socket.get(); }

    // `message`: an index into the wire's messages.
    void send(std::size_t message, std::uint32_t tag);
    void receive(std::size_t message, std::uint32_t tag);

    // Each moves what can be moved now and returns whether anything moved. Throw WireError.
    bool read();
    bool write();
    bool copy();  // reads a part directly from the rank's memory

    bool has_to_write() const { return !broken_ && (!frames_.empty() || !cleared_.empty()); }
    // Whether something waits to be written, but no data of this side's messages.
    bool owes_answers() const;
    bool has_to_copy() const { return !copies_.empty(); }
    bool closed() const { return closed_; }
    // Whether messages to or from the rank are not over.
    bool under_way() const { return under_way_ != 0; }

  private:
    // A frame to be sent, and the part of a message that follows it.
    struct Outgoing {
        TcpFrame frame;
        const std::byte* data = nullptr;
        std::size_t bytes = 0;        // of the data
        std::size_t sent = 0;         // of frame and data
        std::size_t message = kNone;  // over when this has been sent
    };
    // A message that came, or was announced, before its receive was posted.
    struct Arrival {
        TcpFrame frame;
        std::vector<std::byte> data;   // of a small message
        std::size_t receiver = kNone;  // posted while the data were still arriving
    };
    struct Tag {
        std::deque<std::size_t> receives;               // messages, in order
        std::deque<std::unique_ptr<Arrival>> arrivals;  // receives or arrivals is empty
    };
    struct Cleared {
        std::size_t message;
        std::uint64_t receiver;
    };
    struct Copy {
        std::size_t message;
        std::uint64_t sender;  // the sender's number for the message
        std::uint64_t address;
    };
    static constexpr std::size_t kNone = ~std::size_t{0};

    void queue(const TcpFrame& frame, const std::byte* data, std::size_t bytes, std::size_t message);
    void queue_data();
    void sent(std::size_t bytes);
    void finish(std::size_t message);

    void take(std::size_t bytes);  // notes that data have arrived at target_
    void take_staged();
    void handle(const TcpFrame& frame);
    void handle_message(const TcpFrame& frame);
    void handle_data(const TcpFrame& frame);
    void accept(std::size_t message, const TcpFrame& frame);  // an announced message
    void arrived();                                           // all data of a frame have arrived
    void check_size(std::size_t message, const TcpFrame& frame) const;
    std::size_t known(std::uint64_t message) const;
    void forget(std::uint32_t tag);
    [[noreturn]] void fail(const std::string& clause) const;

    int rank_;
    TcpConnection connection_;
    WireMessages& messages_;
    bool broken_ = false;  // nothing can be written; what has arrived can still be read
    bool closed_ = false;
    std::size_t under_way_ = 0;

    std::deque<Outgoing> frames_;
    std::deque<Cleared> cleared_;  // large messages that may be sent, in turns

    std::vector<std::byte> staging_;
    std::size_t staged_ = 0;
    std::byte* target_ = nullptr;  // destination of the data after the last frame
    std::size_t expected_ = 0;     // bytes of those data that have not arrived
    std::size_t receiving_ = kNone;
    Arrival* arriving_ = nullptr;       // the message they belong to, if its receive was late
    std::unique_ptr<Arrival> claimed_;  // the same, once its receive has been posted
    std::unordered_map<std::uint32_t, Tag> tags_;
    std::size_t kept_ = 0;  // bytes of the arrivals' data
    std::deque<Copy> copies_;
};

}  // namespace shardscope::trainer::comm
