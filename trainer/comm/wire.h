// Carries the messages that collectives are made of between the processes of a job. One thread uses a Wire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

namespace shardscope::trainer::comm {

// The wire has failed; the message is one sentence.
class WireError : public std::runtime_error {
  public:
    explicit WireError(const std::string& sentence, int peer = -1)
        : std::runtime_error(sentence), peer_(peer) {}
    int peer() const { return peer_; }  // the rank at the other end; -1: unknown

  private:
    int peer_;
};

class Wire {
  public:
    // A message under way; 0: none.
    using Ticket = std::uint64_t;

    Wire() = default;
    virtual ~Wire() = default;
    Wire(const Wire&) = delete;
    Wire& operator=(const Wire&) = delete;

    virtual int rank() const = 0;
    virtual int ranks() const = 0;
    // "mpi", "gloo", "tcp": what kernels and messages call it.
    virtual const char* name() const = 0;

    // Messages between two ranks with the same tag arrive in the order in which they were sent; a receive
    // takes the next one, whose size must equal its own. The memory must stay valid until done(). Any size.
    virtual Ticket send(int to, std::uint32_t tag, std::span<const std::byte> data) = 0;
    virtual Ticket receive(int from, std::uint32_t tag, std::span<std::byte> data) = 0;

    // Whether progress() moves the data. If threads of the engine do, a caller that polls without a pause
    // takes the core from them.
    virtual bool moves_in_progress() const { return true; }
    // Moves what can be moved, waiting up to `wait_us` for something to move; returns whether anything moved.
    // Throws WireError.
    virtual bool progress(int wait_us) = 0;
    // Whether the message is over; if so, the ticket is no longer valid. Never blocks.
    virtual bool done(Ticket ticket) = 0;

    // Ends a progress() that waits, or the next one that would. Any thread.
    virtual void wake() = 0;

    // The last call except for wake(): messages under way never end, and nothing touches their memory after
    // this. Does nothing if moves_in_progress().
    virtual void abandon() {}
};

}  // namespace shardscope::trainer::comm
