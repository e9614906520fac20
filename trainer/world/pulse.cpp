#include "trainer/world/pulse.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace shardscope::trainer::world {

namespace {

using Seconds = std::chrono::duration<double>;

constexpr Seconds kLongest(1.0), kShortest(0.01);
constexpr double kBeatsInTimeout = 5;

}  // namespace

Pulse::Pulse(asio::io_context& io, const Links& links, double timeout_s,
             std::function<void(int rank)> on_silent)
    : timer_(io),
      links_(links),
      timeout_(timeout_s),
      interval_(timeout_s > 0 ? std::clamp(Seconds(timeout_s / kBeatsInTimeout), kShortest, kLongest)
                              : kLongest),
      on_silent_(std::move(on_silent)),
      last_(std::chrono::steady_clock::now()) {
    wait();
}

void Pulse::wait() {
    timer_.expires_after(std::chrono::duration_cast<std::chrono::nanoseconds>(interval_));
    timer_.async_wait([this](const std::error_code& stopped) {
        if (stopped || stopped_) return;
        beat();
        if (!stopped_) wait();
    });
}

void Pulse::beat() {
    const SteadyTime now = std::chrono::steady_clock::now();
    // Where a beat is much too late, this process itself was stopped. What the others sent meanwhile has not
    // been read yet, so their timeouts start again.
    const bool stood_still = Seconds(now - last_) > timeout_ / 2 + interval_;
    last_ = now;
    std::vector<int> silent;
    for (const auto& [rank, link] : links_.by_rank()) {
        if (link->ended()) continue;
        if (stood_still) link->hear(now);
        if (link->idle()) link->send(FrameKind::alive);
        if (timeout_ > Seconds::zero() && Seconds(now - link->heard()) > timeout_) silent.push_back(rank);
    }
    for (const int rank : silent) on_silent_(rank);
}

void Pulse::stop() {
    stopped_ = true;
    timer_.cancel();
}

}  // namespace shardscope::trainer::world
