#include "trainer/comm/message_bench.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include <fmt/core.h>

namespace shardscope::trainer::comm {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kData = 1, kAcknowledgement = 2, kNumber = 3;  // tags
constexpr std::int64_t kMostExchanges = 10'000;                        // osu_latency's
constexpr int kSleepUs = 200, kPollsBetweenLooks = 64;
constexpr double kPolledSeconds = 100e-6;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

int window_of(std::int64_t bytes) {
    return static_cast<int>(
        std::clamp<std::int64_t>(kWindowBytes / std::max<std::int64_t>(bytes, 1), 1, kMessageWindow));
}

// Polls briefly, then sleeps between polls: where both ranks are on one core, the other one gets it.
void MessageBench::wait(Wire::Ticket ticket, int peer) {
    Clock::time_point begin;
    bool sleeps = !options_.polls;
    for (int polls = 1; !wire_.done(ticket); ++polls) {
        wire_.progress(sleeps ? kSleepUs : 0);
        if (!sleeps && polls % kPollsBetweenLooks != 0) continue;
        if (begin == Clock::time_point()) begin = Clock::now();
        const double waited = seconds_since(begin);
        sleeps = sleeps || waited > kPolledSeconds;
        if (waited > options_.timeout_s) {
            throw WireError(fmt::format("rank {} has not answered a message of the bench for {} s", peer,
                                        options_.timeout_s),
                            peer);
        }
    }
}

void MessageBench::wait_for_all(int peer) {
    for (const Wire::Ticket ticket : tickets_) wait(ticket, peer);
    tickets_.clear();
}

// The first's number, on both.
std::int64_t MessageBench::agree(int peer, bool first, std::int64_t number) {
    const std::span one(&number, 1);
    wait(first ? wire_.send(peer, kNumber, std::as_bytes(one))
               : wire_.receive(peer, kNumber, std::as_writable_bytes(one)),
         peer);
    return number;
}

// The first exchanges warm up and tell how many fill a round. Microseconds per message.
template <class Exchange>
double MessageBench::fastest(int peer, bool first, int per_exchange, const Exchange& exchange) {
    const auto round = [&](std::int64_t exchanges) {
        const Clock::time_point begin = Clock::now();
        for (std::int64_t i = 0; i < exchanges; ++i) exchange();
        return seconds_since(begin);
    };
    round(1);
    std::int64_t exchanges = 1;
    for (double seconds = 0; exchanges < kMostExchanges;) {
        seconds = round(exchanges);
        const double wanted = static_cast<double>(exchanges) * options_.seconds / std::max(seconds, 1e-9);
        // The first decides; 0: these are enough.
        const std::int64_t next =
            agree(peer, first,
                  seconds > options_.seconds / 4
                      ? 0
                      : std::clamp(static_cast<std::int64_t>(wanted), exchanges + 1, 10 * exchanges));
        if (next == 0) break;
        exchanges = std::min(next, kMostExchanges);
    }
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < options_.rounds; ++i) best = std::min(best, round(exchanges));
    return first ? best * 1e6 / static_cast<double>(exchanges * per_exchange) : 0;
}

double MessageBench::latency_us(int peer, bool first, std::int64_t bytes) {
    return fastest(peer, first, 2, [&] {
        if (first) wait(wire_.send(peer, kData, out(bytes)), peer);
        wait(wire_.receive(peer, kData, in(bytes)), peer);
        if (!first) wait(wire_.send(peer, kData, out(bytes)), peer);
    });
}

double MessageBench::one_way_us(int peer, bool first, std::int64_t bytes) {
    const int window = window_of(bytes);
    std::byte acknowledgement{};
    const std::span one(&acknowledgement, 1);
    return fastest(peer, first, window, [&] {
        for (int i = 0; i < window; ++i)
            tickets_.push_back(first ? wire_.send(peer, kData, out(bytes))
                                     : wire_.receive(peer, kData, in(bytes)));
        wait_for_all(peer);
        wait(first ? wire_.receive(peer, kAcknowledgement, one) : wire_.send(peer, kAcknowledgement, one),
             peer);
    });
}

double MessageBench::both_ways_us(int peer, bool first, std::int64_t bytes) {
    const int window = window_of(bytes);
    std::byte acknowledgement{};
    const std::span one(&acknowledgement, 1);
    return fastest(peer, first, window, [&] {
        for (int i = 0; i < window; ++i) tickets_.push_back(wire_.receive(peer, kData, in(bytes)));
        for (int i = 0; i < window; ++i) tickets_.push_back(wire_.send(peer, kData, out(bytes)));
        wait_for_all(peer);
        wait(first ? wire_.receive(peer, kAcknowledgement, one) : wire_.send(peer, kAcknowledgement, one),
             peer);
    });
}

}  // namespace shardscope::trainer::comm
