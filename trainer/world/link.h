// One connection between two processes of a World: frames in, frames out. Used on the World's thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <system_error>

#include <asio/ip/tcp.hpp>

#include "trainer/world/frame.h"
#include "trainer/world/message.h"

namespace shardscope::trainer::world {

using SteadyTime = std::chrono::steady_clock::time_point;

class Link : public std::enable_shared_from_this<Link> {
  public:
    struct Events {
        std::function<void(Frame&&)> on_frame;  // a MessageError that it throws ends the link
        // Called once: the other side has closed, the connection is broken, or the data is not a frame
        // (std::errc::protocol_error). Not after close().
        std::function<void(const std::error_code&)> on_end;
    };

    explicit Link(asio::ip::tcp::socket socket);

    // Begins to read. A frame whose text is longer than `most_bytes` ends the link.
    void start(Events events, std::uint64_t most_bytes);
    // Replaces the receiver of events; may be called by the current one.
    void hand_to(Events events, std::uint64_t most_bytes);

    // The text is shared, not copied; it never blocks.
    void send(FrameKind kind, std::shared_ptr<const std::string> text);
    void send(FrameKind kind, std::string text = {});

    bool idle() const { return queue_.empty() || state_ != State::open; }  // nothing is left to write
    bool ended() const { return state_ == State::ended; }
    SteadyTime heard() const { return heard_; }  // when data last arrived
    void hear(SteadyTime now) { heard_ = now; }  // as if data had arrived now

    void finish_sending();  // queued frames are lost; the other side sees the end after what was written
    void close();           // no more events are reported

  private:
    enum class State : std::uint8_t { open, finishing, ended };
    struct Outgoing {
        FrameHeaderBytes header;
        std::shared_ptr<const std::string> text;
    };

    // Returns how much to read next; notes that data arrived.
    std::size_t listen(const std::error_code& error, std::size_t bytes);
    void read_header();
    void read_text();
    void deliver();
    void write();
    void end(const std::error_code& error);

    asio::ip::tcp::socket socket_;
    State state_ = State::open;
    std::shared_ptr<const Events> events_;
    std::uint64_t most_bytes_ = 0;
    FrameHeaderBytes header_{};
    Frame incoming_;
    std::deque<Outgoing> queue_;  // the first is being written
    SteadyTime heard_ = std::chrono::steady_clock::now();
};

}  // namespace shardscope::trainer::world
