// Pseudo-random short sleeps, for the race test: results must have the same bits whatever the timing.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace shardscope::trainer::collective {

class Delays {
  public:
    explicit Delays(std::uint64_t seed) : seed_(seed) {}

    // Sleeps at a quarter of the calls, up to 250 us; with seed 0 never. Any thread may call it.
    void maybe_sleep() {
        if (seed_ == 0) return;
        std::uint64_t x = seed_ + 0x9e3779b97f4a7c15U * (1 + calls_.fetch_add(1, std::memory_order_relaxed));
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;  // splitmix64 (Steele, Lea and Flood, OOPSLA 2014)
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
        x ^= x >> 31;
        if (x % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds((x >> 8) % 250));
    }

  private:
    std::uint64_t seed_;
    std::atomic<std::uint64_t> calls_{0};
};

}  // namespace shardscope::trainer::collective
