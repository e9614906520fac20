// Latency and bandwidth of messages between two ranks over a wire alone, by the methods of the OSU
// micro-benchmarks (osu_latency, osu_bw, osu_bibw: https://mvapich.cse.ohio-state.edu/benchmarks): what the
// wire itself can do, without the threads, the headers and the order of a process group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/comm/wire.h"

namespace shardscope::trainer::comm {

// Messages that are under way at a time, as in osu_bw; fewer if they are so large that kWindowBytes are.
inline constexpr int kMessageWindow = 64;
inline constexpr std::int64_t kWindowBytes = std::int64_t{256} << 20;
int window_of(std::int64_t bytes);

struct MessageBenchOptions {
    double seconds = 0.02;    // of each of the rounds, about; a round has at least one exchange
    int rounds = 5;           // the fastest counts
    bool polls = true;        // without a pause for the first 100 us of a wait; else it sleeps between polls
    double timeout_s = 60.0;  // WireError if a message takes longer
};

// Two ranks call the same functions in the same order, one of them as the `first`; the other ranks do
// nothing. `out` and `in` are of at least the message's size; all messages of a window use the same memory,
// as OSU's do. The results are known to the first; the other gets 0. Throws WireError.
class MessageBench {
  public:
    MessageBench(Wire& wire, std::span<const std::byte> out, std::span<std::byte> in,
                 const MessageBenchOptions& options)
        : wire_(wire), out_(out), in_(in), options_(options) {}

    // Microseconds of half a round trip (osu_latency).
    double latency_us(int peer, bool first, std::int64_t bytes);
    // Microseconds per message: the first sends a window, which the other acknowledges when it has received
    // all of it (osu_bw).
    double one_way_us(int peer, bool first, std::int64_t bytes);
    // The same while the other sends such a window, too: of each pair of messages (osu_bibw).
    double both_ways_us(int peer, bool first, std::int64_t bytes);

  private:
    template <class Exchange>
    double fastest(int peer, bool first, int per_exchange, const Exchange& exchange);
    std::int64_t agree(int peer, bool first, std::int64_t number);
    void wait(Wire::Ticket ticket, int peer);
    void wait_for_all(int peer);
    std::span<const std::byte> out(std::int64_t bytes) const {
        return out_.first(static_cast<std::size_t>(bytes));
    }
    std::span<std::byte> in(std::int64_t bytes) const { return in_.first(static_cast<std::size_t>(bytes)); }

    Wire& wire_;
    std::span<const std::byte> out_;
    std::span<std::byte> in_;
    MessageBenchOptions options_;
    std::vector<Wire::Ticket> tickets_;
};

}  // namespace shardscope::trainer::comm
