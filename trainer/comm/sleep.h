// How a wire's thread sleeps until a descriptor can be read, and how another thread wakes it by an eventfd.
#pragma once

#include <cstdint>
#include <ctime>

#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace shardscope::trainer::comm {

// Sleeps until the descriptor can be read, for `ns` at most.
inline void sleep_on(int descriptor, long ns) {
    // The kernel lets a thread oversleep by 50 us unless it asks for less.
    thread_local const int fine = ::prctl(PR_SET_TIMERSLACK, 1'000UL, 0UL, 0UL, 0UL);
    static_cast<void>(fine);
    pollfd watched{descriptor, POLLIN, 0};
    const timespec timeout{ns / 1'000'000'000, ns % 1'000'000'000};
    ::ppoll(&watched, 1, &timeout, nullptr);
}

inline void poke(int eventfd) {
    const std::uint64_t one = 1;
    // If the counter is full, the write fails, but the thread wakes anyway.
    [[maybe_unused]] const ssize_t written = ::write(eventfd, &one, sizeof one);
}

// Whether it was poked since the last call.
inline bool take_pokes(int eventfd) {
    std::uint64_t pokes = 0;
    return ::read(eventfd, &pokes, sizeof pokes) > 0;
}

}  // namespace shardscope::trainer::comm
